//! What an index is: its columns, how they lie in a tuple, and how each is ordered.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use stegodon_format::btree::MAX_ATTRIBUTES;
use stegodon_format::ids::Oid;
use stegodon_types::{Align, Layout, SqlError, SqlResult, ValueRef};

use crate::error::{Error, Result};

/// The function behind a [`Comparator`].
pub type CompareFn = dyn Fn(ValueRef<'_>, ValueRef<'_>) -> SqlResult<Ordering> + Send + Sync;

/// An operator family's comparison of two types: support function 1, bound to its collation and to whatever else it
/// needs to know.
#[derive(Clone)]
pub struct Comparator(Arc<CompareFn>);

impl Comparator {
    /// A comparator from a function.
    pub fn new(compare: impl Fn(ValueRef<'_>, ValueRef<'_>) -> SqlResult<Ordering> + Send + Sync + 'static) -> Self {
        Self(Arc::new(compare))
    }

    /// How `left` lies to `right`.
    #[inline]
    pub fn compare(&self, left: ValueRef<'_>, right: ValueRef<'_>) -> SqlResult<Ordering> {
        (self.0)(left, right)
    }
}

impl fmt::Debug for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Comparator")
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
    pub compare: Vec<(Oid, Oid, Comparator)>,
}

impl IndexKey {
    /// The comparison of two types, if the family has one.
    pub fn comparator(&self, left: Oid, right: Oid) -> Option<&Comparator> {
        self.compare.iter().find(|(l, r, _)| (*l, *r) == (left, right)).map(|(_, _, compare)| compare)
    }

    /// How two values lie in the index: NULL where `NULLS FIRST` says, the rest as `DESC` says.
    pub(crate) fn order(
        &self,
        compare: &Comparator,
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
    /// Where each leading attribute starts in a tuple without nulls, as long as that is fixed.
    pub(crate) fixed_starts: Vec<u16>,
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
        let mut fixed_starts = Vec::with_capacity(attributes.len());
        let mut at = 0;
        for attribute in &attributes {
            if attribute.len == 0 || attribute.len < -2 {
                return Err(SqlError::internal(format_args!("index \"{name}\": attlen {}", attribute.len)));
            }
            // A varlena with a one-byte header is not aligned, so where it starts depends on the tuple.
            if attribute.len == -1 && attribute.align.up(at) != at {
                break;
            }
            at = attribute.align.up(at);
            fixed_starts.push(at as u16);
            if attribute.len < 0 {
                break;
            }
            at += attribute.len as usize;
        }
        Ok(Self { name, attributes, keys, unique, fixed_starts })
    }

    /// The comparison of key column `column` (from 0) with an argument of type `right`.
    pub(crate) fn comparator(&self, column: usize, right: Oid) -> Result<&Comparator> {
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
