//! Functions in FROM.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::query::{RangeTableFunction, RangeTableKind};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind, loc};
use crate::from::{AliasNames, FromItem, alias_names, plain_entry};
use crate::oids;
use crate::target::figure_item_name;

type Column = (String, Oid, i32, Oid);

impl Analyzer<'_> {
    pub(crate) fn from_function(&mut self, f: &pb::RangeFunction) -> SqlResult<FromItem> {
        let mut calls: Vec<(Expr, String, Vec<pb::Node>)> = Vec::new();
        // Functions in FROM may use what stands left of them, LATERAL written or not.
        let was_active = std::mem::replace(&mut self.state.lateral_active, true);
        let result = self.from_function_calls(f, &mut calls);
        self.state.lateral_active = was_active;
        result?;
        let alias = alias_names(f.alias.as_ref())?;
        let single = calls.len() == 1;
        let mut functions = Vec::new();
        for (call, name, definitions) in &calls {
            let alias = if single { alias.as_ref() } else { None };
            let definitions = if single && definitions.is_empty() { &f.coldeflist } else { definitions };
            let columns = self.function_columns(call, name, definitions, alias)?;
            functions.push(RangeTableFunction { call: call.clone(), columns });
        }
        if !f.coldeflist.is_empty() && !single {
            return Err(SqlError::new(
                SqlState::SyntaxError,
                "ROWS FROM() with multiple functions cannot have a column definition list",
            )
            .hint("Put a separate column definition list for each function inside ROWS FROM()."));
        }
        if !f.coldeflist.is_empty() && f.ordinality {
            return Err(SqlError::new(
                SqlState::SyntaxError,
                "WITH ORDINALITY cannot be used with a column definition list",
            )
            .hint("Put the column definition list inside ROWS FROM()."));
        }
        let mut columns: Vec<Column> = functions.iter().flat_map(|f| f.columns.iter().cloned()).collect();
        if f.ordinality {
            columns.push(("ordinality".to_owned(), oids::INT8, -1, Oid::INVALID));
        }
        let own: Vec<String> = columns.iter().map(|c| c.0.clone()).collect();
        let names = if f.coldeflist.is_empty() { self.aliased_columns(&own, alias.as_ref(), "table")? } else { own };
        let has_alias = alias.is_some();
        let name = match (alias, calls.first()) {
            (Some(a), _) => a.name,
            (None, Some(c)) => c.1.clone(),
            (None, None) => return Err(SqlError::internal("no function in FROM")),
        };
        let types: Vec<(Oid, i32, Oid)> = columns.iter().map(|c| (c.1, c.2, c.3)).collect();
        let kind = RangeTableKind::Function { functions, ordinality: f.ordinality };
        let mut entry = plain_entry(kind, name, has_alias, names);
        // LATERAL where it was written, or where the arguments need it.
        let uses_siblings = calls.iter().any(|c| crate::aggregate::contains_own_var(&c.0));
        entry.lateral = f.lateral || uses_siblings;
        Ok(self.add_entry(entry, &types, Oid::INVALID))
    }

    fn from_function_calls(
        &mut self,
        f: &pb::RangeFunction,
        calls: &mut Vec<(Expr, String, Vec<pb::Node>)>,
    ) -> SqlResult<()> {
        for node in &f.functions {
            let Some(NodeEnum::List(pair)) = node.node.as_ref() else {
                return self.unsupported(None, "this function in FROM");
            };
            let [function, definitions] = pair.items.as_slice() else {
                return self.unsupported(None, "this function in FROM");
            };
            let definitions = match definitions.node.as_ref() {
                Some(NodeEnum::List(l)) => l.items.clone(),
                None => Vec::new(),
                _ => return self.unsupported(None, "this column definition list"),
            };
            // unnest(a, b) in FROM is ROWS FROM (unnest(a), unnest(b)).
            if let Some(NodeEnum::FuncCall(c)) = function.node.as_ref()
                && c.funcname.len() == 1
                && c.args.len() > 1
                && matches!(c.funcname.first().and_then(|n| n.node.as_ref()), Some(NodeEnum::String(s)) if s.sval == "unnest")
                && c.agg_order.is_empty()
                && c.agg_filter.is_none()
                && c.over.is_none()
                && !c.agg_star
                && !c.agg_distinct
                && !c.func_variadic
                && definitions.is_empty()
            {
                for arg in &c.args {
                    let mut one = c.as_ref().clone();
                    one.args = vec![arg.clone()];
                    one.funcname = system_name("unnest");
                    let node = pb::Node { node: Some(NodeEnum::FuncCall(Box::new(one))) };
                    self.from_function_call(&node, Vec::new(), calls)?;
                }
                continue;
            }
            self.from_function_call(function, definitions, calls)?;
        }
        Ok(())
    }

    fn from_function_call(
        &mut self,
        node: &pb::Node,
        definitions: Vec<pb::Node>,
        calls: &mut Vec<(Expr, String, Vec<pb::Node>)>,
    ) -> SqlResult<()> {
        let mut e = self.with_kind(ExprKind::FromFunction, |a| a.expr(node))?;
        // Only the call itself may return a set.
        let mut inner = None;
        let _ = e.try_each_child::<()>(&mut |c| {
            if inner.is_none() && crate::coerce::returns_set(c) {
                inner = Some(c.location());
            }
            Ok(())
        });
        if let Some(location) = inner {
            return Err(self.error_at(
                location,
                SqlState::FeatureNotSupported,
                "set-returning functions must appear at top level of FROM",
            ));
        }
        self.assign_collations(&mut e)?;
        calls.push((e, figure_item_name(node), definitions));
        Ok(())
    }

    /// The columns of one function.
    pub(crate) fn function_columns(
        &mut self,
        call: &Expr,
        name: &str,
        definitions: &[pb::Node],
        alias: Option<&AliasNames>,
    ) -> SqlResult<Vec<Column>> {
        let location = call.location();
        let ty = self.expr_type(call)?;
        let out = match call {
            Expr::Func(f) => self.out_columns(f.function, &f.args)?,
            _ => None,
        };
        let syntax = |a: &Self, m: &str| Err(a.error_at(location, SqlState::SyntaxError, m));
        if !definitions.is_empty() {
            if ty != oids::RECORD {
                return syntax(self, "a column definition list is only allowed for functions returning \"record\"");
            }
            if out.is_some() {
                return syntax(self, "a column definition list is redundant for a function with OUT parameters");
            }
            let mut columns = Vec::new();
            for node in definitions {
                let Some(NodeEnum::ColumnDef(d)) = node.node.as_ref() else {
                    return self.unsupported(location, "this column definition");
                };
                let Some(tn) = &d.type_name else { return Err(SqlError::internal("a column without type")) };
                if tn.setof {
                    return Err(self.error_at(
                        loc(d.location),
                        SqlState::InvalidTableDefinition,
                        format!("column \"{}\" cannot be declared SETOF", d.colname),
                    ));
                }
                let (ty, typmod) = self.resolve_type_name(tn)?;
                let collation = match &d.coll_clause {
                    Some(c) => {
                        let names = crate::names::string_list(&c.collname)?;
                        self.find_collation(&names, loc(c.location))?
                    }
                    None => self.type_collation(ty),
                };
                columns.push((d.colname.clone(), ty, typmod, collation));
            }
            return Ok(columns);
        }
        if let Some(relation) = self.composite_relation(ty).and_then(|r| self.cx.catalog.relation(r)) {
            return Ok(relation
                .attributes
                .iter()
                .map(|a| {
                    let name = if a.dropped { String::new() } else { a.name.clone() };
                    (name, a.type_oid, a.typmod, a.collation)
                })
                .collect());
        }
        if ty == oids::RECORD {
            return match out {
                Some(columns) => Ok(columns.into_iter().map(|(n, (t, m, c))| (n, t, m, c)).collect()),
                None => syntax(self, "a column definition list is required for functions returning \"record\""),
            };
        }
        // A scalar function's one column is called as the alias is, or the output parameter, or the function.
        let parameter = match call {
            Expr::Func(f) => self.single_out_name(f.function),
            _ => None,
        };
        let column = match (parameter, alias) {
            (Some(p), _) => p,
            (None, Some(a)) => a.name.clone(),
            (None, None) => name.to_owned(),
        };
        Ok(vec![(column, ty, call.typmod(), call.collation())])
    }

    /// The name of a function's only output parameter, if it has one of a scalar type.
    fn single_out_name(&self, function: Oid) -> Option<String> {
        let proc = self.cx.catalog.proc(function)?;
        let (modes, names) = (proc.arg_modes.as_ref()?, proc.arg_names.as_ref()?);
        let mut out = modes.iter().zip(names).filter(|(m, _)| matches!(**m, b'o' | b'b' | b't'));
        let (_, name) = out.next()?;
        (out.next().is_none() && !name.is_empty()).then(|| name.clone())
    }
}

fn system_name(name: &str) -> Vec<pb::Node> {
    ["pg_catalog", name]
        .iter()
        .map(|s| pb::Node { node: Some(NodeEnum::String(pb::String { sval: (*s).to_owned() })) })
        .collect()
}
