//! Functions of network addresses.

use stegodon_types::network::Inet;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use super::int::int8_range;
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

fn inet(payload: &[u8]) -> SqlResult<Inet> {
    Inet::from_payload(payload).ok_or_else(|| SqlError::new(SqlState::DataCorrupted, "a value of type inet is damaged"))
}

fn put(v: Inet, out: &mut Vec<u8>) -> SqlResult<()> {
    match v.to_datum() {
        Datum::Bytes(bytes) => out.extend_from_slice(&bytes),
        _ => return Err(SqlError::internal("an inet is no byte string")),
    }
    Ok(())
}

/// The bits that an address of the family has, over a number of 128.
fn whole(v: &Inet) -> u128 {
    Inet::mask(v.max_bits())
}

fn with_number(v: &Inet, number: u128) -> Inet {
    Inet { address: (number & whole(v)).to_be_bytes(), ..*v }
}

/// The same address as a single host.
fn host_of(v: Inet) -> Inet {
    Inet { bits: v.max_bits(), ..v }
}

/// Whether `a`'s network lies within `b`'s, or is it where `or_equal`.
fn within(a: &Inet, b: &Inet, or_equal: bool) -> bool {
    let narrower = if or_equal { a.bits >= b.bits } else { a.bits > b.bits };
    a.v6 == b.v6 && narrower && (a.number() & Inet::mask(b.bits)) == (b.number() & Inet::mask(b.bits))
}

fn set_mask(v: Inet, bits: i32) -> SqlResult<Inet> {
    let bits = if bits == -1 { i32::from(v.max_bits()) } else { bits };
    match u8::try_from(bits) {
        Ok(bits) if bits <= v.max_bits() => Ok(Inet { bits, ..v }),
        _ => Err(SqlError::new(SqlState::InvalidParameterValue, format!("invalid mask length: {bits}"))),
    }
}

/// An operation on the bits of two addresses of one family; the mask is the longer one.
fn combine(a: &[u8], b: &[u8], word: &str, f: impl Fn(u128, u128) -> u128, out: &mut Vec<u8>) -> SqlResult<()> {
    let (a, b) = (inet(a)?, inet(b)?);
    if a.v6 != b.v6 {
        return Err(SqlError::new(
            SqlState::InvalidParameterValue,
            format!("cannot {word} inet values of different sizes"),
        ));
    }
    let number = f(a.number(), b.number());
    put(Inet { bits: a.bits.max(b.bits), ..with_number(&a, number) }, out)
}

fn relation(call: &Call<'_>, f: impl Fn(&Inet, &Inet) -> bool) -> SqlResult<Column> {
    map2(call, |a: &[u8], b: &[u8]| Ok(f(&inet(a)?, &inet(b)?)))
}

/// The text of the address, with its mask where `masked`.
fn text(call: &Call<'_>, masked: bool) -> SqlResult<Column> {
    write1(call, |v: &[u8], out| {
        let v = inet(v)?;
        if masked {
            v.write(true, out);
        } else {
            v.write_address(out);
        }
        Ok(())
    })
}

/// The address so much further on, its mask kept.
fn moved(v: &Inet, by: i128) -> SqlResult<Inet> {
    let shift = 128 - u32::from(v.max_bits());
    let number = (v.number() >> shift) as i128;
    // An IPv6 address may take all 128 bits, beyond i128.
    let sum = if v.v6 { v.number().checked_add_signed(by) } else { u128::try_from(number + by).ok() };
    match sum {
        Some(sum) if v.v6 || sum >> 32 == 0 => Ok(with_number(v, sum << shift)),
        _ => Err(SqlError::new(int8_range().state, "result is out of range")),
    }
}

/// The smallest network that has both.
fn merge(a: &Inet, b: &Inet) -> SqlResult<Inet> {
    if a.v6 != b.v6 {
        return Err(SqlError::new(SqlState::InvalidParameterValue, "cannot merge addresses from different families"));
    }
    let common = (a.number() ^ b.number()).leading_zeros() as u8;
    Ok(Inet { bits: common.min(a.bits).min(b.bits), ..*a }.network())
}

