//! The binary form.
//!
//! ```text
//!  ndim: i32, has nulls: i32, element type: u32; for each dimension length: i32, lower bound: i32;
//!  for each element its length (i32, -1 for NULL) and its binary form; all big-endian
//! ```

use super::{ArrayView, Dimension, MAX_DIMENSIONS, build, declared_element, element_count, printed_element, to_datum};
use crate::ops::get;
use crate::packed::Part;
use crate::scalar::{exactly, message_too_short};
use crate::{Datum, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, ValueRef};

/// Appends a value with its length before it.
pub(crate) fn write_counted(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    value: Option<ValueRef<'_>>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    let Some(value) = value else {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    crate::binary_out(cx, ty, value, out)?;
    let length = (out.len() - start - 4) as i32;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Takes big-endian words and counted values off the front of a binary value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a>(pub(crate) &'a [u8]);

impl<'a> Message<'a> {
    pub(crate) fn take(&mut self, count: usize) -> SqlResult<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count).ok_or_else(message_too_short)?;
        self.0 = tail;
        Ok(head)
    }

    pub(crate) fn i32(&mut self) -> SqlResult<i32> {
        exactly(self.take(4)?).map(i32::from_be_bytes)
    }

    /// A value with its length before it; `None` where it is NULL, `what` names the whole in messages.
    pub(crate) fn counted(&mut self, too_short: impl FnOnce() -> SqlError) -> SqlResult<Option<&'a [u8]>> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        match usize::try_from(length) {
            Ok(length) if length <= self.0.len() => self.take(length).map(Some),
            _ => Err(too_short()),
        }
    }

    pub(crate) fn end(&self) -> SqlResult<()> {
        if self.0.is_empty() { Ok(()) } else { Err(invalid("incorrect binary data format")) }
    }
}

pub(crate) fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidBinaryRepresentation, message)
}

pub(super) fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let view = ArrayView::parse(get::bytes(ty, v)?)?;
    let element = printed_element(cx, &view)?;
    out.extend_from_slice(&(view.dimensions().len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(view.has_nulls()).to_be_bytes());
    out.extend_from_slice(&element.oid.0.to_be_bytes());
    for d in view.dimensions() {
        out.extend_from_slice(&d.length.to_be_bytes());
        out.extend_from_slice(&d.lower.to_be_bytes());
    }
    if view.is_empty() {
        return Ok(());
    }
    for value in view.elements(Part::of(&element)?) {
        write_counted(cx, &element, value?, out)?;
    }
    Ok(())
}

pub(super) fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let element = declared_element(cx, ty)?;
    let mut message = Message(bytes);
    let ndim = message.i32()?;
    let ndim = usize::try_from(ndim).map_err(|_| invalid(format!("invalid number of dimensions: {ndim}")))?;
    if ndim > MAX_DIMENSIONS {
        return Err(super::too_many_dimensions(ndim));
    }
    if !matches!(message.i32()?, 0 | 1) {
        return Err(invalid("invalid array flags"));
    }
    let sent = Oid(message.i32()? as u32);
    if sent != element.oid {
        let name = cx.types.type_desc(sent).map_or_else(|_| "???".to_owned(), |t| crate::names::sql_name(&t));
        return Err(SqlError::new(
            SqlState::DatatypeMismatch,
            format!(
                "binary data has array element type {sent} ({name}) instead of expected {} ({})",
                element.oid,
                crate::names::sql_name(&element)
            ),
        ));
    }
    let mut dimensions = Vec::with_capacity(ndim);
    for _ in 0..ndim {
        dimensions.push(Dimension { length: message.i32()?, lower: message.i32()? });
    }
    let count = element_count(&dimensions)?;
    super::check_bounds(&dimensions)?;
    // Each element takes four bytes at least.
    if count > message.0.len() / 4 {
        return Err(message_too_short());
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = message.counted(|| invalid("insufficient data left in message"))?;
        values.push(bytes.map(|b| crate::binary_in(cx, &element, b, typmod)).transpose()?);
    }
    message.end()?;
    if count == 0 {
        return Ok(to_datum(super::empty(element.oid)));
    }
    Ok(to_datum(build(&element, &dimensions, values.iter().map(|v| v.as_ref().map(Datum::as_ref)))?))
}
