//! From a plan's index conditions to scan keys: their values are known only when the scan starts.

use std::sync::Arc;

use stegodon_buffer::IoCounters;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_functions::{CompileContext, Evaluator};
use stegodon_io::RelationFiles;
use stegodon_nbtree::{Argument, BtreeScan, IndexDesc, PoolSource, RowMember, ScanKey, ScanOptions, Strategy};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{BoolKind, RowCompareKind};
use stegodon_plan::node::IndexCondition;
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::malformed;

/// An index and the conditions it is searched by.
pub(crate) struct IndexKeys {
    execution: Arc<Execution>,
    files: RelationFiles,
    desc: Arc<IndexDesc>,
    keys: Vec<Key>,
    needs: Needs,
}

impl std::fmt::Debug for IndexKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexKeys").field("index", &self.desc.name).finish_non_exhaustive()
    }
}

/// One condition, its right side compiled.
enum Key {
    Compare { column: usize, strategy: Strategy, type_oid: Oid, value: Evaluator },
    Any { column: usize, strategy: Strategy, type_oid: Oid, array: Evaluator },
    Constant(ScanKey),
    Row { strategy: Strategy, members: Vec<(usize, Oid, Evaluator)> },
}

impl IndexKeys {
    /// Compiles the conditions of an index scan. `columns` are the index's table columns, by index column.
    pub(crate) fn new(
        execution: &Arc<Execution>,
        files: RelationFiles,
        desc: Arc<IndexDesc>,
        conditions: &[IndexCondition],
        columns: &[AttrNumber],
    ) -> SqlResult<Self> {
        let compile = CompileContext::new(execution.catalog(), execution.view.as_ref());
        let keys = conditions.iter().map(|c| key(execution, &compile, c, columns));
        let keys = keys.collect::<SqlResult<Vec<_>>>()?;
        let needs = Needs::of(conditions.iter().map(|c| &c.clause));
        Ok(Self { execution: Arc::clone(execution), files, desc, keys, needs })
    }

    /// The index.
    pub(crate) fn desc(&self) -> &Arc<IndexDesc> {
        &self.desc
    }

    /// A scan of the index, not started.
    pub(crate) fn scan(&self, options: ScanOptions, counters: &Arc<IoCounters>) -> BtreeScan<PoolSource> {
        let pool = self.execution.storage.pool();
        let source = PoolSource::new(pool, &self.files).counted(Arc::clone(counters));
        BtreeScan::new(Arc::clone(&self.desc), source, options)
    }

    /// The keys, their right sides evaluated now.
    pub(crate) async fn evaluate(&self) -> SqlResult<Vec<ScanKey>> {
        self.execution.prepare(&self.needs).await?;
        let constant = |e: &Evaluator| self.execution.with_context(|cx| e.evaluate_const(cx));
        let scan_key = |key: &Key| {
            Ok(match key {
                Key::Constant(key) => key.clone(),
                Key::Compare { column, strategy, type_oid, value } => {
                    ScanKey::compare(*column, *strategy, *type_oid, constant(value)?)
                }
                Key::Any { column, strategy, type_oid, array } => match constant(array)? {
                    None => ScanKey::compare(*column, *strategy, *type_oid, None),
                    Some(array) => ScanKey::any(*column, *strategy, *type_oid, self.elements(*type_oid, &array)?),
                },
                Key::Row { strategy, members } => {
                    let member = |(column, type_oid, value): &(usize, Oid, Evaluator)| {
                        let argument = Argument { value: constant(value)?, type_oid: *type_oid };
                        Ok::<_, SqlError>(RowMember { column: *column, argument })
                    };
                    let members = members.iter().map(member).collect::<SqlResult<_>>()?;
                    ScanKey::Row { strategy: *strategy, members }
                }
            })
        };
        self.keys.iter().map(scan_key).collect()
    }

    fn elements(&self, element: Oid, value: &Datum) -> SqlResult<Vec<Option<Datum>>> {
        let payload = value.as_bytes().ok_or_else(|| malformed("an array that is none"))?;
        crate::arrays::elements(self.execution.view.as_ref(), element, payload)
    }
}

fn key(
    execution: &Execution,
    compile: &CompileContext<'_>,
    condition: &IndexCondition,
    columns: &[AttrNumber],
) -> SqlResult<Key> {
    let column = usize::try_from(condition.column.0 - 1).map_err(|_| malformed("an index column below 1"))?;
    let strategy = || Strategy::from_number(condition.strategy).ok_or_else(|| malformed("an unknown strategy"));
    let right_type = |operator: Oid| {
        let operator = execution.catalog().operator(operator);
        operator.map(|o| o.right).ok_or_else(|| malformed("an index condition with an unknown operator"))
    };
    match &condition.clause {
        Expr::Op(op) => match op.args.as_slice() {
            [_, value] => Ok(Key::Compare {
                column,
                strategy: strategy()?,
                type_oid: right_type(op.operator)?,
                value: Evaluator::compile(value, compile)?,
            }),
            _ => Err(malformed("an index condition with one side")),
        },
        Expr::ScalarArrayOp(op) if op.any => {
            let [_, array] = op.args.as_ref();
            let array = Evaluator::compile(array, compile)?;
            Ok(Key::Any { column, strategy: strategy()?, type_oid: right_type(op.operator)?, array })
        }
        Expr::NullTest(test) if !test.arg_is_row => {
            let key = if test.is_null { ScanKey::is_null(column) } else { ScanKey::is_not_null(column) };
            Ok(Key::Constant(key))
        }
        Expr::RowCompare(row) => {
            let strategy = match row.kind {
                RowCompareKind::Less => Strategy::Less,
                RowCompareKind::LessEqual => Strategy::LessEqual,
                RowCompareKind::GreaterEqual => Strategy::GreaterEqual,
                RowCompareKind::Greater => Strategy::Greater,
            };
            let member = |((left, right), operator): ((&Expr, &Expr), &Oid)| {
                let place = match left {
                    Expr::Var(var) => columns.iter().position(|c| *c == var.attno),
                    _ => None,
                };
                let place = place.ok_or_else(|| malformed("a row comparison beyond the index's columns"))?;
                Ok::<_, SqlError>((place, right_type(*operator)?, Evaluator::compile(right, compile)?))
            };
            let members = row.left.iter().zip(&row.right).zip(&row.operators).map(member);
            Ok(Key::Row { strategy, members: members.collect::<SqlResult<_>>()? })
        }
        // A boolean column stands for itself.
        Expr::Bool(not) if not.kind == BoolKind::Not => Ok(boolean(column, false)),
        Expr::Var(_) => Ok(boolean(column, true)),
        other => Err(SqlError::internal(format_args!("no index condition: {other:?}"))),
    }
}

fn boolean(column: usize, value: bool) -> Key {
    let value = Some(Datum::Bool(value));
    Key::Constant(ScanKey::compare(column, Strategy::Equal, stegodon_types::oids::BOOL, value))
}
