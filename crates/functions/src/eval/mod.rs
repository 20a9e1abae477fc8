//! Running a compiled expression.
//!
//! ```text
//!  Frame      the rows an expression sees: a batch, and which of its rows (all, or a list)
//!  Node       one step of a compiled expression
//!  Node × Frame → Column of exactly the frame's rows
//! ```
//!
//! A lazy node (AND, CASE, …) narrows the frame to the rows that PostgreSQL would evaluate, so kernels see dense columns
//! only and know nothing of selections. A narrowed column is taken from the batch when it is first read.
//!
//! Within a narrowed frame columns are evaluated one after the other, rows together; the first error met is then not
//! always the first that PostgreSQL, which goes row by row, would meet. So an error is only a hint: the batch is run again
//! row by row, which is PostgreSQL's order exactly, and that run's error is the answer ([`crate::Evaluator`]).

mod arrays;
pub(crate) mod lazy;
mod rows;
mod tests_of;
mod value;

pub(crate) use arrays::{ScalarArrayNode, SubscriptNode};
pub(crate) use rows::{Field, RowCompareNode, RowPair};
pub(crate) use value::{DomainCheck, layout_of};

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_empty_array};
use stegodon_nodes::expr::{BooleanTestKind, SqlValueKind, SubPlan};
use stegodon_types::{Layout, Oid, SqlError, SqlResult, TypeDesc};

use crate::batch::Input;
use crate::column::{array_of, take};
use crate::kernel::{Call, CallInfo, KernelFn};
use crate::{Batch, Column, EvalContext};

/// A call of a kernel, its arguments compiled.
#[derive(Debug)]
pub(crate) struct CallNode {
    pub kernel: KernelFn,
    pub info: CallInfo,
    pub args: Vec<Node>,
    pub volatile: bool,
}

/// A kernel without its arguments: for nodes that compute them themselves.
#[derive(Debug)]
pub(crate) struct Callee {
    pub kernel: KernelFn,
    pub info: CallInfo,
}

/// One step of a compiled expression.
#[derive(Debug)]
pub(crate) enum Node {
    Input(Input),
    Const(Column),
    Param {
        index: usize,
        layout: Layout,
    },
    ExecParam {
        index: usize,
        layout: Layout,
    },
    Call(Box<CallNode>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Case {
        arg: Option<Box<Node>>,
        whens: Vec<(Node, Node)>,
        default: Box<Node>,
        layout: Layout,
    },
    Coalesce {
        args: Vec<Node>,
        layout: Layout,
    },
    NullIf {
        equal: Box<Callee>,
        left: Box<Node>,
        right: Box<Node>,
    },
    Distinct {
        equal: Box<Callee>,
        left: Box<Node>,
        right: Box<Node>,
    },
    MinMax {
        greatest: bool,
        args: Vec<Node>,
        less: Box<Callee>,
        layout: Layout,
    },
    NullTest {
        arg: Box<Node>,
        is_null: bool,
    },
    BooleanTest {
        arg: Box<Node>,
        kind: BooleanTestKind,
    },
    CaseTest,
    /// The same bits in the layout of another type.
    Relabel {
        arg: Box<Node>,
        to: Layout,
    },
    SqlValue {
        kind: SqlValueKind,
        typmod: i32,
    },
    ViaIo {
        arg: Box<Node>,
        from: Arc<TypeDesc>,
        to: Arc<TypeDesc>,
        layout: Layout,
    },
    ScalarArray(Box<ScalarArrayNode>),
    ArrayCoerce {
        arg: Box<Node>,
        element: Box<Node>,
        from: Arc<TypeDesc>,
        to: Arc<TypeDesc>,
    },
    Array {
        elements: Vec<Node>,
        element: Arc<TypeDesc>,
        multidims: bool,
    },
    Subscript(Box<SubscriptNode>),
    Row {
        fields: Vec<Field>,
        row_type: Oid,
    },
    FieldSelect {
        arg: Box<Node>,
        field: usize,
        result: Arc<TypeDesc>,
    },
    RowNullTest {
        arg: Box<Node>,
        is_null: bool,
    },
    RowCompare(Box<RowCompareNode>),
    Domain {
        arg: Box<Node>,
        name: String,
        not_null: bool,
        checks: Vec<DomainCheck>,
    },
    SubPlan {
        plan: Box<SubPlan>,
        params: Vec<Node>,
    },
}

/// The rows an expression sees.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub cx: &'a EvalContext<'a>,
    pub batch: &'a Batch<'a>,
    /// Which rows of the batch; all where `None`.
    pub selection: Option<&'a [u32]>,
    /// How many rows.
    pub rows: usize,
    /// What [`Node::CaseTest`] reads: a column of this frame's rows.
    pub case_test: Option<&'a Column>,
}

