//! A catalog that knows the table of types and nothing else, for tests.

use std::sync::Arc;

use stegodon_format::ids::Oid;

use crate::table::{builtin, builtin_element};
use crate::{CompositeAttribute, RegKind, SqlError, SqlResult, SqlState, TypeCatalog, TypeDesc};

/// The built-in types and arrays of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltinTypes;

fn no_such(what: &str, oid: Oid) -> SqlError {
    SqlError::new(SqlState::UndefinedObject, format!("{what} with OID {oid} does not exist"))
}

impl TypeCatalog for BuiltinTypes {
    fn type_desc(&self, oid: Oid) -> SqlResult<Arc<TypeDesc>> {
        if let Some(row) = builtin(oid) {
            return Ok(Arc::new(row.desc()));
        }
        builtin_element(oid).and_then(crate::TypeRow::array_desc).map(Arc::new).ok_or_else(|| no_such("type", oid))
    }

    fn enum_label(&self, value: Oid) -> SqlResult<String> {
        Err(no_such("enum value", value))
    }

    fn enum_value(&self, _: Oid, _: &str) -> SqlResult<Option<Oid>> {
        Ok(None)
    }

    fn enum_order(&self, value: Oid) -> SqlResult<f32> {
        Err(no_such("enum value", value))
    }

    fn composite(&self, type_oid: Oid) -> SqlResult<Arc<[CompositeAttribute]>> {
        Err(no_such("composite type", type_oid))
    }

    fn object_name(&self, _: RegKind, _: Oid) -> SqlResult<Option<String>> {
        Ok(None)
    }

    fn object_oid(&self, _: RegKind, name: &str) -> SqlResult<Oid> {
        Err(SqlError::new(SqlState::UndefinedObject, format!("object \"{name}\" does not exist")))
    }
}
