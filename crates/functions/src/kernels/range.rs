//! Ranges and multiranges. A value of either is taken apart into its ranges, none of them empty: a range has one or none. So
//! what PostgreSQL has as four functions, for each pair of kinds, is one here.

use std::cmp::Ordering;

use stegodon_types::array::ArrayView;
use stegodon_types::multirange::MultirangeType;
use stegodon_types::packed::{Item, Part};
use stegodon_types::range::{Bound, Bounds, RangeType};
use stegodon_types::{SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, ValueRef};

use crate::adapt::*;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column};

/// A range that is not empty.
pub(crate) type Ends<'a> = (Bound<'a>, Bound<'a>);

/// How values of a range or multirange type are taken apart.
pub(crate) enum Kind {
    Range(RangeType),
    Multirange(MultirangeType),
}

impl Kind {
    /// Of a range or multirange type.
    pub(crate) fn of(cx: &TypeContext<'_>, ty: &TypeDesc) -> SqlResult<Kind> {
        match ty.kind {
            TypeKind::Range { .. } => RangeType::of(cx, ty).map(Kind::Range),
            TypeKind::Multirange { .. } => MultirangeType::of(cx, ty).map(Kind::Multirange),
            _ => Err(SqlError::unsupported(format_args!("type {} as a range", ty.name))),
        }
    }

    pub(crate) fn range(&self) -> &RangeType {
        match self {
            Kind::Range(range) => range,
            Kind::Multirange(multirange) => multirange.range(),
        }
    }

    pub(crate) fn parse<'a>(&self, payload: &'a [u8]) -> SqlResult<Vec<Ends<'a>>> {
        match self {
            Kind::Range(range) => Ok(range.parse(payload)?.into_iter().collect()),
            Kind::Multirange(multirange) => Ok(multirange.parse(payload)?.into_iter().flatten().collect()),
        }
    }

    /// The payload of these ranges; `what` says of which operation, where they must be one and are not.
    pub(crate) fn build(&self, cx: &TypeContext<'_>, ends: Vec<Ends<'_>>) -> SqlResult<Vec<u8>> {
        match self {
            Kind::Range(range) => range.build(cx, &ends.into_iter().next()),
            Kind::Multirange(multirange) => {
                let ranges = ends.into_iter().map(|e| multirange.range().build(cx, &Some(e)));
                multirange.build(cx, ranges.collect::<SqlResult<_>>()?)
            }
        }
    }
}

/// Compares the bounds of ranges of one type.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub cx: &'a TypeContext<'a>,
    pub ty: &'a RangeType,
}

