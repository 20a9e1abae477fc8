//! From an [`Expr`] to a tree of nodes with its kernels resolved.

use std::sync::Arc;

use stegodon_catalog::Catalog;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{Collation, Oid, SqlError, SqlResult, SqlState, TypeCatalog, TypeDesc, names::sql_name, oids};

use crate::batch::{Input, Side};
use crate::eval::{CallNode, Callee, Node, layout_of};
use crate::kernel::{CallInfo, KernelFn, kernel};

use crate::{Column, kernels};

/// Which column of a batch a variable is.
pub trait Variables {
    /// The column.
    fn input(&self, var: &Var) -> SqlResult<Input>;
}

/// A plan's own numbering: `Outer` and `Index` variables are the outer columns by `attno`, `Inner` the inner ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanVariables;

impl Variables for PlanVariables {
    fn input(&self, var: &Var) -> SqlResult<Input> {
        let index = usize::try_from(var.attno.0).ok().and_then(|n| n.checked_sub(1));
        let index = index.ok_or_else(|| SqlError::internal("a plan's expression reads a system column"))?;
        match var.source {
            VarSource::Outer | VarSource::Index => Ok(Input { side: Side::Outer, index }),
            VarSource::Inner => Ok(Input { side: Side::Inner, index }),
            VarSource::Relation(_) => Err(SqlError::internal("a plan's expression reads the range table")),
        }
    }
}

/// Any function from a variable to its column.
impl<F: Fn(&Var) -> SqlResult<Input>> Variables for F {
    fn input(&self, var: &Var) -> SqlResult<Input> {
        self(var)
    }
}

/// What compiling needs to know.
#[derive(Clone, Copy)]
pub struct CompileContext<'a> {
    /// The catalogs.
    pub catalog: &'a Catalog,
    /// The types.
    pub types: &'a dyn TypeCatalog,
    /// Where variables are.
    pub variables: &'a dyn Variables,
}

impl<'a> CompileContext<'a> {
    /// A context with a plan's own numbering of variables.
    pub fn new(catalog: &'a Catalog, types: &'a dyn TypeCatalog) -> Self {
        Self { catalog, types, variables: &PlanVariables }
    }

    fn type_desc(&self, oid: Oid) -> SqlResult<Arc<TypeDesc>> {
        self.types.type_desc(oid)
    }
}

/// `name(type, type)` of a function, for messages.
fn signature(cx: &CompileContext<'_>, function: Oid, args: &[Arc<TypeDesc>]) -> String {
    let args = args.iter().map(|a| sql_name(a)).collect::<Vec<_>>().join(", ");
    match cx.catalog.proc(function) {
        Some(proc) => format!("function {}({args})", proc.name),
        None => format!("function with OID {function} ({args})"),
    }
}

/// A function call without its arguments.
pub(crate) fn callee(
    cx: &CompileContext<'_>,
    function: Oid,
    arg_types: Vec<Arc<TypeDesc>>,
    result_type: Oid,
    input_collation: Oid,
    variadic: bool,
) -> SqlResult<Callee> {
    let Some(kernel) = kernel(function) else {
        return Err(SqlError::unsupported(signature(cx, function, &arg_types)));
    };
    let result_type = cx.type_desc(result_type)?;
    let layout = layout_of(&result_type)?;
    let collation = cx.types.collation(input_collation)?;
    Ok(Callee { kernel, info: CallInfo { function, collation, input_collation, arg_types, result_type, layout, variadic },
    })
}

/// A kernel that no `pg_proc` row names.
fn internal_callee(
    cx: &CompileContext<'_>,
    kernel: KernelFn,
    arg_types: Vec<Arc<TypeDesc>>,
    result_type: Oid,
    collation: Collation,
) -> SqlResult<Callee> {
    let result_type = cx.type_desc(result_type)?;
    let layout = layout_of(&result_type)?;
    Ok(Callee {
        kernel,
        info: CallInfo { function: Oid(0), collation, input_collation: Oid(0), arg_types, result_type, layout, variadic: false },
    })
}

