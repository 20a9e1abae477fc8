//! Keys for DataFusion: it compares Arrow values, so it is given columns whose Arrow order and equality are PostgreSQL's
//! (DESIGN D4, "Keys are ours").

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, LargeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use stegodon_types::{
    Collation, Layout, SqlError, SqlResult, TypeCatalog, TypeContext, TypeDesc, encode_equality_key, encode_key,
    is_own_key, oids, value_at,
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
    /// An integer whose key is an int8, to be compared with other integers.
    widen: bool,
}

impl KeyEncoding {
    /// The encoding of a type under a collation.
    pub(crate) fn new(execution: &Execution, type_oid: Oid, collation: Oid, keeps: Keeps) -> SqlResult<Self> {
        let ty = execution.view.type_desc(type_oid)?;
        let layout = ty.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", ty.name)))?;
        let collation = execution.view.collation(collation)?;
        if ty.collation.is_valid() {
            match keeps {
                Keeps::Equality => collation.check_equality()?,
                Keeps::Order => collation.check_order()?,
            }
        }
        let own = is_own_key(&ty);
        Ok(Self { ty, layout, collation, keeps, own, widen: false })
    }

    /// Encodings under which values of two types compare; `None` where the operator itself must be asked.
    pub(crate) fn common(
        execution: &Execution,
        left: Oid,
        right: Oid,
        collation: Oid,
        keeps: Keeps,
    ) -> SqlResult<Option<(Self, Self)>> {
        let left = Self::new(execution, left, collation, keeps)?;
        let right = Self::new(execution, right, collation, keeps)?;
        // Text under bytewise equality is its own key whatever it is called; bpchar's key drops its blanks.
        let same = left.ty.oid == right.ty.oid
            || (left.own && right.own && left.layout == right.layout && left.layout == Layout::Bytes);
        if same {
            return Ok(Some((left, right)));
        }
        let integers = |k: &Self| matches!(k.ty.oid, oids::INT2 | oids::INT4 | oids::INT8);
        if integers(&left) && integers(&right) {
            return Ok(Some((left.widened(), right.widened())));
        }
        Ok(None)
    }

    fn widened(mut self) -> Self {
        self.widen = true;
        self
    }

    /// The Arrow type of the key.
    pub(crate) fn data_type(&self) -> DataType {
        if self.widen {
            DataType::Int64
        } else if self.own {
            self.layout.arrow()
        } else {
            DataType::LargeBinary
        }
    }

    /// Whether the value is its own key.
    pub(crate) fn is_own(&self) -> bool {
        self.own && !self.widen
    }

    /// The keys of a column. NULL stays NULL.
    pub(crate) fn encode(&self, cx: &TypeContext<'_>, values: &ArrayRef) -> SqlResult<ArrayRef> {
        if self.widen {
            return arrow::compute::cast(values, &DataType::Int64).map_err(SqlError::internal);
        }
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