impl Rules<'_> {
    fn lower_lower(self, a: &Ends<'_>, b: &Ends<'_>) -> SqlResult<Ordering> {
        self.ty.compare_bounds(self.cx, (&a.0, true), (&b.0, true))
    }
    fn upper_upper(self, a: &Ends<'_>, b: &Ends<'_>) -> SqlResult<Ordering> {
        self.ty.compare_bounds(self.cx, (&a.1, false), (&b.1, false))
    }
    fn lower_upper(self, a: &Ends<'_>, b: &Ends<'_>) -> SqlResult<Ordering> {
        self.ty.compare_bounds(self.cx, (&a.0, true), (&b.1, false))
    }

    fn overlap(self, a: &Ends<'_>, b: &Ends<'_>) -> SqlResult<bool> {
        Ok(self.lower_upper(a, b)?.is_le() && self.lower_upper(b, a)?.is_le())
    }

    fn within(self, outer: &Ends<'_>, inner: &Ends<'_>) -> SqlResult<bool> {
        Ok(self.lower_lower(outer, inner)?.is_le() && self.upper_upper(outer, inner)?.is_ge())
    }

    /// Whether nothing lies between an upper and a lower bound, and nothing in both.
    fn touch(self, upper: &Bound<'_>, lower: &Bound<'_>) -> SqlResult<bool> {
        let (Some(high), Some(low)) = (&upper.value, &lower.value) else { return Ok(false) };
        let order = stegodon_types::compare(self.cx, &self.ty.subtype, &self.ty.collation, high.value(), low.value())?;
        match order {
            Ordering::Greater => Ok(false),
            Ordering::Equal => Ok(upper.inclusive != lower.inclusive),
            Ordering::Less => {
                // What lies between is empty: only where the type is discrete.
                let gap = (flipped(upper), flipped(lower));
                Ok(self.ty.parse(&self.ty.build(self.cx, &Some(gap))?)?.is_none())
            }
        }
    }

    fn contains(self, a: &[Ends<'_>], b: &[Ends<'_>]) -> SqlResult<bool> {
        for inner in b {
            if !any(a, |outer| self.within(outer, inner))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn contains_value(self, a: &[Ends<'_>], value: ValueRef<'_>) -> SqlResult<bool> {
        any(a, |(lower, upper)| {
            let order = |bound: &Item<'_>| {
                stegodon_types::compare(self.cx, &self.ty.subtype, &self.ty.collation, bound.value(), value)
            };
            if let Some(bound) = &lower.value {
                let order = order(bound)?;
                if order.is_gt() || (order.is_eq() && !lower.inclusive) {
                    return Ok(false);
                }
            }
            if let Some(bound) = &upper.value {
                let order = order(bound)?;
                if order.is_lt() || (order.is_eq() && !upper.inclusive) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn intersection<'b>(self, a: &Ends<'b>, b: &Ends<'b>) -> SqlResult<Option<Ends<'b>>> {
        if !self.overlap(a, b)? {
            return Ok(None);
        }
        let lower = if self.lower_lower(a, b)?.is_ge() { &a.0 } else { &b.0 };
        let upper = if self.upper_upper(a, b)?.is_le() { &a.1 } else { &b.1 };
        Ok(Some((lower.clone(), upper.clone())))
    }

    /// From the least lower to the greatest upper bound.
    fn span<'b>(self, a: &Ends<'b>, b: &Ends<'b>) -> SqlResult<Ends<'b>> {
        let lower = if self.lower_lower(a, b)?.is_lt() { &a.0 } else { &b.0 };
        let upper = if self.upper_upper(a, b)?.is_gt() { &a.1 } else { &b.1 };
        Ok((lower.clone(), upper.clone()))
    }

    /// What is left of `a` on both sides of `b`.
    fn difference<'b>(self, a: &Ends<'b>, b: &Ends<'b>) -> SqlResult<Vec<Ends<'b>>> {
        if !self.overlap(a, b)? {
            return Ok(vec![a.clone()]);
        }
        let mut left = Vec::new();
        if self.lower_lower(a, b)?.is_lt() {
            left.push((a.0.clone(), flipped(&b.0)));
        }
        if self.upper_upper(a, b)?.is_gt() {
            left.push((flipped(&b.1), a.1.clone()));
        }
        Ok(left)
    }
}

/// The bound of what lies on the other side.
fn flipped<'a>(bound: &Bound<'a>) -> Bound<'a> {
    Bound { value: bound.value.clone(), inclusive: !bound.inclusive }
}

fn any<T>(items: &[T], mut f: impl FnMut(&T) -> SqlResult<bool>) -> SqlResult<bool> {
    for item in items {
        if f(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn not_contiguous(what: &str) -> SqlError {
    SqlError::new(SqlState::DataException, format!("result of range {what} would not be contiguous"))
}

fn type_of<'a>(call: &Call<'a>, n: usize) -> SqlResult<&'a TypeDesc> {
    call.info.arg_types.get(n).map(|t| &**t).ok_or_else(|| SqlError::internal("an argument has no type"))
}

/// A predicate of two values.
fn relation(call: &Call<'_>, f: impl Fn(Rules<'_>, &[Ends<'_>], &[Ends<'_>]) -> SqlResult<bool>) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let (left, right) = (Kind::of(&cx, type_of(call, 0)?)?, Kind::of(&cx, type_of(call, 1)?)?);
    let rules = Rules { cx: &cx, ty: left.range() };
    map2(call, |a: &[u8], b: &[u8]| f(rules, &left.parse(a)?, &right.parse(b)?))
}

/// The first and the last range of both, where neither is empty; false where one is.
fn outermost(
    call: &Call<'_>,
    f: impl Fn(Rules<'_>, [&Ends<'_>; 2], [&Ends<'_>; 2]) -> SqlResult<bool>,
) -> SqlResult<Column> {
    relation(call, |rules, a, b| match (a.first(), a.last(), b.first(), b.last()) {
        (Some(first), Some(last), Some(other_first), Some(other_last)) => {
            f(rules, [first, last], [other_first, other_last])
        }
        _ => Ok(false),
    })
}

/// Whether a value is in a range or multirange, which is argument `n`.
fn element_in(call: &Call<'_>, n: usize) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let kind = Kind::of(&cx, type_of(call, n)?)?;
    let rules = Rules { cx: &cx, ty: kind.range() };
    let (set, element) = (argument(call, n)?, argument(call, 1 - n)?);
    let layout = layout_of(&kind.range().subtype)?;
    let sets = <&[u8]>::values(set.array())?;
    map_rows(call, |row| {
        let payload = <&[u8]>::at(sets, if set.is_const() { 0 } else { row });
        let value = element.value(layout, row).ok_or_else(|| SqlError::internal("an argument is not of its layout"))?;
        rules.contains_value(&kind.parse(payload)?, value)
    })
}

fn overlaps(call: &Call<'_>) -> SqlResult<Column> {
    relation(call, |rules, a, b| any(a, |a| any(b, |b| rules.overlap(a, b))))
}
#[allow(clippy::redundant_closure_for_method_calls, reason = "the method is not general enough")]
fn contains(call: &Call<'_>) -> SqlResult<Column> {
    relation(call, |rules, a, b| rules.contains(a, b))
}
fn contained(call: &Call<'_>) -> SqlResult<Column> {
    relation(call, |rules, a, b| rules.contains(b, a))
}
fn adjacent(call: &Call<'_>) -> SqlResult<Column> {
    outermost(call, |rules, [first, last], [other_first, other_last]| {
        Ok(rules.touch(&last.1, &other_first.0)? || rules.touch(&other_last.1, &first.0)?)
    })
}
fn before(call: &Call<'_>) -> SqlResult<Column> {
    outermost(call, |rules, [_, last], [first, _]| Ok(rules.lower_upper(first, last)?.is_gt()))
}
fn after(call: &Call<'_>) -> SqlResult<Column> {
    outermost(call, |rules, [first, _], [_, last]| Ok(rules.lower_upper(first, last)?.is_gt()))
}
fn over_left(call: &Call<'_>) -> SqlResult<Column> {
    outermost(call, |rules, [_, a], [_, b]| Ok(rules.upper_upper(a, b)?.is_le()))
}
fn over_right(call: &Call<'_>) -> SqlResult<Column> {
    outermost(call, |rules, [a, _], [b, _]| Ok(rules.lower_lower(a, b)?.is_ge()))
}

/// A range or multirange of two.
fn combine(
    call: &Call<'_>,
    f: impl for<'b> Fn(Rules<'_>, Vec<Ends<'b>>, Vec<Ends<'b>>) -> SqlResult<Vec<Ends<'b>>>,
) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let kind = Kind::of(&cx, &call.info.result_type)?;
    let rules = Rules { cx: &cx, ty: kind.range() };
    write2(call, |a: &[u8], b: &[u8], out| {
        out.extend_from_slice(&kind.build(&cx, f(rules, kind.parse(a)?, kind.parse(b)?)?)?);
        Ok(())
    })
}

/// `+`, or `range_merge` where a gap is allowed.
fn union(call: &Call<'_>, gap: bool) -> SqlResult<Column> {
    combine(call, |rules, a, b| match (a.first(), b.first()) {
        (Some(x), Some(y)) => {
            if !gap && !rules.overlap(x, y)? && !rules.touch(&x.1, &y.0)? && !rules.touch(&y.1, &x.0)? {
                return Err(not_contiguous("union"));
            }
            Ok(vec![rules.span(x, y)?])
        }
        (Some(_), None) => Ok(a),
        _ => Ok(b),
    })
}

fn intersect<'b>(rules: Rules<'_>, a: &[Ends<'b>], b: &[Ends<'b>]) -> SqlResult<Vec<Ends<'b>>> {
    let mut out = Vec::new();
    for x in a {
        for y in b {
            out.extend(rules.intersection(x, y)?);
        }
    }
    Ok(out)
}

