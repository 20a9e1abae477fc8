//! Set-returning functions: one call gives rows, in batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::FuncExpr;
use stegodon_types::array::ArrayView;
use stegodon_types::multirange::MultirangeType;
use stegodon_types::numeric::Numeric;
use stegodon_types::packed::Part;
use stegodon_types::{
    ColumnBuilder, Layout, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, ValueRef,
    names::sql_name,
};

use crate::compile::compile;
use crate::eval::{Frame, Node, layout_of};
use crate::kernels::regexp;
use crate::srf_json::{self, Ask};
use crate::{Batch, Column, CompileContext, EvalContext};

/// The rows of one call.
pub trait SetFunction: Send {
    /// The next rows, at most `max`, one array a result column; `None` after the last.
    fn next(&mut self, cx: &EvalContext<'_>, max: usize) -> SqlResult<Option<Vec<ArrayRef>>>;
}

/// One row's arguments.
struct Arguments<'a> {
    columns: &'a [Column],
    types: &'a [Arc<TypeDesc>],
    row: usize,
}

impl Arguments<'_> {
    fn value(&self, n: usize) -> SqlResult<Option<ValueRef<'_>>> {
        let (Some(column), Some(ty)) = (self.columns.get(n), self.types.get(n)) else { return Ok(None) };
        Ok(column.value(layout_of(ty)?, self.row))
    }

    fn i64(&self, n: usize) -> SqlResult<Option<i64>> {
        Ok(match self.value(n)? {
            Some(ValueRef::Int32(v)) => Some(i64::from(v)),
            Some(ValueRef::Int64(v)) => Some(v),
            None => None,
            Some(_) => return Err(SqlError::internal("an argument is not of its layout")),
        })
    }

    fn bytes(&self, n: usize) -> SqlResult<Option<&[u8]>> {
        match self.value(n)? {
            Some(ValueRef::Bytes(v)) => Ok(Some(v)),
            None => Ok(None),
            Some(_) => Err(SqlError::internal("an argument is not of its layout")),
        }
    }
}

/// A call of a set-returning function, compiled.
#[derive(Debug)]
pub struct SetFunctionPlan {
    function: Oid,
    args: Vec<Node>,
    types: Vec<Arc<TypeDesc>>,
    result: Arc<TypeDesc>,
    collation: Oid,
}

/// The set-returning functions that are done: `generate_series` of int4, int8, numeric, timestamp, timestamptz;
/// `generate_subscripts`; `unnest` of an array and of a multirange; `string_to_table`; elements, pairs and keys of `json` and
/// `jsonb`.
const DONE: [u32; 29] = [
    2763, 2764, 2765, 2766, 1066, 1067, 1068, 1069, 3259, 3260, 938, 939, 1191, 1192, 2331, 6160, 6161, 6274, 1293,
    3219, 3465, 3208, 3932, 3931, 3955, 3969, 3958, 3959, 3957,
];

/// Whether a set-returning function is done.
pub fn set_function_exists(function: Oid) -> bool {
    DONE.contains(&function.0)
}

impl SetFunctionPlan {
    /// Compiles a call. `0A000` names a function that is not done.
    pub fn compile(call: &Expr, cx: &CompileContext<'_>) -> SqlResult<SetFunctionPlan> {
        let Expr::Func(FuncExpr { function, args, input_collation, result_type, .. }) = call else {
            return Err(SqlError::unsupported("an operator or expression that returns a set"));
        };
        let types = args.iter().map(|a| cx.types.type_desc(a.type_oid())).collect::<SqlResult<Vec<_>>>()?;
        if !set_function_exists(*function) {
            let args = types.iter().map(|a| sql_name(a)).collect::<Vec<_>>().join(", ");
            let name = cx.catalog.proc(*function).map_or_else(|| function.to_string(), |p| p.name.clone());
            return Err(SqlError::unsupported(format_args!("function {name}({args})")));
        }
        Ok(SetFunctionPlan {
            function: *function,
            args: args.iter().map(|a| compile(a, cx)).collect::<SqlResult<_>>()?,
            types,
            result: cx.types.type_desc(*result_type)?,
            collation: *input_collation,
        })
    }

