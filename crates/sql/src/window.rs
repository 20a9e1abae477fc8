//! Window functions and the windows they are over.

use pg_query::protobuf as pb;
use stegodon_catalog::rows::Proc;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Location, TargetEntry, WindowFunc};
use stegodon_nodes::frame::{DEFAULTS, GROUPS, RANGE, ROWS};
use stegodon_nodes::query::WindowClause;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::aggregate::contains_own_var;
use crate::call::Decoration;
use crate::context::{Analyzer, ExprKind, loc};
use crate::oids;

impl Analyzer<'_> {
    /// A call with OVER.
    pub(crate) fn window_call(
        &mut self,
        proc: &Proc,
        args: Vec<Expr>,
        result_type: Oid,
        how: Decoration<'_>,
        location: Location,
    ) -> SqlResult<Expr> {
        let Some(over) = how.over else { return Err(SqlError::internal("a window call without OVER")) };
        let is_aggregate = proc.kind == b'a';
        if proc.returns_set {
            return self.unsupported(location, "a window function that returns a set");
        }
        if how.filter.is_some() && !is_aggregate {
            return Err(self.error_at(
                location,
                SqlState::FeatureNotSupported,
                "FILTER is not implemented for non-aggregate window functions",
            ));
        }
        let nested = |e: &Expr| e.any(&mut |x| matches!(x, Expr::WindowFunc(_)));
        if let Some(inner) = args.iter().chain(how.filter.as_ref()).find(|e| nested(e)) {
            return Err(self.error_at(
                inner.location(),
                SqlState::WindowingError,
                "window function calls cannot be nested",
            ));
        }
        if args.iter().any(crate::coerce::returns_set) {
            let e = self.error_at(
                location,
                SqlState::FeatureNotSupported,
                "window function calls cannot contain set-returning function calls",
            );
            return Err(e.hint(crate::aggregate::SRF_HINT));
        }
        let refused = match self.kind() {
            ExprKind::SelectTarget | ExprKind::OrderBy | ExprKind::DistinctOn | ExprKind::Other => None,
            ExprKind::JoinOn | ExprKind::JoinUsing => {
                Some("window functions are not allowed in JOIN conditions".to_owned())
            }
            ExprKind::FromFunction => Some("window functions are not allowed in functions in FROM".to_owned()),
            ExprKind::WindowPartition
            | ExprKind::WindowOrder
            | ExprKind::WindowFrameRange
            | ExprKind::WindowFrameRows
            | ExprKind::WindowFrameGroups => Some("window functions are not allowed in window definitions".to_owned()),
            ExprKind::ExecuteParameter => Some("window functions are not allowed in EXECUTE parameters".to_owned()),
            other => Some(format!("window functions are not allowed in {}", other.name())),
        };
        if let Some(message) = refused {
            return Err(self.error_at(location, SqlState::WindowingError, message));
        }
        let window_ref = self.window_reference(over)?;
        self.state.has_window_functions = true;
        Ok(Expr::WindowFunc(Box::new(WindowFunc {
            function: proc.oid,
            result_type,
            collation: Oid::INVALID,
            input_collation: Oid::INVALID,
            args,
            filter: how.filter,
            window_ref,
            star: how.star,
            is_aggregate,
        })))
    }

    fn window_reference(&mut self, over: &pb::WindowDef) -> SqlResult<u32> {
        let defs = &mut self.state.window_defs;
        if !over.name.is_empty() {
            return match defs.iter().position(|d| d.name == over.name) {
                Some(i) => Ok((i + 1) as u32),
                None => Err(self.error_at(
                    loc(over.location),
                    SqlState::UndefinedObject,
                    format!("window \"{}\" does not exist", over.name),
                )),
            };
        }
        // The same definition written twice is one window.
        let shape = shape_of(over);
        let found = defs.iter().position(|d| shape_of(d) == shape);
        Ok(match found {
            Some(i) => (i + 1) as u32,
            None => {
                defs.push(over.clone());
                defs.len() as u32
            }
        })
    }

    /// The windows of the innermost query, once its expressions have been analysed.
    pub(crate) fn window_clauses(&mut self, targets: &mut Vec<TargetEntry>) -> SqlResult<Vec<WindowClause>> {
        let defs = std::mem::take(&mut self.state.window_defs);
        let mut clauses: Vec<WindowClause> = Vec::with_capacity(defs.len());
        for (i, def) in defs.iter().enumerate() {
            let location = loc(def.location);
            let bad = |a: &Self, m: String| Err(a.error_at(location, SqlState::WindowingError, m));
            if !def.name.is_empty() && clauses.iter().any(|c| c.name.as_deref() == Some(def.name.as_str())) {
                return bad(self, format!("window \"{}\" is already defined", def.name));
            }
            let base = if def.refname.is_empty() {
                None
            } else {
                match clauses.iter().find(|c| c.name.as_deref() == Some(def.refname.as_str())) {
                    Some(c) => Some(c.clone()),
                    None => {
                        return Err(self.error_at(
                            location,
                            SqlState::UndefinedObject,
                            format!("window \"{}\" does not exist", def.refname),
                        ));
                    }
                }
            };
            let order_by = self.sort_clause(&def.order_clause, targets, ExprKind::WindowOrder, true)?;
            let partition_by =
                self.group_list(&def.partition_clause, targets, &order_by, ExprKind::WindowPartition, true)?;
            let frame = def.frame_options as u32;
            let mut clause = WindowClause {
                name: (!def.name.is_empty()).then(|| def.name.clone()),
                partition_by,
                order_by,
                frame_options: frame,
                start_offset: None,
                end_offset: None,
                reference: (i + 1) as u32,
            };
            if let Some(base) = base {
                if !def.partition_clause.is_empty() {
                    return bad(self, format!("cannot override PARTITION BY clause of window \"{}\"", def.refname));
                }
                clause.partition_by = base.partition_by;
                if !base.order_by.is_empty() {
                    if !clause.order_by.is_empty() {
                        return bad(self, format!("cannot override ORDER BY clause of window \"{}\"", def.refname));
                    }
                    clause.order_by = base.order_by;
                }
                if base.frame_options != DEFAULTS {
                    let m = format!("cannot copy window \"{}\" because it has a frame clause", def.refname);
                    if !def.name.is_empty() || !def.order_clause.is_empty() || frame != DEFAULTS {
                        return bad(self, m);
                    }
                    let e = self.error_at(location, SqlState::WindowingError, m);
                    return Err(e.hint("Omit the parentheses in this OVER clause."));
                }
            }
            if frame & GROUPS != 0 && clause.order_by.is_empty() {
                return bad(self, "GROUPS mode requires an ORDER BY clause".to_owned());
            }
            clause.start_offset = self.frame_offset(frame, def.start_offset.as_deref())?;
            clause.end_offset = self.frame_offset(frame, def.end_offset.as_deref())?;
            clauses.push(clause);
        }
        Ok(clauses)
    }

    fn frame_offset(&mut self, frame: u32, node: Option<&pb::Node>) -> SqlResult<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        let (kind, name) = match frame {
            f if f & ROWS != 0 => (ExprKind::WindowFrameRows, "ROWS"),
            f if f & GROUPS != 0 => (ExprKind::WindowFrameGroups, "GROUPS"),
            f if f & RANGE != 0 => {
                return self.unsupported(None, "RANGE with an offset in a window frame");
            }
            _ => return Err(SqlError::internal("a window frame of no mode")),
        };
        let e = self.with_kind(kind, |a| a.expr(node))?;
        let e = self.coerce_to_specific(e, oids::INT8, name)?;
        if contains_own_var(&e) {
            return Err(self.error_at(
                e.location(),
                SqlState::InvalidColumnReference,
                format!("argument of {name} must not contain variables"),
            ));
        }
        Ok(Some(e))
    }
}

/// A definition without its places, to compare.
fn shape_of(def: &pb::WindowDef) -> String {
    let text = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        def.name,
        def.refname,
        def.partition_clause,
        def.order_clause,
        def.frame_options,
        def.start_offset,
        def.end_offset
    );
    // Places are left out, but not inside a literal that happens to look like one.
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        if !quoted && let Some(after) = rest.strip_prefix("location: ") {
            rest = after.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
            continue;
        }
        let mut taken = c.len_utf8();
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => taken += rest.get(taken..).and_then(|r| r.chars().next()).map_or(0, char::len_utf8),
            _ => {}
        }
        out.push_str(rest.get(..taken).unwrap_or_default());
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}
