//! `Hash Join` and `Merge Join`: DataFusion's, over keys of ours.
//!
//! PostgreSQL builds its hash table from the inner (right) side and probes with the outer; DataFusion builds from its left.
//! So sides change places: our outer is DataFusion's right.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion_common::{JoinSide, JoinType, NullEquality, Result as DfResult};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use stegodon_functions::{Batch, Evaluator};
use stegodon_nodes::query::JoinKind;
use stegodon_types::SqlResult;

use crate::error::{unwrap, wrap};
use crate::execution::Execution;
use crate::operator::Physical;

/// The parts of an equality join, lowered.
pub(crate) struct EquiJoin {
    pub(crate) kind: JoinKind,
    pub(crate) outer: Physical,
    pub(crate) inner: Physical,
    /// Key columns of the outer side, by clause.
    pub(crate) outer_keys: Vec<usize>,
    /// Key columns of the inner side, by clause.
    pub(crate) inner_keys: Vec<usize>,
    /// Conditions beyond the keys, over the outer columns and the inner ones.
    pub(crate) filter: Option<Arc<Evaluator>>,
}

fn column(i: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(&format!("c{i}"), i))
}

/// A hash join. Output: the inner columns, then the outer ones; the outer ones only for Semi and Anti.
pub(crate) fn hash_join(execution: &Arc<Execution>, join: EquiJoin) -> SqlResult<Physical> {
    let kind = match join.kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Right,
        JoinKind::Right => JoinType::Left,
        JoinKind::Full => JoinType::Full,
        JoinKind::Semi => JoinType::RightSemi,
        JoinKind::Anti => JoinType::RightAnti,
    };
    let filter = join.filter.as_ref().map(|f| filter(execution, f, &join, JoinSide::Right, JoinSide::Left));
    let on = join.inner_keys.iter().zip(&join.outer_keys).map(|(&i, &o)| (column(i), column(o))).collect();
    let plan = HashJoinExec::try_new(
        join.inner,
        join.outer,
        on,
        filter,
        &kind,
        None,
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNothing,
        false,
    );
    Ok(Arc::new(plan.map_err(unwrap)?))
}

/// A merge join of sorted sides. Output: the outer columns, then the inner ones; the outer ones only for Semi and Anti.
pub(crate) fn merge_join(execution: &Arc<Execution>, join: EquiJoin, options: Vec<SortOptions>) -> SqlResult<Physical> {
    let kind = match join.kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Left,
        JoinKind::Right => JoinType::Right,
        JoinKind::Full => JoinType::Full,
        JoinKind::Semi => JoinType::LeftSemi,
        JoinKind::Anti => JoinType::LeftAnti,
    };
    let filter = join.filter.as_ref().map(|f| filter(execution, f, &join, JoinSide::Left, JoinSide::Right));
    let on = join.outer_keys.iter().zip(&join.inner_keys).map(|(&o, &i)| (column(o), column(i))).collect();
    let null = NullEquality::NullEqualsNothing;
    let plan = SortMergeJoinExec::try_new(join.outer, join.inner, on, filter, kind, options, null);
    Ok(Arc::new(plan.map_err(unwrap)?))
}

fn filter(
    execution: &Arc<Execution>,
    condition: &Arc<Evaluator>,
    join: &EquiJoin,
    outer: JoinSide,
    inner: JoinSide,
) -> JoinFilter {
    let (outer_schema, inner_schema) = (join.outer.schema(), join.inner.schema());
    let outer_columns = outer_schema.fields().len();
    let of = |side: JoinSide, n: usize| (0..n).map(move |index| ColumnIndex { index, side });
    let columns = of(outer, outer_columns).chain(of(inner, inner_schema.fields().len())).collect();
    let fields: Vec<_> = outer_schema.fields().iter().chain(inner_schema.fields().iter()).cloned().collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let expr = Condition { execution: Arc::clone(execution), holds: Arc::clone(condition), outer_columns };
    JoinFilter::new(Arc::new(expr), columns, schema)
}

/// Our condition as DataFusion's expression: true, or not.
#[derive(Debug)]
struct Condition {
    execution: Arc<Execution>,
    holds: Arc<Evaluator>,
    outer_columns: usize,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("condition")
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.holds, &other.holds)
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.holds).hash(state);
    }
}

impl PhysicalExpr for Condition {
    fn data_type(&self, _: &Schema) -> DfResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> DfResult<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> DfResult<ColumnarValue> {
        self.execution.cancel.check().map_err(wrap)?;
        let (outer, inner) = batch.columns().split_at(self.outer_columns.min(batch.num_columns()));
        let over = Batch { outer, inner, rows: batch.num_rows() };
        let passed = self.execution.with_context(|cx| self.holds.filter(cx, &over, None)).map_err(wrap)?;
        let mut matches = vec![false; batch.num_rows()];
        for &row in passed.rows() {
            if let Some(place) = matches.get_mut(row as usize) {
                *place = true;
            }
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(matches))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn PhysicalExpr>>) -> DfResult<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("condition")
    }
}
