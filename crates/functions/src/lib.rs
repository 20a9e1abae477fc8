//! The evaluator of expressions, the kernels behind functions and operators, and aggregates.
//!
//! A tour: [`Evaluator::compile`] turns an [`stegodon_nodes::Expr`] into a tree whose kernels are found by OID;
//! [`Evaluator::evaluate`] runs it over a [`Batch`] of Arrow columns and [`Evaluator::filter`] gives the rows for which it
//! is true. Execution, folding, index keys, partition bounds and checks all call it: there is no other evaluator
//! (DESIGN D4). What has no kernel is refused when it is compiled, by name.
//!
//! ```
//! use stegodon_catalog::Catalog;
//! use stegodon_functions::{Batch, CompileContext, EvalContext, Evaluator, NoSession};
//! use stegodon_nodes::Expr;
//! use stegodon_nodes::expr::{Const, OpExpr};
//! use stegodon_types::{BuiltinTypes, Datum, FormatSettings, Oid, oids};
//!
//! let int4 = |v| Expr::Const(Const {
//!     type_oid: oids::INT4, typmod: -1, collation: Oid(0), value: Some(Datum::Int32(v)), location: None,
//! });
//! // 40 + 2: operator 551, function int4pl
//! let sum = Expr::Op(OpExpr {
//!     operator: Oid(551), function: Oid(177), result_type: oids::INT4, returns_set: false, collation: Oid(0),
//!     input_collation: Oid(0), args: vec![int4(40), int4(2)], location: None,
//! });
//! let catalog = Catalog::default();
//! let (settings, session) = (FormatSettings::default(), NoSession::default());
//! let cx = EvalContext {
//!     catalog: &catalog, types: &BuiltinTypes, settings: &settings, session: &session, params: &[], exec_params: &[],
//!     subplans: None,
//! };
//! let sum = Evaluator::compile(&sum, &CompileContext::new(&catalog, &BuiltinTypes)).unwrap();
//! assert_eq!(sum.evaluate_const(&cx).unwrap(), Some(Datum::Int32(42)));
//! ```
#![forbid(unsafe_code)]

pub mod adapt;
pub mod aggregate;
pub mod batch;
pub mod column;
pub mod compile;
pub mod context;
mod eval;
mod evaluator;
pub mod fold;
pub mod kernel;
pub mod kernels;
pub mod srf;
mod srf_json;
mod srf_time;
mod versions;

pub use aggregate::{Accumulator, AggregatePlan, Emit, aggregate, aggregate_exists, window_aggregate};
pub use batch::{Batch, Input, Partial, Selection, Side};
pub use column::Column;
pub use compile::{CompileContext, PlanVariables, Variables};
pub use context::{EvalContext, Fork, NoSession, Session, SubPlans};
pub use evaluator::{Evaluator, evaluate_all};
pub use fold::{FoldMode, contains_mutable, contains_volatile, fold, is_strict, negate, try_fold, volatility};
pub use kernel::{Call, CallInfo, KernelFn, kernel_exists, kernel_oids};
pub use kernels::Pattern;
pub use srf::{SetFunction, SetFunctionPlan, set_function_exists};
