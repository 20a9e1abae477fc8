//! Text made of values of any type: `concat`, `format`, `||` with one side no text, quoting; `md5`, `encode`, `decode`.

use stegodon_types::scalar::text::char_count;
use stegodon_types::{Layout, SqlError, SqlResult, SqlState, TypeContext, ops, value_at};

use crate::adapt::*;
use crate::column::ByteBuilder;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column};

/// Appends an argument's text at a row; false where it is NULL.
fn append_text(call: &Call<'_>, n: usize, row: usize, out: &mut Vec<u8>) -> SqlResult<bool> {
    let column = argument(call, n)?;
    let ty = call.info.arg_types.get(n).ok_or_else(|| SqlError::internal("an argument has no type"))?;
    let row = if column.is_const() { 0 } else { row };
    let Some(value) = value_at(column.array().as_ref(), layout_of(ty)?, row) else { return Ok(false) };
    (ops(ty)?.text_out)(&TypeContext::new(call.cx.types, call.cx.settings), ty, value, out)?;
    Ok(true)
}

/// Builds a text for each row.
fn build(call: &Call<'_>, mut f: impl FnMut(usize, &mut Vec<u8>) -> SqlResult<bool>) -> SqlResult<Column> {
    let mut out = ByteBuilder::new(Layout::Bytes, call.rows, 0);
    for row in 0..call.rows {
        if f(row, out.buffer())? { out.end_value() } else { out.end_null() }
    }
    Ok(shape(call, out.finish()?))
}

fn no_variadic(call: &Call<'_>, name: &str) -> SqlResult<()> {
    if call.info.variadic {
        return Err(SqlError::unsupported(format_args!("{name} of a VARIADIC array")));
    }
    Ok(())
}

fn concat(call: &Call<'_>) -> SqlResult<Column> {
    no_variadic(call, "concat")?;
    build(call, |row, out| {
        for n in 0..call.args.len() {
            append_text(call, n, row, out)?;
        }
        Ok(true)
    })
}

fn concat_ws(call: &Call<'_>) -> SqlResult<Column> {
    no_variadic(call, "concat_ws")?;
    let mut separator = Vec::new();
    build(call, |row, out| {
        separator.clear();
        if !append_text(call, 0, row, &mut separator)? {
            return Ok(false);
        }
        let mut first = true;
        for n in 1..call.args.len() {
            if argument(call, n)?.is_null(row) {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.extend_from_slice(&separator);
            }
            append_text(call, n, row, out)?;
        }
        Ok(true)
    })
}

/// `||` of text with a value of another type: strict.
fn concat_strict(call: &Call<'_>) -> SqlResult<Column> {
    build(call, |row, out| Ok(append_text(call, 0, row, out)? && append_text(call, 1, row, out)?))
}

/// `quote_literal`.
pub(crate) fn quote_literal(text: &[u8], out: &mut Vec<u8>) {
    if text.contains(&b'\\') {
        out.push(b'E');
    }
    out.push(b'\'');
    for &b in text {
        if b == b'\'' || b == b'\\' {
            out.push(b);
        }
        out.push(b);
    }
    out.push(b'\'');
}

fn quote_value(call: &Call<'_>, null: bool) -> SqlResult<Column> {
    let mut text = Vec::new();
    build(call, |row, out| {
        text.clear();
        if append_text(call, 0, row, &mut text)? {
            quote_literal(&text, out);
            return Ok(true);
        }
        if null {
            out.extend_from_slice(b"NULL");
        }
        Ok(null)
    })
}

