//! What is known of a relation's columns: as much of `pg_attribute` as reading tuples needs.

use std::sync::Arc;

use stegodon_format::attr::{AttrLayout, TupleLayout};
use stegodon_format::heap_tuple::MAX_HEAP_ATTRIBUTES;
use stegodon_format::ids::Oid;
use stegodon_types::{Align, Datum, Layout};

use crate::error::{Error, Result};

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// `attname`.
    pub name: String,
    /// `atttypid`; 0 for a dropped column.
    pub type_oid: Oid,
    /// `attlen`: bytes, −1 for varlena, −2 for cstring. Kept for dropped columns.
    pub len: i16,
    /// `attalign`. Kept for dropped columns.
    pub align: Align,
    /// The form its values are read in; `None` where the type is not supported. Such a column is stepped over.
    pub layout: Option<Layout>,
    /// `attisdropped`: its place remains; read as NULL.
    pub dropped: bool,
    /// `attmissingval`: the value in tuples that are older than the column. NULL if `None`.
    pub missing: Option<Datum>,
}

impl Attribute {
    /// A column that was there from the start.
    pub fn new(name: impl Into<String>, type_oid: Oid, len: i16, align: Align, layout: Option<Layout>) -> Self {
        Self { name: name.into(), type_oid, len, align, layout, dropped: false, missing: None }
    }
}

/// A relation's columns. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TupleDesc(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    relation: String,
    oid: Oid,
    attrs: Vec<Attribute>,
    layout: TupleLayout,
}

impl TupleDesc {
    /// The columns of a relation in the order of `attnum`, dropped ones included.
    pub fn new(relation: impl Into<String>, oid: Oid, attrs: Vec<Attribute>) -> Result<Self> {
        let relation = relation.into();
        let wrong = |why: String| Error::Description { relation: relation.clone(), why };
        if attrs.len() > usize::from(MAX_HEAP_ATTRIBUTES) {
            return Err(wrong(format!("it has {} columns", attrs.len())));
        }
        for attr in &attrs {
            if let Some(layout) = attr.layout
                && !attr.dropped
                && !fits(layout, attr.len)
            {
                return Err(wrong(format!("column \"{}\" of length {} as {layout:?}", attr.name, attr.len)));
            }
        }
        let layouts = attrs.iter().map(|attr| AttrLayout::new(attr.len, attr.align.bytes() as u8));
        let layout = TupleLayout::new(layouts).map_err(|error| wrong(error.to_string()))?;
        Ok(Self(Arc::new(Inner { relation, oid, attrs, layout })))
    }

    /// The relation's name.
    pub fn relation(&self) -> &str {
        &self.0.relation
    }

    /// The relation's OID, the value of `tableoid`.
    pub fn oid(&self) -> Oid {
        self.0.oid
    }

    /// The columns, dropped ones included.
    pub fn attrs(&self) -> &[Attribute] {
        &self.0.attrs
    }

    /// How the columns lie in a tuple.
    pub fn layout(&self) -> &TupleLayout {
        &self.0.layout
    }
}

/// Whether values of `attlen` bytes can be read in this form.
fn fits(layout: Layout, len: i16) -> bool {
    match layout {
        Layout::Bool | Layout::Char => len == 1,
        Layout::Int16 => len == 2,
        Layout::Int32 | Layout::UInt32 | Layout::Float32 => len == 4,
        Layout::Int64 | Layout::UInt64 | Layout::Float64 => len == 8,
        Layout::Fixed(n) => len == i16::from(n),
        Layout::Name => len == 64,
        Layout::Bytes => len == -1,
    }
}