fn minus<'b>(rules: Rules<'_>, a: Vec<Ends<'b>>, b: &[Ends<'b>]) -> SqlResult<Vec<Ends<'b>>> {
    let mut left = a;
    for y in b {
        let mut next = Vec::with_capacity(left.len());
        for x in &left {
            next.extend(rules.difference(x, y)?);
        }
        left = next;
    }
    Ok(left)
}

fn range_minus(call: &Call<'_>) -> SqlResult<Column> {
    combine(call, |rules, a, b| {
        let left = minus(rules, a, &b)?;
        if left.len() > 1 { Err(not_contiguous("difference")) } else { Ok(left) }
    })
}

/// `range_intersect_agg`'s step.
pub(crate) fn intersect_payloads(cx: &TypeContext<'_>, ty: &TypeDesc, a: &[u8], b: &[u8]) -> SqlResult<Vec<u8>> {
    let kind = Kind::of(cx, ty)?;
    let rules = Rules { cx, ty: kind.range() };
    kind.build(cx, intersect(rules, &kind.parse(a)?, &kind.parse(b)?)?)
}

/// The lowest or the highest bound's value; NULL where it is infinite or there is none.
fn bound(call: &Call<'_>, lower: bool) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let kind = Kind::of(&cx, type_of(call, 0)?)?;
    let mut out = stegodon_types::ColumnBuilder::new(call.info.layout, call.rows);
    let column = argument(call, 0)?;
    for row in 0..call.rows {
        let Some(ValueRef::Bytes(payload)) = column.value(layout_of(type_of(call, 0)?)?, row) else {
            out.append_null();
            continue;
        };
        let ends = kind.parse(payload)?;
        let bound = if lower { ends.first().map(|e| &e.0) } else { ends.last().map(|e| &e.1) };
        out.append_option(bound.and_then(|b| b.value.as_ref()).map(Item::value))?;
    }
    Ok(shape(call, out.finish()))
}

