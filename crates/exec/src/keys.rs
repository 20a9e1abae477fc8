//! Keys for DataFusion: it compares Arrow values, so it is given columns whose Arrow order and equality are PostgreSQL's
//! (DESIGN D4, "Keys are ours").

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, LargeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use stegodon_types::{
    Collation, Layout, SqlError, SqlResult, TypeCatalog, TypeContext, TypeDesc, encode_equality_key, encode_key,
    is_own_key, value_at,
};

use crate::execution::Execution;
use stegodon_format::ids::Oid;

/// What a key must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Equal values have equal keys, others different ones.
    Equality,
    /// Keys order as values do.
    Order,
}

/// How one column becomes a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyEncoding {
    ty: Arc<TypeDesc>,
    layout: Layout,
    collation: Collation,
    keeps: Keeps,
    own: bool,
}

impl KeyEncoding {
    /// The encoding of a type under a collation.
    pub(crate) fn new(execution: &Execution, type_oid: Oid, collation: Oid, keeps: Keeps) -> SqlResult<Self> {
        let ty = execution.view.type_desc(type_oid)?;
        let layout = ty.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", ty.name)))?;
        let collation = execution.view.collation_kind(collation)?;
        match keeps {
            Keeps::Equality => collation.check_equality()?,
            Keeps::Order => collation.check_order()?,
        }
        let own = is_own_key(&ty);
        Ok(Self { ty, layout, collation, keeps, own })
    }

    /// The Arrow type of the key.
    pub(crate) fn data_type(&self) -> DataType {
        if self.own { self.layout.arrow() } else { DataType::LargeBinary }
    }

    /// Whether the value is its own key.
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }

    /// The keys of a column. NULL stays NULL.
    pub(crate) fn encode(&self, cx: &TypeContext<'_>, values: &ArrayRef) -> SqlResult<ArrayRef> {
        if self.own {
            return Ok(Arc::clone(values));
        }
        let mut bytes = Vec::with_capacity(values.len() * 12);
        let mut offsets: Vec<i64> = Vec::with_capacity(values.len() + 1);
        offsets.push(0);
        for row in 0..values.len() {
            if let Some(value) = value_at(values.as_ref(), self.layout, row) {
                match self.keeps {
                    Keeps::Order => encode_key(cx, &self.ty, &self.collation, value, &mut bytes)?,
                    Keeps::Equality => encode_equality_key(cx, &self.ty, &self.collation, value, &mut bytes)?,
                }
            }
            offsets.push(bytes.len() as i64);
        }
        let nulls: Option<NullBuffer> = values.nulls().cloned();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let array = LargeBinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls);
        Ok(Arc::new(array.map_err(|e| SqlError::internal(format_args!("keys do not fit an array: {e}")))?))
    }
}
