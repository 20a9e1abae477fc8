//! WITH RECURSIVE: which WITH query refers to which, and queries that refer to themselves.
//!
//! ```text
//!   WITH RECURSIVE t(n) AS (  left  UNION [ALL]  right  )
//!                              │                  └─ reads t: an entry with `self_reference`, of the left side's columns
//!                              └─ decides t's columns, before right is analysed
//! ```

use pg_query::protobuf as pb;
use stegodon_format::ids::Oid;
use stegodon_nodes::Query;
use stegodon_nodes::expr::{Expr, Location};
use stegodon_nodes::query::RangeTableKind;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind};
use crate::oids;

/// A column's type, typmod and collation.
type ColumnType = (Oid, i32, Oid);

/// A WITH query that is being analysed and may refer to itself.
pub(crate) struct Recursing {
    pub name: String,
    /// How many levels are around the one whose WITH it is in.
    pub depth: usize,
    /// The columns' names as given, then those of the left side, once that is known.
    pub columns: Vec<String>,
    /// The left side's types, once known.
    pub types: Option<Vec<ColumnType>>,
    /// How often the right side has referred to it.
    pub references: usize,
}

/// How often a raw query mentions a table by a bare name. Queries inside it that hide the name count too.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    text.contains(&format!("schemaname: \"\", relname: {name:?}"))
}

/// Whether a raw query has WITH queries of that name of its own.
pub(crate) fn hides(text: &str, name: &str) -> bool {
    text.contains(&format!("ctename: {name:?}"))
}

