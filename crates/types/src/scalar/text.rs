//! Character strings: `text`, `varchar`, `bpchar`, `name`, `"char"`, and `cstring` and `unknown` in flight.
//!
//! Values are bytes in the database's encoding. `bpchar` values hold their trailing blanks; comparing, hashing and keys
//! pass over them.

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::exactly;
use crate::settings::Encoding;
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash, key};

/// The longest `n` of `char(n)`.
const LENGTH_MAX: usize = 10_485_760;
/// What a varlena typmod of a character type has on top of the length.
pub const TYPMOD_HEADER: i32 = 4;
/// Bytes of a `name`, its NUL included.
pub const NAME_LEN: usize = 64;

/// `text`, and types that only carry text.
pub static TEXT: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out: text_out,
    binary_in: text_recv,
    compare: Some(compare),
    equal: Some(equal),
    key: Some(key),
    hash: Some(hash),
    own_key: true,
};

/// `varchar`.
pub static VARCHAR: TypeOps = TypeOps { text_in: varchar_in, binary_in: varchar_recv, ..TEXT };

/// `bpchar`.
pub static BPCHAR: TypeOps = TypeOps {
    text_in: bpchar_in,
    binary_in: bpchar_recv,
    compare: Some(compare_bpchar),
    equal: Some(equal_bpchar),
    key: Some(key_bpchar),
    hash: Some(hash_bpchar),
    own_key: false,
    ..TEXT
};

/// `name`.
pub static NAME: TypeOps = TypeOps { text_in: name_in, binary_in: name_recv, ..TEXT };

/// `cstring`, `unknown` and `refcursor`: text without operators.
pub static CSTRING: TypeOps = TypeOps { compare: None, equal: None, key: None, hash: None, own_key: false, ..TEXT };

/// `pg_node_tree`: text that only the server writes.
pub static NODE_TREE: TypeOps =
    TypeOps { text_in: crate::scalar::pseudo::cannot_accept, binary_in: crate::scalar::pseudo::cannot_accept, ..TEXT };

/// `"char"`: one byte.
pub static CHAR: TypeOps = TypeOps {
    text_out: char_out,
    text_in: char_in,
    binary_out: char_send,
    binary_in: char_recv,
    compare: Some(compare_char),
    equal: Some(crate::equal_by!(compare_char)),
    key: Some(key_char),
    hash: Some(hash_char),
    own_key: true,
};

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let bytes = get::bytes(ty, v)?;
    // No valid text has a NUL. Of a damaged one PostgreSQL prints what a C string has.
    let printed = std::ffi::CStr::from_bytes_until_nul(bytes).map_or(bytes, std::ffi::CStr::to_bytes);
    out.extend_from_slice(printed);
    Ok(())
}

fn text_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    Ok(Datum::bytes(text))
}

/// Fails where the bytes are no text of the encoding: invalid UTF-8, or a NUL.
pub fn validate(encoding: Encoding, text: &[u8]) -> SqlResult<()> {
    let (name, at) = match encoding {
        Encoding::Utf8 => match std::str::from_utf8(text) {
            Ok(_) => ("UTF8", text.iter().position(|b| *b == 0)),
            Err(e) => {
                let valid = text.get(..e.valid_up_to()).unwrap_or_default();
                ("UTF8", valid.iter().position(|b| *b == 0).or(Some(e.valid_up_to())))
            }
        },
        Encoding::SqlAscii => ("SQL_ASCII", text.iter().position(|b| *b == 0)),
    };
    let Some(at) = at else { return Ok(()) };
    Err(invalid_bytes(name, text.get(at..).unwrap_or_default()))
}

/// The error for bytes of which the first character is none.
fn invalid_bytes(encoding: &str, rest: &[u8]) -> SqlError {
    let want = rest.first().map_or(1, |lead| char_len(*lead));
    let bytes: Vec<String> = rest.iter().take(want).map(|b| format!("0x{b:02x}")).collect();
    SqlError::new(
        SqlState::CharacterNotInRepertoire,
        format!("invalid byte sequence for encoding \"{encoding}\": {}", bytes.join(" ")),
    )
}

