//! Functions of booleans. AND, OR and NOT are not functions: see [`crate::Evaluator`].

use crate::adapt::*;
use crate::kernel::Entry;

/// Functions of booleans.
pub(crate) static KERNELS: &[Entry] = &[
    // bool(integer), int4(boolean), text(boolean)
    (2557, |c| map1(c, |v: i32| Ok(v != 0))),
    (2558, |c| map1(c, |v: bool| Ok(i32::from(v)))),
    (2971, |c| {
        write1(c, |v: bool, out| {
            out.extend_from_slice(if v { b"true" } else { b"false" });
            Ok(())
        })
    }),
    // booland_statefunc, boolor_statefunc
    (2515, |c| map2(c, |a: bool, b: bool| Ok(a && b))),
    (2516, |c| map2(c, |a: bool, b: bool| Ok(a || b))),
];