/// What a narrower frame borrows from.
pub(crate) struct Narrowed {
    selection: Vec<u32>,
    case_test: Option<Column>,
}

impl<'a> Frame<'a> {
    /// All rows of a batch, or some.
    pub(crate) fn new(cx: &'a EvalContext<'a>, batch: &'a Batch<'a>, selection: Option<&'a [u32]>) -> Self {
        Frame { cx, batch, selection, rows: selection.map_or(batch.rows, <[u32]>::len), case_test: None }
    }

    /// Some of this frame's rows: `rows` are numbers within it.
    pub(crate) fn narrow(&self, rows: &[u32]) -> SqlResult<Narrowed> {
        let selection = match self.selection {
            None => rows.to_vec(),
            Some(outer) => rows.iter().map(|&r| outer.get(r as usize).copied().unwrap_or(u32::MAX)).collect(),
        };
        let case_test = self.case_test.map(|c| c.take(rows)).transpose()?;
        Ok(Narrowed { selection, case_test })
    }

    /// The frame over what [`Frame::narrow`] made.
    pub(crate) fn over<'b>(&self, narrowed: &'b Narrowed) -> Frame<'b>
    where
        'a: 'b,
    {
        Frame {
            cx: self.cx,
            batch: self.batch,
            selection: Some(&narrowed.selection),
            rows: narrowed.selection.len(),
            case_test: narrowed.case_test.as_ref(),
        }
    }

    /// Evaluates a node on some of this frame's rows (numbers within it).
    pub(crate) fn eval_on(&self, node: &Node, rows: &[u32]) -> SqlResult<Column> {
        if rows.len() == self.rows {
            return node.eval(self);
        }
        let narrowed = self.narrow(rows)?;
        node.eval(&self.over(&narrowed))
    }
}

impl Callee {
    /// Calls the kernel on columns of `rows` rows.
    pub(crate) fn call(&self, cx: &EvalContext<'_>, args: &[Column], rows: usize) -> SqlResult<Column> {
        let rows = if args.iter().all(Column::is_const) { 1 } else { rows };
        Ok(constant_if((self.kernel)(&Call { cx, info: &self.info, args, rows })?, args))
    }
}

/// A result computed from constants alone is a constant.
fn constant_if(result: Column, args: &[Column]) -> Column {
    match result {
        Column::Array(a) if a.len() == 1 && args.iter().all(Column::is_const) => Column::Const(a),
        other => other,
    }
}

