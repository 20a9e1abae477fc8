//! From an [`Expr`] to a tree of nodes with its kernels resolved.

use std::sync::Arc;

use stegodon_catalog::Catalog;
use stegodon_format::version::Version;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::domain::base_type;
use stegodon_types::{
    Collation, FormatSettings, Oid, SqlError, SqlResult, SqlState, TypeCatalog, TypeContext, TypeDesc, TypeKind,
    comparator, names::sql_name, oids, ops,
};

use crate::batch::{Input, Side};
use crate::eval::{
    CallNode, Callee, DomainCheck, Field, Node, RowCompareNode, RowPair, ScalarArrayNode, SubscriptNode, layout_of,
};
use crate::kernel::{CallInfo, KernelFn, kernel};

use crate::versions::older_kernel;
use crate::{Column, kernels};

/// `int4(int2)`.
const INT4_OF_INT2: Oid = Oid(313);

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

/// The columns' names of a record written as `ROW(…)`.
pub(crate) fn row_names(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Row(row) if row.row_type == oids::RECORD => Some(if row.names.len() == row.args.len() {
            row.names.clone()
        } else {
            (1..=row.args.len()).map(|n| format!("f{n}")).collect()
        }),
        _ => None,
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
    let Some(newest) = kernel(function) else {
        return Err(SqlError::unsupported(signature(cx, function, &arg_types)));
    };
    let result_type = cx.type_desc(result_type)?;
    let kernel = match cx.catalog.version() {
        Version::V18 => newest,
        version => older_kernel(version, function, &arg_types, &result_type).ok_or_else(|| {
            let version = version.major();
            let what = signature(cx, function, &arg_types);
            SqlError::unsupported(format_args!("{what}, in a directory of version {version},"))
        })?,
    };
    let layout = layout_of(&result_type)?;
    let collation = cx.types.collation(input_collation)?;
    Ok(Callee {
        kernel,
        info: CallInfo {
            function,
            collation,
            input_collation,
            arg_types,
            result_type,
            layout,
            row_names: Vec::new(),
            variadic,
        },
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
        info: CallInfo {
            function: Oid(0),
            collation,
            input_collation: Oid(0),
            arg_types,
            result_type,
            layout,
            row_names: Vec::new(),
            variadic: false,
        },
    })
}

