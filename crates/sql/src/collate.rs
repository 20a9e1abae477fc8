//! Collations: which one each expression has and each function works under.
//!
//! A collation comes from below: `COLLATE` says it explicitly, a column implicitly, `"default"` least of all. Two explicit
//! ones that differ are an error at once; two implicit ones leave the collation undecided, which is an error only where
//! one is needed.

use stegodon_format::ids::Oid;
use stegodon_nodes::expr::{Location, TargetEntry};
use stegodon_nodes::query::{FromExpr, JoinTree};
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, STACK_BYTES, STACK_RED_ZONE_BYTES};
use crate::oids::DEFAULT_COLLATION;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    #[default]
    None,
    Implicit,
    Conflict,
    Explicit,
}

/// What is known of the collation of some expressions taken together.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    collation: Oid,
    strength: Strength,
    location: Location,
    /// The other one, in a conflict.
    other: (Oid, Location),
}

const HINT: &str = "You can choose the collation by applying the COLLATE clause to one or both expressions.";

impl Analyzer<'_> {
    fn merge(&self, into: &mut State, new: State) -> SqlResult<()> {
        if new.strength > into.strength {
            *into = new;
            return Ok(());
        }
        if new.strength < into.strength || new.collation == into.collation {
            return Ok(());
        }
        match new.strength {
            Strength::None | Strength::Conflict => Ok(()),
            Strength::Implicit => {
                if into.collation == DEFAULT_COLLATION {
                    *into = new;
                } else if new.collation != DEFAULT_COLLATION {
                    into.strength = Strength::Conflict;
                    into.other = (new.collation, new.location);
                }
                Ok(())
            }
            Strength::Explicit => Err(self.error_at(
                new.location,
                SqlState::CollationMismatch,
                format!(
                    "collation mismatch between explicit collations \"{}\" and \"{}\"",
                    self.collation_name(into.collation),
                    self.collation_name(new.collation)
                ),
            )),
        }
    }

    fn collation_name(&self, oid: Oid) -> String {
        self.cx.catalog.collation(oid).map_or_else(|| oid.to_string(), |c| c.name.clone())
    }

    fn implicit_conflict(&self, state: &State, sqlstate: SqlState) -> SqlError {
        let e = self.error_at(
            state.other.1,
            sqlstate,
            format!(
                "collation mismatch between implicit collations \"{}\" and \"{}\"",
                self.collation_name(state.collation),
                self.collation_name(state.other.0)
            ),
        );
        e.hint(HINT)
    }

    /// Assigns collations within one expression that stands by itself.
    pub(crate) fn assign_collations(&self, e: &mut Expr) -> SqlResult<()> {
        let mut state = State::default();
        self.collate(e, &mut state)
    }

    /// The collation that expressions have together; with `none_ok`, 0 where they conflict.
    pub(crate) fn common_collation(&self, exprs: &mut [&mut Expr], none_ok: bool) -> SqlResult<Oid> {
        let mut state = State::default();
        for e in exprs {
            self.collate(e, &mut state)?;
        }
        if state.strength == Strength::Conflict {
            if none_ok {
                return Ok(Oid::INVALID);
            }
            return Err(self.implicit_conflict(&state, SqlState::CollationMismatch));
        }
        Ok(state.collation)
    }

    fn collate(&self, e: &mut Expr, into: &mut State) -> SqlResult<()> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || self.collate_here(e, into))
    }

    fn collate_here(&self, e: &mut Expr, into: &mut State) -> SqlResult<()> {
        let implicit = |collation: Oid, location| State {
            collation,
            strength: if collation.is_valid() { Strength::Implicit } else { Strength::None },
            location,
            other: (Oid::INVALID, None),
        };
        let mut below = State::default();
        match e {
            Expr::Collate(c) => {
                self.collate(&mut c.arg, &mut below)?;
                let operand = c.arg.location();
                let place = self.collate_places.iter().find(|p| p.0 == operand && operand.is_some());
                let location = place.map_or(operand, |p| p.1);
                let explicit = State {
                    collation: c.collation,
                    strength: Strength::Explicit,
                    location,
                    other: (Oid::INVALID, None),
                };
                return self.merge(into, explicit);
            }
            Expr::FieldSelect(f) => {
                self.collate(&mut f.arg, &mut below)?;
                let state = implicit(f.collation, f.arg.location());
                return self.merge(into, state);
            }
            Expr::Row(r) => return r.args.iter_mut().try_for_each(|a| self.assign_collations(a)),
            Expr::RowCompare(r) => {
                let mut collations = Vec::with_capacity(r.left.len());
                for (l, rt) in r.left.iter_mut().zip(&mut r.right) {
                    collations.push(self.common_collation(&mut [l, rt], true)?);
                }
                r.input_collations = collations;
                return Ok(());
            }
            Expr::CoerceToDomain(d) => {
                self.collate(&mut d.arg, &mut below)?;
                let own = self.type_collation(d.result_type);
                let state = if !own.is_valid() {
                    State { location: d.arg.location(), ..State::default() }
                } else if below.strength == Strength::Explicit {
                    below
                } else {
                    implicit(own, d.arg.location())
                };
                d.collation = if state.strength == Strength::Conflict { Oid::INVALID } else { state.collation };
                return self.merge(into, state);
            }
            Expr::Var(_) | Expr::Const(_) | Expr::Param(_) | Expr::CaseTest(_) => {
                let state = implicit(e.collation(), e.location());
                return self.merge(into, state);
            }
            Expr::Aggref(a) => {
                let normal = matches!(a.kind, stegodon_nodes::expr::AggregateKind::Normal);
                let hypothetical = a.kind == stegodon_nodes::expr::AggregateKind::Hypothetical;
                let mut own_direct = a.direct_args.len();
                if hypothetical {
                    // Each column of the hypothetical row is compared with its column.
                    let pairs = a.args.iter().filter(|t| !t.junk).count();
                    let first = a.direct_args.len().saturating_sub(pairs);
                    own_direct = first;
                    for (d, t) in a.direct_args.iter_mut().skip(first).zip(&mut a.args) {
                        let together = self.common_collation(&mut [&mut *d, &mut t.expr], false)?;
                        if together != t.expr.collation() {
                            return Err(SqlError::unsupported("a hypothetical-set aggregate over two collations"));
                        }
                    }
                }
                if !normal {
                    // Direct arguments are the aggregate's input too; so are aggregated ones where there is but one.
                    for d in a.direct_args.iter_mut().take(own_direct) {
                        self.collate(d, &mut below)?;
                    }
                }
                let single = a.args.len() == 1 && !hypothetical;
                for t in &mut a.args {
                    if t.junk || !(normal || single) {
                        self.target_collation(t, None)?;
                    } else {
                        self.target_collation(t, Some(&mut below))?;
                    }
                }
                if let Some(f) = &mut a.filter {
                    self.assign_collations(f)?;
                }
            }
            Expr::WindowFunc(w) => {
                for a in &mut w.args {
                    self.collate(a, &mut below)?;
                }
                if let Some(f) = &mut w.filter {
                    self.assign_collations(f)?;
                }
            }
            Expr::Case(c) => {
                // The compared value was done before the WHENs were, and does not count.
                for (condition, result) in &mut c.whens {
                    self.collate(condition, &mut below)?;
                    self.collate(result, &mut below)?;
                }
                self.collate(&mut c.default, &mut below)?;
            }
            Expr::Subscript(s) => {
                for i in s.upper.iter_mut().chain(&mut s.lower).flatten() {
                    self.assign_collations(i)?;
                }
                self.collate(&mut s.container, &mut below)?;
            }
            Expr::SubLink(s) => {
                if let Some(test) = &mut s.test {
                    self.collate(test, &mut below)?;
                }
                if let Some(first) = s.query.targets.first().filter(|t| !t.junk) {
                    let state = State {
                        collation: first.expr.collation(),
                        strength: Strength::Implicit,
                        location: first.expr.location(),
                        other: (Oid::INVALID, None),
                    };
                    self.merge(&mut below, state)?;
                }
            }
            _ => e.try_each_child_mut(&mut |c| self.collate(c, &mut below))?,
        }
        let own = self.type_collation(self.expr_type(e)?);
        let state = if !own.is_valid() {
            State { location: None, ..State::default() }
        } else if below.strength > Strength::None {
            below
        } else {
            implicit(own, e.location())
        };
        let decided = |s: &State| if s.strength == Strength::Conflict { Oid::INVALID } else { s.collation };
        set_collations(e, decided(&state), decided(&below));
        self.merge(into, state)
    }

    fn target_collation(&self, t: &mut TargetEntry, into: Option<&mut State>) -> SqlResult<()> {
        let mut state = State::default();
        self.collate(&mut t.expr, &mut state)?;
        if state.strength == Strength::Conflict && t.sort_group_ref != 0 {
            return Err(self.implicit_conflict(&state, SqlState::CollationMismatch));
        }
        into.map_or(Ok(()), |into| self.merge(into, state))
    }

    /// Assigns collations to everything in a query that has not had them yet.
    pub(crate) fn assign_query_collations(&self, q: &mut Query) -> SqlResult<()> {
        for t in &mut q.targets {
            self.target_collation(t, None)?;
        }
        self.assign_from_collations(&mut q.from)?;
        for w in &mut q.windows {
            for e in w.start_offset.iter_mut().chain(&mut w.end_offset) {
                self.assign_collations(e)?;
            }
        }
        let rest = q.having.iter_mut().chain(&mut q.offset).chain(&mut q.limit);
        for e in rest {
            self.assign_collations(e)?;
        }
        Ok(())
    }

    fn assign_from_collations(&self, from: &mut FromExpr) -> SqlResult<()> {
        for item in &mut from.items {
            self.assign_join_collations(item)?;
        }
        from.quals.as_mut().map_or(Ok(()), |q| self.assign_collations(q))
    }

    fn assign_join_collations(&self, tree: &mut JoinTree) -> SqlResult<()> {
        match tree {
            JoinTree::Relation(_) => Ok(()),
            JoinTree::From(f) => self.assign_from_collations(f),
            JoinTree::Join(j) => {
                self.assign_join_collations(&mut j.left)?;
                self.assign_join_collations(&mut j.right)?;
                j.quals.as_mut().map_or(Ok(()), |q| self.assign_collations(q))
            }
        }
    }
}

/// Writes a node's own and its inputs' collation, where it has such.
fn set_collations(e: &mut Expr, own: Oid, input: Oid) {
    match e {
        Expr::Aggref(x) => (x.collation, x.input_collation) = (own, input),
        Expr::WindowFunc(x) => (x.collation, x.input_collation) = (own, input),
        Expr::Func(x) => (x.collation, x.input_collation) = (own, input),
        Expr::Op(x) | Expr::Distinct(x) | Expr::NullIf(x) => (x.collation, x.input_collation) = (own, input),
        Expr::MinMax(x) => (x.collation, x.input_collation) = (own, input),
        Expr::ScalarArrayOp(x) => x.input_collation = input,
        Expr::Subscript(x) => x.collation = own,
        Expr::Relabel(x) => x.collation = own,
        Expr::CoerceViaIo(x) => x.collation = own,
        Expr::ArrayCoerce(x) => x.collation = own,
        Expr::Case(x) => x.collation = own,
        Expr::Array(x) => x.collation = own,
        Expr::Coalesce(x) => x.collation = own,
        _ => {}
    }
}
