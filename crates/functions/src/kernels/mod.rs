//! The kernels, one module a family. Each has a `KERNELS` table from `pg_proc` OID to kernel; a new family adds its table
//! to [`FAMILIES`] and nothing else.

pub mod boolean;
pub mod compare;
pub mod int;
pub mod session;

use crate::kernel::Entry;

/// All tables. An OID is in one of them only (a test walks them).
pub(crate) static FAMILIES: &[&[Entry]] =
    &[boolean::KERNELS, compare::KERNELS, int::ARITHMETIC, int::UNARY_AND_BITS, session::KERNELS];