fn test(call: &Call<'_>, f: impl Fn(Option<&Bound<'_>>, Option<&Bound<'_>>) -> bool) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let kind = Kind::of(&cx, type_of(call, 0)?)?;
    map1(call, |payload: &[u8]| {
        let ends = kind.parse(payload)?;
        Ok(f(ends.first().map(|e| &e.0), ends.last().map(|e| &e.1)))
    })
}

fn inclusive(bound: Option<&Bound<'_>>) -> bool {
    bound.is_some_and(|b| b.inclusive)
}
fn infinite(bound: Option<&Bound<'_>>) -> bool {
    bound.is_some_and(|b| b.value.is_none())
}
fn is_empty(call: &Call<'_>) -> SqlResult<Column> {
    test(call, |lower, _| lower.is_none())
}

/// `int4range(a, b [, flags])`: a NULL bound is infinite.
fn construct(call: &Call<'_>) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let range = RangeType::of(&cx, &call.info.result_type)?;
    let layout = layout_of(&range.subtype)?;
    let (lower, upper) = (argument(call, 0)?, argument(call, 1)?);
    let mut out = crate::column::ByteBuilder::new(call.info.layout, call.rows, 0);
    for row in 0..call.rows {
        let flags = match call.args.get(2) {
            None => b"[)".as_slice(),
            Some(flags) => match flags.value(stegodon_types::Layout::Bytes, row) {
                Some(ValueRef::Bytes(flags)) => flags,
                _ => {
                    return Err(SqlError::new(
                        SqlState::DataException,
                        "range constructor flags argument must not be null",
                    ));
                }
            },
        };
        let (low, high) = match flags {
            b"[]" => (true, true),
            b"[)" => (true, false),
            b"(]" => (false, true),
            b"()" => (false, false),
            _ => {
                return Err(SqlError::new(SqlState::SyntaxError, "invalid range bound flags")
                    .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
            }
        };
        let end = |column: &Column, inclusive| match column.value(layout, row) {
            None => Bound::INFINITE,
            Some(v) => Bound::new(v.to_datum(), inclusive),
        };
        let bounds: Bounds<'_> = Some((end(lower, low), end(upper, high)));
        out.push(Some(&range.build(&cx, &bounds)?));
    }
    Ok(shape(call, out.finish()?))
}

/// `int4multirange()`, of a range, of an array of ranges.
fn construct_multirange(call: &Call<'_>) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let multirange = MultirangeType::of(&cx, &call.info.result_type)?;
    let Some(ty) = call.info.arg_types.first() else {
        let empty = multirange.build(&cx, Vec::new())?;
        return rows_write(call, |_, out| {
            out.extend_from_slice(&empty);
            Ok(())
        });
    };
    let TypeKind::Array { element } = ty.kind else {
        return write1(call, |range: &[u8], out| {
            out.extend_from_slice(&multirange.build(&cx, vec![range.to_vec()])?);
            Ok(())
        });
    };
    let part = Part::of(&*cx.types.type_desc(element)?)?;
    write1(call, |array: &[u8], out| {
        let view = ArrayView::parse(array)?;
        if view.dimensions().len() > 1 {
            return Err(SqlError::new(
                SqlState::CardinalityViolation,
                "multiranges cannot be constructed from multidimensional arrays",
            ));
        }
        let mut ranges = Vec::with_capacity(view.len());
        for range in view.elements(part) {
            match range? {
                Some(ValueRef::Bytes(range)) => ranges.push(range.to_vec()),
                _ => {
                    return Err(SqlError::new(
                        SqlState::NullValueNotAllowed,
                        "multirange values cannot contain null members",
                    ));
                }
            }
        }
        out.extend_from_slice(&multirange.build(&cx, ranges)?);
        Ok(())
    })
}

/// `range_merge` of a multirange: from its first to its last range.
fn merge_multirange(call: &Call<'_>) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let kind = Kind::of(&cx, type_of(call, 0)?)?;
    write1(call, |payload: &[u8], out| {
        let ends = kind.parse(payload)?;
        let whole = ends.first().zip(ends.last()).map(|(first, last)| (first.0.clone(), last.1.clone()));
        out.extend_from_slice(&kind.range().build(&cx, &whole)?);
        Ok(())
    })
}

/// One kernel under several OIDs.
macro_rules! entries {
    ($($($oid:literal)* => $f:expr;)*) => { &[$($(($oid, $f),)*)*] };
}

/// Operators and functions.
pub(crate) static KERNELS: &[Entry] = entries! {
    3857 4246 4247 4248 => overlaps;
    3859 4250 4251 4541 => contains;
    3861 4253 4254 4542 => contained;
    3858 4249 => |c| element_in(c, 0);
    3860 4252 => |c| element_in(c, 1);
    3862 4255 4256 4257 => adjacent;
    3863 4258 4259 4260 => before;
    3864 4261 4262 4263 => after;
    3865 4264 4265 4266 => over_left;
    3866 4267 4268 4269 => over_right;
    3867 => |c| union(c, false);
    4057 => |c| union(c, true);
    3868 4272 => |c| combine(c, |rules, a, b| intersect(rules, &a, &b));
    3869 => range_minus;
    4270 => |c| combine(c, |_, mut a, b| {
        a.extend(b);
        Ok(a)
    });
    4271 => |c| combine(c, |rules, a, b| minus(rules, a, &b));
    4228 => merge_multirange;
    3848 4235 => |c| bound(c, true);
    3849 4236 => |c| bound(c, false);
    3850 4237 => is_empty;
    3851 4238 => |c| test(c, |lower, _| inclusive(lower));
    3852 4239 => |c| test(c, |_, upper| inclusive(upper));
    3853 4240 => |c| test(c, |lower, _| infinite(lower));
    3854 4241 => |c| test(c, |_, upper| infinite(upper));
    3840 3841 3844 3845 3933 3934 3937 3938 3941 3942 3945 3946 => construct;
    4280 4281 4282 4283 4284 4285 4286 4287 4288 4289 4290 4291 4292 4293 4294 4295 4296 4297 4298 => construct_multirange;
};
