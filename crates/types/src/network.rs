//! `inet`, `cidr`, `macaddr`, `macaddr8`.
//!
//! ```text
//!  inet, cidr  varlena    +--------+------+------------------+
//!                         | family | bits | address          |     family: 2 is IPv4, 3 is IPv6
//!                         +--------+------+------------------+     bits: of the network's mask
//!                         0        1      2            6 or 18
//!  macaddr     Fixed(6)   the bytes as written
//!  macaddr8    Fixed(8)   the bytes as written
//! ```

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::{exactly, invalid_syntax, is_space, message_too_short};
use crate::{
    Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash, oids, scalar,
};

/// `inet` and `cidr`.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

/// `macaddr`.
pub static MACADDR: TypeOps = TypeOps { text_out: mac_out, text_in: mac_in, binary_in: mac_recv, ..scalar::uuid::OPS };
/// `macaddr8`.
pub static MACADDR8: TypeOps = TypeOps { text_in: mac8_in, binary_in: mac8_recv, ..MACADDR };

/// An address and its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inet {
    /// Whether it is of IPv6.
    pub v6: bool,
    /// Bits of the network's mask.
    pub bits: u8,
    /// The address; of IPv4 only the first four bytes.
    pub address: [u8; 16],
}

const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

impl Inet {
    /// Four bytes, or sixteen.
    pub fn len(&self) -> usize {
        if self.v6 { 16 } else { 4 }
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// 32, or 128.
    pub fn max_bits(&self) -> u8 {
        if self.v6 { 128 } else { 32 }
    }

    /// The family's number on disk and in the binary form.
    fn family(&self) -> u8 {
        if self.v6 { FAMILY_V6 } else { FAMILY_V4 }
    }

    /// The address's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.address.get(..self.len()).unwrap_or_default()
    }

    /// The address as a number.
    pub fn number(&self) -> u128 {
        u128::from_be_bytes(self.address)
    }

    /// The value of a payload; `None` where it is damaged.
    pub fn from_payload(payload: &[u8]) -> Option<Inet> {
        let [family, bits, rest @ ..] = payload else { return None };
        Self::of_parts(*family == FAMILY_V6, *bits, rest).filter(|v| v.family() == *family)
    }

    fn of_parts(v6: bool, bits: u8, bytes: &[u8]) -> Option<Inet> {
        let mut v = Inet { v6, bits, address: [0; 16] };
        if bytes.len() != v.len() || bits > v.max_bits() {
            return None;
        }
        for (to, from) in v.address.iter_mut().zip(bytes) {
            *to = *from;
        }
        Some(v)
    }

    /// The value as a datum.
    pub fn to_datum(&self) -> Datum {
        let mut out = vec![self.family(), self.bits];
        out.extend_from_slice(self.bytes());
        Datum::bytes(out)
    }

    /// The mask of some bits, over a number of 128.
    pub fn mask(bits: u8) -> u128 {
        if bits == 0 { 0 } else { u128::MAX << (128 - u32::from(bits.min(128))) }
    }

    /// The same with every bit right of the mask zero.
    pub fn network(&self) -> Inet {
        Inet { address: (self.number() & Self::mask(self.bits)).to_be_bytes(), ..*self }
    }

    /// PostgreSQL's order: the family, the networks' common bits, the masks, the addresses.
    pub fn order(&self, other: &Inet) -> Ordering {
        let common = Self::mask(self.bits.min(other.bits));
        let networks = (self.number() & common).cmp(&(other.number() & common));
        self.v6.cmp(&other.v6).then(networks).then(self.bits.cmp(&other.bits)).then(self.number().cmp(&other.number()))
    }

    /// Appends the address without its mask.
    pub fn write_address(&self, out: &mut Vec<u8>) {
        if self.v6 {
            write_v6(&self.address, out);
        } else {
            write_v4(self.bytes(), out);
        }
    }

    /// Appends the text; the mask where it is not full, or where it is wanted.
    pub fn write(&self, always_mask: bool, out: &mut Vec<u8>) {
        self.write_address(out);
        if always_mask || self.bits != self.max_bits() {
            out.extend_from_slice(format!("/{}", self.bits).as_bytes());
        }
    }
}