    /// The layouts of the result's columns.
    pub fn layouts(&self) -> SqlResult<Vec<Layout>> {
        match self.function.0 {
            // A key and a value.
            3208 | 3932 | 3958 | 3959 => Ok(vec![Layout::Bytes, Layout::Bytes]),
            _ => Ok(vec![layout_of(&self.result)?]),
        }
    }

    /// Calls it for one row of a batch. A strict function gives no rows where an argument is NULL.
    pub fn call(&self, cx: &EvalContext<'_>, batch: &Batch<'_>, row: usize) -> SqlResult<Box<dyn SetFunction>> {
        let selection = [row as u32];
        let frame = Frame::new(cx, batch, Some(&selection));
        let columns = self.args.iter().map(|a| a.eval(&frame)).collect::<SqlResult<Vec<_>>>()?;
        let args = Arguments { columns: &columns, types: &self.types, row: 0 };
        match self.function.0 {
            1066 | 1067 => Series::create(&args, true),
            1068 | 1069 => Series::create(&args, false),
            3259 | 3260 => NumericSeries::create(&args),
            938 => time_series(&args, None),
            939 => time_series(&args, Some(cx.settings.time_zone.clone())),
            1191 | 1192 => subscripts(&args),
            2331 => self.unnest(cx, &args),
            6160 | 6161 => self.string_to_table(cx, &args),
            6274 => {
                let Some(zone) = args.bytes(3)? else { return Ok(Box::new(Rows::default())) };
                let zone = crate::kernels::datetime_part::zone_named(cx, zone)?;
                time_series(&args, Some(zone))
            }
            2763..=2766 => {
                let words = if args.columns.len() > 2 { args.bytes(2)? } else { Some(b"".as_slice()) };
                let (Some(text), Some(pattern), Some(words)) = (args.bytes(0)?, args.bytes(1)?, words) else {
                    return Ok(Box::new(Rows::default()));
                };
                let split = matches!(self.function.0, 2765 | 2766);
                Ok(Box::new(Rows::of(regexp::rows_of(cx, self.collation, (text, pattern, words), split)?)))
            }
            1293 => Self::unnest_multirange(cx, &args),
            3219 => json(&args, |v| srf_json::binary(v, Ask::Elements, false, "")),
            3465 => json(&args, |v| srf_json::binary(v, Ask::Elements, true, "")),
            3208 => json(&args, |v| srf_json::binary(v, Ask::Pairs, false, "jsonb_each")),
            3932 => json(&args, |v| srf_json::binary(v, Ask::Pairs, true, "jsonb_each_text")),
            3931 => json(&args, |v| srf_json::binary(v, Ask::Keys, false, "jsonb_object_keys")),
            3955 => json(&args, |v| srf_json::text(cx, v, Ask::Elements, false, "json_array_elements")),
            3969 => json(&args, |v| srf_json::text(cx, v, Ask::Elements, true, "json_array_elements_text")),
            3958 => json(&args, |v| srf_json::text(cx, v, Ask::Pairs, false, "json_each")),
            3959 => json(&args, |v| srf_json::text(cx, v, Ask::Pairs, true, "json_each_text")),
            3957 => json(&args, |v| srf_json::text(cx, v, Ask::Keys, false, "json_object_keys")),
            _ => Err(SqlError::internal("a set-returning function is not done")),
        }
    }

    fn unnest(&self, cx: &EvalContext<'_>, args: &Arguments<'_>) -> SqlResult<Box<dyn SetFunction>> {
        let Some(payload) = args.bytes(0)? else { return Ok(Box::new(Rows::default())) };
        let view = ArrayView::parse(payload)?;
        let element = cx.types.type_desc(view.element_type())?;
        if let TypeKind::Composite { .. } = element.kind {
            return Err(SqlError::unsupported("unnest of an array of rows"));
        }
        let part = Part::of(&element)?;
        let mut out = ColumnBuilder::new(layout_of(&self.result)?, view.len());
        for value in view.elements(part) {
            out.append_option(value?)?;
        }
        Ok(Box::new(Rows::of(out.finish())))
    }

