//! `HashAggregate`: our accumulators inside DataFusion's hash aggregation, which spills.
//!
//! DataFusion groups by the key columns and knows nothing of types: each call becomes an aggregate function of its own
//! whose signature accepts anything. The columns a group shows are aggregates too (the first row's value).

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator as DfAccumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use datafusion_physical_expr::aggregate::AggregateExprBuilder;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use stegodon_functions::aggregate::Emit;
use stegodon_types::SqlResult;

use crate::aggregate_call::{Accumulator, AggregateCall};
use crate::error::{unwrap, wrap};
use crate::execution::Execution;
use crate::operator::Physical;

/// Hash aggregation over `input`: groups by the columns `keys`. Output: the keys, then one column a call.
pub(crate) fn plan(
    execution: &Arc<Execution>,
    input: Physical,
    keys: &[usize],
    calls: Vec<AggregateCall>,
) -> SqlResult<Physical> {
    let column = |i: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(&format!("c{i}"), i)) };
    let group_by = keys.iter().map(|&i| (column(i), format!("c{i}"))).collect();
    let schema = input.schema();
    let mut functions = Vec::with_capacity(calls.len());
    let mut filters = Vec::with_capacity(calls.len());
    for (i, call) in calls.into_iter().enumerate() {
        filters.push(call.filter.map(column));
        // DataFusion wants an argument; count(*) is given the first key and ignores it.
        let args = if call.args.is_empty() { vec![keys.first().copied().unwrap_or(0)] } else { call.args.clone() };
        let args = args.into_iter().map(column).collect();
        let function = AggregateUDF::from(Function::new(execution, call));
        let built = AggregateExprBuilder::new(Arc::new(function), args)
            .schema(Arc::clone(&schema))
            .alias(format!("a{i}"))
            .build()
            .map_err(unwrap)?;
        functions.push(Arc::new(built));
    }
    let group_by = PhysicalGroupBy::new_single(group_by);
    let plan = AggregateExec::try_new(AggregateMode::Single, group_by, functions, filters, input, schema);
    Ok(Arc::new(plan.map_err(unwrap)?))
}

/// One call as DataFusion's aggregate function.
#[derive(Debug)]
struct Function {
    execution: Arc<Execution>,
    call: AggregateCall,
    signature: Signature,
    /// Told apart by number: two calls are never merged.
    number: u64,
}

impl Function {
    fn new(execution: &Arc<Execution>, call: AggregateCall) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let signature = Signature::variadic_any(Volatility::Volatile);
        Self { execution: Arc::clone(execution), call, signature, number }
    }

    fn start(&self) -> DfResult<Running> {
        let accumulator = self.call.kind.accumulator(&self.execution).map_err(wrap)?;
        Ok(Running { accumulator, args: self.call.args.len(), execution: Arc::clone(&self.execution) })
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl AggregateUDFImpl for Function {
    fn name(&self) -> &'static str {
        "aggregate"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.call.kind.data_type())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> DfResult<Box<dyn DfAccumulator>> {
        Err(DataFusionError::Internal("our aggregates run by groups only".to_owned()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let states = self.call.kind.state_types().into_iter().enumerate();
        Ok(states.map(|(i, t)| Arc::new(Field::new(format!("{}[{i}]", args.name), t, true))).collect())
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.start()?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

struct Running {
    accumulator: Accumulator,
    /// How many of the columns handed over are arguments.
    args: usize,
    execution: Arc<Execution>,
}

fn emit(to: EmitTo) -> Emit {
    match to {
        EmitTo::All => Emit::All,
        EmitTo::First(n) => Emit::First(n),
    }
}

impl GroupsAccumulator for Running {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        group_count: usize,
    ) -> DfResult<()> {
        self.execution.cancel.check().map_err(wrap)?;
        let values = values.get(..self.args).unwrap_or(values);
        self.accumulator.update(values, groups, filter, group_count).map_err(wrap)
    }

    fn evaluate(&mut self, to: EmitTo) -> DfResult<ArrayRef> {
        self.accumulator.evaluate(emit(to)).map_err(wrap)
    }

    fn state(&mut self, to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        self.accumulator.state(emit(to)).map_err(wrap)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], group_count: usize) -> DfResult<()> {
        self.accumulator.merge(values, groups, group_count).map_err(wrap)
    }

    fn convert_to_state(&self, _: &[ArrayRef], _: Option<&BooleanArray>) -> DfResult<Vec<ArrayRef>> {
        Err(DataFusionError::Internal("our aggregates run in one stage".to_owned()))
    }

    fn size(&self) -> usize {
        self.accumulator.memory_bytes()
    }
}
