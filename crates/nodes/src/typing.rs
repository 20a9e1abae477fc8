//! What an expression is: its type, typmod and collation.

use stegodon_format::ids::Oid;
use stegodon_types::Datum;

use crate::expr::{CoercionForm, Expr, Location, SubLinkKind};

const BOOL: Oid = Oid(16);
const INT4: Oid = Oid(23);
const INT8: Oid = Oid(20);

impl Expr {
    /// The type of its value. An `ARRAY(subquery)` answers the *element's* type: the array type over it is in the
    /// catalog, and planning replaces the node by a [`crate::expr::SubPlan`], which knows its own.
    pub fn type_oid(&self) -> Oid {
        match self {
            Expr::Var(x) => x.type_oid,
            Expr::Const(x) => x.type_oid,
            Expr::Param(x) => x.type_oid,
            Expr::Aggref(x) => x.result_type,
            Expr::GroupingFunc(_) => INT4,
            Expr::WindowFunc(x) => x.result_type,
            Expr::Subscript(x) => x.result_type,
            Expr::Func(x) => x.result_type,
            Expr::Op(x) | Expr::NullIf(x) => x.result_type,
            Expr::Distinct(_) | Expr::ScalarArrayOp(_) | Expr::Bool(_) => BOOL,
            Expr::SubLink(x) => match x.kind {
                SubLinkKind::Expr | SubLinkKind::Array => {
                    x.query.outputs().next().map_or(Oid::INVALID, |t| t.expr.type_oid())
                }
                _ => BOOL,
            },
            Expr::SubPlan(x) => x.result_type,
            Expr::FieldSelect(x) => x.result_type,
            Expr::Relabel(x) => x.result_type,
            Expr::CoerceViaIo(x) => x.result_type,
            Expr::ArrayCoerce(x) => x.result_type,
            Expr::ConvertRowtype(x) => x.result_type,
            Expr::Collate(x) => x.arg.type_oid(),
            Expr::Case(x) => x.result_type,
            Expr::CaseTest(x) => x.type_oid,
            Expr::Array(x) => x.array_type,
            Expr::Row(x) => x.row_type,
            Expr::RowCompare(_) | Expr::NullTest(_) | Expr::BooleanTest(_) => BOOL,
            Expr::Coalesce(x) => x.result_type,
            Expr::MinMax(x) => x.result_type,
            Expr::SqlValue(x) => x.type_oid,
            Expr::CoerceToDomain(x) => x.result_type,
            Expr::NextValue(_) => INT8,
        }
    }

    /// The typmod of its value, -1 where it has none.
    pub fn typmod(&self) -> i32 {
        let common = |args: &[Expr], ty: Oid| match args.split_first() {
            Some((first, rest)) if first.type_oid() == ty => {
                let typmod = first.typmod();
                if rest.iter().all(|a| a.type_oid() == ty && a.typmod() == typmod) { typmod } else { -1 }
            }
            _ => -1,
        };
        match self {
            Expr::Var(x) => x.typmod,
            Expr::Const(x) => x.typmod,
            Expr::Param(x) => x.typmod,
            Expr::Subscript(x) => x.typmod,
            // A length coercion: its second argument is the typmod.
            Expr::Func(f) if matches!(f.form, CoercionForm::ExplicitCast | CoercionForm::ImplicitCast) => {
                match (f.args.len(), f.args.get(1)) {
                    (2 | 3, Some(Expr::Const(c))) if c.type_oid == INT4 => match c.value {
                        Some(Datum::Int32(typmod)) => typmod,
                        _ => -1,
                    },
                    _ => -1,
                }
            }
            Expr::SubLink(x) if matches!(x.kind, SubLinkKind::Expr | SubLinkKind::Array) => {
                x.query.outputs().next().map_or(-1, |t| t.expr.typmod())
            }
            Expr::SubPlan(x) => x.typmod,
            Expr::FieldSelect(x) => x.typmod,
            Expr::Relabel(x) => x.typmod,
            Expr::ArrayCoerce(x) => x.typmod,
            Expr::Collate(x) => x.arg.typmod(),
            Expr::NullIf(x) => x.args.first().map_or(-1, Expr::typmod),
            Expr::Case(c) => {
                let typmod = c.default.typmod();
                let same = |x: &Expr| x.type_oid() == c.result_type && x.typmod() == typmod;
                if typmod >= 0 && same(&c.default) && c.whens.iter().all(|w| same(&w.1)) { typmod } else { -1 }
            }
            Expr::CaseTest(x) => x.typmod,
            Expr::Array(a) if !a.elements.is_empty() => {
                let typmod = a.elements.first().map_or(-1, Expr::typmod);
                let ty = if a.multidims { a.array_type } else { a.element_type };
                if a.elements.iter().all(|x| x.type_oid() == ty && x.typmod() == typmod) { typmod } else { -1 }
            }
            Expr::Coalesce(x) => common(&x.args, x.result_type),
            Expr::MinMax(x) => common(&x.args, x.result_type),
            Expr::SqlValue(x) => x.typmod,
            Expr::CoerceToDomain(x) => x.typmod,
            _ => -1,
        }
    }