fn write_v4(bytes: &[u8], out: &mut Vec<u8>) {
    for (n, b) in bytes.iter().enumerate() {
        if n > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(b.to_string().as_bytes());
    }
}

fn write_v6(address: &[u8; 16], out: &mut Vec<u8>) {
    let mut words = [0u16; 8];
    for (word, pair) in words.iter_mut().zip(address.chunks_exact(2)) {
        *word = pair.iter().fold(0, |w, b| w << 8 | u16::from(*b));
    }
    // The first of the longest runs of zero words, of two at least, is `::`.
    let (mut start, mut length) = (0, 0);
    let mut at = 0;
    while at < 8 {
        let run = words.iter().skip(at).take_while(|w| **w == 0).count();
        if run > length && run >= 2 {
            (start, length) = (at, run);
        }
        at += run.max(1);
    }
    let [.., w5, _, w7] = words;
    let embedded =
        length > 0 && start == 0 && (length == 6 || (length == 7 && w7 != 1) || (length == 5 && w5 == 0xffff));
    for (n, word) in words.iter().enumerate() {
        if length > 0 && (start..start + length).contains(&n) {
            if n == start {
                out.push(b':');
            }
            continue;
        }
        if n != 0 {
            out.push(b':');
        }
        if n == 6 && embedded {
            write_v4(address.get(12..).unwrap_or_default(), out);
            break;
        }
        out.extend_from_slice(format!("{word:x}").as_bytes());
    }
    if length > 0 && start + length == 8 {
        out.push(b':');
    }
}

/// The digits at the start of a text as a number of at most `max`, and what follows.
fn number(text: &[u8], max: u32) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    let value = number.iter().try_fold(0u32, |v, b| Some(v * 10 + u32::from(b - b'0')).filter(|v| *v <= max))?;
    (digits > 0).then_some((value, rest))
}

/// Dotted bytes, and what follows them. A trailing point is allowed where the text is an `inet`.
fn dotted(text: &[u8], trailing_point: bool) -> Option<(Vec<u8>, &[u8])> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    loop {
        let (byte, after) = number(rest, 255)?;
        if bytes.len() == 4 {
            return None;
        }
        bytes.push(byte as u8);
        match after {
            [b'.', tail @ ..] if tail.first().is_some_and(u8::is_ascii_digit) => rest = tail,
            // A point and no digit: what follows is then read as the mask or the end.
            [b'.', tail @ ..] if trailing_point => return Some((bytes, tail)),
            _ => return Some((bytes, after)),
        }
    }
}

/// `/bits`, or nothing; `None` where it is neither.
#[allow(clippy::option_option, reason = "no mask and a wrong one are different things")]
fn mask_v4(rest: &[u8]) -> Option<Option<u8>> {
    match rest {
        [] => Some(None),
        [b'/', digits @ ..] => match number(digits, 32)? {
            (bits, []) => Some(Some(bits as u8)),
            _ => None,
        },
        _ => None,
    }
}

fn parse_v4(text: &[u8]) -> Option<Inet> {
    let (mut bytes, rest) = dotted(text, true)?;
    let bits = match mask_v4(rest)? {
        Some(bits) => bits,
        None if bytes.len() == 4 => 32,
        None => return None,
    };
    if usize::from(bits / 8) > bytes.len() {
        return None;
    }
    bytes.resize(4, 0);
    Inet::of_parts(false, bits, &bytes)
}