    fn unnest_multirange(cx: &EvalContext<'_>, args: &Arguments<'_>) -> SqlResult<Box<dyn SetFunction>> {
        let (Some(payload), Some(ty)) = (args.bytes(0)?, args.types.first()) else {
            return Ok(Box::new(Rows::default()));
        };
        let types = TypeContext::new(cx.types, cx.settings);
        let multirange = MultirangeType::of(&types, ty)?;
        let mut out = ColumnBuilder::new(Layout::Bytes, 0);
        for bounds in multirange.parse(payload)? {
            out.append(ValueRef::Bytes(&multirange.range().build(&types, &bounds)?))?;
        }
        Ok(Box::new(Rows::of(out.finish())))
    }

    fn string_to_table(&self, cx: &EvalContext<'_>, args: &Arguments<'_>) -> SqlResult<Box<dyn SetFunction>> {
        cx.types.collation(self.collation)?.for_equality().check_equality()?;
        let Some(text) = args.bytes(0)? else { return Ok(Box::new(Rows::default())) };
        let null = args.bytes(2)?;
        let fields = crate::kernels::array::split(cx, text, args.bytes(1)?);
        let mut out = ColumnBuilder::new(Layout::Bytes, fields.len());
        for field in fields {
            out.append_option((Some(field) != null).then_some(ValueRef::Bytes(field)))?;
        }
        Ok(Box::new(Rows::of(out.finish())))
    }
}

/// The rows of a JSON value.
fn json(args: &Arguments<'_>, f: impl FnOnce(&[u8]) -> SqlResult<Vec<ArrayRef>>) -> SqlResult<Box<dyn SetFunction>> {
    match args.bytes(0)? {
        None => Ok(Box::new(Rows::default())),
        Some(v) => Ok(Box::new(Rows { columns: f(v)?, next: 0 })),
    }
}

/// Rows that are there already.
#[derive(Default)]
struct Rows {
    columns: Vec<ArrayRef>,
    next: usize,
}

impl Rows {
    fn of(array: ArrayRef) -> Self {
        Rows { columns: vec![array], next: 0 }
    }
}

impl SetFunction for Rows {
    fn next(&mut self, _: &EvalContext<'_>, max: usize) -> SqlResult<Option<Vec<ArrayRef>>> {
        use arrow_array::Array;
        let Some(first) = self.columns.first() else { return Ok(None) };
        let n = max.min(first.len() - self.next);
        if n == 0 {
            return Ok(None);
        }
        let slices = self.columns.iter().map(|c| c.slice(self.next, n)).collect();
        self.next += n;
        Ok(Some(slices))
    }
}

fn zero_step() -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, "step size cannot equal zero")
}

/// `generate_series` of int4 and int8.
struct Series {
    next: Option<i64>,
    stop: i64,
    step: i64,
    int4: bool,
}

impl Series {
    fn create(args: &Arguments<'_>, int4: bool) -> SqlResult<Box<dyn SetFunction>> {
        let step = if args.columns.len() > 2 { args.i64(2)? } else { Some(1) };
        let (Some(start), Some(stop), Some(step)) = (args.i64(0)?, args.i64(1)?, step) else {
            return Ok(Box::new(Rows::default()));
        };
        if step == 0 {
            return Err(zero_step());
        }
        Ok(Box::new(Series { next: Some(start), stop, step, int4 }))
    }

    fn step(&mut self) -> Option<i64> {
        let value = self.next?;
        if (self.step > 0 && value > self.stop) || (self.step < 0 && value < self.stop) {
            self.next = None;
            return None;
        }
        // Past the type's end there is nothing more.
        self.next = value.checked_add(self.step);
        Some(value)
    }
}

