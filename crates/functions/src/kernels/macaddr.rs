//! `macaddr` and `macaddr8`: six and eight bytes.

use stegodon_types::{SqlError, SqlState};

use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};
use stegodon_types::SqlResult;

fn map(call: &Call<'_>, f: impl Fn(usize, u8) -> u8) -> SqlResult<Column> {
    write1(call, |v: &[u8], out| {
        out.extend(v.iter().enumerate().map(|(at, b)| f(at, *b)));
        Ok(())
    })
}

fn zip(call: &Call<'_>, f: impl Fn(u8, u8) -> u8) -> SqlResult<Column> {
    write2(call, |a: &[u8], b: &[u8], out| {
        out.extend(a.iter().zip(b).map(|(a, b)| f(*a, *b)));
        Ok(())
    })
}

/// Operators, casts, `trunc`.
pub(crate) static KERNELS: &[Entry] = &[
    (3144, |c| map(c, |_, b| !b)),
    (4120, |c| map(c, |_, b| !b)),
    (3145, |c| zip(c, |a, b| a & b)),
    (4121, |c| zip(c, |a, b| a & b)),
    (3146, |c| zip(c, |a, b| a | b)),
    (4122, |c| zip(c, |a, b| a | b)),
    (753, |c| map(c, |at, b| if at < 3 { b } else { 0 })),
    (4112, |c| map(c, |at, b| if at < 3 { b } else { 0 })),
    (4125, |c| map(c, |at, b| if at == 0 { b | 2 } else { b })),
    (4123, |c| {
        write1(c, |v: &[u8], out| {
            let (maker, device) = v.split_at_checked(3).ok_or_else(|| SqlError::internal("a macaddr is cut short"))?;
            out.extend_from_slice(maker);
            out.extend_from_slice(&[0xFF, 0xFE]);
            out.extend_from_slice(device);
            Ok(())
        })
    }),
    (4124, |c| {
        write1(c, |v: &[u8], out| match v {
            [a, b, c, 0xFF, 0xFE, f, g, h] => {
                out.extend_from_slice(&[*a, *b, *c, *f, *g, *h]);
                Ok(())
            }
            _ => Err(SqlError::new(
                SqlState::NumericValueOutOfRange,
                "macaddr8 data out of range to convert to macaddr",
            )
            .hint(
                "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
                 xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
            )),
        })
    }),
];