/// Whether a function is volatile; one that the catalogs do not know is taken to be.
pub(crate) fn is_volatile(catalog: &Catalog, function: Oid) -> bool {
    catalog.proc(function).is_some_and(|p| p.volatility == b'v')
}

struct Compiler<'a> {
    cx: &'a CompileContext<'a>,
}

/// Compiles an expression.
pub(crate) fn compile(expr: &Expr, cx: &CompileContext<'_>) -> SqlResult<Node> {
    Compiler { cx }.node(expr)
}

impl Compiler<'_> {
    fn nodes(&self, exprs: &[Expr]) -> SqlResult<Vec<Node>> {
        exprs.iter().map(|e| self.node(e)).collect()
    }

    fn boxed(&self, expr: &Expr) -> SqlResult<Box<Node>> {
        self.node(expr).map(Box::new)
    }

    fn types_of(&self, exprs: &[Expr]) -> SqlResult<Vec<Arc<TypeDesc>>> {
        exprs.iter().map(|e| self.cx.type_desc(e.type_oid())).collect()
    }

    fn layout(&self, type_oid: Oid) -> SqlResult<stegodon_types::Layout> {
        layout_of(&*self.cx.type_desc(type_oid)?)
    }

    fn call(&self, function: Oid, args: &[Expr], result: Oid, collation: Oid, variadic: bool) -> SqlResult<Node> {
        let callee = callee(self.cx, function, self.types_of(args)?, result, collation, variadic)?;
        Ok(Node::Call(Box::new(CallNode {
            kernel: callee.kernel,
            info: callee.info,
            args: self.nodes(args)?,
            volatile: is_volatile(self.cx.catalog, function),
        })))
    }

    /// The equality of DISTINCT and NULLIF.
    fn equality(&self, op: &OpExpr) -> SqlResult<(Box<Callee>, Box<Node>, Box<Node>)> {
        let [left, right] = op.args.as_slice() else {
            return Err(SqlError::internal("a comparison without two arguments"));
        };
        let types = self.types_of(&op.args)?;
        let equal = callee(self.cx, op.function, types, oids::BOOL, op.input_collation, false)?;
        Ok((Box::new(equal), self.boxed(left)?, self.boxed(right)?))
    }

    fn node(&self, expr: &Expr) -> SqlResult<Node> {
        match expr {
            Expr::Var(v) => Ok(Node::Input(self.cx.variables.input(v)?)),
            Expr::Const(c) => Ok(Node::Const(Column::constant(self.layout(c.type_oid)?, c.value.as_ref())?)),
            Expr::Param(p) => {
                let layout = self.layout(p.type_oid)?;
                match p.kind {
                    ParamKind::Extern => match (p.id as usize).checked_sub(1) {
                        Some(index) => Ok(Node::Param { index, layout }),
                        None => Err(SqlError::new(SqlState::UndefinedParameter, "there is no parameter $0")),
                    },
                    ParamKind::Exec => Ok(Node::ExecParam { index: p.id as usize, layout }),
                }
            }
            Expr::Func(f) if f.returns_set => Err(SqlError::new(
                SqlState::FeatureNotSupported,
                "set-valued function called in context that cannot accept a set",
            )),
            Expr::Func(f) => self.call(f.function, &f.args, f.result_type, f.input_collation, f.variadic),
            Expr::Op(o) => self.call(o.function, &o.args, o.result_type, o.input_collation, false),
            Expr::Distinct(o) => {
                let (equal, left, right) = self.equality(o)?;
                Ok(Node::Distinct { equal, left, right })
            }
            Expr::NullIf(o) => {
                let (equal, left, right) = self.equality(o)?;
                Ok(Node::NullIf { equal, left, right })
            }
            Expr::Bool(b) => match (b.kind, b.args.as_slice()) {
                (BoolKind::And, _) => Ok(Node::And(self.nodes(&b.args)?)),
                (BoolKind::Or, _) => Ok(Node::Or(self.nodes(&b.args)?)),
                (BoolKind::Not, [arg]) => Ok(Node::Not(self.boxed(arg)?)),
                (BoolKind::Not, _) => Err(SqlError::internal("NOT without one argument")),
            },
            Expr::Relabel(r) => self.node(&r.arg),
            Expr::Collate(c) => self.node(&c.arg),
            Expr::Case(c) => Ok(Node::Case {
                arg: c.arg.as_ref().map(|a| self.boxed(a)).transpose()?,
                whens: c.whens.iter().map(|(w, t)| Ok((self.node(w)?, self.node(t)?))).collect::<SqlResult<_>>()?,
                default: self.boxed(&c.default)?,
                layout: self.layout(c.result_type)?,
            }),
            Expr::CaseTest(_) => Ok(Node::CaseTest),
            Expr::Coalesce(c) => Ok(Node::Coalesce { args: self.nodes(&c.args)?, layout: self.layout(c.result_type)? }),
            Expr::MinMax(m) => {
                let ty = self.cx.type_desc(m.result_type)?;
                let collation = self.cx.types.collation(m.input_collation)?;
                let types = vec![Arc::clone(&ty), Arc::clone(&ty)];
                let less = internal_callee(self.cx, kernels::compare::less, types, oids::BOOL, collation)?;
                Ok(Node::MinMax {
                    greatest: m.greatest,
                    args: self.nodes(&m.args)?,
                    less: Box::new(less),
                    layout: layout_of(&ty)?,
                })
            }
            Expr::NullTest(t) if t.arg_is_row => Err(SqlError::unsupported("IS NULL of a row")),
            Expr::NullTest(t) => Ok(Node::NullTest { arg: self.boxed(&t.arg)?, is_null: t.is_null }),
            Expr::BooleanTest(t) => Ok(Node::BooleanTest { arg: self.boxed(&t.arg)?, kind: t.kind }),
            Expr::SqlValue(s) => Ok(Node::SqlValue { kind: s.kind, typmod: s.typmod }),
            Expr::CoerceViaIo(c) => {
                let (from, to) = (self.cx.type_desc(c.arg.type_oid())?, self.cx.type_desc(c.result_type)?);
                let layout = layout_of(&to)?;
                Ok(Node::ViaIo { arg: self.boxed(&c.arg)?, from, to, layout })
            }
            Expr::SubPlan(s) => {
                let params = s.params.iter().map(|(_, e)| self.node(e)).collect::<SqlResult<_>>()?;
                Ok(Node::SubPlan { plan: s.clone(), params })
            }
            Expr::NextValue(_) => Err(crate::context::read_only("nextval()")),
            Expr::Aggref(_) => Err(SqlError::internal("an aggregate outside of an aggregation")),
            Expr::GroupingFunc(_) => Err(SqlError::internal("GROUPING outside of an aggregation")),
            Expr::WindowFunc(_) => Err(SqlError::internal("a window function outside of a window")),
            Expr::SubLink(_) => Err(SqlError::internal("an unplanned subquery")),
            Expr::Subscript(_) => Err(SqlError::unsupported("subscripting")),
            Expr::ScalarArrayOp(_) => Err(SqlError::unsupported("ANY and ALL over an array")),
            Expr::FieldSelect(_) => Err(SqlError::unsupported("selecting a field of a row")),
            Expr::ArrayCoerce(_) => Err(SqlError::unsupported("casting an array")),
            Expr::ConvertRowtype(_) => Err(SqlError::unsupported("converting a row type")),
            Expr::Array(_) => Err(SqlError::unsupported("ARRAY[]")),
            Expr::Row(_) => Err(SqlError::unsupported("ROW()")),
            Expr::RowCompare(_) => Err(SqlError::unsupported("comparing rows")),
            Expr::CoerceToDomain(_) => Err(SqlError::unsupported("casting to a domain")),
        }
    }
}
