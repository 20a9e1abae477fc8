//! Scan keys as the executor hands them over: one per condition of the query, in any order, redundant or not.

use stegodon_format::ids::Oid;
use stegodon_types::Datum;

/// A B-tree strategy: which operator of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// `<`, 1
    Less,
    /// `<=`, 2
    LessEqual,
    /// `=`, 3
    Equal,
    /// `>=`, 4
    GreaterEqual,
    /// `>`, 5
    Greater,
}

impl Strategy {
    /// The strategy of a number in `pg_amop.amopstrategy`.
    pub const fn from_number(number: u16) -> Option<Strategy> {
        match number {
            1 => Some(Strategy::Less),
            2 => Some(Strategy::LessEqual),
            3 => Some(Strategy::Equal),
            4 => Some(Strategy::GreaterEqual),
            5 => Some(Strategy::Greater),
            _ => None,
        }
    }

    /// Whether values that compare so satisfy the operator.
    pub const fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            Strategy::Less => order.is_lt(),
            Strategy::LessEqual => order.is_le(),
            Strategy::Equal => order.is_eq(),
            Strategy::GreaterEqual => order.is_ge(),
            Strategy::Greater => order.is_gt(),
        }
    }

    /// The operator's symbol.
    pub const fn symbol(self) -> &'static str {
        match self {
            Strategy::Less => "<",
            Strategy::LessEqual => "<=",
            Strategy::Equal => "=",
            Strategy::GreaterEqual => ">=",
            Strategy::Greater => ">",
        }
    }
}

/// The right side of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its value; `None` is NULL, which no strict operator accepts.
    pub value: Option<Datum>,
    /// The operator's right type (`amoprighttype`), which decides the comparison.
    pub type_oid: Oid,
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `column operator value`
    Compare(Strategy, Argument),
    /// `column operator ANY (array)`. A NULL array is a [`Condition::Compare`] with NULL.
    Any {
        /// The operator.
        strategy: Strategy,
        /// The array's elements, in any order.
        elements: Vec<Option<Datum>>,
        /// The elements' type, as the operator's right type.
        type_oid: Oid,
    },
    /// `column IS NULL`
    IsNull,
    /// `column IS NOT NULL`
    IsNotNull,
}

/// One member of a row comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct RowMember {
    /// The key column, from 0.
    pub column: usize,
    /// What it is compared with.
    pub argument: Argument,
}

/// A condition that the index can use.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanKey {
    /// On one column.
    Column {
        /// The key column, from 0.
        column: usize,
        /// The condition.
        condition: Condition,
    },
    /// `(a, b, …) operator (x, y, …)`, an inequality.
    Row {
        /// The operator; never [`Strategy::Equal`].
        strategy: Strategy,
        /// The members, in the order of comparison.
        members: Vec<RowMember>,
    },
}

impl ScanKey {
    /// `column operator value`.
    pub fn compare(column: usize, strategy: Strategy, type_oid: Oid, value: Option<Datum>) -> Self {
        ScanKey::Column { column, condition: Condition::Compare(strategy, Argument { value, type_oid }) }
    }

    /// `column operator ANY (elements)`.
    pub fn any(column: usize, strategy: Strategy, type_oid: Oid, elements: Vec<Option<Datum>>) -> Self {
        ScanKey::Column { column, condition: Condition::Any { strategy, elements, type_oid } }
    }

    /// `column IS NULL`.
    pub fn is_null(column: usize) -> Self {
        ScanKey::Column { column, condition: Condition::IsNull }
    }

    /// `column IS NOT NULL`.
    pub fn is_not_null(column: usize) -> Self {
        ScanKey::Column { column, condition: Condition::IsNotNull }
    }
}