/// A network, whose missing mask is that of its class.
fn parse_cidr_v4(text: &[u8]) -> Option<Inet> {
    let hexadecimal = match text {
        [b'0', b'x' | b'X', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => Some(digits),
        _ => None,
    };
    let (mut bytes, rest) = if let Some(digits) = hexadecimal {
        let count = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let (digits, rest) = digits.split_at(count);
        let nibble = |b: &u8| char::from(*b).to_digit(16).unwrap_or(0) as u8;
        let pair = |pair: &[u8]| pair.first().map_or(0, nibble) << 4 | pair.get(1).map_or(0, nibble);
        (digits.chunks(2).map(pair).collect::<Vec<u8>>(), rest)
    } else {
        dotted(text, false)?
    };
    if bytes.len() > 4 {
        return None;
    }
    let bits = if let Some(bits) = mask_v4(rest)? {
        bits
    } else {
        let first = bytes.first().copied()?;
        let class = match first {
            240.. => 32,
            224.. => 8,
            192.. => 24,
            128.. => 16,
            _ => 8,
        };
        let bits = class.max(bytes.len() as u8 * 8);
        if bits == 8 && first == 224 { 4 } else { bits }
    };
    bytes.resize(4, 0);
    Inet::of_parts(false, bits, &bytes)
}

/// Decimal digits without leading zeros, up to the end.
fn mask_v6(text: &[u8]) -> Option<u8> {
    if text.len() > 1 && text.first() == Some(&b'0') {
        return None;
    }
    match number(text, 128)? {
        (bits, []) => Some(bits as u8),
        _ => None,
    }
}

/// The IPv4 address at the end of an IPv6 one, and its mask.
fn embedded_v4(text: &[u8]) -> Option<([u8; 4], Option<u8>)> {
    let (address, bits) = match text.iter().position(|b| *b == b'/') {
        Some(at) => (text.get(..at)?, Some(mask_v6(text.get(at + 1..)?)?)),
        None => (text, None),
    };
    let mut bytes = [0; 4];
    let mut pieces = address.split(|b| *b == b'.');
    let mut count = 0;
    for (byte, piece) in bytes.iter_mut().zip(&mut pieces) {
        count += 1;
        // Before a point or a slash nothing counts as zero.
        let ends_text = bits.is_none() && count == address.split(|b| *b == b'.').count();
        if piece.is_empty() && !ends_text {
            continue;
        }
        if piece.len() > 1 && piece.first() == Some(&b'0') {
            return None;
        }
        match number(piece, 255)? {
            (value, []) => *byte = value as u8,
            _ => return None,
        }
    }
    pieces.next().is_none().then_some((bytes, bits))
}

fn parse_v6(text: &[u8]) -> Option<Inet> {
    let mut rest = match text {
        [b':', b':', ..] => text.get(1..)?,
        [b':', ..] => return None,
        _ => text,
    };
    let (mut bytes, mut gap, mut bits) = (Vec::<u8>::with_capacity(16), None, None);
    let (mut word, mut digits) = (0u16, 0);
    let mut token = rest;
    while let [b, tail @ ..] = rest {
        rest = tail;
        if let Some(digit) = char::from(*b).to_digit(16) {
            word = word << 4 | digit as u16;
            digits += 1;
            if digits > 4 {
                return None;
            }
            continue;
        }
        match b {
            b':' => {
                token = rest;
                if digits == 0 {
                    if gap.replace(bytes.len()).is_some() {
                        return None;
                    }
                    continue;
                }
                if rest.is_empty() || bytes.len() + 2 > 16 {
                    return None;
                }
                bytes.extend_from_slice(&word.to_be_bytes());
                (word, digits) = (0, 0);
            }
            b'.' if bytes.len() + 4 <= 16 => {
                let (address, mask) = embedded_v4(token)?;
                bytes.extend_from_slice(&address);
                bits = mask;
                digits = 0;
                break;
            }
            b'/' => {
                bits = Some(mask_v6(rest)?);
                break;
            }
            _ => return None,
        }
    }
    if digits > 0 {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    if let Some(at) = gap {
        let missing = 16usize.checked_sub(bytes.len()).filter(|n| *n > 0)?;
        bytes.splice(at..at, std::iter::repeat_n(0, missing));
    }
    Inet::of_parts(true, bits.unwrap_or(128), &bytes)
}

/// Reads an `inet` or `cidr` from text.
pub fn parse(text: &[u8], is_cidr: bool) -> SqlResult<Inet> {
    let value = match (text.contains(&b':'), is_cidr) {
        (true, _) => parse_v6(text),
        (false, false) => parse_v4(text),
        (false, true) => parse_cidr_v4(text),
    };
    let value = value.ok_or_else(|| invalid_syntax(if is_cidr { "cidr" } else { "inet" }, text))?;
    if is_cidr && value.network() != value {
        let text = String::from_utf8_lossy(text);
        let error = SqlError::new(SqlState::InvalidTextRepresentation, format!("invalid cidr value: \"{text}\""));
        return Err(error.detail("Value has bits set to right of mask."));
    }
    Ok(value)
}

/// The value of a column of `inet` or `cidr`.
pub fn of(ty: &TypeDesc, v: ValueRef<'_>) -> SqlResult<Inet> {
    Inet::from_payload(get::bytes(ty, v)?)
        .ok_or_else(|| SqlError::new(SqlState::DataCorrupted, format!("a value of type {} is damaged", ty.name)))
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    of(ty, v)?.write(ty.oid == oids::CIDR, out);
    Ok(())
}

fn text_in(_: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    Ok(parse(text, ty.oid == oids::CIDR)?.to_datum())
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = of(ty, v)?;
    out.extend_from_slice(&[v.family(), v.bits, u8::from(ty.oid == oids::CIDR), v.len() as u8]);
    out.extend_from_slice(v.bytes());
    Ok(())
}

fn binary_in(_: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    let name = if ty.oid == oids::CIDR { "cidr" } else { "inet" };
    let error = |what: String| SqlError::new(SqlState::InvalidBinaryRepresentation, what);
    let [family, bits, _, len, address @ ..] = bytes else { return Err(message_too_short()) };
    if !matches!(*family, FAMILY_V4 | FAMILY_V6) {
        return Err(error(format!("invalid address family in external \"{name}\" value")));
    }
    let v6 = *family == FAMILY_V6;
    if *bits > if v6 { 128 } else { 32 } {
        return Err(error(format!("invalid bits in external \"{name}\" value")));
    }
    if *len != if v6 { 16 } else { 4 } {
        return Err(error(format!("invalid length in external \"{name}\" value")));
    }
    if address.len() < usize::from(*len) {
        return Err(message_too_short());
    }
    let value = Inet::of_parts(v6, *bits, address).ok_or_else(|| error("incorrect binary data format".to_owned()))?;
    if ty.oid == oids::CIDR && value.network() != value {
        return Err(error("invalid external \"cidr\" value".to_owned()).detail("Value has bits set to right of mask."));
    }
    Ok(value.to_datum())
}

/// `network_cmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(of(ty, a)?.order(&of(ty, b)?))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    // Networks of one prefix order by their masks, so the masked address decides before the mask does.
    let v = of(ty, v)?;
    out.push(v.family());
    out.extend_from_slice(v.network().bytes());
    out.push(v.bits);
    out.extend_from_slice(v.bytes());
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    of(ty, v)?;
    Ok(hash::bytes_extended(get::bytes(ty, v)?, seed))
}

fn mac_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    for (n, b) in get::bytes(ty, v)?.iter().enumerate() {
        if n > 0 {
            out.push(b':');
        }
        scalar::uuid::write_hex(&[*b], out);
    }
    Ok(())
}

