//! Arrays, of any element type and up to six dimensions.
//!
//! ```text
//!  payload   0          4             8          12                 12 + 8 * ndim
//!            ┌──────────┬─────────────┬──────────┬────────┬─────────┬─────────────┬─────┬──────────┐
//!            │ ndim i32 │ data offset │ element  │ length │ lower   │ null bitmap │ pad │ elements │
//!            │          │ i32         │ type OID │ of each│ bound … │ if any null │ to 8│          │
//!            └──────────┴─────────────┴──────────┴────────┴─────────┴─────────────┴─────┴──────────┘
//!            the data offset counts from the length word and is 0 where there is no null bitmap;
//!            a set bit means not null; an empty array has no dimensions at all
//! ```
//!
//! [`ArrayView`] reads one, [`build`] makes one. `int2vector`, `oidvector` and `anyarray` have the same payload.

mod binary;
mod order;
mod text;
pub mod vector;

use crate::packed::{Item, Part, corrupt};
use crate::scalar::exactly;
use crate::{Align, Datum, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef};
use std::sync::Arc;

/// The most dimensions of an array.
pub const MAX_DIMENSIONS: usize = 6;
/// The most elements of an array.
pub const MAX_ELEMENTS: usize = 134_217_727;

/// Every array type.
pub static OPS: TypeOps = TypeOps {
    text_out: text::text_out,
    text_in: text::text_in,
    binary_out: binary::binary_out,
    binary_in: binary::binary_in,
    compare: Some(order::compare),
    equal: Some(order::equal),
    key: Some(order::key),
    hash: Some(order::hash),
    own_key: false,
};

/// `anyarray`: an array that only itself says the element type of.
pub static ANYARRAY: TypeOps =
    TypeOps { text_in: crate::scalar::pseudo::cannot_accept, binary_in: crate::scalar::pseudo::cannot_accept, ..OPS };

pub(crate) use binary::{Message, invalid, write_counted};
pub use order::compare as compare_arrays;
pub(crate) use order::{combine, no_hash};

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// How many elements it has.
    pub length: i32,
    /// The subscript of the first.
    pub lower: i32,
}

impl Dimension {
    /// The subscript of the last.
    pub const fn upper(self) -> i32 {
        self.lower.wrapping_add(self.length).wrapping_sub(1)
    }
}

/// `54000`.
pub(crate) fn too_many_elements() -> SqlError {
    SqlError::new(SqlState::ProgramLimitExceeded, format!("array size exceeds the maximum allowed ({MAX_ELEMENTS})"))
}

/// The number of elements of these dimensions; `54000` where they are too many.
pub fn element_count(dimensions: &[Dimension]) -> SqlResult<usize> {
    if dimensions.is_empty() {
        return Ok(0);
    }
    dimensions.iter().try_fold(1usize, |count, d| {
        let length = usize::try_from(d.length).map_err(|_| too_many_elements())?;
        count.checked_mul(length).filter(|n| *n <= MAX_ELEMENTS).ok_or_else(too_many_elements)
    })
}

/// An array's payload, taken apart.
#[derive(Clone, Debug)]
pub struct ArrayView<'a> {
    payload: &'a [u8],
    element: Oid,
    dimensions: Vec<Dimension>,
    nulls: Option<&'a [u8]>,
    /// Where the elements start in the payload.
    data: usize,
    count: usize,
}

impl<'a> ArrayView<'a> {
    /// Takes a payload apart.
    pub fn parse(payload: &'a [u8]) -> SqlResult<Self> {
        let malformed = || corrupt("array");
        let word = |at: usize| payload.get(at..at + 4).ok_or_else(malformed).and_then(exactly::<4>);
        let ndim = usize::try_from(i32::from_le_bytes(word(0)?)).map_err(|_| malformed())?;
        if ndim > MAX_DIMENSIONS {
            return Err(malformed());
        }
        let offset = i32::from_le_bytes(word(4)?);
        let element = Oid(u32::from_le_bytes(word(8)?));
        let mut dimensions = Vec::with_capacity(ndim);
        for at in 0..ndim {
            let length = i32::from_le_bytes(word(12 + 4 * at)?);
            let lower = i32::from_le_bytes(word(12 + 4 * (ndim + at))?);
            if length < 0 {
                return Err(malformed());
            }
            dimensions.push(Dimension { length, lower });
        }
        let count = element_count(&dimensions)?;
        let header = 12 + 8 * ndim;
        let (nulls, data) = if offset == 0 {
            (None, Align::Double.up(header + 4) - 4)
        } else {
            let bitmap = payload.get(header..header + count.div_ceil(8)).ok_or_else(malformed)?;
            let data = usize::try_from(offset).ok().and_then(|o| o.checked_sub(4)).ok_or_else(malformed)?;
            (Some(bitmap), data)
        };
        // Each element takes a byte at least, so that a length cannot make us allocate more than there is.
        if nulls.is_none() && count > payload.len() {
            return Err(malformed());
        }
        Ok(ArrayView { payload, element, dimensions, nulls, data, count })
    }

    /// The elements' type.
    pub fn element_type(&self) -> Oid {
        self.element
    }

    /// The dimensions, outermost first; none of an empty array.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether any element may be NULL.
    pub fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    /// The elements, in row-major order; `None` is NULL.
    pub fn elements(&self, part: Part) -> Elements<'a> {
        Elements { payload: self.payload, nulls: self.nulls, position: self.data, next: 0, count: self.count, part }
    }
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    payload: &'a [u8],
    nulls: Option<&'a [u8]>,
    position: usize,
    next: usize,
    count: usize,
    part: Part,
}

