//! `Tid Scan` and `Tid Range Scan`.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_access::SharedBlocks;
use stegodon_buffer::PinnedPage;
use stegodon_format::ids::{BlockNumber, OffsetNumber, Oid, Tid};
use stegodon_functions::{CompileContext, Evaluator};
use stegodon_nodes::Expr;
use stegodon_types::{Datum, SqlError, SqlResult, oids};

use super::HeapRows;
use super::sequential::{PageRows, pages};
use crate::initplan::Needs;
use crate::operator::{Input, Operator, Producer, malformed};

/// `=` on tid.
const TID_EQUAL: Oid = Oid(387);
/// `<`, `>`, `<=`, `>=` on tid.
const TID_ORDER: [Oid; 4] = [Oid(2799), Oid(2800), Oid(2801), Oid(2802)];

/// Tuples by their exact places, in the order of the heap.
#[derive(Debug)]
pub(crate) struct TidScan {
    rows: Arc<HeapRows>,
    /// Right sides: a tid, or an array of tids.
    values: Vec<Evaluator>,
    needs: Needs,
}

impl TidScan {
    pub(crate) fn new(rows: Arc<HeapRows>, conditions: &[Expr]) -> SqlResult<Self> {
        let execution = &rows.execution;
        let compile = CompileContext::new(execution.catalog(), execution.view.as_ref());
        let right_side = |condition: &Expr| match condition {
            Expr::Op(op) if op.operator == TID_EQUAL => match op.args.as_slice() {
                [_, right] => Evaluator::compile(right, &compile),
                _ => Err(malformed("a TID condition with one side")),
            },
            Expr::ScalarArrayOp(op) if op.any && op.operator == TID_EQUAL => {
                let [_, right] = op.args.as_ref();
                Evaluator::compile(right, &compile)
            }
            _ => Err(malformed("no TID condition")),
        };
        let values = conditions.iter().map(right_side).collect::<SqlResult<_>>()?;
        Ok(Self { values, needs: Needs::of(conditions), rows })
    }

    fn tids(&self) -> SqlResult<Vec<Tid>> {
        let execution = &self.rows.execution;
        let mut tids = Vec::new();
        for value in &self.values {
            let datum = execution.with_context(|cx| value.evaluate_const(cx))?;
            let Some(datum) = datum else { continue };
            let bytes = datum.as_bytes().ok_or_else(|| malformed("a TID that is none"))?;
            if value.type_oid() == oids::TID {
                tids.push(tid(bytes)?);
                continue;
            }
            for element in crate::arrays::elements(execution.view.as_ref(), oids::TID, bytes)?.into_iter().flatten() {
                tids.push(tid(element.as_bytes().unwrap_or_default())?);
            }
        }
        tids.sort_unstable();
        tids.dedup();
        Ok(tids)
    }
}

fn tid(bytes: &[u8]) -> SqlResult<Tid> {
    bytes.try_into().map(Tid::from_bytes).map_err(|_| SqlError::internal("a tid is not six bytes"))
}

impl Operator for TidScan {
    fn name(&self) -> &'static str {
        "Tid Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        Ok(Box::new(Running { start: Start::Tids(self), scan: None }))
    }
}

/// All tuples between two places.
#[derive(Debug)]
pub(crate) struct TidRangeScan {
    rows: Arc<HeapRows>,
    /// Lower bounds, then upper bounds: the bound, and whether it is inside.
    lower: Vec<(Evaluator, bool)>,
    upper: Vec<(Evaluator, bool)>,
    needs: Needs,
}

