//! What an index is: its columns, how they lie in a tuple, and how each is ordered.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use stegodon_format::attr::{AttrLayout, TupleLayout};
use stegodon_format::btree::MAX_ATTRIBUTES;
use stegodon_format::ids::Oid;
use stegodon_types::{
    Align, Collation, FormatSettings, Layout, SqlError, SqlResult, TypeCatalog, TypeContext, TypeDesc, ValueRef,
};

use crate::error::{Error, Result};

/// The function behind a [`KeyComparator`].
pub type CompareFn = dyn Fn(ValueRef<'_>, ValueRef<'_>) -> SqlResult<Ordering> + Send + Sync;

/// An operator family's comparison of two types: support function 1, bound to its collation and to whatever else it
/// needs to know.
#[derive(Clone)]
pub struct KeyComparator(Arc<CompareFn>);

impl KeyComparator {
    /// A comparator from a function.
    pub fn new(compare: impl Fn(ValueRef<'_>, ValueRef<'_>) -> SqlResult<Ordering> + Send + Sync + 'static) -> Self {
        Self(Arc::new(compare))
    }

    /// The support function with this OID, under a collation; `None` where it is not done. `indexed` is the indexed
    /// column's type, which polymorphic classes look at.
    pub fn of_support(
        support_proc: Oid,
        types: Arc<dyn TypeCatalog>,
        settings: Arc<FormatSettings>,
        indexed: Arc<TypeDesc>,
        collation: Collation,
    ) -> Option<Self> {
        let compare = stegodon_types::comparator(support_proc)?;
        Some(Self::new(move |left, right| {
            compare(&TypeContext::new(&*types, &settings), &indexed, &collation, left, right)
        }))
    }

    /// How `left` lies to `right`.
    #[inline]
    pub fn compare(&self, left: ValueRef<'_>, right: ValueRef<'_>) -> SqlResult<Ordering> {
        (self.0)(left, right)
    }
}

impl fmt::Debug for KeyComparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyComparator")
    }
}

/// How one attribute of an index lies in its tuples: the index's own `pg_attribute` row. (The column of an index on a
/// `name` is a `cstring` there.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexAttribute {
    /// `attlen`: bytes, -1 for varlena, -2 for cstring.
    pub len: i16,
    /// `attalign`.
    pub align: Align,
    /// The form its values are computed in; `None` is an error when a value is used. A cstring is always bytes.
    pub layout: Option<Layout>,
}

/// How one key column is ordered.
#[derive(Clone, Debug)]
pub struct IndexKey {
    /// The operator class's input type (`opcintype`): what the left side of its operators is.
    pub input_type: Oid,
    /// `DESC`.
    pub desc: bool,
    /// `NULLS FIRST`.
    pub nulls_first: bool,
    /// The comparisons of the operator family, each `(left type, right type)`. The pair of two input types must be
    /// there; keys on arguments of other types need theirs, and merge better when the arguments' own pairs are there.
    pub compare: Vec<(Oid, Oid, KeyComparator)>,
}

impl IndexKey {
    /// The comparison of two types, if the family has one.
    pub fn comparator(&self, left: Oid, right: Oid) -> Option<&KeyComparator> {
        self.compare.iter().find(|(l, r, _)| (*l, *r) == (left, right)).map(|(_, _, compare)| compare)
    }

    /// How two values lie in the index: NULL where `NULLS FIRST` says, the rest as `DESC` says.
    pub(crate) fn order(
        &self,
        compare: &KeyComparator,
        left: Option<ValueRef<'_>>,
        right: Option<ValueRef<'_>>,
    ) -> SqlResult<Ordering> {
        Ok(match (left, right) {
            (Some(left), Some(right)) => {
                let order = compare.compare(left, right)?;
                if self.desc { order.reverse() } else { order }
            }
            (None, None) => Ordering::Equal,
            (None, Some(_)) if self.nulls_first => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) if self.nulls_first => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        })
    }
}

/// A B-tree index, as its scans need to know it. Made once per relation-cache entry and shared.
#[derive(Debug)]
pub struct IndexDesc {
    /// For messages.
    pub name: String,
    /// Every attribute: key columns first, then `INCLUDE`d ones.
    pub attributes: Vec<IndexAttribute>,
    /// The key columns.
    pub keys: Vec<IndexKey>,
    /// Whether it is unique.
    pub unique: bool,
    /// How they lie in a tuple.
    pub(crate) layout: TupleLayout,
}

impl IndexDesc {
    /// A description from its parts; an error where they do not fit each other.
    pub fn new(
        name: impl Into<String>,
        attributes: Vec<IndexAttribute>,
        keys: Vec<IndexKey>,
        unique: bool,
    ) -> SqlResult<Self> {
        let name = name.into();
        if keys.is_empty() || keys.len() > attributes.len() || attributes.len() > MAX_ATTRIBUTES {
            return Err(SqlError::internal(format_args!(
                "index \"{name}\" with {} key columns of {} attributes",
                keys.len(),
                attributes.len()
            )));
        }
        let layouts = attributes.iter().map(|attribute| AttrLayout::new(attribute.len, attribute.align.bytes() as u8));
        let layout = TupleLayout::new(layouts).map_err(SqlError::internal)?;
        Ok(Self { name, attributes, keys, unique, layout })
    }

    /// The comparison of key column `column` (from 0) with an argument of type `right`.
    pub(crate) fn comparator(&self, column: usize, right: Oid) -> Result<&KeyComparator> {
        let key = self.key(column)?;
        key.comparator(key.input_type, right).ok_or_else(|| Error::MissingSupport {
            index: self.name.clone(),
            left: key.input_type,
            right,
            attribute: column + 1,
        })
    }

    pub(crate) fn key(&self, column: usize) -> Result<&IndexKey> {
        self.keys.get(column).ok_or_else(|| {
            SqlError::internal(format_args!("index \"{}\" has no key column {}", self.name, column + 1)).into()
        })
    }
}