/// C's `%x` or `%2x`: white space, a sign, `0x`, hexadecimal digits, `width` bytes of them at most. The number, and what
/// follows; `None` where there is none.
fn scan_hex(text: &[u8], width: usize) -> Option<(i64, &[u8])> {
    let text = text.get(text.iter().take_while(|b| is_space(**b)).count()..)?;
    let (mut at, limit) = (0, width.min(text.len()));
    let negative = text.first() == Some(&b'-');
    if matches!(text.first(), Some(b'-' | b'+')) {
        at = 1;
    }
    let peek = |at: usize| text.get(at).filter(|_| at < limit);
    let mut digits = 0;
    if peek(at) == Some(&b'0') && matches!(peek(at + 1), Some(b'x' | b'X')) {
        at += 2;
        // A bare 0x is no number.
        peek(at).filter(|b| b.is_ascii_hexdigit())?;
    }
    let mut value = 0i64;
    while let Some(digit) = peek(at).and_then(|b| char::from(*b).to_digit(16)) {
        value = (value << 4 | i64::from(digit)) & 0xffff_ffff_ffff;
        digits += 1;
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    Some((if negative { -value } else { value }, text.get(at..)?))
}

/// Six numbers of a pattern: each of a width, with these bytes between them. Nothing but white space may follow.
fn scan_mac(text: &[u8], width: usize, between: [&[u8]; 5]) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut rest = text;
    for (n, byte) in bytes.iter_mut().enumerate() {
        if n > 0 {
            rest = rest.strip_prefix(between.get(n - 1).copied()?)?;
        }
        let (value, after) = scan_hex(rest, width)?;
        *byte = u8::try_from(value).ok()?;
        rest = after;
    }
    rest.iter().all(|b| is_space(*b)).then_some(bytes)
}