impl SetFunction for Series {
    fn next(&mut self, _: &EvalContext<'_>, max: usize) -> SqlResult<Option<Vec<ArrayRef>>> {
        let mut values = Vec::new();
        while values.len() < max
            && let Some(v) = self.step()
        {
            values.push(v);
        }
        if values.is_empty() {
            return Ok(None);
        }
        Ok(Some(vec![if self.int4 {
            Arc::new(values.into_iter().map(|v| v as i32).collect::<Int32Array>())
        } else {
            Arc::new(Int64Array::from(values))
        }]))
    }
}

/// `generate_series` of numeric.
struct NumericSeries {
    next: Numeric,
    stop: Numeric,
    step: Numeric,
}

impl NumericSeries {
    fn create(args: &Arguments<'_>) -> SqlResult<Box<dyn SetFunction>> {
        let number = |n| args.bytes(n).and_then(|b| b.map(Numeric::from_payload).transpose());
        let step = if args.columns.len() > 2 { number(2)? } else { Some(Numeric::one()) };
        let (Some(start), Some(stop), Some(step)) = (number(0)?, number(1)?, step) else {
            return Ok(Box::new(Rows::default()));
        };
        for (value, name) in [(&start, "start"), (&stop, "stop"), (&step, "step")] {
            let what = match value {
                Numeric::Finite(_) => continue,
                Numeric::NaN => "NaN",
                _ => "infinity",
            };
            let size = if name == "step" { " size" } else { " value" };
            return Err(SqlError::new(SqlState::InvalidParameterValue, format!("{name}{size} cannot be {what}")));
        }
        if step.sign() == 0 {
            return Err(zero_step());
        }
        Ok(Box::new(NumericSeries { next: start, stop, step }))
    }
}

impl SetFunction for NumericSeries {
    fn next(&mut self, _: &EvalContext<'_>, max: usize) -> SqlResult<Option<Vec<ArrayRef>>> {
        let mut out = crate::column::ByteBuilder::new(Layout::Bytes, 0, 0);
        let mut n = 0;
        while n < max {
            let past = if self.step.sign() > 0 { self.next > self.stop } else { self.next < self.stop };
            if past {
                break;
            }
            self.next.write_payload(out.buffer())?;
            out.end_value();
            self.next = self.next.add(&self.step);
            n += 1;
        }
        if n == 0 { Ok(None) } else { Ok(Some(vec![out.finish()?])) }
    }
}

/// `generate_subscripts(array, dimension [, reverse])`.
fn subscripts(args: &Arguments<'_>) -> SqlResult<Box<dyn SetFunction>> {
    let none = || Ok(Box::new(Rows::default()) as Box<dyn SetFunction>);
    let reverse = if args.columns.len() > 2 {
        match args.value(2)? {
            Some(ValueRef::Bool(b)) => b,
            _ => return none(),
        }
    } else {
        false
    };
    let (Some(payload), Some(dimension)) = (args.bytes(0)?, args.i64(1)?) else { return none() };
    let view = ArrayView::parse(payload)?;
    let found = usize::try_from(dimension).ok().and_then(|d| d.checked_sub(1)).and_then(|d| view.dimensions().get(d));
    let Some(d) = found else { return none() };
    let (first, last) = (i64::from(d.lower), i64::from(d.upper()));
    Ok(Box::new(if reverse {
        Series { next: Some(last), stop: first, step: -1, int4: true }
    } else {
        Series { next: Some(first), stop: last, step: 1, int4: true }
    }))
}

/// `generate_series` of timestamps, in a zone or without one.
fn time_series(args: &Arguments<'_>, in_zone: Option<jiff::tz::TimeZone>) -> SqlResult<Box<dyn SetFunction>> {
    let (Some(start), Some(stop), Some(step)) = (args.i64(0)?, args.i64(1)?, args.bytes(2)?) else {
        return Ok(Box::new(Rows::default()));
    };
    let step = stegodon_types::datetime::Interval::from_bytes(step)
        .ok_or_else(|| SqlError::internal("an interval is not of its length"))?;
    crate::srf_time::TimeSeries::create(start, stop, step, in_zone)
}