impl Analyzer<'_> {
    /// The order in which WITH RECURSIVE's queries can be analysed: each after those that it mentions. `Err` holds the first
    /// that is in no such order.
    pub(crate) fn with_order(texts: &[String], list: &[&pb::CommonTableExpr]) -> Result<Vec<usize>, usize> {
        let mentioned = |i: usize, j: usize| {
            let text = texts.get(i).map_or("", String::as_str);
            list.get(j).is_some_and(|c| mentions(text, &c.ctename))
        };
        let mut order: Vec<usize> = (0..list.len()).collect();
        for place in 0..order.len() {
            let rest = order.get(place..).unwrap_or_default();
            let free = rest.iter().position(|&i| !rest.iter().any(|&j| j != i && mentioned(i, j)));
            match free {
                Some(n) => order.swap(place, place + n),
                None => return Err(rest.iter().copied().next().unwrap_or(0)),
            }
        }
        Ok(order)
    }

    /// Whether a WITH query that mentions itself has the form that it must have.
    pub(crate) fn check_recursive_form(
        &self,
        name: &str,
        select: &pb::SelectStmt,
        location: Location,
    ) -> SqlResult<()> {
        let wrong = |message: String| Err(self.error_at(location, SqlState::InvalidRecursion, message));
        let later = |what: &str| {
            let message = format!("{what} in a recursive query is not implemented");
            Err(SqlError::new(SqlState::FeatureNotSupported, message))
        };
        let union = pb::SetOperation::try_from(select.op) == Ok(pb::SetOperation::SetopUnion);
        let text = format!("{select:?}");
        if hides(&text, name) {
            return self.unsupported(location, "a recursive query with a WITH query of its own name");
        }
        if !union {
            return wrong(format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            ));
        }
        if !select.sort_clause.is_empty() {
            return later("ORDER BY");
        }
        if select.limit_offset.is_some() {
            return later("OFFSET");
        }
        if select.limit_count.is_some() {
            return later("LIMIT");
        }
        if !select.locking_clause.is_empty() {
            return later("FOR UPDATE/SHARE");
        }
        if select.with_clause.is_some() {
            return self.unsupported(location, "WITH around a recursive UNION");
        }
        Ok(())
    }

    /// Notes the left side's columns, where the set operation is that of a WITH query that may refer to itself.
    pub(crate) fn note_left_side(&mut self, names: Vec<String>, types: Vec<ColumnType>) {
        let depth = self.outer.len();
        let Some(r) = self.recursing.last_mut() else { return };
        if r.depth + 1 != depth || r.types.is_some() {
            return;
        }
        let given = r.columns.len();
        r.columns.extend(names.into_iter().skip(given));
        let text = |t: ColumnType| if t.0 == oids::UNKNOWN { (oids::TEXT, -1, Oid(100)) } else { t };
        r.types = Some(types.into_iter().map(text).collect());
    }

    /// The columns of a WITH query that refers to itself, `up` levels out; `None` where it is no such one.
    pub(crate) fn self_reference(
        &mut self,
        name: &str,
        up: u32,
        location: Location,
    ) -> SqlResult<Option<(Vec<String>, Vec<ColumnType>)>> {
        let Some(depth) = self.outer.len().checked_sub(up as usize) else { return Ok(None) };
        let Some(at) = self.recursing.iter().position(|r| r.depth == depth && r.name == name) else { return Ok(None) };
        let mut place = None;
        for k in 0..up {
            let level = self.level(k)?;
            // A level's kind says where in it the one further in stands.
            if k > 0 && !matches!(level.kind, ExprKind::None | ExprKind::FromSubselect) {
                place = Some("a subquery");
            } else if level.nullable_joins > 0 {
                place = Some("an outer join");
            } else if let Some(operation) = level.inside_operation {
                place = Some(operation);
            }
        }
        let refuse = |a: &Self, what: &str| {
            let message = format!("recursive reference to query \"{name}\" must not appear {what}");
            Err(a.error_at(location, SqlState::InvalidRecursion, message))
        };
        if let Some(place) = place {
            return refuse(self, &format!("within {place}"));
        }
        let Some(r) = self.recursing.get_mut(at) else { return Ok(None) };
        r.references += 1;
        if r.references > 1 {
            return refuse(self, "more than once");
        }
        match &r.types {
            Some(types) => Ok(Some((r.columns.clone(), types.clone()))),
            None => refuse(self, "within its non-recursive term"),
        }
    }

    /// A recursive query's overall columns must be those of its left side.
    pub(crate) fn check_recursive_columns(&self, r: &Recursing, query: &Query) -> SqlResult<()> {
        let Some(types) = &r.types else { return Ok(()) };
        for (i, (t, left)) in query.outputs().zip(types).enumerate() {
            let (ty, typmod, collation) = (self.expr_type(&t.expr)?, t.expr.typmod(), t.expr.collation());
            let (name, n) = (&r.name, i + 1);
            if (ty, typmod) != (left.0, left.1) {
                let shown = |ty, typmod| self.cx.catalog.format_type_on(self.cx.path, ty, Some(typmod));
                let message = format!(
                    "recursive query \"{name}\" column {n} has type {} in non-recursive term but type {} overall",
                    shown(left.0, left.1),
                    shown(ty, typmod)
                );
                let e = self.error_at(t.expr.location(), SqlState::DatatypeMismatch, message);
                return Err(e.hint("Cast the output of the non-recursive term to the correct type."));
            }
            if collation != left.2 {
                let shown = |c: Oid| self.cx.catalog.collation(c).map_or_else(String::new, |c| c.name.clone());
                let message = format!(
                    "recursive query \"{name}\" column {n} has collation \"{}\" in non-recursive term but collation \"{}\" overall",
                    shown(left.2),
                    shown(collation)
                );
                let e = self.error_at(t.expr.location(), SqlState::CollationMismatch, message);
                return Err(e.hint("Use the COLLATE clause to set the collation of the non-recursive term."));
            }
        }
        Ok(())
    }

    /// A recursive term must not aggregate.
    pub(crate) fn check_recursive_term(&self, query: &Query) -> SqlResult<()> {
        let reads_itself = |k: &RangeTableKind| matches!(k, RangeTableKind::Cte { self_reference: true, .. });
        if !query.has_aggregates || !query.range_table.iter().any(|r| reads_itself(&r.kind)) {
            return Ok(());
        }
        let mut location = None;
        let exprs = query.targets.iter().map(|t| &t.expr).chain(&query.having);
        for e in exprs {
            e.any(&mut |x| {
                if let Expr::Aggref(a) = x
                    && location.is_none()
                {
                    location = a.location;
                }
                false
            });
        }
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        Err(self.error_at(location, SqlState::InvalidRecursion, message))
    }
}