impl TidRangeScan {
    pub(crate) fn new(rows: Arc<HeapRows>, conditions: &[Expr]) -> SqlResult<Self> {
        let execution = &rows.execution;
        let compile = CompileContext::new(execution.catalog(), execution.view.as_ref());
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for condition in conditions {
            let Expr::Op(op) = condition else { return Err(malformed("no TID range condition")) };
            let [_, right] = op.args.as_slice() else { return Err(malformed("a TID condition with one side")) };
            let right = Evaluator::compile(right, &compile)?;
            match TID_ORDER.iter().position(|o| *o == op.operator) {
                Some(0) => upper.push((right, false)),
                Some(1) => lower.push((right, false)),
                Some(2) => upper.push((right, true)),
                Some(3) => lower.push((right, true)),
                _ => return Err(malformed("no TID range condition")),
            }
        }
        Ok(Self { lower, upper, needs: Needs::of(conditions), rows })
    }

    /// The first place inside and the first behind; `None` where a bound is NULL.
    fn range(&self) -> SqlResult<Option<(Tid, Option<Tid>)>> {
        let value = |e: &Evaluator| -> SqlResult<Option<Tid>> {
            let datum: Option<Datum> = self.rows.execution.with_context(|cx| e.evaluate_const(cx))?;
            datum.map(|d| tid(d.as_bytes().unwrap_or_default())).transpose()
        };
        let mut from = Tid::new(BlockNumber(0), OffsetNumber(0));
        for (bound, inside) in &self.lower {
            let Some(bound) = value(bound)? else { return Ok(None) };
            from = from.max(if *inside { bound } else { after(bound) });
        }
        let mut to = None;
        for (bound, inside) in &self.upper {
            let Some(bound) = value(bound)? else { return Ok(None) };
            let bound = if *inside { after(bound) } else { bound };
            to = Some(to.map_or(bound, |t: Tid| t.min(bound)));
        }
        Ok(Some((from, to)))
    }
}

fn after(tid: Tid) -> Tid {
    match tid.offset.0.checked_add(1) {
        Some(offset) => Tid::new(tid.block, OffsetNumber(offset)),
        None => Tid::new(tid.block.next(), OffsetNumber(0)),
    }
}

impl Operator for TidRangeScan {
    fn name(&self) -> &'static str {
        "Tid Range Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        Ok(Box::new(Running { start: Start::Range(self), scan: None }))
    }
}

enum Start {
    Tids(Arc<TidScan>),
    Range(Arc<TidRangeScan>),
}

struct Running {
    start: Start,
    scan: Option<Box<dyn Producer>>,
}

impl Start {
    async fn begin(&self) -> SqlResult<Box<dyn Producer>> {
        match self {
            Start::Tids(scan) => {
                scan.rows.execution.prepare(&scan.needs).await?;
                let blocks = scan.rows.table.blocks()?;
                let mut tids = scan.tids()?.into_iter().filter(move |t| t.block.0 < blocks);
                let source = move || tids.next().map(|t| (t.block, t.offset));
                let add = |(page, offset): (PinnedPage, OffsetNumber), rows: &mut PageRows| {
                    rows.add_exactly(&page, |o| o == offset)
                };
                Ok(Box::new(pages(&scan.rows, source, add)))
            }
            Start::Range(scan) => {
                scan.rows.execution.prepare(&scan.needs).await?;
                let blocks = scan.rows.table.blocks()?;
                let range = scan.range()?;
                let (from, to) = range.unwrap_or_default();
                let end = match (range, to) {
                    (None, _) => 0,
                    (_, None) => blocks,
                    (_, Some(to)) => blocks.min(to.block.next().0),
                };
                let mut next = Arc::new(SharedBlocks::new(from.block.0, end, 1)).iter();
                let source = move || next().map(|block| (block, block));
                let add = move |(page, block): (PinnedPage, BlockNumber), rows: &mut PageRows| {
                    let inside = |offset| {
                        let tid = Tid::new(block, offset);
                        tid >= from && to.is_none_or(|to| tid < to)
                    };
                    rows.add_exactly(&page, inside)
                };
                Ok(Box::new(pages(&scan.rows, source, add)))
            }
        }
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        if self.scan.is_none() {
            self.scan = Some(self.start.begin().await?);
        }
        match &mut self.scan {
            Some(scan) => scan.next().await,
            None => Ok(None),
        }
    }
}
