//! The comparison operators of all types that have a B-tree operator class, and `=`, `<>` of those that have only
//! equality.
//!
//! Numbers compare as such, bytes as bytes, text as bytes where its collation allows; all others through their type's own
//! comparison. The lists of OIDs are `pg_amop`'s (and the negators of its equalities).

use arrow_buffer::BooleanBuffer;
use stegodon_types::scalar::float::order;
use stegodon_types::{SqlError, SqlResult, TypeContext, ops, value_at};

use crate::adapt::{Strict, argument, compare2, strict_nulls};
use crate::column::booleans;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column};

/// Text, compared for equality.
fn text_equal(call: &Call<'_>, f: impl Fn(&[u8], &[u8]) -> bool) -> SqlResult<Column> {
    call.info.collation.for_equality().check_equality()?;
    compare2(call, |a: &[u8], b: &[u8]| f(a, b))
}

/// Text, compared for order.
fn text_order(call: &Call<'_>, f: impl Fn(&[u8], &[u8]) -> bool) -> SqlResult<Column> {
    call.info.collation.check_order()?;
    compare2(call, |a: &[u8], b: &[u8]| f(a, b))
}

/// Any type, by its own comparison, row by row.
fn by_type(call: &Call<'_>, equality: bool, f: impl Fn(std::cmp::Ordering) -> bool) -> SqlResult<Column> {
    let nulls = match strict_nulls(call.args) {
        Strict::All => return Ok(Column::null(call.info.layout)),
        Strict::Rows(nulls) => nulls,
    };
    let ty = call.info.arg_types.first().ok_or_else(|| SqlError::internal("a comparison without arguments"))?;
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let ops = ops(ty)?;
    let layout = layout_of(ty)?;
    let collation = if equality { call.info.collation.for_equality() } else { call.info.collation.clone() };
    let (left, right) = (argument(call, 0)?, argument(call, 1)?);
    let at = |column: &Column, row| if column.is_const() { 0 } else { row };
    let mut error = None;
    let values = BooleanBuffer::collect_bool(call.rows, |row| {
        if error.is_some() || nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            return false;
        }
        let a = value_at(left.array().as_ref(), layout, at(left, row));
        let b = value_at(right.array().as_ref(), layout, at(right, row));
        let result = match (a, b, ops.equal, ops.compare) {
            (Some(a), Some(b), Some(equal), _) if equality => equal(&cx, ty, &collation, a, b)
                .map(|same| f(if same { std::cmp::Ordering::Equal } else { std::cmp::Ordering::Less })),
            (Some(a), Some(b), _, Some(compare)) => compare(&cx, ty, &collation, a, b).map(&f),
            (Some(_), Some(_), ..) => Err(SqlError::unsupported(format_args!("comparing values of type {}", ty.name))),
            _ => Err(SqlError::internal("an argument is not of its layout")),
        };
        result.unwrap_or_else(|e| {
            error = Some(e);
            false
        })
    });
    if let Some(e) = error {
        return Err(e);
    }
    let array = booleans(values, nulls);
    Ok(if left.is_const() && right.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// `<` of any type, for GREATEST and LEAST.
pub(crate) fn less(call: &Call<'_>) -> SqlResult<Column> {
    by_type(call, false, std::cmp::Ordering::is_lt)
}

/// The equality of types whose Arrow values are equal as the type's values are: `"char"`, int2, int4, int8, oid, date,
/// timestamp, timestamptz, time, xid8, pg_lsn, money, text, name, bytea, uuid, xid.
pub(crate) const OWN_EQUALITY: [u32; 17] =
    [61, 63, 65, 467, 184, 1086, 2052, 1152, 1145, 5084, 3233, 888, 67, 62, 1948, 2956, 68];

/// Each line: how to compare, and the functions `=`, `<>`, `<`, `<=`, `>=`, `>`.
macro_rules! comparisons {
    ($($how:ident $($ty:ident)* [$eq:literal, $ne:literal, $lt:literal, $le:literal, $ge:literal, $gt:literal];)*) => {
        /// The comparison operators.
        pub(crate) static KERNELS: &[Entry] = &[$(
            ($eq, |c| comparisons!(@$how $($ty)* , c, equal, ==)),
            ($ne, |c| comparisons!(@$how $($ty)* , c, equal, !=)),
            ($lt, |c| comparisons!(@$how $($ty)* , c, order, <)),
            ($le, |c| comparisons!(@$how $($ty)* , c, order, <=)),
            ($ge, |c| comparisons!(@$how $($ty)* , c, order, >=)),
            ($gt, |c| comparisons!(@$how $($ty)* , c, order, >)),
        )*
            // Types with equality only: xid with xid and integer, cid.
            (68, |c| compare2(c, |a: u32, b: u32| a == b)),
            (3308, |c| compare2(c, |a: u32, b: u32| a != b)),
            (1319, |c| compare2(c, |a: u32, b: i32| a == b as u32)),
            (3309, |c| compare2(c, |a: u32, b: i32| a != b as u32)),
            (69, |c| compare2(c, |a: u32, b: u32| a == b)),
        ];
    };
    (@number $a:ident $b:ident $wide:ident, $c:ident, $mode:ident, $op:tt) => {
        compare2($c, |a: $a, b: $b| $wide::from(a) $op $wide::from(b))
    };
    (@float $a:ident $b:ident $wide:ident, $c:ident, $mode:ident, $op:tt) => {
        compare2($c, |a: $a, b: $b| (order($wide::from(a), $wide::from(b)) as i8) $op 0)
    };
    (@text , $c:ident, equal, $op:tt) => { text_equal($c, |a, b| a $op b) };
    (@text , $c:ident, order, $op:tt) => { text_order($c, |a, b| a $op b) };
    (@bytes , $c:ident, $mode:ident, $op:tt) => { compare2($c, |a: &[u8], b: &[u8]| a $op b) };
    (@any , $c:ident, equal, $op:tt) => { by_type($c, true, |o| (o as i8) $op 0) };
    (@any , $c:ident, order, $op:tt) => { by_type($c, false, |o| (o as i8) $op 0) };
}

comparisons! {
    any [744, 390, 391, 393, 396, 392]; // array
    any [1581, 1582, 1595, 1594, 1592, 1593]; // bit
    number bool bool bool [60, 84, 56, 1691, 1692, 57]; // bool, bool
    any [1048, 1053, 1049, 1050, 1052, 1051]; // bpchar
    bytes [1948, 1953, 1949, 1950, 1952, 1951]; // bytea, bytea
    number u8 u8 u8 [61, 70, 1246, 72, 74, 73]; // "char", "char"
    number i32 i32 i32 [1086, 1091, 1087, 1088, 1090, 1089]; // date, date
    number i64 i64 i64 [2052, 2053, 2054, 2055, 2056, 2057]; // timestamp, timestamp
    number i64 i64 i64 [1152, 1153, 1154, 1155, 1156, 1157]; // timestamptz, timestamptz
    any [3508, 3509, 3510, 3512, 3513, 3511]; // enum
    float f32 f32 f64 [287, 288, 289, 290, 292, 291]; // float4, float4
    float f32 f64 f64 [299, 300, 301, 302, 304, 303]; // float4, float8
    float f64 f32 f64 [305, 306, 307, 308, 310, 309]; // float8, float4
    float f64 f64 f64 [293, 294, 295, 296, 298, 297]; // float8, float8
    number i64 i64 i64 [467, 468, 469, 471, 472, 470]; // int8, int8
    number i64 i16 i64 [1856, 1857, 1858, 1860, 1861, 1859]; // int8, int2
    number i64 i32 i64 [474, 475, 476, 478, 479, 477]; // int8, int4
    number i16 i64 i64 [1850, 1851, 1852, 1854, 1855, 1853]; // int2, int8
    number i16 i16 i16 [63, 145, 64, 148, 151, 146]; // int2, int2
    number i16 i32 i32 [158, 164, 160, 166, 168, 162]; // int2, int4
    number i32 i64 i64 [852, 853, 854, 856, 857, 855]; // int4, int8
    number i32 i16 i32 [159, 165, 161, 167, 169, 163]; // int4, int2
    number i32 i32 i32 [65, 144, 66, 149, 150, 147]; // int4, int4
    any [1162, 1163, 1164, 1165, 1166, 1167]; // interval
    any [4043, 4038, 4039, 4041, 4042, 4040]; // jsonb
    bytes [4113, 4118, 4114, 4115, 4117, 4116]; // macaddr8, macaddr8
    bytes [830, 835, 831, 832, 834, 833]; // macaddr, macaddr
    number i64 i64 i64 [888, 889, 890, 891, 893, 892]; // money, money
    any [4244, 4245, 4274, 4275, 4276, 4277]; // multirange
    any [920, 925, 921, 922, 924, 923]; // network
    any [1718, 1719, 1722, 1723, 1721, 1720]; // numeric
    number u32 u32 u32 [184, 185, 716, 717, 1639, 1638]; // oid, oid
    any [679, 619, 677, 678, 680, 681]; // oidvector
    number u64 u64 u64 [3233, 3236, 3231, 3232, 3234, 3235]; // pg_lsn, pg_lsn
    any [3855, 3856, 3871, 3872, 3873, 3874]; // range
    any [2981, 2982, 2983, 2985, 2986, 2984]; // record
    text [62, 659, 655, 656, 658, 657]; // name, name
    text [240, 245, 241, 242, 243, 244]; // name, text
    text [247, 252, 248, 249, 250, 251]; // text, name
    text [67, 157, 740, 741, 743, 742]; // text, text
    any [1292, 1265, 2791, 2793, 2792, 2790]; // tid
    number i64 i64 i64 [1145, 1106, 1102, 1103, 1105, 1104]; // time, time
    any [1352, 1353, 1354, 1355, 1356, 1357]; // timetz
    any [3664, 3665, 3662, 3663, 3666, 3667]; // tsquery
    any [3618, 3619, 3616, 3617, 3620, 3621]; // tsvector
    bytes [2956, 2959, 2954, 2955, 2957, 2958]; // uuid, uuid
    any [1666, 1667, 1671, 1670, 1668, 1669]; // varbit
    number u64 u64 u64 [5084, 5085, 5034, 5036, 5037, 5035]; // xid8, xid8
}
