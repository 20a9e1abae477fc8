//! Rows of heap pages on their way to a batch: conditions first, then the rest for the rows that are left.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use stegodon_access::{Table, Toast};
use stegodon_buffer::IoCounters;
use stegodon_format::ids::{AttrNumber, OffsetNumber};
use stegodon_functions::{Batch, Evaluator, Input, Partial, Selection, Side, evaluate_all};
use stegodon_heap::{Columns, Deformer, HeapPage};
use stegodon_nodes::expr::{Var, VarSource};
use stegodon_types::{SqlError, SqlResult};

use super::Skip;
use crate::batch::{BATCH_ROWS, batch};
use crate::counters::add;
use crate::execution::Execution;
use crate::initplan::Needs;

/// What a scan does with the rows of a table's pages. Shared by the partitions of one scan.
pub(crate) struct HeapRows {
    pub(crate) execution: Arc<Execution>,
    pub(crate) node: usize,
    pub(crate) table: Table,
    /// The columns that `recheck` and `quals` read.
    pub(crate) first: Deformer,
    /// The other columns that `targets` read.
    pub(crate) second: Deformer,
    /// Conditions for rows that may not be what the index promised.
    pub(crate) recheck: Option<Evaluator>,
    pub(crate) quals: Option<Evaluator>,
    pub(crate) targets: Vec<Evaluator>,
    pub(crate) needs: Needs,
    /// Rows to drop before the first is given.
    pub(crate) skip: Option<Arc<Skip>>,
    pub(crate) schema: SchemaRef,
}

impl std::fmt::Debug for HeapRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapRows").field("table", &self.table.desc.relation()).finish_non_exhaustive()
    }
}

/// Which column of a scan's batch a variable is: those of the conditions, then the others.
pub(crate) fn column_of(relation: usize, first: &[AttrNumber], second: &[AttrNumber], var: &Var) -> SqlResult<Input> {
    if var.source != VarSource::Relation(relation) {
        return Err(SqlError::internal("a scan's expression reads another relation"));
    }
    let place = first.iter().chain(second).position(|a| *a == var.attno);
    let index = place.ok_or_else(|| SqlError::internal("a scan does not read a column of its expression"))?;
    Ok(Input { side: Side::Outer, index })
}

/// Values in TOAST that a batch may hold, in bytes, before it is cut short.
const TOASTED_BYTES_MAX: usize = 16 << 20;
/// Rows of a scan's first batch; each next one is twice as large. A LIMIT that is content with few rows costs few pages.
const FIRST_BATCH_ROWS: usize = 64;

/// Rows being gathered.
pub(crate) struct RowBuffer {
    rows: Arc<HeapRows>,
    first: Columns,
    second: Columns,
    /// The rows to be rechecked, ascending.
    recheck: Vec<u32>,
    toasted_bytes: usize,
    full_at: usize,
    /// No row has been kept yet.
    skipping: bool,
    failed: Option<SqlError>,
    damaged: Option<SqlError>,
    ready: bool,
}

impl RowBuffer {
    pub(crate) fn new(rows: &Arc<HeapRows>) -> Self {
        Self {
            first: Columns::new(&rows.first, FIRST_BATCH_ROWS),
            second: Columns::new(&rows.second, FIRST_BATCH_ROWS),
            rows: Arc::clone(rows),
            recheck: Vec::new(),
            toasted_bytes: 0,
            full_at: FIRST_BATCH_ROWS,
            skipping: rows.skip.is_some(),
            failed: None,
            damaged: None,
            ready: false,
        }
    }

    /// Adds tuples of a page.
    pub(crate) fn push(&mut self, page: &HeapPage<'_>, offsets: &[OffsetNumber], recheck: bool) -> SqlResult<()> {
        let offsets = if self.skipping { self.skip(offsets, recheck) } else { offsets };
        if offsets.is_empty() {
            return Ok(());
        }
        let pushed = self.deform(page, offsets, recheck);
        if let Err(error) = &pushed {
            // A damaged tuple leaves columns of different lengths: nothing of this batch may be used.
            self.damaged = Some(error.clone());
        }
        pushed
    }