fn text_recv(cx: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    validate(cx.settings.encoding, bytes)?;
    Ok(Datum::bytes(bytes))
}

/// Whether a byte starts a character.
fn starts_char(encoding: Encoding, b: u8) -> bool {
    encoding == Encoding::SqlAscii || b & 0xC0 != 0x80
}

/// How many bytes the character that starts with `lead` has, as PostgreSQL reckons: bytes that start none count for one.
const fn char_len(lead: u8) -> usize {
    match lead {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    }
}

/// Where the first `chars` characters end, and how many there are. As in PostgreSQL a text ends at a NUL, which only a
/// damaged one has, and must not end within a character.
fn walk(encoding: Encoding, text: &[u8], chars: usize) -> SqlResult<(usize, usize)> {
    if encoding == Encoding::SqlAscii {
        let end = chars.min(text.len());
        return Ok((end, end));
    }
    if text.is_ascii() && !text.contains(&0) {
        let end = chars.min(text.len());
        return Ok((end, end));
    }
    let (mut at, mut count) = (0, 0);
    while count < chars {
        let Some(&lead) = text.get(at).filter(|lead| **lead != 0) else { break };
        let end = at + char_len(lead);
        if end > text.len() {
            return Err(invalid_bytes("UTF8", text.get(at..).unwrap_or_default()));
        }
        (at, count) = (end, count + 1);
    }
    Ok((at, count))
}

/// How many characters the bytes are.
pub fn char_count(encoding: Encoding, text: &[u8]) -> SqlResult<usize> {
    walk(encoding, text, usize::MAX).map(|(_, count)| count)
}

/// How many bytes the first `chars` characters take.
pub fn char_prefix_len(encoding: Encoding, text: &[u8], chars: usize) -> SqlResult<usize> {
    walk(encoding, text, chars).map(|(end, _)| end)
}

/// The longest prefix of at most `max` bytes that ends between characters.
pub fn clip(encoding: Encoding, text: &[u8], max: usize) -> &[u8] {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while end > 0 && text.get(end).is_some_and(|b| !starts_char(encoding, *b)) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn too_long(name: &str, limit: usize) -> SqlError {
    SqlError::new(SqlState::StringDataRightTruncation, format!("value too long for type {name}({limit})"))
}

/// What `varchar(n)` makes of a string: blanks beyond the length go, unless `explicit` anything else is an error; an
/// explicit cast cuts.
pub fn apply_varchar(encoding: Encoding, text: &[u8], typmod: i32, explicit: bool) -> SqlResult<&[u8]> {
    if typmod < TYPMOD_HEADER {
        return Ok(text);
    }
    let limit = (typmod - TYPMOD_HEADER) as usize;
    if text.len() <= limit {
        return Ok(text);
    }
    let (kept, excess) = text.split_at(char_prefix_len(encoding, text, limit)?);
    if !explicit && excess.iter().any(|b| *b != b' ') {
        return Err(too_long("character varying", limit));
    }
    Ok(kept)
}

/// What `char(n)` makes of a string: cut as `varchar(n)` is, or padded with blanks.
pub fn apply_bpchar(encoding: Encoding, text: &[u8], typmod: i32, explicit: bool) -> SqlResult<Vec<u8>> {
    if typmod < TYPMOD_HEADER {
        return Ok(text.to_vec());
    }
    let limit = (typmod - TYPMOD_HEADER) as usize;
    let chars = char_count(encoding, text)?;
    if chars <= limit {
        if limit > LENGTH_MAX {
            // No declaration makes such a length; a damaged catalog may.
            return Err(SqlError::new(SqlState::InternalError, format!("invalid memory alloc request size {limit}")));
        }
        let mut padded = text.to_vec();
        padded.resize(text.len() + (limit - chars), b' ');
        return Ok(padded);
    }
    let (kept, excess) = text.split_at(char_prefix_len(encoding, text, limit)?);
    if !explicit && excess.iter().any(|b| *b != b' ') {
        return Err(too_long("character", limit));
    }
    Ok(kept.to_vec())
}

fn varchar_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    apply_varchar(cx.settings.encoding, text, typmod, false).map(Datum::bytes)
}

