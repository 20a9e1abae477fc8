//! SQL arrays in and out, for scan keys and ARRAY subqueries.

use arrow_array::ArrayRef;
use stegodon_format::ids::Oid;
use stegodon_types::array::{ArrayView, build_vector};
use stegodon_types::{Datum, SqlError, SqlResult, TypeCatalog, ValueRef, value_at};

/// The elements of an array, in order, whatever its dimensions.
pub(crate) fn elements(types: &dyn TypeCatalog, element: Oid, payload: &[u8]) -> SqlResult<Vec<Option<Datum>>> {
    let view = ArrayView::parse(payload)?;
    // An operator's element type may be another name of the array's own (text for varchar): the bytes are the same.
    let desc = types.type_desc(if view.element_type().is_valid() { view.element_type() } else { element })?;
    let part = stegodon_types::packed::Part::of(&desc)?;
    view.elements(part).map(|e| Ok(e?.map(ValueRef::to_datum))).collect()
}

/// A one-dimensional array of the values of columns, one after the other.
pub(crate) fn from_columns(types: &dyn TypeCatalog, element: Oid, columns: &[ArrayRef]) -> SqlResult<Datum> {
    let desc = types.type_desc(element)?;
    let layout = desc.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", desc.name)))?;
    if matches!(desc.kind, stegodon_types::TypeKind::Array { .. }) {
        return Err(SqlError::unsupported("ARRAY() over a subquery of arrays"));
    }
    let values = columns.iter().flat_map(|c| (0..c.len()).map(move |row| value_at(c.as_ref(), layout, row)));
    Ok(Datum::bytes(build_vector(&desc, values)?))
}