    /// Drops what an OFFSET above would.
    fn skip<'o>(&mut self, offsets: &'o [OffsetNumber], recheck: bool) -> &'o [OffsetNumber] {
        let Some(skip) = self.rows.skip.as_ref().filter(|_| !recheck) else {
            self.skipping &= offsets.is_empty();
            return offsets;
        };
        let dropped = skip.take(offsets.len() as u64);
        if let Some(counters) = self.rows.execution.counters.node(self.rows.node)
            && self.rows.execution.instrument
        {
            add(&counters.rows, dropped);
        }
        let kept = offsets.get(dropped as usize..).unwrap_or(&[]);
        self.skipping = kept.is_empty();
        kept
    }

    fn deform(&mut self, page: &HeapPage<'_>, offsets: &[OffsetNumber], recheck: bool) -> SqlResult<()> {
        let (start, toasted) = (self.first.rows(), [self.first.toasted().len(), self.second.toasted().len()]);
        self.rows.first.deform(page, offsets, &mut self.first)?;
        self.rows.second.deform(page, offsets, &mut self.second)?;
        for (columns, before) in [&self.first, &self.second].into_iter().zip(toasted) {
            let new = columns.toasted().get(before..).unwrap_or_default();
            self.toasted_bytes += new.iter().map(|t| t.pointer.raw_size).sum::<usize>();
        }
        if recheck {
            self.recheck.extend(start as u32..self.first.rows() as u32);
        }
        Ok(())
    }

    /// Whether there are rows enough for a batch.
    pub(crate) fn is_full(&self) -> bool {
        self.first.rows() >= self.full_at || self.toasted_bytes >= TOASTED_BYTES_MAX
    }

    /// Ends gathering with an error, which comes after the rows gathered before it.
    pub(crate) fn fail(&mut self, error: SqlError) {
        self.failed.get_or_insert(error);
    }

    /// The rows gathered that pass the conditions. `None` if there are none; an error once the rows before it are out.
    pub(crate) async fn finish(&mut self, counters: &Arc<IoCounters>) -> SqlResult<Option<RecordBatch>> {
        if let Some(error) = self.damaged.take() {
            return Err(error);
        }
        let rows = self.first.rows();
        if rows == 0 {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let shared = Arc::clone(&self.rows);
        let scan = shared.as_ref();
        if !self.ready {
            scan.execution.prepare(&scan.needs).await?;
            self.ready = true;
        }
        fetch(scan, &mut self.first, None, counters).await?;
        let mut columns = self.first.finish()?;
        let (selection, mut error) = scan.select(&columns, rows, std::mem::take(&mut self.recheck))?;
        fetch(scan, &mut self.second, selection.as_ref(), counters).await?;
        let wanted = |row| selection.as_ref().is_none_or(|s| s.holds(row));
        columns.extend(self.second.finish_for(wanted)?);
        self.full_at = (self.full_at * 2).min(BATCH_ROWS);
        self.toasted_bytes = 0;
        let output = scan.project(&columns, rows, selection.as_ref(), &mut error)?;
        if let Some(error) = error {
            self.failed = Some(error);
        }
        if output.num_rows() == 0 {
            return self.failed.take().map_or(Ok(None), Err);
        }
        Ok(Some(output))
    }
}

impl HeapRows {
    /// Whether rows are only counted.
    pub(super) fn reads_nothing(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    /// The rows that pass recheck and quals, `None` for all, and the error of the first row that fails.
    fn select(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        recheck: Vec<u32>,
    ) -> SqlResult<(Option<Selection>, Option<SqlError>)> {
        let over = Batch::new(columns, rows);
        let counters = self.execution.counters.node(self.node);
        self.execution.with_context(|cx| {
            let mut selection = None;
            let mut error = None;
            if let Some(condition) = self.recheck.as_ref().filter(|_| !recheck.is_empty()) {
                let suspects = Selection::new(recheck);
                let passed = condition.filter_partial(cx, &over, Some(&suspects))?;
                let looked = suspects.rows().get(passed.rows).map_or(rows, |&r| r as usize);
                let kept = merge_rows(looked, suspects.rows(), passed.value.rows());
                if let Some(counters) = counters {
                    add(&counters.filtered_second, (looked - kept.len()) as u64);
                }
                (selection, error) = (Some(Selection::new(kept)), passed.error);
            }
            if let Some(quals) = &self.quals {
                let before = selection.as_ref().map_or(rows, Selection::len);
                let passed = quals.filter_partial(cx, &over, selection.as_ref())?;
                if let Some(counters) = counters {
                    add(&counters.filtered, (before - passed.value.len()) as u64);
                }
                error = passed.error.or(error);
                selection = Some(passed.value);
            }
            Ok((selection.filter(|s| s.len() < rows || error.is_some()), error))
        })
    }

    fn project(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        selection: Option<&Selection>,
        error: &mut Option<SqlError>,
    ) -> SqlResult<RecordBatch> {
        let over = Batch::new(columns, rows);
        let Partial { value, rows, error: failed } =
            self.execution.with_context(|cx| evaluate_all(&self.targets, cx, &over, selection))?;
        if failed.is_some() {
            *error = failed;
        }
        batch(&self.schema, value, rows)
    }
}

/// The first `looked` rows without those suspects that did not pass.
fn merge_rows(looked: usize, suspects: &[u32], passed: &[u32]) -> Vec<u32> {
    let (mut suspects, mut passed) = (suspects.iter().peekable(), passed.iter().peekable());
    let mut kept = Vec::with_capacity(looked);
    for row in 0..looked as u32 {
        let suspected = suspects.next_if_eq(&&row).is_some();
        if passed.next_if_eq(&&row).is_some() || !suspected {
            kept.push(row);
        }
    }
    kept
}

/// Fetches the toasted values of the selected rows; the others go no further.
async fn fetch(
    scan: &HeapRows,
    columns: &mut Columns,
    selection: Option<&Selection>,
    counters: &Arc<IoCounters>,
) -> SqlResult<()> {
    for index in 0..columns.toasted().len() {
        let Some(toasted) = columns.toasted().get(index).copied() else { break };
        if selection.is_none_or(|s| s.holds(toasted.row)) {
            scan.execution.cancel.check()?;
            let toast = scan.table.toast.as_deref();
            let value = Toast::fetch(&scan.execution.storage, toast, &toasted.pointer, counters).await?;
            columns.fill(index, value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_fail_their_recheck_are_left_out() {
        assert_eq!(merge_rows(6, &[1, 3, 4], &[3]), [0, 2, 3, 5]);
        assert_eq!(merge_rows(2, &[1, 3], &[1]), [0, 1]);
        assert_eq!(merge_rows(0, &[], &[]), Vec::<u32>::new());
    }
}