impl Node {
    /// The node's value for every row of the frame.
    pub(crate) fn eval(&self, frame: &Frame<'_>) -> SqlResult<Column> {
        if frame.rows == 0 {
            // Nothing is evaluated, constants neither: an error needs a row to belong to. Lazy nodes ask nothing of no
            // rows, so only an AND's or OR's caller sees this column.
            return Ok(Column::Array(arrow_array::new_empty_array(&Layout::Bool.arrow())));
        }
        match self {
            Node::Input(input) => {
                let column = frame.batch.column(*input)?;
                Ok(Column::Array(match frame.selection {
                    None => Arc::clone(column),
                    Some(rows) => take(column, rows)?,
                }))
            }
            Node::Const(c) => Ok(c.clone()),
            Node::Param { index, layout } => {
                let value = frame.cx.params.get(*index);
                let value = value.ok_or_else(|| SqlError::internal(format_args!("no value for ${}", index + 1)))?;
                Column::constant(*layout, value.as_ref())
            }
            Node::ExecParam { index, layout } => {
                let value = frame.cx.exec_params.get(*index);
                let value = value.ok_or_else(|| SqlError::internal(format_args!("no value in slot {index}")))?;
                Column::constant(*layout, value.as_ref())
            }
            Node::Call(call) => call.eval(frame),
            Node::And(args) => lazy::and(args, frame),
            Node::Or(args) => lazy::or(args, frame),
            Node::Not(arg) => lazy::not(&arg.eval(frame)?),
            Node::Case { arg, whens, default, layout } => lazy::case(arg.as_deref(), whens, default, *layout, frame),
            Node::Coalesce { args, layout } => lazy::coalesce(args, *layout, frame),
            Node::NullIf { equal, left, right } => lazy::null_if(equal, left, right, frame),
            Node::Distinct { equal, left, right } => lazy::distinct(equal, left, right, frame),
            Node::MinMax { greatest, args, less, layout } => lazy::min_max(*greatest, args, less, *layout, frame),
            Node::NullTest { arg, is_null } => Ok(tests_of::null_test(&arg.eval(frame)?, *is_null)),
            Node::BooleanTest { arg, kind } => tests_of::boolean_test(&arg.eval(frame)?, *kind),
            Node::Relabel { arg, to } => value::relabel(arg.eval(frame)?, *to),
            Node::CaseTest => match frame.case_test {
                Some(c) => Ok(c.clone()),
                None => Err(SqlError::internal("a CASE test value outside of its CASE")),
            },
            Node::SqlValue { kind, typmod } => value::sql_value(*kind, *typmod, frame.cx),
            Node::ViaIo { arg, from, to, layout } => value::via_io(&arg.eval(frame)?, from, to, *layout, frame),
            Node::ScalarArray(node) => arrays::scalar_array(node, frame),
            Node::ArrayCoerce { arg, element, from, to } => {
                arrays::array_coerce(&arg.eval(frame)?, element, from, to, frame)
            }
            Node::Array { elements, element, multidims } => {
                arrays::array_constructor(elements, element, *multidims, frame)
            }
            Node::Subscript(node) => arrays::subscript(node, frame),
            Node::Row { fields, row_type } => rows::row(fields, *row_type, frame),
            Node::FieldSelect { arg, field, result } => rows::field_select(&arg.eval(frame)?, *field, result, frame),
            Node::RowNullTest { arg, is_null } => rows::row_null_test(&arg.eval(frame)?, *is_null, frame),
            Node::RowCompare(node) => rows::row_compare(node, frame),
            Node::Domain { arg, name, not_null, checks } => {
                value::domain(arg.eval(frame)?, name, *not_null, checks, frame)
            }
            Node::SubPlan { plan, params } => value::sub_plan(plan, params, frame),
        }
    }
}

impl CallNode {
    fn eval(&self, frame: &Frame<'_>) -> SqlResult<Column> {
        // Most calls have one or two arguments: no allocation beyond this list's.
        let args = self.args.iter().map(|a| a.eval(frame)).collect::<SqlResult<Vec<Column>>>()?;
        if self.volatile {
            return self.each_row(&args, frame);
        }
        let rows = if args.iter().all(Column::is_const) { 1 } else { frame.rows };
        Ok(constant_if((self.kernel)(&Call { cx: frame.cx, info: &self.info, args: &args, rows })?, &args))
    }
}

impl CallNode {
    /// A volatile function, called for each row.
    fn each_row(&self, args: &[Column], frame: &Frame<'_>) -> SqlResult<Column> {
        let mut parts = Vec::with_capacity(frame.rows);
        for row in 0..frame.rows {
            let args = args.iter().map(|a| match a {
                Column::Const(_) => a.clone(),
                Column::Array(array) => Column::Array(array.slice(row, 1)),
            });
            let args: Vec<Column> = args.collect();
            let value = (self.kernel)(&Call { cx: frame.cx, info: &self.info, args: &args, rows: 1 })?;
            parts.push(value.into_array(1)?);
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(Column::Array(new_empty_array(&self.info.layout.arrow())));
        }
        arrow_select::concat::concat(&parts).map(Column::Array).map_err(SqlError::internal)
    }
}

/// NULL in every row.
pub(crate) fn nulls(layout: Layout) -> SqlResult<ArrayRef> {
    array_of(layout, None)
}
