//! Lowering of joins.
//!
//! DataFusion's hash join keeps its build side in memory and fails where that does not fit. It reads that side before it
//! gives a row, so the join can still begin anew, as a merge join of sorted sides (DESIGN D4).

use std::sync::Arc;

use arrow::compute::SortOptions;
use stegodon_functions::{Input as ColumnInput, Side};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Var, VarSource};
use stegodon_nodes::query::JoinKind;
use stegodon_plan::node::{Join, JoinClause, PlanKind, PlanNode};
use stegodon_types::{SqlError, SqlResult};

use crate::batch::{layout_of, schema};
use crate::initplan::Needs;
use crate::join::{EquiJoin, hash_join, merge_join};
use crate::keys::{Keeps, KeyEncoding};
use crate::lateral::Lateral;
use crate::lower::{Columns, Lowering, conjunction};
use crate::memory::{MemoryScope, Spills, or_else};
use crate::nest_loop::NestLoop;
use crate::operator::{OperatorExec, Physical, malformed};
use crate::sort::{append_keys, sort_by};

/// Lowers a join.
pub(crate) fn plan(lowering: &Lowering<'_>, node: &PlanNode, partitions: usize) -> SqlResult<Physical> {
    let (join, clauses, keeps) = match &node.kind {
        PlanKind::NestLoop(join) => return lowering.nest_loop(node, join, &[], partitions),
        PlanKind::HashJoin { join, clauses } => (join, clauses, Keeps::Equality),
        PlanKind::MergeJoin { join, clauses } => (join, clauses, Keeps::Order),
        _ => return Err(malformed("no join")),
    };
    let mut encodings = Vec::with_capacity(clauses.len());
    for clause in clauses {
        let types = (clause.outer.type_oid(), clause.inner.type_oid());
        match KeyEncoding::common(lowering.execution, types.0, types.1, clause.collation, keeps)? {
            Some(encoding) => encodings.push(encoding),
            // No key makes these two types comparable: the operator itself decides, pair by pair.
            None => return lowering.nest_loop(node, join, clauses, partitions),
        }
    }
    let equi = Equi { lowering, node, join, clauses, encodings, partitions };
    if keeps == Keeps::Order {
        let option = |c: &JoinClause| SortOptions { descending: c.descending, nulls_first: c.nulls_first };
        return equi.merge(Some(clauses.iter().map(option).collect()));
    }
    Ok(or_else(equi.hash()?, equi.merge(None)?))
}

/// A join by keys.
struct Equi<'a> {
    lowering: &'a Lowering<'a>,
    node: &'a PlanNode,
    join: &'a Join,
    clauses: &'a [JoinClause],
    encodings: Vec<(KeyEncoding, KeyEncoding)>,
    partitions: usize,
}

impl Equi<'_> {
    /// One side with its keys behind its columns, and where those are.
    fn side(&self, outer: bool) -> SqlResult<(Physical, Vec<usize>)> {
        let (child, partitions) = if outer { (&self.join.outer, self.partitions) } else { (&self.join.inner, 1) };
        let exprs: Vec<&Expr> = self.clauses.iter().map(|c| if outer { &c.outer } else { &c.inner }).collect();
        let lowered = self.lowering.node(child, partitions)?;
        let (with_exprs, places) = self.lowering.append_exprs(lowered, &exprs, outer)?;
        let encoding = |pair: &(KeyEncoding, KeyEncoding)| if outer { pair.0.clone() } else { pair.1.clone() };
        let columns: Vec<_> = places.into_iter().zip(self.encodings.iter().map(encoding)).collect();
        Ok(append_keys(self.lowering.execution, with_exprs, &columns))
    }

    /// The hash join: its table is shared by all workers.
    fn hash(&self) -> SqlResult<Physical> {
        let (outer, outer_keys) = self.side(true)?;
        let (inner, inner_keys) = self.side(false)?;
        let inner_width = inner.schema().fields().len();
        let columns = match self.join.kind {
            JoinKind::Semi | JoinKind::Anti => Columns::ONLY,
            _ => Columns { outer: inner_width, inner: 0 },
        };
        let joined = hash_join(self.lowering.execution, self.parts((outer, outer_keys), (inner, inner_keys))?)?;
        self.finish(joined, columns)
    }

    /// The merge join of sides that are sorted so; where no order is given, of sides sorted here by their keys. Each worker
    /// merges the whole inner side.
    fn merge(&self, sorted: Option<Vec<SortOptions>>) -> SqlResult<Physical> {
        let (mut outer, outer_keys) = self.side(true)?;
        let (mut inner, inner_keys) = self.side(false)?;
        let options = if let Some(options) = sorted {
            options
        } else {
            let execution = self.lowering.execution;
            let sorted = |side, keys: &[usize]| {
                let limit_bytes = execution.work_mem_bytes;
                Ok::<_, SqlError>(MemoryScope::plan(
                    execution,
                    self.node.id,
                    sort_by(side, keys)?,
                    limit_bytes,
                    Spills::Yes,
                ))
            };
            outer = sorted(outer, &outer_keys)?;
            inner = sorted(inner, &inner_keys)?;
            vec![SortOptions::default(); outer_keys.len()]
        };
        let inner = crate::prepare::replicate(inner, self.partitions);
        let columns = Columns { outer: 0, inner: outer.schema().fields().len() };
        let parts = self.parts((outer, outer_keys), (inner, inner_keys))?;
        self.finish(merge_join(self.lowering.execution, parts, options)?, columns)
    }

    fn parts(&self, outer: (Physical, Vec<usize>), inner: (Physical, Vec<usize>)) -> SqlResult<EquiJoin> {
        let filter = conjunction(&self.join.filter).map(|f| self.lowering.compile_over(&f, &two_sides)).transpose()?;
        Ok(EquiJoin {
            kind: self.join.kind,
            outer: outer.0,
            inner: inner.0,
            outer_keys: outer.1,
            inner_keys: inner.1,
            filter: filter.map(Arc::new),
        })
    }

    fn finish(&self, joined: Physical, columns: Columns) -> SqlResult<Physical> {
        let execution = self.lowering.execution;
        let joined = crate::prepare::plan(execution, joined, Needs::of(&self.join.filter));
        // What a hash join holds is its Hash's.
        let limit_bytes = execution.hash_mem_bytes;
        let scoped = MemoryScope::plan(execution, self.join.inner.id, joined, limit_bytes, Spills::Yes);
        self.lowering.evaluate(self.node, scoped, columns)
    }
}