    /// The collation of its value, 0 for none.
    pub fn collation(&self) -> Oid {
        match self {
            Expr::Var(x) => x.collation,
            Expr::Const(x) => x.collation,
            Expr::Param(x) => x.collation,
            Expr::Aggref(x) => x.collation,
            Expr::WindowFunc(x) => x.collation,
            Expr::Subscript(x) => x.collation,
            Expr::Func(x) => x.collation,
            Expr::Op(x) | Expr::NullIf(x) => x.collation,
            Expr::SubLink(x) if matches!(x.kind, SubLinkKind::Expr | SubLinkKind::Array) => {
                x.query.outputs().next().map_or(Oid::INVALID, |t| t.expr.collation())
            }
            Expr::SubPlan(x) => x.collation,
            Expr::FieldSelect(x) => x.collation,
            Expr::Relabel(x) => x.collation,
            Expr::CoerceViaIo(x) => x.collation,
            Expr::ArrayCoerce(x) => x.collation,
            Expr::Collate(x) => x.collation,
            Expr::Case(x) => x.collation,
            Expr::CaseTest(x) => x.collation,
            Expr::Array(x) => x.collation,
            Expr::Coalesce(x) => x.collation,
            Expr::MinMax(x) => x.collation,
            // CURRENT_USER and its like are names, whose collation is C.
            Expr::SqlValue(x) => {
                if x.type_oid == Oid(19) {
                    Oid(950)
                } else {
                    Oid::INVALID
                }
            }
            Expr::CoerceToDomain(x) => x.collation,
            Expr::GroupingFunc(_)
            | Expr::Distinct(_)
            | Expr::ScalarArrayOp(_)
            | Expr::Bool(_)
            | Expr::SubLink(_)
            | Expr::ConvertRowtype(_)
            | Expr::Row(_)
            | Expr::RowCompare(_)
            | Expr::NullTest(_)
            | Expr::BooleanTest(_)
            | Expr::NextValue(_) => Oid::INVALID,
        }
    }

    /// Where it began in the statement: the leftmost of its own place and its parts'.
    pub fn location(&self) -> Location {
        let own = match self {
            Expr::Var(x) => return x.location,
            Expr::Const(x) => return x.location,
            Expr::Param(x) => return x.location,
            Expr::Aggref(x) => return x.location,
            Expr::Row(x) => return x.location,
            Expr::Array(x) => return x.location,
            Expr::Func(x) => x.location,
            Expr::Op(x) | Expr::Distinct(x) | Expr::NullIf(x) => x.location,
            Expr::ScalarArrayOp(x) => x.location,
            Expr::Bool(x) => x.location,
            Expr::SubLink(x) => x.location,
            _ => None,
        };
        let mut least = own;
        let _ = self.try_each_child::<()>(&mut |x| {
            least = match (least, x.location()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            Ok(())
        });
        least
    }
}