/// Whether a function is volatile, as the catalogs say.
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
        let mut callee = callee(self.cx, function, self.types_of(args)?, result, collation, variadic)?;
        if kernels::json_make::wants_names(function) {
            callee.info.row_names = args.iter().map(row_names).collect();
        }
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
                    ParamKind::SubLink => Err(SqlError::internal("a subquery's column outside of its test")),
                }
            }
            Expr::Func(f) if f.returns_set => Err(SqlError::new(
                SqlState::FeatureNotSupported,
                "set-valued function called in context that cannot accept a set",
            )),
            // The cast from int2 to oid and its like is int4(int2), whose result is taken as an oid's bits.
            Expr::Func(f) if f.function == INT4_OF_INT2 && f.result_type != oids::INT4 => {
                let call = self.call(f.function, &f.args, oids::INT4, f.input_collation, f.variadic)?;
                Ok(Node::Relabel { arg: Box::new(call), to: self.layout(f.result_type)? })
            }
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
            Expr::Relabel(r) => {
                let from = layout_of(&*self.cx.type_desc(r.arg.type_oid())?)?;
                let to = layout_of(&*self.cx.type_desc(r.result_type)?)?;
                let arg = self.node(&r.arg)?;
                if from.arrow() == to.arrow() { Ok(arg) } else { Ok(Node::Relabel { arg: Box::new(arg), to }) }
            }
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
            Expr::NullTest(t) if t.arg_is_row => Ok(Node::RowNullTest { arg: self.boxed(&t.arg)?, is_null: t.is_null }),
            Expr::NullTest(t) => Ok(Node::NullTest { arg: self.boxed(&t.arg)?, is_null: t.is_null }),
            Expr::BooleanTest(t) => Ok(Node::BooleanTest { arg: self.boxed(&t.arg)?, kind: t.kind }),
            Expr::SqlValue(s) => Ok(Node::SqlValue { kind: s.kind, typmod: s.typmod }),
            Expr::CoerceViaIo(c) => {
                let (from, to) = (self.cx.type_desc(c.arg.type_oid())?, self.cx.type_desc(c.result_type)?);
                let layout = layout_of(&to)?;
                if self.cx.catalog.is_checked(to.oid) {
                    return Err(SqlError::unsupported(format_args!(
                        "reading type {}, which a domain checks,",
                        to.name
                    )));
                }
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
            Expr::Subscript(s) => self.subscript(s),
            Expr::ScalarArrayOp(s) => self.scalar_array(s),
            Expr::FieldSelect(f) => {
                let field = usize::try_from(f.field.0).ok().and_then(|n| n.checked_sub(1));
                Ok(Node::FieldSelect {
                    arg: self.boxed(&f.arg)?,
                    field: field.ok_or_else(|| SqlError::internal("a field of a row has no number"))?,
                    result: self.cx.type_desc(f.result_type)?,
                })
            }
            Expr::ArrayCoerce(c) => {
                let from = self.element(c.arg.type_oid())?;
                let to = self.element(c.result_type)?;
                Ok(Node::ArrayCoerce { arg: self.boxed(&c.arg)?, element: self.boxed(&c.element)?, from, to })
            }
            Expr::ConvertRowtype(_) => Err(SqlError::unsupported("converting a row type")),
            Expr::Array(a) => Ok(Node::Array {
                elements: self.nodes(&a.elements)?,
                element: self.cx.type_desc(a.element_type)?,
                multidims: a.multidims,
            }),
            Expr::Row(r) => {
                let fields = r.args.iter().map(|e| self.field(e)).collect::<SqlResult<_>>()?;
                Ok(Node::Row { fields, row_type: r.row_type })
            }
            Expr::RowCompare(r) => self.row_compare(r),
            Expr::CoerceToDomain(c) => self.domain(c),
        }
    }

    /// The description of an array type's elements.
    fn element(&self, array: Oid) -> SqlResult<Arc<TypeDesc>> {
        let mut ty = self.cx.type_desc(array)?;
        if let TypeKind::Domain { .. } = ty.kind {
            ty = base_type(&TypeContext::new(self.cx.types, &FormatSettings::default()), &ty)?.0;
        }
        match ty.kind {
            TypeKind::Array { element } => self.cx.type_desc(element),
            _ if matches!(ty.oid, oids::INT2VECTOR | oids::OIDVECTOR) => self.cx.type_desc(ty.element),
            _ => Err(SqlError::unsupported(format_args!("type {} as an array", ty.name))),
        }
    }

    fn subscript(&self, s: &SubscriptingRef) -> SqlResult<Node> {
        let element = self.element(s.container.type_oid())?;
        let list = |exprs: &[Option<Expr>]| {
            exprs
                .iter()
                .map(|e| match e {
                    Some(e) if e.type_oid() != oids::INT4 => Err(SqlError::internal("a subscript is no integer")),
                    e => e.as_ref().map(|e| self.node(e)).transpose(),
                })
                .collect::<SqlResult<Vec<_>>>()
        };
        Ok(Node::Subscript(Box::new(SubscriptNode {
            container: self.node(&s.container)?,
            upper: list(&s.upper)?,
            lower: list(&s.lower)?,
            element,
            layout: self.layout(s.result_type)?,
        })))
    }

    fn scalar_array(&self, s: &ScalarArrayOp) -> SqlResult<Node> {
        let [scalar, array] = s.args.as_ref();
        let element = self.element(array.type_oid())?;
        let scalar_type = self.cx.type_desc(scalar.type_oid())?;
        let own_equality =
            kernels::compare::OWN_EQUALITY.contains(&s.function.0) && layout_of(&scalar_type)? == layout_of(&element)?;
        let types = vec![scalar_type, Arc::clone(&element)];
        Ok(Node::ScalarArray(Box::new(ScalarArrayNode {
            callee: callee(self.cx, s.function, types, oids::BOOL, s.input_collation, false)?,
            any: s.any,
            // Comparisons are strict; an operator of another kind says so itself.
            strict: self.cx.catalog.proc(s.function).is_none_or(|p| p.strict),
            scalar: self.node(scalar)?,
            array: self.node(array)?,
            element,
            own_equality,
        })))
    }

    fn field(&self, expr: &Expr) -> SqlResult<Field> {
        Ok(Field {
            node: self.node(expr)?,
            layout: self.layout(expr.type_oid())?,
            type_oid: expr.type_oid(),
            typmod: expr.typmod(),
            collation: expr.collation(),
        })
    }

    fn row_compare(&self, r: &RowCompare) -> SqlResult<Node> {
        let broken = || SqlError::internal("a comparison of rows has columns without operators");
        let mut pairs = Vec::with_capacity(r.left.len());
        for (n, (left, right)) in r.left.iter().zip(&r.right).enumerate() {
            let (Some(&family), Some(&collation)) = (r.families.get(n), r.input_collations.get(n)) else {
                return Err(broken());
            };
            let operator = r.operators.get(n).and_then(|&o| self.cx.catalog.operator(o)).ok_or_else(broken)?;
            let function = self.cx.catalog.family_proc(family, operator.left, operator.right, 1);
            let ty = self.cx.type_desc(left.type_oid())?;
            let own = if operator.left == operator.right && family.0 < 16384 { ops(&ty)?.compare } else { None };
            // The pattern families compare otherwise than the type does.
            let own = if matches!(family.0, 2095 | 2097 | 3194) { None } else { own };
            let compare = function.and_then(comparator).or(own).ok_or_else(|| {
                SqlError::unsupported(format_args!("comparing rows with a column of type {}", ty.name))
            })?;
            pairs.push(RowPair {
                left: self.node(left)?,
                right: self.node(right)?,
                left_layout: self.layout(left.type_oid())?,
                right_layout: self.layout(right.type_oid())?,
                ty,
                collation: self.cx.types.collation(collation)?,
                compare,
            });
        }
        if pairs.is_empty() || r.left.len() != r.right.len() {
            return Err(broken());
        }
        Ok(Node::RowCompare(Box::new(RowCompareNode { kind: r.kind, pairs })))
    }

    /// The constraints of a domain and of the domains below it: the lowest's first.
    fn domain(&self, c: &CoerceToDomain) -> SqlResult<Node> {
        let catalog = self.cx.catalog;
        let name = self.cx.type_desc(c.result_type)?.name.clone();
        let mut levels = Vec::new();
        let mut not_null = false;
        let mut oid = c.result_type;
        while let TypeKind::Domain { base, .. } = self.cx.type_desc(oid)?.kind {
            let row = catalog.type_row(oid).ok_or_else(|| SqlError::internal("a domain is not in the catalogs"))?;
            not_null |= row.not_null;
            let mut constraints: Vec<_> = catalog.domain_constraints(oid).iter().filter(|c| c.kind == b'c').collect();
            constraints.sort_by(|a, b| a.name.cmp(&b.name));
            levels.push(constraints);
            if levels.len() > 100 {
                return Err(SqlError::new(SqlState::StatementTooComplex, "domains are nested too deeply"));
            }
            oid = base;
        }
        let mut checks = Vec::new();
        for constraint in levels.into_iter().rev().flatten() {
            let tree = constraint.expression.as_ref();
            let tree = tree.ok_or_else(|| SqlError::internal("a CHECK has no expression"))?;
            let expr = stegodon_nodes::reader::read_expr(tree, catalog)?;
            checks.push(DomainCheck { name: constraint.name.clone(), node: self.node(&expr)? });
        }
        Ok(Node::Domain { arg: self.boxed(&c.arg)?, name, not_null, checks })
    }
}