impl<'a> Iterator for Elements<'a> {
    type Item = SqlResult<Option<ValueRef<'a>>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.count {
            return None;
        }
        let at = self.next;
        self.next += 1;
        let is_null = self.nulls.is_some_and(|bits| bits.get(at / 8).is_none_or(|b| b >> (at % 8) & 1 == 0));
        if is_null {
            return Some(Ok(None));
        }
        Some(match crate::packed::read(self.payload, &mut self.position, self.part, false) {
            Ok(Item::Ref(value)) => Ok(Some(value)),
            // Elements are stored plain.
            Ok(Item::Owned(_)) => Err(corrupt("array")),
            Err(e) => {
                self.next = self.count;
                Err(e)
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count - self.next, Some(self.count - self.next))
    }
}

impl ExactSizeIterator for Elements<'_> {}

/// The payload of an empty array.
pub fn empty(element: Oid) -> Vec<u8> {
    let mut out = vec![0; 8];
    out.extend_from_slice(&element.0.to_le_bytes());
    out
}

/// The payload of an array of these elements, in row-major order. Their number is the dimensions' product.
pub fn build<'v>(
    element: &TypeDesc,
    dimensions: &[Dimension],
    elements: impl IntoIterator<Item = Option<ValueRef<'v>>>,
) -> SqlResult<Vec<u8>> {
    let count = element_count(dimensions)?;
    if count == 0 {
        return Ok(empty(element.oid));
    }
    if dimensions.len() > MAX_DIMENSIONS {
        return Err(too_many_dimensions(dimensions.len()));
    }
    check_bounds(dimensions)?;
    let elements: Vec<Option<ValueRef<'v>>> = elements.into_iter().collect();
    if elements.len() != count {
        return Err(SqlError::internal("an array's elements do not fill its dimensions"));
    }
    let part = Part::of(element)?;
    let has_nulls = elements.iter().any(Option::is_none);
    let mut out = Vec::with_capacity(12 + 8 * dimensions.len() + count * 8);
    out.extend_from_slice(&(dimensions.len() as i32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&element.oid.0.to_le_bytes());
    for d in dimensions {
        out.extend_from_slice(&d.length.to_le_bytes());
    }
    for d in dimensions {
        out.extend_from_slice(&d.lower.to_le_bytes());
    }
    if has_nulls {
        let bitmap = out.len();
        out.resize(bitmap + count.div_ceil(8), 0);
        for (at, _) in elements.iter().enumerate().filter(|(_, e)| e.is_some()) {
            if let Some(byte) = out.get_mut(bitmap + at / 8) {
                *byte |= 1 << (at % 8);
            }
        }
    }
    crate::packed::pad(&mut out, 0, Align::Double);
    if has_nulls {
        let offset = (out.len() as i32 + 4).to_le_bytes();
        if let Some(place) = out.get_mut(4..8) {
            place.copy_from_slice(&offset);
        }
    }
    for value in elements.into_iter().flatten() {
        crate::packed::write(&mut out, 0, part, value, false)?;
        // The space of an element is a multiple of its alignment.
        crate::packed::pad(&mut out, 0, part.align);
    }
    if out.len() + 4 > (1 << 30) - 1 {
        return Err(too_many_elements());
    }
    Ok(out)
}

/// The payload of an array of one dimension, subscripts from 1.
pub fn build_vector<'v>(
    element: &TypeDesc,
    elements: impl IntoIterator<Item = Option<ValueRef<'v>>>,
) -> SqlResult<Vec<u8>> {
    let elements: Vec<_> = elements.into_iter().collect();
    let length = i32::try_from(elements.len()).map_err(|_| too_many_elements())?;
    build(element, &[Dimension { length, lower: 1 }], elements)
}

/// `54000`.
pub(crate) fn too_many_dimensions(count: usize) -> SqlError {
    SqlError::new(
        SqlState::ProgramLimitExceeded,
        format!("number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})"),
    )
}

/// Fails where a dimension's upper subscript does not fit.
pub(crate) fn check_bounds(dimensions: &[Dimension]) -> SqlResult<()> {
    for d in dimensions {
        if d.lower.checked_add(d.length).is_none() {
            return Err(SqlError::new(
                SqlState::ProgramLimitExceeded,
                format!("array lower bound is too large: {}", d.lower),
            ));
        }
    }
    Ok(())
}

/// The description of an array's elements: what the array itself says.
pub(crate) fn element_desc(cx: &TypeContext<'_>, view: &ArrayView<'_>) -> SqlResult<Arc<TypeDesc>> {
    cx.types.type_desc(view.element_type())
}

/// The same for printing, where PostgreSQL has another error for a type that is not there: the array is damaged.
pub(crate) fn printed_element(cx: &TypeContext<'_>, view: &ArrayView<'_>) -> SqlResult<Arc<TypeDesc>> {
    element_desc(cx, view).map_err(|error| match error.state {
        SqlState::UndefinedObject => {
            SqlError::new(SqlState::InternalError, format!("cache lookup failed for type {}", view.element_type()))
        }
        _ => error,
    })
}

/// The element type that an array type declares.
pub(crate) fn declared_element(cx: &TypeContext<'_>, ty: &TypeDesc) -> SqlResult<Arc<TypeDesc>> {
    match ty.kind {
        crate::TypeKind::Array { element } => cx.types.type_desc(element),
        _ if ty.element.is_valid() => cx.types.type_desc(ty.element),
        _ => Err(SqlError::internal(format_args!("{} is no array type", ty.name))),
    }
}

/// An array as a value.
pub(crate) fn to_datum(payload: Vec<u8>) -> Datum {
    Datum::Bytes(Arc::from(payload))
}
