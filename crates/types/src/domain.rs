//! Under way.

use crate::TypeOps;
use crate::scalar::pseudo::UNSUPPORTED;

/// Under way.
pub static OPS: TypeOps = UNSUPPORTED;
