//! The kernels, one module a family. Each has a `KERNELS` table from `pg_proc` OID to kernel; a new family adds its table
//! to [`FAMILIES`] and nothing else.

mod are;
pub mod array;
mod array_make;
pub(crate) mod bits;
pub mod boolean;
pub mod bytea;
pub mod case;
pub mod cast;
pub mod catalogs;
pub mod compare;
mod crossed;
mod datetime;
mod datetime_format;
mod datetime_make;
pub(crate) mod datetime_math;
pub(crate) mod datetime_part;
mod digest;
pub mod float;
pub mod format;
pub mod hash;
pub mod int;
mod json;
mod json_edit;
pub(crate) mod json_make;
pub mod like;
mod lsn;
mod macaddr;
mod money;
mod network;
mod number_format;
pub mod numeric;
mod pattern;
pub(crate) mod range;
pub mod regex;
pub(crate) mod regexp;
pub mod session;
pub mod text;

pub use pattern::Pattern;

use crate::kernel::Entry;

/// All tables. An OID is in one of them only (a test walks them).
pub(crate) static FAMILIES: &[&[&[Entry]]] = &[
    &[
        bits::KERNELS,
        boolean::KERNELS,
        compare::KERNELS,
        crossed::KERNELS,
        crossed::PATTERN,
        int::ARITHMETIC,
        int::UNARY_AND_BITS,
        cast::KERNELS,
        float::OPERATORS,
        number_format::KERNELS,
        numeric::KERNELS,
        text::PARTS,
        text::MAKING,
        case::KERNELS,
        like::KERNELS,
        regex::KERNELS,
        regexp::KERNELS,
        session::KERNELS,
        session::ANY,
        catalogs::KERNELS,
        catalogs::PRIVILEGES,
        format::KERNELS,
        bytea::KERNELS,
        hash::KERNELS,
        array::KERNELS,
        array_make::KERNELS,
        digest::KERNELS,
    ],
    float::UNARY,
    &[datetime::OPERATORS, datetime::CASTS, datetime_format::KERNELS, datetime_part::KERNELS, datetime_make::KERNELS],
    &[
        json::JSONB,
        json::JSON,
        json_edit::KERNELS,
        json_make::KERNELS,
        lsn::KERNELS,
        macaddr::KERNELS,
        money::KERNELS,
        network::KERNELS,
        range::KERNELS,
    ],
];