fn varchar_recv(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    validate(cx.settings.encoding, bytes)?;
    varchar_in(cx, ty, bytes, typmod)
}

fn bpchar_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    apply_bpchar(cx.settings.encoding, text, typmod, false).map(Datum::bytes)
}

fn bpchar_recv(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    validate(cx.settings.encoding, bytes)?;
    bpchar_in(cx, ty, bytes, typmod)
}

fn name_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    Ok(Datum::bytes(clip(cx.settings.encoding, text, NAME_LEN - 1)))
}

fn name_recv(cx: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    validate(cx.settings.encoding, bytes)?;
    if bytes.len() >= NAME_LEN {
        return Err(SqlError::new(SqlState::NameTooLong, "identifier too long")
            .detail("Identifier must be less than 64 characters."));
    }
    Ok(Datum::bytes(bytes))
}

/// `bttextcmp`, `btnamecmp` and the mixes of the two.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    coll.check_order()?;
    Ok(get::bytes(ty, a)?.cmp(get::bytes(ty, b)?))
}

fn equal(_: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, a: ValueRef<'_>, b: ValueRef<'_>) -> SqlResult<bool> {
    coll.check_equality()?;
    Ok(get::bytes(ty, a)? == get::bytes(ty, b)?)
}

/// `bttext_pattern_cmp`: bytewise whatever the collation.
pub fn compare_pattern(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(get::bytes(ty, a)?.cmp(get::bytes(ty, b)?))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    coll.check_order()?;
    key::bytes(get::bytes(ty, v)?, out);
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    coll.check_equality()?;
    Ok(hash::bytes_extended(get::bytes(ty, v)?, seed))
}

/// A `bpchar` value without its trailing blanks.
pub fn trim_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| *b != b' ').map_or(0, |at| at + 1);
    text.get(..end).unwrap_or_default()
}

/// `bpcharcmp`.
pub fn compare_bpchar(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    coll.check_order()?;
    Ok(trim_blanks(get::bytes(ty, a)?).cmp(trim_blanks(get::bytes(ty, b)?)))
}

/// `btbpchar_pattern_cmp`.
pub fn compare_bpchar_pattern(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(trim_blanks(get::bytes(ty, a)?).cmp(trim_blanks(get::bytes(ty, b)?)))
}

fn equal_bpchar(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<bool> {
    coll.check_equality()?;
    Ok(trim_blanks(get::bytes(ty, a)?) == trim_blanks(get::bytes(ty, b)?))
}

fn key_bpchar(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    v: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    coll.check_order()?;
    key::bytes(trim_blanks(get::bytes(ty, v)?), out);
    Ok(())
}

fn hash_bpchar(_: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    coll.check_equality()?;
    Ok(hash::bytes_extended(trim_blanks(get::bytes(ty, v)?), seed))
}

fn char_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    match get::char(ty, v)? {
        0 => {}
        b if b >= 0x80 => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
        b => out.push(b),
    }
    Ok(())
}

fn char_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let octal = |b: u8| (b'0'..=b'7').contains(&b);
    Ok(Datum::Char(match text {
        [b'\\', a, b, c] if octal(*a) && octal(*b) && octal(*c) => {
            ((a - b'0') << 6).wrapping_add((b - b'0') << 3).wrapping_add(c - b'0')
        }
        [first, ..] => *first,
        [] => 0,
    }))
}

fn char_send(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.push(get::char(ty, v)?);
    Ok(())
}

fn char_recv(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly::<1>(bytes).map(|[b]| Datum::Char(b))
}

/// `btcharcmp`: unsigned.
pub fn compare_char(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(get::char(ty, a)?.cmp(&get::char(ty, b)?))
}

fn key_char(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.push(get::char(ty, v)?);
    Ok(())
}

fn hash_char(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    // `hashcharextended` hashes the C char, which is signed on x86.
    Ok(hash::uint32_extended(i32::from(get::char(ty, v)? as i8) as u32, seed))
}
