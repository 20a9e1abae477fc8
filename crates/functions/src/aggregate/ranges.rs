//! `range_agg`: the union of ranges or multiranges, as a multirange.

use stegodon_types::multirange::MultirangeType;
use stegodon_types::{Datum, SqlResult, TypeContext, ValueRef};

use super::AggregateInfo;
use crate::EvalContext;
use crate::kernels::range::Kind;

/// `range_agg`.
pub(super) fn range_agg(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
) -> SqlResult<Option<Datum>> {
    let types = TypeContext::new(cx.types, cx.settings);
    let kind = Kind::of(&types, info.arg(0)?)?;
    let result = MultirangeType::of(&types, &info.result_type)?;
    let mut ranges = Vec::with_capacity(values.len());
    for value in values.iter().flatten() {
        let ValueRef::Bytes(payload) = value else { continue };
        for ends in kind.parse(payload)? {
            ranges.push(kind.range().build(&types, &Some(ends))?);
        }
    }
    result.build(&types, ranges).map(|v| Some(Datum::bytes(v)))
}