fn mac_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    const WIDE: usize = usize::MAX;
    // The first pattern that fits decides, also that a number is out of range.
    let patterns: [(usize, [&[u8]; 5]); 7] = [
        (WIDE, [b":", b":", b":", b":", b":"]),
        (WIDE, [b"-", b"-", b"-", b"-", b"-"]),
        (2, [b"", b"", b":", b"", b""]),
        (2, [b"", b"", b"-", b"", b""]),
        (2, [b"", b".", b"", b".", b""]),
        (2, [b"", b"-", b"", b"-", b""]),
        (2, [b"", b"", b"", b"", b""]),
    ];
    if is_out_of_range(text) {
        return Err(SqlError::new(
            SqlState::NumericValueOutOfRange,
            format!("invalid octet value in \"macaddr\" value: \"{}\"", String::from_utf8_lossy(text)),
        ));
    }
    patterns
        .iter()
        .find_map(|(width, between)| scan_mac(text, *width, *between))
        .map(Datum::bytes)
        .ok_or_else(|| invalid_syntax("macaddr", text))
}

/// Whether a text is six numbers with colons or hyphens, one of which is no byte.
fn is_out_of_range(text: &[u8]) -> bool {
    [b":", b"-"].iter().any(|delimiter| {
        let (mut rest, mut beyond) = (text, false);
        for n in 0..6 {
            if n > 0 {
                let Some(after) = rest.strip_prefix(*delimiter) else { return false };
                rest = after;
            }
            let Some((value, after)) = scan_hex(rest, usize::MAX) else { return false };
            beyond |= u8::try_from(value).is_err();
            rest = after;
        }
        beyond && rest.iter().all(|b| is_space(*b))
    })
}

fn mac_recv(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly::<6>(bytes).map(Datum::bytes)
}

/// Pairs of digits with one kind of delimiter, or none, between them: six, which become eight, or eight.
fn parse_mac8(text: &[u8]) -> Option<[u8; 8]> {
    let mut rest = text.get(text.iter().take_while(|b| is_space(**b)).count()..)?;
    let (mut bytes, mut delimiter) = (Vec::new(), None);
    while let [high, low, tail @ ..] = rest {
        if bytes.len() == 8 {
            return None;
        }
        bytes.push((char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?) as u8);
        rest = tail;
        if let [b @ (b':' | b'-' | b'.'), after @ ..] = rest {
            if *delimiter.get_or_insert(*b) != *b {
                return None;
            }
            rest = after;
        }
        if matches!(bytes.len(), 6 | 8) && rest.first().is_some_and(|b| is_space(*b)) {
            if !rest.iter().all(|b| is_space(*b)) {
                return None;
            }
            rest = &[];
        }
    }
    if bytes.len() == 6 {
        bytes.splice(3..3, [0xff, 0xfe]);
    }
    // A single byte that is left over is not looked at.
    bytes.try_into().ok()
}

fn mac8_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse_mac8(text).map(Datum::bytes).ok_or_else(|| invalid_syntax("macaddr8", text))
}

fn mac8_recv(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    if let [a, b, c, d, e, f] = bytes {
        return Ok(Datum::bytes([*a, *b, *c, 0xff, 0xfe, *d, *e, *f]));
    }
    exactly::<8>(bytes).map(Datum::bytes)
}