/// A join's condition sees its two sides apart.
fn two_sides(var: &Var) -> SqlResult<ColumnInput> {
    let side = if var.source == VarSource::Inner { Side::Inner } else { Side::Outer };
    Ok(ColumnInput { side, index: Columns::ONLY.place(var)? })
}

impl Lowering<'_> {
    fn nest_loop(
        &self,
        node: &PlanNode,
        join: &Join,
        clauses: &[JoinClause],
        partitions: usize,
    ) -> SqlResult<Physical> {
        if partitions > 1 && matches!(join.kind, JoinKind::Right | JoinKind::Full) {
            return Err(malformed("workers cannot know together which inner rows stay alone"));
        }
        let outer = self.node(&join.outer, partitions)?;
        let inner = if join.params.is_empty() { Some(self.node(&join.inner, 1)?) } else { None };
        let inner_own = match &inner {
            Some(inner) => inner.schema(),
            None => self.schema_of(&join.inner.targets)?,
        };
        let outer_width = outer.schema().fields().len();
        let columns = Columns { outer: 0, inner: outer_width };
        let conditions: Vec<Expr> =
            clauses.iter().map(|c| c.clause.clone()).chain(join.filter.iter().cloned()).collect();
        let shows_inner = !matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        let inner_fields = if shows_inner { inner_own.fields().len() } else { 0 };
        let outer_schema = outer.schema();
        let types = outer_schema.fields().iter().chain(inner_own.fields().iter().take(inner_fields));
        let joined = schema(types.map(|f| f.data_type().clone()));
        let operator = NestLoop {
            execution: Arc::clone(self.execution),
            node: node.id,
            kind: join.kind,
            filter: conjunction(&conditions).map(|c| self.compile_over(&c, &two_sides)).transpose()?,
            needs: Needs::of(&conditions),
            schema: Arc::clone(&joined),
            inner_schema: inner_own,
        };
        let rows = match inner {
            Some(inner) => OperatorExec::plan(operator, vec![outer, inner], joined, partitions),
            None => OperatorExec::plan(self.lateral(operator, join)?, vec![outer], joined, partitions),
        };
        let limit_bytes = self.execution.hash_mem_bytes.max(64 << 20);
        let scoped = MemoryScope::plan(self.execution, node.id, rows, limit_bytes, Spills::Yes);
        self.evaluate(node, scoped, columns)
    }

    /// Puts the values of expressions over a join's side behind that side's columns, unless they are columns.
    fn append_exprs(&self, input: Physical, exprs: &[&Expr], outer: bool) -> SqlResult<(Physical, Vec<usize>)> {
        let width = input.schema().fields().len();
        let mut places = Vec::with_capacity(exprs.len());
        let mut computed = Vec::new();
        for expr in exprs {
            match expr {
                Expr::Var(var) if outer == (var.source == VarSource::Outer) => places.push(Columns::ONLY.place(var)?),
                expr => {
                    places.push(width + computed.len());
                    computed.push((*expr).clone());
                }
            }
        }
        if computed.is_empty() {
            return Ok((input, places));
        }
        Ok((self.append_computed(input, &computed)?, places))
    }

    /// A nested loop whose inner side is run anew for each outer row.
    fn lateral(&self, mut loop_: NestLoop, join: &Join) -> SqlResult<Lateral> {
        let view = self.execution.view.as_ref();
        let exprs = join.params.iter().map(|(_, e)| e);
        loop_.needs = Needs::of(exprs.clone().chain(&join.filter));
        Ok(Lateral {
            join: loop_,
            inner: join.inner.as_ref().clone(),
            slots: join.params.iter().map(|(slot, _)| *slot).collect(),
            params: exprs.clone().map(|e| self.compile(e, Columns::ONLY)).collect::<SqlResult<_>>()?,
            layouts: exprs.map(|e| layout_of(view, e)).collect::<SqlResult<_>>()?,
        })
    }
}
