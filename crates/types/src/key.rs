//! The pieces that keys are made of: bytes whose `memcmp` order is the order wanted.
//!
//! ```text
//!  unsigned   big-endian
//!  signed     big-endian, sign bit flipped
//!  float      big-endian bits; sign bit flipped where it was clear, else all bits; -0 as 0, every NaN the greatest
//!  bytes      each 00 as 00 FF, then 00 00: no key is a prefix of another
//! ```

/// Appends an unsigned number.
pub fn u32(v: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&v.to_be_bytes());
}

/// Appends an unsigned number.
pub fn u64(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&v.to_be_bytes());
}

/// Appends a signed number.
pub fn i16(v: i16, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u16) ^ (1 << 15)).to_be_bytes());
}

/// Appends a signed number.
pub fn i32(v: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u32) ^ (1 << 31)).to_be_bytes());
}

/// Appends a signed number.
pub fn i64(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u64) ^ (1 << 63)).to_be_bytes());
}

/// Appends a signed number.
pub fn i128(v: i128, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u128) ^ (1 << 127)).to_be_bytes());
}

/// Appends a float: -0 equals 0, NaN equals NaN and is above infinity.
pub fn f32(v: f32, out: &mut Vec<u8>) {
    let bits = if v.is_nan() {
        u32::MAX
    } else {
        let bits = if v == 0.0 { 0 } else { v.to_bits() };
        if bits >> 31 == 0 { bits ^ (1 << 31) } else { !bits }
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

/// Appends a float: -0 equals 0, NaN equals NaN and is above infinity.
pub fn f64(v: f64, out: &mut Vec<u8>) {
    let bits = if v.is_nan() {
        u64::MAX
    } else {
        let bits = if v == 0.0 { 0 } else { v.to_bits() };
        if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

/// Appends bytes and their end.
pub fn bytes(v: &[u8], out: &mut Vec<u8>) {
    out.reserve(v.len() + 2);
    let mut rest = v;
    while let Some(at) = rest.iter().position(|b| *b == 0) {
        let (head, tail) = rest.split_at(at);
        out.extend_from_slice(head);
        out.extend_from_slice(&[0, 0xFF]);
        rest = tail.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}