/// Kernels. `abbrev(cidr)` is left out.
pub(crate) static KERNELS: &[Entry] = &[
    (2630, |c| write2(c, |v: &[u8], by: i64, out| put(moved(&inet(v)?, i128::from(by))?, out))),
    (2631, |c| write2(c, |by: i64, v: &[u8], out| put(moved(&inet(v)?, i128::from(by))?, out))),
    (2632, |c| write2(c, |v: &[u8], by: i64, out| put(moved(&inet(v)?, i128::from(by.wrapping_neg()))?, out))),
    (4063, |c| write2(c, |a: &[u8], b: &[u8], out| put(merge(&inet(a)?, &inet(b)?)?, out))),
    (699, |c| text(c, false)),
    (730, |c| text(c, true)),
    (598, |c| {
        write1(c, |v: &[u8], out| {
            inet(v)?.write(false, out);
            Ok(())
        })
    }),
    (697, |c| map1(c, |v: &[u8]| Ok(i32::from(inet(v)?.bits)))),
    (711, |c| map1(c, |v: &[u8]| Ok(if inet(v)?.v6 { 6 } else { 4 }))),
    (683, |c| write1(c, |v: &[u8], out| put(inet(v)?.network(), out))),
    (1715, |c| write1(c, |v: &[u8], out| put(inet(v)?.network(), out))),
    (696, |c| {
        write1(c, |v: &[u8], out| {
            let v = inet(v)?;
            put(host_of(with_number(&v, Inet::mask(v.bits))), out)
        })
    }),
    (1362, |c| {
        write1(c, |v: &[u8], out| {
            let v = inet(v)?;
            put(host_of(with_number(&v, !Inet::mask(v.bits))), out)
        })
    }),
    (698, |c| {
        write1(c, |v: &[u8], out| {
            let v = inet(v)?;
            put(with_number(&v, v.number() | !Inet::mask(v.bits)), out)
        })
    }),
    (605, |c| write2(c, |v: &[u8], bits: i32, out| put(set_mask(inet(v)?, bits)?, out))),
    (635, |c| write2(c, |v: &[u8], bits: i32, out| put(set_mask(inet(v)?, bits)?.network(), out))),
    (927, |c| relation(c, |a, b| within(a, b, false))),
    (928, |c| relation(c, |a, b| within(a, b, true))),
    (929, |c| relation(c, |a, b| within(b, a, false))),
    (930, |c| relation(c, |a, b| within(b, a, true))),
    (3551, |c| relation(c, |a, b| within(a, b, true) || within(b, a, true))),
    (4071, |c| relation(c, |a, b| a.v6 == b.v6)),
    (3562, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            let (a, b) = (inet(a)?, inet(b)?);
            put(if a.order(&b).is_gt() { a } else { b }, out)
        })
    }),
    (3563, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            let (a, b) = (inet(a)?, inet(b)?);
            put(if a.order(&b).is_lt() { a } else { b }, out)
        })
    }),
    (2627, |c| {
        write1(c, |v: &[u8], out| {
            let v = inet(v)?;
            put(with_number(&v, !v.number()), out)
        })
    }),
    (2628, |c| write2(c, |a: &[u8], b: &[u8], out| combine(a, b, "AND", |a, b| a & b, out))),
    (2629, |c| write2(c, |a: &[u8], b: &[u8], out| combine(a, b, "OR", |a, b| a | b, out))),
    (2633, |c| {
        map2(c, |a: &[u8], b: &[u8]| {
            let (a, b) = (inet(a)?, inet(b)?);
            if a.v6 != b.v6 {
                return Err(SqlError::new(
                    SqlState::InvalidParameterValue,
                    "cannot subtract inet values of different sizes",
                ));
            }
            let shift = 128 - u32::from(a.max_bits());
            let (x, y) = (a.number() >> shift, b.number() >> shift);
            let difference = if x >= y {
                i64::try_from(x - y).ok()
            } else {
                i64::try_from(-i128::try_from(y - x).unwrap_or(i128::MAX)).ok()
            };
            difference.ok_or_else(|| SqlError::new(int8_range().state, "result is out of range"))
        })
    }),
];
