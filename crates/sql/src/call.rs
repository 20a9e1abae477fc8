//! Function calls, and what can be written like one: aggregates, window functions, casts, fields of a row.

use std::sync::Arc;

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_catalog::rows::Proc;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{ArrayExpr, CoercionForm, FieldSelect, FuncExpr, Location, VarSource};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::coerce::Context;
use crate::context::{Analyzer, ExprKind, loc};
use crate::function::{Candidate, FunctionDetail};
use crate::names::string_list;
use crate::oids;

/// A column of a row value: its name, and its type, typmod and collation.
pub(crate) type RowField = (String, (Oid, i32, Oid));

/// How a call is decorated: what only aggregates and window functions may carry.
#[derive(Default)]
pub(crate) struct Decoration<'p> {
    pub star: bool,
    pub distinct: bool,
    pub within_group: bool,
    pub order: &'p [pb::Node],
    pub filter: Option<Expr>,
    pub over: Option<&'p pb::WindowDef>,
    pub variadic: bool,
    pub form: Option<CoercionForm>,
}

impl Analyzer<'_> {
    /// A call as written.
    pub fn func_call(&mut self, f: &pb::FuncCall) -> SqlResult<Expr> {
        let location = loc(f.location);
        let name = string_list(&f.funcname)?;
        let mut args = Vec::with_capacity(f.args.len());
        let mut arg_names: Vec<String> = Vec::new();
        for node in &f.args {
            match node.node.as_ref() {
                Some(NodeEnum::NamedArgExpr(n)) => {
                    if arg_names.contains(&n.name) {
                        return Err(self.error_at(
                            loc(n.location),
                            SqlState::SyntaxError,
                            format!("argument name \"{}\" used more than once", n.name),
                        ));
                    }
                    args.push(self.boxed(&n.arg)?);
                    arg_names.push(n.name.clone());
                }
                _ => {
                    let arg = self.expr(node)?;
                    if !arg_names.is_empty() {
                        return Err(self.error_at(
                            arg.location(),
                            SqlState::SyntaxError,
                            "positional argument cannot follow named argument",
                        ));
                    }
                    args.push(arg);
                }
            }
        }
        let mut direct = args.len();
        if f.agg_within_group {
            // The aggregated arguments are those of ORDER BY.
            for node in &f.agg_order {
                let Some(NodeEnum::SortBy(s)) = node.node.as_ref() else {
                    return self.unsupported(location, "this ORDER BY");
                };
                let arg = self.with_kind(ExprKind::OrderBy, |a| a.boxed(&s.node))?;
                args.push(arg);
            }
        } else {
            direct = 0;
        }
        let filter = match &f.agg_filter {
            Some(n) => self.where_clause(Some(n), ExprKind::Filter)?,
            None => None,
        };
        let form = match pb::CoercionForm::try_from(f.funcformat) {
            Ok(pb::CoercionForm::CoerceSqlSyntax) => Some(CoercionForm::SqlSyntax),
            _ => None,
        };
        let decoration = Decoration {
            star: f.agg_star,
            distinct: f.agg_distinct,
            within_group: f.agg_within_group,
            order: &f.agg_order,
            filter,
            over: f.over.as_deref(),
            variadic: f.func_variadic,
            form,
        };
        self.call(&name, args, &arg_names, direct, decoration, location)
    }

    /// `row.name` where the row has no such column: perhaps a function of the row.
    pub fn function_as_column(&mut self, name: &str, row: Expr, location: Location) -> SqlResult<Option<Expr>> {
        let ty = self.expr_type(&row)?;
        if self.is_row_type(ty)
            && let Some(field) = self.field_of(&row, name, location)?
        {
            return Ok(Some(field));
        }
        let names = [name.to_owned()];
        match self.function_detail(&names, &[ty], &[], true)? {
            FunctionDetail::NotFound => Ok(None),
            _ => self.call(&names, vec![row], &[], 0, Decoration::default(), location).map(Some),
        }
    }

    /// A call over analysed arguments.
    pub fn call(
        &mut self,
        name: &[String],
        args: Vec<Expr>,
        arg_names: &[String],
        direct: usize,
        how: Decoration<'_>,
        location: Location,
    ) -> SqlResult<Expr> {
        let mut actual = Vec::with_capacity(args.len());
        for a in &args {
            actual.push(self.expr_type(a)?);
        }
        let plain = how.order.is_empty()
            && how.filter.is_none()
            && how.over.is_none()
            && !how.star
            && !how.distinct
            && !how.variadic
            && arg_names.is_empty();
        let projection =
            plain && name.len() == 1 && actual.len() == 1 && actual.first().is_some_and(|&t| self.is_row_type(t));
        let detail =
            self.function_detail(name, &actual, arg_names, !how.variadic).map_err(|e| self.place(e, location))?;
        let signature = |a: &Self| a.function_signature(name, &actual, arg_names);
        let (proc, candidate) = match detail {
            FunctionDetail::Found { proc, candidate } => (proc, candidate),
            FunctionDetail::Coercion(target) => {
                if !plain {
                    return self.unsupported(location, "a cast written as a decorated call");
                }
                let (Some(arg), Some(&ty)) = (args.into_iter().next(), actual.first()) else {
                    return Err(SqlError::internal("a cast of nothing"));
                };
                return self.coerce_type(arg, ty, target, -1, Context::Explicit, CoercionForm::Call, location);
            }
            FunctionDetail::Multiple => {
                let e = self.error_at(
                    location,
                    SqlState::AmbiguousFunction,
                    format!("function {} is not unique", signature(self)),
                );
                return Err(
                    e.hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                );
            }
            FunctionDetail::NotFound => {
                if projection
                    && let (Some(row), Some(column)) = (args.first(), name.first())
                    && let Some(field) = self.field_of(row, column, location)?
                {
                    return Ok(field);
                }
                let e = self.error_at(
                    location,
                    SqlState::UndefinedFunction,
                    format!("function {} does not exist", signature(self)),
                );
                return Err(e.hint(if how.order.len() > 1 && !how.within_group {
                    "No aggregate function matches the given name and argument types. Perhaps you misplaced ORDER BY; \
                     ORDER BY must appear after all regular arguments of the aggregate."
                } else {
                    "No function matches the given name and argument types. You might need to add explicit type casts."
                }));
            }
        };
        let shown = name.join(".");
        let wrong = |a: &Self, m: String| Err(a.error_at(location, SqlState::WrongObjectType, m));
        match proc.kind {
            b'p' => {
                let e =
                    self.error_at(location, SqlState::WrongObjectType, format!("{} is a procedure", signature(self)));
                return Err(e.hint("To call a procedure, use CALL."));
            }
            b'a' => {
                return self.aggregate_call(&proc, &candidate, args, actual, arg_names, direct, how, &shown, location);
            }
            _ => {}
        }
        let what = if proc.kind == b'w' { "window" } else { "normal" };
        if what == "normal" || how.within_group {
            if how.star {
                return wrong(self, format!("{shown}(*) specified, but {shown} is not an aggregate function"));
            }
            if how.distinct {
                return wrong(self, format!("DISTINCT specified, but {shown} is not an aggregate function"));
            }
            if how.within_group {
                return wrong(self, format!("WITHIN GROUP specified, but {shown} is not an aggregate function"));
            }
            if !how.order.is_empty() {
                return wrong(self, format!("ORDER BY specified, but {shown} is not an aggregate function"));
            }
            if how.filter.is_some() {
                return wrong(self, format!("FILTER specified, but {shown} is not an aggregate function"));
            }
            if how.over.is_some() {
                return wrong(
                    self,
                    format!("OVER specified, but {shown} is not a window function nor an aggregate function"),
                );
            }
        } else if how.over.is_none() {
            return wrong(self, format!("window function {shown} requires an OVER clause"));
        }
        let (args, result_type, variadic) =
            self.prepare_args(&proc, &candidate, args, actual, how.variadic, location)?;
        if proc.kind == b'w' {
            return self.window_call(&proc, args, result_type, how, location);
        }
        if proc.returns_set {
            self.check_srf(location)?;
        }
        Ok(Expr::Func(FuncExpr {
            function: proc.oid,
            result_type,
            returns_set: proc.returns_set,
            variadic,
            form: how.form.unwrap_or(CoercionForm::Call),
            collation: Oid::INVALID,
            input_collation: Oid::INVALID,
            args,
            location,
        }))
    }

    /// Puts arguments in the declared order, adds defaults, coerces, and gathers variadic ones into an array. Answers
    /// them, the result type, and whether the last is a variadic array.
    pub(crate) fn prepare_args(
        &mut self,
        proc: &Arc<Proc>,
        candidate: &Candidate,
        args: Vec<Expr>,
        actual: Vec<Oid>,
        written_variadic: bool,
        location: Location,
    ) -> SqlResult<(Vec<Expr>, Oid, bool)> {
        let mut args = args;
        let mut actual = actual;
        let mut declared = candidate.arg_types.clone();
        if candidate.default_count > 0 {
            let defaults = self.default_arguments(proc, location)?;
            let missing: Vec<usize> = match &candidate.arg_numbers {
                Some(order) => order.get(args.len()..).unwrap_or_default().to_vec(),
                None => (args.len()..proc.arg_types.len()).collect(),
            };
            let first_default = proc.arg_types.len() - proc.default_count;
            for at in missing {
                let Some(e) = at.checked_sub(first_default).and_then(|i| defaults.get(i)) else {
                    return Err(SqlError::internal("not enough default arguments"));
                };
                actual.push(self.expr_type(e)?);
                args.push(e.clone());
            }
        }
        if let Some(order) = &candidate.arg_numbers {
            let mut placed: Vec<(usize, Expr, Oid)> = Vec::new();
            for ((&at, arg), ty) in order.iter().zip(args).zip(actual) {
                placed.push((at, arg, ty));
            }
            placed.sort_by_key(|p| p.0);
            (args, actual) = placed.into_iter().map(|p| (p.1, p.2)).unzip();
            declared.clone_from(&proc.arg_types);
        }
        let result_type = self.resolve_generic(&actual, &mut declared, proc.result_type, false)?;
        let mut args = self.coerce_args(args, &actual, &declared)?;
        let mut variadic = written_variadic;
        if candidate.variadic_count > 0 && proc.variadic != oids::ANY {
            let elements = args.split_off(args.len().saturating_sub(candidate.variadic_count));
            let element_type = elements.first().map_or(Ok(Oid::INVALID), |e| self.expr_type(e))?;
            let Some(array_type) = self.array_type(element_type) else {
                return Err(self.error_at(
                    elements.first().and_then(Expr::location),
                    SqlState::UndefinedObject,
                    format!("could not find array type for data type {}", self.type_name(element_type)),
                ));
            };
            let location = elements.first().and_then(Expr::location);
            args.push(Expr::Array(ArrayExpr {
                array_type,
                element_type,
                collation: Oid::INVALID,
                elements,
                multidims: false,
                location,
            }));
            variadic = true;
        }
        if written_variadic && proc.variadic == oids::ANY {
            let last = args.last().map_or(Ok(Oid::INVALID), |e| self.expr_type(e))?;
            if last != oids::UNKNOWN && self.base_element_type(last).is_none() {
                return Err(self.error_at(
                    args.last().and_then(Expr::location),
                    SqlState::DatatypeMismatch,
                    "VARIADIC argument must be an array",
                ));
            }
        }
        Ok((args, result_type, variadic))
    }

    /// The defaults of a function's last arguments, from the catalog.
    fn default_arguments(&self, proc: &Proc, location: Location) -> SqlResult<Vec<Expr>> {
        let Some(tree) = &proc.arg_defaults else {
            return Err(SqlError::internal("a function has lost its defaults"));
        };
        stegodon_nodes::reader::read_exprs(tree, self.cx.catalog).map_err(|e| self.place(e, location))
    }

    /// A function's name and argument types, as errors write them.
    pub fn function_signature(&self, name: &[String], types: &[Oid], arg_names: &[String]) -> String {
        let positional = types.len() - arg_names.len().min(types.len());
        let args: Vec<String> = types
            .iter()
            .enumerate()
            .map(|(i, &t)| match i.checked_sub(positional).and_then(|n| arg_names.get(n)) {
                Some(n) => format!("{n} => {}", self.type_name(t)),
                None => self.type_name(t),
            })
            .collect();
        format!("{}({})", name.join("."), args.join(", "))
    }

    /// Whether a set-returning function may stand here.
    pub fn check_srf(&mut self, location: Location) -> SqlResult<()> {
        let refused = |a: &Self, m: String| Err(a.error_at(location, SqlState::FeatureNotSupported, m));
        match self.kind() {
            ExprKind::SelectTarget | ExprKind::OrderBy | ExprKind::GroupBy | ExprKind::DistinctOn => {
                self.state.has_target_srfs = true;
            }
            ExprKind::FromFunction => {
                // Only at the top; `from_function` checks that nothing is around it.
            }
            ExprKind::JoinOn | ExprKind::JoinUsing => {
                return refused(self, "set-returning functions are not allowed in JOIN conditions".to_owned());
            }
            ExprKind::WindowPartition | ExprKind::WindowOrder => self.state.has_target_srfs = true,
            ExprKind::WindowFrameRange | ExprKind::WindowFrameRows | ExprKind::WindowFrameGroups => {
                return refused(self, "set-returning functions are not allowed in window definitions".to_owned());
            }
            ExprKind::ExecuteParameter => {
                return refused(self, "set-returning functions are not allowed in EXECUTE parameters".to_owned());
            }
            other => {
                return refused(self, format!("set-returning functions are not allowed in {}", other.name()));
            }
        }
        self.state.last_srf = Some(location);
        Ok(())
    }

    /// A column of a row value by name.
    pub fn field_of(&mut self, row: &Expr, name: &str, location: Location) -> SqlResult<Option<Expr>> {
        if let Expr::Var(v) = row
            && v.attno.0 == 0
            && let VarSource::Relation(rtindex) = v.source
        {
            // The row of a FROM item: its columns are known by name whatever they are.
            let item = self.level(v.levels_up)?.namespace.iter().find(|i| i.rtindex == rtindex).cloned();
            if let Some(item) = item {
                let found = self.item_column(v.levels_up, &item, name, location)?;
                if let Some(e) = &found {
                    self.mark_selected(e)?;
                }
                return Ok(found);
            }
        }
        let fields = self.row_fields(row)?;
        let at = fields.iter().position(|f| f.0 == name);
        Ok(at.and_then(|i| fields.get(i).map(|f| (i, f.1))).map(|(i, (result_type, typmod, collation))| {
            Expr::FieldSelect(Box::new(FieldSelect {
                arg: row.clone(),
                field: AttrNumber((i + 1) as i16),
                result_type,
                typmod,
                collation,
            }))
        }))
    }

    /// The columns of a function that returns `record` through output parameters; `None` where it has none.
    pub fn out_columns(&self, function: Oid, args: &[Expr]) -> SqlResult<Option<Vec<RowField>>> {
        let Some(proc) = self.cx.catalog.proc(function) else { return Ok(None) };
        let (Some(types), Some(modes)) = (&proc.all_arg_types, &proc.arg_modes) else { return Ok(None) };
        let mut actual = Vec::new();
        for a in args {
            actual.push(self.expr_type(a)?);
        }
        let mut columns = Vec::new();
        for (i, (&ty, &mode)) in types.iter().zip(modes).enumerate() {
            if !matches!(mode, b'o' | b'b' | b't') {
                continue;
            }
            let name = proc.arg_names.as_ref().and_then(|n| n.get(i)).filter(|n| !n.is_empty());
            let name = name.cloned().unwrap_or_else(|| format!("column{}", columns.len() + 1));
            let ty = self.resolve_generic(&actual, &mut proc.arg_types.clone(), ty, false)?;
            columns.push((name, (ty, -1, self.type_collation(ty))));
        }
        Ok((!columns.is_empty()).then_some(columns))
    }
}
