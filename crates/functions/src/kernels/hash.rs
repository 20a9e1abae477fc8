//! The hash support functions: `hashint4`, `hashtext` and their extended forms, which hash partitions are chosen by.
//!
//! All go through the types' own extended hash: with seed 0 its lower half is the plain hash.

use stegodon_types::{SqlError, SqlResult, TypeContext, hash_extended, value_at};

use crate::adapt::*;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column};

fn hash(call: &Call<'_>, row: usize, seed: u64) -> SqlResult<u64> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let ty = call.info.arg_types.first().ok_or_else(|| SqlError::internal("a hash of nothing"))?;
    let column = argument(call, 0)?;
    let row = if column.is_const() { 0 } else { row };
    let value = value_at(column.array().as_ref(), layout_of(ty)?, row);
    let value = value.ok_or_else(|| SqlError::internal("a hash of NULL"))?;
    let hash = hash_extended(&cx, ty, &call.info.collation, value, seed)?;
    hash.ok_or_else(|| SqlError::unsupported(format_args!("hashing values of type {}", ty.name)))
}

fn plain(call: &Call<'_>) -> SqlResult<Column> {
    map_rows(call, |row| Ok(hash(call, row, 0)? as u32 as i32))
}

fn extended(call: &Call<'_>) -> SqlResult<Column> {
    let seeds = argument(call, 1)?;
    let values = i64::values(seeds.array())?;
    map_rows(call, |row| {
        let seed = i64::at(values, if seeds.is_const() { 0 } else { row });
        Ok(hash(call, row, seed as u64)? as i64)
    })
}

/// Hash functions and their extended forms.
pub(crate) static KERNELS: &[Entry] = &[
    (449, plain),
    (450, plain),
    (949, plain),
    (451, plain),
    (452, plain),
    (453, plain),
    (454, plain),
    (455, plain),
    (400, plain),
    (1080, plain),
    (6413, plain),
    (6417, plain),
    (6415, plain),
    (432, plain),
    (3515, plain),
    (6419, plain),
    (6421, plain),
    (6423, plain),
    (626, plain),
    (1688, plain),
    (2039, plain),
    (6425, plain),
    (2963, plain),
    (441, extended),
    (425, extended),
    (442, extended),
    (443, extended),
    (444, extended),
    (445, extended),
    (446, extended),
    (447, extended),
    (448, extended),
    (972, extended),
    (6414, extended),
    (6418, extended),
    (6416, extended),
    (780, extended),
    (3414, extended),
    (6420, extended),
    (6422, extended),
    (6424, extended),
    (782, extended),
    (3409, extended),
    (3411, extended),
    (6426, extended),
    (3412, extended),
];