fn bad_format(message: String) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// `format(text, …)`.
fn format(call: &Call<'_>) -> SqlResult<Column> {
    no_variadic(call, "format")?;
    let mut pattern = Vec::new();
    let mut value = Vec::new();
    build(call, |row, out| {
        pattern.clear();
        if !append_text(call, 0, row, &mut pattern)? {
            return Ok(false);
        }
        let mut next = 0_usize;
        let mut at = 0;
        while let Some(&b) = pattern.get(at) {
            at += 1;
            if b != b'%' {
                out.push(b);
                continue;
            }
            if pattern.get(at) == Some(&b'%') {
                out.push(b'%');
                at += 1;
                continue;
            }
            let spec = Spec::parse(&pattern, &mut at)?;
            let mut argument_of = |position: Option<usize>| -> SqlResult<usize> {
                let n = match position {
                    Some(n) => n,
                    None => next + 1,
                };
                next = n;
                if n >= call.args.len() {
                    return Err(bad_format("too few arguments for format()".into()));
                }
                Ok(n)
            };
            let width = match spec.width {
                Width::None => 0,
                Width::Fixed(n) => n,
                Width::Argument(position) => {
                    let n = argument_of(position)?;
                    value.clear();
                    if append_text(call, n, row, &mut value)? {
                        let text = std::str::from_utf8(&value).unwrap_or_default();
                        text.parse::<i32>().map(i64::from).map_err(|_| bad_format("number is out of range".into()))?
                    } else {
                        0
                    }
                }
            };
            let n = argument_of(spec.position)?;
            value.clear();
            let known = append_text(call, n, row, &mut value)?;
            let mut formatted = Vec::new();
            match spec.conversion {
                b's' => formatted.extend_from_slice(&value),
                b'I' if !known => {
                    return Err(SqlError::new(
                        SqlState::NullValueNotAllowed,
                        "null values cannot be formatted as an SQL identifier",
                    ));
                }
                b'I' => {
                    let name =
                        std::str::from_utf8(&value).map_err(|_| SqlError::unsupported("quoting what is not UTF-8"))?;
                    formatted.extend_from_slice(stegodon_catalog::keywords::quote_identifier(name).as_bytes());
                }
                b'L' if !known => formatted.extend_from_slice(b"NULL"),
                _ => quote_literal(&value, &mut formatted),
            }
            let left = spec.minus || width < 0;
            let fill =
                (width.unsigned_abs() as usize).saturating_sub(char_count(call.cx.settings.encoding, &formatted)?);
            if fill > 1 << 29 {
                return Err(bad_format("number is out of range".into()));
            }
            if !left {
                out.resize(out.len() + fill, b' ');
            }
            out.extend_from_slice(&formatted);
            if left {
                out.resize(out.len() + fill, b' ');
            }
        }
        Ok(true)
    })
}

/// How wide a value is written.
enum Width {
    None,
    Fixed(i64),
    /// `*`, `*n$`.
    Argument(Option<usize>),
}

/// `%[n$][-][width]type`.
struct Spec {
    position: Option<usize>,
    minus: bool,
    width: Width,
    conversion: u8,
}

impl Spec {
    fn parse(text: &[u8], at: &mut usize) -> SqlResult<Spec> {
        let end = || bad_format("unterminated format() type specifier".into()).hint("For a single \"%\" use \"%%\".");
        let digits = |at: &mut usize| -> SqlResult<Option<i64>> {
            let mut n: Option<i64> = None;
            while let Some(d) = text.get(*at).filter(|b| b.is_ascii_digit()) {
                let next = n.unwrap_or(0) * 10 + i64::from(d - b'0');
                if next > i64::from(i32::MAX) {
                    return Err(SqlError::new(SqlState::NumericValueOutOfRange, "number is out of range"));
                }
                n = Some(next);
                *at += 1;
            }
            Ok(n)
        };
        let zero = || bad_format("format specifies argument 0, but arguments are numbered from 1".into());
        let mut spec = Spec { position: None, minus: false, width: Width::None, conversion: 0 };
        match digits(at)? {
            Some(n) if text.get(*at) == Some(&b'$') => {
                *at += 1;
                if n == 0 {
                    return Err(zero());
                }
                spec.position = Some(n as usize);
            }
            Some(n) => spec.width = Width::Fixed(n),
            None => {}
        }
        if let Width::None = spec.width {
            while text.get(*at) == Some(&b'-') {
                spec.minus = true;
                *at += 1;
            }
            if text.get(*at) == Some(&b'*') {
                *at += 1;
                match digits(at)? {
                    None => spec.width = Width::Argument(None),
                    Some(n) => {
                        if text.get(*at) != Some(&b'$') {
                            return Err(bad_format("width argument position must be ended by \"$\"".into()));
                        }
                        if n == 0 {
                            return Err(zero());
                        }
                        *at += 1;
                        spec.width = Width::Argument(Some(n as usize));
                    }
                }
            } else if let Some(n) = digits(at)? {
                spec.width = Width::Fixed(n);
            }
        }
        let conversion = *text.get(*at).ok_or_else(end)?;
        *at += 1;
        if !matches!(conversion, b's' | b'I' | b'L') {
            let c = String::from_utf8_lossy(text.get(*at - 1..).unwrap_or_default()).chars().next().unwrap_or('?');
            return Err(bad_format(format!("unrecognized format() type specifier \"{c}\""))
                .hint("For a single \"%\" use \"%%\"."));
        }
        spec.conversion = conversion;
        Ok(spec)
    }
}

/// Text of values of any type.
pub(crate) static KERNELS: &[Entry] = &[
    (3058, concat),
    (3059, concat_ws),
    (2003, concat_strict),
    (2004, concat_strict),
    (3539, format),
    (3540, format),
    (1283, |c| quote_value(c, false)),
    (1285, |c| quote_value(c, false)),
    (1289, |c| quote_value(c, true)),
    (1290, |c| quote_value(c, true)),
];
