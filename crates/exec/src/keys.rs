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
    /// What its values become first, to be compared with those of a wider type: integers int8, floats float8.
    widened: Option<DataType>,
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
        Ok(Self { ty, layout, collation, keeps, own, widened: None })
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
            return Ok(Some((left.into_int8(), right.into_int8())));
        }
        let floats = |k: &Self| matches!(k.ty.oid, oids::FLOAT4 | oids::FLOAT8);
        if floats(&left) && floats(&right) {
            let into_float8 = |k: Self| k.into_float8(execution);
            return Ok(Some((into_float8(left)?, into_float8(right)?)));
        }
        Ok(None)
    }

    fn into_int8(mut self) -> Self {
        self.widened = Some(DataType::Int64);
        self
    }

    fn into_float8(mut self, execution: &Execution) -> SqlResult<Self> {
        if self.ty.oid != oids::FLOAT8 {
            self.widened = Some(DataType::Float64);
            self.ty = execution.view.type_desc(oids::FLOAT8)?;
            self.layout = Layout::Float64;
        }
        Ok(self)
    }

    /// The Arrow type of the key.
    pub(crate) fn data_type(&self) -> DataType {
        if self.widened == Some(DataType::Int64) {
            DataType::Int64
        } else if self.own {
            self.layout.arrow()
        } else {
            DataType::LargeBinary
        }
    }

    /// Whether the value is its own key.
    pub(crate) fn is_own(&self) -> bool {
        self.own && self.widened.is_none()
    }

    /// The keys of a column. NULL stays NULL.
    pub(crate) fn encode(&self, cx: &TypeContext<'_>, values: &ArrayRef) -> SqlResult<ArrayRef> {
        let wide;
        let values = match &self.widened {
            None => values,
            Some(wider) => {
                wide = arrow::compute::cast(values, wider).map_err(SqlError::internal)?;
                &wide
            }
        };
        if self.own || self.widened == Some(DataType::Int64) {
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
