//! Expressions as SQL text, as PostgreSQL's EXPLAIN prints them (`ruleutils.c`).

use std::fmt::Write as _;

use stegodon_catalog::CatalogView;
use stegodon_catalog::lookup::PG_CATALOG;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{Datum, TypeContext};

use crate::exprs::{collation_of, type_of, typmod_of};
use crate::node::{AggregateSplit, PlanKind, PlanNode, PlannedStatement};

/// Who names things and prints values.
#[derive(Clone, Copy)]
pub struct DeparseContext<'a> {
    /// The catalogs and the search path.
    pub view: &'a CatalogView,
    /// The types and the session's settings.
    pub types: TypeContext<'a>,
}

/// Where an expression stands: in which plan, at which node.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    /// The statement.
    pub statement: &'p PlannedStatement,
    /// The node whose expression it is.
    pub node: &'p PlanNode,
    /// The node above it where the expression is looked at through a pass-through node.
    pub prefix: bool,
}

/// Prints an expression.
pub fn deparse(cx: &DeparseContext<'_>, place: Place<'_>, e: &Expr) -> String {
    let mut d = Deparser { cx, out: String::new(), depth: 0 };
    d.expr(place, e, false);
    d.out
}

pub use stegodon_catalog::keywords::quote_identifier;

/// A string literal.
pub fn quote_literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    if text.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    for c in text.chars() {
        if c == '\'' || c == '\\' {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
    out
}

/// How deep columns are followed down before something must be wrong.
const MAX_DEPTH: u32 = 500;

struct Deparser<'c, 'a> {
    cx: &'c DeparseContext<'a>,
    out: String,
    depth: u32,
}

fn child_of(node: &PlanNode, inner: bool) -> Option<&PlanNode> {
    let mut children = Vec::new();
    crate::names::for_each_child(node, &mut |c| children.push(c));
    // Members of an Append are alike: the first speaks for all.
    if inner { children.get(1).copied() } else { children.first().copied() }
}

/// Which node's expression fills an executor slot from its row, and with what.
fn setter(statement: &PlannedStatement, slot: u32) -> Option<(&PlanNode, &Expr)> {
    fn within(e: &Expr, slot: u32) -> Option<&Expr> {
        let mut found = None;
        crate::exprs::walk(e, &mut |x| {
            if let Expr::SubPlan(s) = x {
                let sets = |(id, e): &&(u32, Expr)| *id == slot && !matches!(e, Expr::Param(p) if p.id == slot);
                found = found.or_else(|| s.correlation.iter().find(sets).map(|(_, e)| e));
            }
            found.is_none()
        });
        found
    }
    fn find(node: &PlanNode, slot: u32) -> Option<(&PlanNode, &Expr)> {
        let mut found = None;
        if let PlanKind::NestLoop(j) = &node.kind {
            found = j.params.iter().find(|(id, _)| *id == slot).map(|(_, e)| e);
        }
        crate::walk::for_each_expr(node, &mut |e| found = found.or_else(|| within(e, slot)));
        if let Some(e) = found {
            return Some((node, e));
        }
        let mut below = None;
        crate::names::for_each_child(node, &mut |c| below = below.or_else(|| find(c, slot)));
        below
    }
    std::iter::once(&statement.root).chain(&statement.subplans).find_map(|root| find(root, slot))
}

impl Deparser<'_, '_> {
    fn list(&mut self, p: Place<'_>, list: &[Expr], separator: &str) {
        for (i, e) in list.iter().enumerate() {
            if i > 0 {
                self.out.push_str(separator);
            }
            self.expr(p, e, true);
        }
    }

    fn column(&mut self, p: Place<'_>, v: &Var) {
        match v.source {
            VarSource::Relation(r) => self.relation_column(p, r, v),
            VarSource::Index => {
                let (PlanKind::IndexOnlyScan(i) | PlanKind::IndexScan(i) | PlanKind::BitmapIndexScan(i)) = &p.node.kind
                else {
                    self.out.push('?');
                    return;
                };
                let attno = self.cx.view.catalog.relation(i.index).and_then(|r| {
                    r.index.as_ref()?.columns.get(usize::try_from(v.attno.0).ok()?.checked_sub(1)?).copied()
                });
                if let Some(attno) = attno {
                    let var = Var { source: VarSource::Relation(i.relation), attno, ..v.clone() };
                    self.relation_column(p, i.relation, &var);
                }
            }
            VarSource::Outer | VarSource::Inner => {
                let Some(child) = child_of(p.node, v.source == VarSource::Inner) else {
                    self.out.push('?');
                    return;
                };
                let target = usize::try_from(v.attno.0).ok().and_then(|n| child.targets.get(n.checked_sub(1)?));
                let Some(target) = target else {
                    self.out.push('?');
                    return;
                };
                self.depth += 1;
                if self.depth < MAX_DEPTH {
                    let place = Place { node: child, ..p };
                    let bare = matches!(target.expr, Expr::Var(_));
                    if !bare {
                        self.out.push('(');
                    }
                    self.expr(place, &target.expr, true);
                    if !bare {
                        self.out.push(')');
                    }
                }
                self.depth -= 1;
            }
        }
    }

    fn relation_column(&mut self, p: Place<'_>, r: usize, v: &Var) {
        // A column of a subquery's own scan goes by the subquery's names.
        let Some(rel) = r.checked_sub(1).and_then(|i| p.statement.range_table.get(i)) else {
            self.out.push('?');
            return;
        };
        if p.prefix || v.attno.0 == 0 {
            self.out.push_str(&quote_identifier(&rel.alias));
            self.out.push('.');
        }
        let name = match v.attno.0 {
            0 => "*",
            -1 => "ctid",
            -2 => "xmin",
            -3 => "cmin",
            -4 => "xmax",
            -5 => "cmax",
            -6 => "tableoid",
            n => {
                let column = usize::try_from(n).ok().and_then(|n| rel.columns.get(n.checked_sub(1)?));
                let name = column.map_or_else(|| "?column?".to_owned(), |c| quote_identifier(c));
                self.out.push_str(&name);
                return;
            }
        };
        self.out.push_str(name);
    }

    fn type_name(&self, type_oid: Oid, typmod: i32) -> String {
        self.cx.view.format_type(type_oid, Some(typmod))
    }

    fn constant(&mut self, c: &Const, show_type: bool) {
        let Some(value) = &c.value else {
            self.out.push_str("NULL");
            if show_type {
                let _ = write!(self.out, "::{}", self.type_name(c.type_oid, c.typmod));
            }
            return;
        };
        let text = self.value_text(c.type_oid, value);
        let mut label = !matches!(c.type_oid.0, 16 | 705);
        match c.type_oid.0 {
            23 => {
                label = text.starts_with('-');
                if label {
                    self.out.push_str(&quote_literal(&text));
                } else {
                    self.out.push_str(&text);
                }
            }
            1700 => {
                let numeric = text.bytes().next().is_some_and(|b| b.is_ascii_digit())
                    && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'e' | b'E' | b'.'));
                if numeric && text.contains(['e', 'E', '.']) {
                    self.out.push_str(&text);
                    label = c.typmod >= 0;
                } else {
                    self.out.push_str(&quote_literal(&text));
                }
            }
            16 => self.out.push_str(if *value == Datum::Bool(true) { "true" } else { "false" }),
            _ => self.out.push_str(&quote_literal(&text)),
        }
        if label && show_type {
            let _ = write!(self.out, "::{}", self.type_name(c.type_oid, c.typmod));
        }
        if show_type && c.collation.is_valid() {
            let own = self.cx.view.catalog.type_desc(c.type_oid).map_or(Oid::INVALID, |t| t.collation);
            if own != c.collation {
                let _ = write!(self.out, " COLLATE {}", self.collation_name(c.collation));
            }
        }
    }

    fn collation_name(&self, oid: Oid) -> String {
        match self.cx.view.catalog.collation(oid) {
            Some(c) => quote_identifier(&c.name),
            None => oid.to_string(),
        }
    }

    fn value_text(&self, type_oid: Oid, value: &Datum) -> String {
        let Some(desc) = self.cx.view.catalog.type_desc(type_oid) else { return String::new() };
        let mut out = Vec::new();
        match stegodon_types::text_out(&self.cx.types, desc, value.as_ref(), &mut out) {
            Ok(()) => String::from_utf8_lossy(&out).into_owned(),
            Err(_) => "?".to_owned(),
        }
    }

    fn operator_name(&self, operator: Oid) -> String {
        match self.cx.view.catalog.operator(operator) {
            Some(o) if o.namespace == PG_CATALOG || self.cx.view.path.namespaces.contains(&o.namespace) => {
                o.name.clone()
            }
            Some(o) => {
                let schema = self.cx.view.catalog.namespace(o.namespace).map_or("?", |n| n.name.as_str());
                format!("OPERATOR({}.{})", quote_identifier(schema), o.name)
            }
            None => "?".to_owned(),
        }
    }

    fn function_name(&self, function: Oid) -> String {
        match self.cx.view.catalog.proc(function) {
            Some(p) if p.namespace == PG_CATALOG || self.cx.view.path.namespaces.contains(&p.namespace) => {
                quote_identifier(&p.name)
            }
            Some(p) => {
                let schema = self.cx.view.catalog.namespace(p.namespace).map_or("?", |n| n.name.as_str());
                format!("{}.{}", quote_identifier(schema), quote_identifier(&p.name))
            }
            None => "?".to_owned(),
        }
    }

    fn cast(&mut self, p: Place<'_>, arg: &Expr, type_oid: Oid, typmod: i32) {
        if let Expr::Const(c) = arg
            && c.type_oid == type_oid
            && c.typmod == -1
        {
            self.constant(c, false);
        } else {
            self.out.push('(');
            self.expr(p, arg, false);
            self.out.push(')');
        }
        let _ = write!(self.out, "::{}", self.type_name(type_oid, typmod));
    }

    fn coercion(&mut self, p: Place<'_>, arg: &Expr, form: CoercionForm, type_oid: Oid, typmod: i32, implicit: bool) {
        if form == CoercionForm::ImplicitCast && !implicit {
            self.expr(p, arg, false);
        } else {
            self.cast(p, arg, type_oid, typmod);
        }
    }

    #[allow(clippy::too_many_lines)]
    fn expr(&mut self, p: Place<'_>, e: &Expr, implicit: bool) {
        match e {
            Expr::Var(v) => self.column(p, v),
            Expr::Const(c) => self.constant(c, true),
            Expr::Param(x) => self.param(p, x),
            Expr::Aggref(a) => self.aggregate(p, a),
            Expr::GroupingFunc(g) => {
                self.out.push_str("GROUPING(");
                self.list(p, &g.args, ", ");
                self.out.push(')');
            }
            Expr::WindowFunc(w) => {
                let name = self.function_name(w.function);
                self.out.push_str(&name);
                self.out.push('(');
                if w.star {
                    self.out.push('*');
                }
                self.list(p, &w.args, ", ");
                self.out.push(')');
                if let Some(f) = &w.filter {
                    self.out.push_str(" FILTER (WHERE ");
                    self.expr(p, f, false);
                    self.out.push(')');
                }
                match &p.node.kind {
                    PlanKind::WindowAgg { window, .. } => {
                        let _ = write!(self.out, " OVER {}", quote_identifier(&window.name));
                    }
                    _ => self.out.push_str(" OVER (?)"),
                }
            }
            Expr::Subscript(s) => {
                let bare = matches!(s.container, Expr::Var(_) | Expr::Param(_));
                if !bare {
                    self.out.push('(');
                }
                self.expr(p, &s.container, implicit);
                if !bare {
                    self.out.push(')');
                }
                for (i, u) in s.upper.iter().enumerate() {
                    self.out.push('[');
                    if let Some(l) = s.lower.get(i) {
                        if let Some(l) = l {
                            self.expr(p, l, false);
                        }
                        self.out.push(':');
                    }
                    if let Some(u) = u {
                        self.expr(p, u, false);
                    }
                    self.out.push(']');
                }
            }
            Expr::Func(f) => self.function(p, f, implicit),
            Expr::Op(o) => {
                self.out.push('(');
                match o.args.as_slice() {
                    [l, r] => {
                        self.expr(p, l, true);
                        let _ = write!(self.out, " {} ", self.operator_name(o.operator));
                        self.expr(p, r, true);
                    }
                    list => {
                        let _ = write!(self.out, "{} ", self.operator_name(o.operator));
                        self.list(p, list, ", ");
                    }
                }
                self.out.push(')');
            }
            Expr::Distinct(o) => {
                self.out.push('(');
                self.list(p, &o.args, " IS DISTINCT FROM ");
                self.out.push(')');
            }
            Expr::NullIf(o) => {
                self.out.push_str("NULLIF(");
                self.list(p, &o.args, ", ");
                self.out.push(')');
            }
            Expr::ScalarArrayOp(s) => {
                let [l, r] = &*s.args;
                self.out.push('(');
                self.expr(p, l, true);
                let word = if s.any { "ANY" } else { "ALL" };
                let _ = write!(self.out, " {} {word} (", self.operator_name(s.operator));
                self.expr(p, r, true);
                self.out.push_str("))");
            }
            Expr::Bool(b) => {
                self.out.push('(');
                match b.kind {
                    BoolKind::And => self.bools(p, &b.args, " AND "),
                    BoolKind::Or => self.bools(p, &b.args, " OR "),
                    BoolKind::Not => {
                        self.out.push_str("NOT ");
                        self.bools(p, &b.args, "");
                    }
                }
                self.out.push(')');
            }
            Expr::SubLink(_) => self.out.push_str("(SubLink)"),
            Expr::SubPlan(s) => self.subplan(p, s),
            Expr::FieldSelect(f) => {
                self.out.push('(');
                self.expr(p, &f.arg, true);
                let _ = write!(self.out, ").f{}", f.field.0);
            }
            Expr::Relabel(r) => self.coercion(p, &r.arg, r.form, r.result_type, r.typmod, implicit),
            Expr::CoerceViaIo(c) => self.coercion(p, &c.arg, c.form, c.result_type, -1, implicit),
            Expr::ArrayCoerce(c) => self.coercion(p, &c.arg, c.form, c.result_type, c.typmod, implicit),
            Expr::ConvertRowtype(c) => self.expr(p, &c.arg, implicit),
            Expr::CoerceToDomain(c) => self.coercion(p, &c.arg, c.form, c.result_type, c.typmod, implicit),
            Expr::Collate(c) => {
                self.out.push('(');
                self.expr(p, &c.arg, implicit);
                let _ = write!(self.out, " COLLATE {})", self.collation_name(c.collation));
            }
            Expr::Case(c) => self.case(p, c),
            Expr::CaseTest(_) => self.out.push_str("CASE_TEST_EXPR"),
            Expr::Array(a) => {
                self.out.push_str("ARRAY[");
                self.list(p, &a.elements, ", ");
                self.out.push(']');
                if a.elements.is_empty() {
                    let _ = write!(self.out, "::{}", self.type_name(a.array_type, -1));
                }
            }
            Expr::Row(r) => {
                self.out.push_str("ROW(");
                self.list(p, &r.args, ", ");
                self.out.push(')');
            }
            Expr::RowCompare(r) => {
                self.out.push_str("(ROW(");
                self.list(p, &r.left, ", ");
                let op = r.operators.first().map_or_else(|| "?".to_owned(), |o| self.operator_name(*o));
                let _ = write!(self.out, ") {op} ROW(");
                self.list(p, &r.right, ", ");
                self.out.push_str("))");
            }
            Expr::Coalesce(c) => {
                self.out.push_str("COALESCE(");
                self.list(p, &c.args, ", ");
                self.out.push(')');
            }
            Expr::MinMax(m) => {
                self.out.push_str(if m.greatest { "GREATEST(" } else { "LEAST(" });
                self.list(p, &m.args, ", ");
                self.out.push(')');
            }
            Expr::SqlValue(s) => {
                let name = match s.kind {
                    SqlValueKind::CurrentDate => "CURRENT_DATE",
                    SqlValueKind::CurrentTime => "CURRENT_TIME",
                    SqlValueKind::CurrentTimestamp => "CURRENT_TIMESTAMP",
                    SqlValueKind::LocalTime => "LOCALTIME",
                    SqlValueKind::LocalTimestamp => "LOCALTIMESTAMP",
                    SqlValueKind::CurrentRole => "CURRENT_ROLE",
                    SqlValueKind::CurrentUser => "CURRENT_USER",
                    SqlValueKind::User => "USER",
                    SqlValueKind::SessionUser => "SESSION_USER",
                    SqlValueKind::CurrentCatalog => "CURRENT_CATALOG",
                    SqlValueKind::CurrentSchema => "CURRENT_SCHEMA",
                };
                self.out.push_str(name);
                if s.typmod >= 0 {
                    let _ = write!(self.out, "({})", s.typmod);
                }
            }
            Expr::NullTest(t) => {
                self.out.push('(');
                self.expr(p, &t.arg, true);
                self.out.push_str(if t.is_null { " IS NULL)" } else { " IS NOT NULL)" });
            }
            Expr::BooleanTest(t) => {
                self.out.push('(');
                self.expr(p, &t.arg, false);
                self.out.push_str(match t.kind {
                    BooleanTestKind::IsTrue => " IS TRUE)",
                    BooleanTestKind::IsNotTrue => " IS NOT TRUE)",
                    BooleanTestKind::IsFalse => " IS FALSE)",
                    BooleanTestKind::IsNotFalse => " IS NOT FALSE)",
                    BooleanTestKind::IsUnknown => " IS UNKNOWN)",
                    BooleanTestKind::IsNotUnknown => " IS NOT UNKNOWN)",
                });
            }
            Expr::NextValue(o) => {
                let name = self.cx.view.catalog.relation(*o).map_or_else(|| o.to_string(), |r| r.name.clone());
                let _ = write!(self.out, "nextval({}::regclass)", quote_literal(&name));
            }
        }
    }

    fn bools(&mut self, p: Place<'_>, list: &[Expr], separator: &str) {
        for (i, e) in list.iter().enumerate() {
            if i > 0 {
                self.out.push_str(separator);
            }
            self.expr(p, e, false);
        }
    }

    fn function(&mut self, p: Place<'_>, f: &FuncExpr, implicit: bool) {
        if f.form == CoercionForm::ImplicitCast
            && !implicit
            && let Some(arg) = f.args.first()
        {
            self.expr(p, arg, false);
            return;
        }
        if matches!(f.form, CoercionForm::ExplicitCast | CoercionForm::ImplicitCast)
            && let Some(arg) = f.args.first()
        {
            let typmod = typmod_of(&Expr::Func(f.clone()));
            self.cast(p, arg, f.result_type, typmod);
            return;
        }
        let name = self.function_name(f.function);
        if f.form == CoercionForm::SqlSyntax
            && let Some(()) = self.sql_syntax(p, &name, f)
        {
            return;
        }
        self.out.push_str(&name);
        self.out.push('(');
        for (i, a) in f.args.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            if f.variadic && i + 1 == f.args.len() {
                self.out.push_str("VARIADIC ");
            }
            self.expr(p, a, true);
        }
        self.out.push(')');
    }

    fn sql_syntax(&mut self, p: Place<'_>, name: &str, f: &FuncExpr) -> Option<()> {
        let word = |e: &Expr| match e {
            Expr::Const(Const { value: Some(Datum::Bytes(b)), .. }) => Some(String::from_utf8_lossy(b).into_owned()),
            _ => None,
        };
        match (name.trim_matches('"'), f.args.as_slice()) {
            ("extract", [field, from]) => {
                let field = word(field)?;
                let _ = write!(self.out, "EXTRACT({field} FROM ");
                self.expr(p, from, false);
                self.out.push(')');
            }
            ("timezone", [zone, time]) => {
                self.out.push('(');
                self.expr(p, time, false);
                self.out.push_str(" AT TIME ZONE ");
                self.expr(p, zone, false);
                self.out.push(')');
            }
            ("position", [text, part]) => {
                self.out.push_str("POSITION((");
                self.expr(p, part, false);
                self.out.push_str(") IN (");
                self.expr(p, text, false);
                self.out.push_str("))");
            }
            ("substring", [text, rest @ ..]) => {
                self.out.push_str("SUBSTRING(");
                self.expr(p, text, false);
                if let Some(from) = rest.first() {
                    self.out.push_str(" FROM ");
                    self.expr(p, from, false);
                }
                if let Some(n) = rest.get(1) {
                    self.out.push_str(" FOR ");
                    self.expr(p, n, false);
                }
                self.out.push(')');
            }
            ("btrim" | "ltrim" | "rtrim", [text, rest @ ..]) => {
                self.out.push_str(match name {
                    "btrim" => "TRIM(BOTH",
                    "ltrim" => "TRIM(LEADING",
                    _ => "TRIM(TRAILING",
                });
                if let Some(chars) = rest.first() {
                    self.out.push(' ');
                    self.expr(p, chars, false);
                }
                self.out.push_str(" FROM ");
                self.expr(p, text, false);
                self.out.push(')');
            }
            _ => return None,
        }
        Some(())
    }

    fn case(&mut self, p: Place<'_>, c: &CaseExpr) {
        self.out.push_str("CASE");
        if let Some(a) = &c.arg {
            self.out.push(' ');
            self.expr(p, a, true);
        }
        for (when, then) in &c.whens {
            self.out.push_str(" WHEN ");
            // `CASE x WHEN 1` is kept as x = 1 with a placeholder for x.
            let shown = match (c.arg.is_some(), when) {
                (true, Expr::Op(o)) if matches!(o.args.first(), Some(Expr::CaseTest(_))) => o.args.get(1),
                _ => None,
            };
            self.expr(p, shown.unwrap_or(when), false);
            self.out.push_str(" THEN ");
            self.expr(p, then, true);
        }
        self.out.push_str(" ELSE ");
        self.expr(p, &c.default, true);
        self.out.push_str(" END");
    }

    fn aggregate(&mut self, p: Place<'_>, a: &Aggref) {
        // The final half names what the first half was given.
        if let PlanKind::Aggregate { split: AggregateSplit::Final, .. } = &p.node.kind
            && let Some(TargetEntry { expr: Expr::Var(v), .. }) = a.args.first()
            && matches!(v.source, VarSource::Outer)
            && self.depth < MAX_DEPTH
        {
            let mut node = p.node;
            let mut attno = v.attno.0;
            while let Some(child) = child_of(node, false) {
                let target = usize::try_from(attno).ok().and_then(|n| child.targets.get(n.checked_sub(1)?));
                match target.map(|t| &t.expr) {
                    Some(Expr::Var(x)) => {
                        attno = x.attno.0;
                        node = child;
                    }
                    Some(Expr::Aggref(inner)) => {
                        self.aggregate_call(Place { node: child, ..p }, inner);
                        return;
                    }
                    _ => break,
                }
            }
        }
        if let PlanKind::Aggregate { split: AggregateSplit::Partial, .. } = &p.node.kind {
            self.out.push_str("PARTIAL ");
        }
        self.aggregate_call(p, a);
    }

    fn aggregate_call(&mut self, p: Place<'_>, a: &Aggref) {
        let name = self.function_name(a.function);
        self.out.push_str(&name);
        self.out.push('(');
        if !a.distinct.is_empty() {
            self.out.push_str("DISTINCT ");
        }
        if a.kind != AggregateKind::Normal {
            self.list(p, &a.direct_args, ", ");
            self.out.push_str(") WITHIN GROUP (ORDER BY ");
            self.aggregate_order(p, a);
        } else {
            if a.star {
                self.out.push('*');
            }
            let args: Vec<&TargetEntry> = a.args.iter().filter(|t| !t.junk).collect();
            for (i, t) in args.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                if a.variadic && i + 1 == args.len() {
                    self.out.push_str("VARIADIC ");
                }
                self.expr(p, &t.expr, true);
            }
            if !a.order_by.is_empty() {
                self.out.push_str(" ORDER BY ");
                self.aggregate_order(p, a);
            }
        }
        if let Some(f) = &a.filter {
            self.out.push_str(") FILTER (WHERE ");
            self.expr(p, f, false);
        }
        self.out.push(')');
    }

    fn aggregate_order(&mut self, p: Place<'_>, a: &Aggref) {
        for (i, o) in a.order_by.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            if let Some(t) = a.args.iter().find(|t| t.sort_group_ref == o.reference) {
                self.expr(p, &t.expr, true);
            }
            self.direction(o.descending, o.nulls_first);
        }
    }

    fn direction(&mut self, descending: bool, nulls_first: bool) {
        if descending {
            self.out.push_str(" DESC");
        }
        if nulls_first && !descending {
            self.out.push_str(" NULLS FIRST");
        } else if !nulls_first && descending {
            self.out.push_str(" NULLS LAST");
        }
    }

    fn param(&mut self, p: Place<'_>, x: &Param) {
        if x.kind == ParamKind::Exec {
            for i in &p.statement.init_plans {
                if let Some(n) = i.slots.iter().position(|s| *s == x.id) {
                    let _ = write!(self.out, "(InitPlan {}).col{}", i.number, n + 1);
                    return;
                }
            }
            if let Some((node, value)) = setter(p.statement, x.id)
                && self.depth < MAX_DEPTH
            {
                // The outer row's value, by its name there.
                self.depth += 1;
                let bare = matches!(value, Expr::Var(_) | Expr::Aggref(_) | Expr::GroupingFunc(_) | Expr::Param(_));
                if !bare {
                    self.out.push('(');
                }
                self.expr(Place { node, prefix: true, ..p }, value, false);
                if !bare {
                    self.out.push(')');
                }
                self.depth -= 1;
                return;
            }
        }
        let _ = write!(self.out, "${}", x.id);
    }

    fn subplan(&mut self, p: Place<'_>, s: &SubPlan) {
        let number = s.plan_id + 1;
        let name = if s.use_hash { format!("hashed SubPlan {number}") } else { format!("SubPlan {number}") };
        match (&s.test, s.kind) {
            (Some(test), SubLinkKind::Any | SubLinkKind::All) => {
                let word = if s.kind == SubLinkKind::Any { "ANY" } else { "ALL" };
                let _ = write!(self.out, "({word} ");
                let mut inner = Deparser { cx: self.cx, out: String::new(), depth: self.depth };
                let named = crate::exprs::replaced(test, &mut |x| match x {
                    Expr::Param(q) if q.kind == ParamKind::SubLink => Some(Expr::Const(Const {
                        type_oid: Oid(705),
                        typmod: -1,
                        collation: Oid::INVALID,
                        value: Some(Datum::bytes(format!("\u{1}({name}).col{}\u{1}", q.id))),
                        location: None,
                    })),
                    _ => None,
                });
                inner.expr(p, &named, false);
                self.out.push_str(&inner.out.replace("'\u{1}", "").replace("\u{1}'", ""));
                self.out.push(')');
            }
            (_, SubLinkKind::Exists) => {
                let _ = write!(self.out, "EXISTS({name})");
            }
            (_, SubLinkKind::Array) => {
                let _ = write!(self.out, "ARRAY({name})");
            }
            _ => {
                let _ = write!(self.out, "({name})");
            }
        }
    }
}

/// One column of a sort order as EXPLAIN prints it.
pub fn sort_key(cx: &DeparseContext<'_>, place: Place<'_>, e: &Expr, key: &crate::node::SortKey) -> String {
    let mut d = Deparser { cx, out: String::new(), depth: 0 };
    d.expr(place, e, true);
    let own = cx.view.catalog.type_desc(type_of(e)).map_or(Oid::INVALID, |t| t.collation);
    if key.collation.is_valid() && key.collation != own {
        let _ = write!(d.out, " COLLATE {}", d.collation_name(key.collation));
    }
    let _ = collation_of(e);
    d.direction(key.descending, key.nulls_first);
    d.out
}
