//! Types' names as messages spell them.

use crate::{TypeDesc, TypeKind, oids};

/// The type's name as `format_type` spells it without typmod and schema: `integer`, `character varying`, `text[]`.
pub fn sql_name(ty: &TypeDesc) -> String {
    if let TypeKind::Array { .. } = ty.kind
        && let Some(element) = ty.name.strip_prefix('_')
    {
        let element_name =
            if crate::builtin(ty.element).is_some() { special_name(ty.element).unwrap_or(element) } else { element };
        return format!("{element_name}[]");
    }
    special_name(ty.oid).map_or_else(|| ty.name.clone(), str::to_owned)
}

/// The SQL standard's name of a type that PostgreSQL stores under another.
fn special_name(oid: crate::Oid) -> Option<&'static str> {
    Some(match oid {
        oids::BIT => "bit",
        oids::BOOL => "boolean",
        oids::BPCHAR => "character",
        oids::CHAR => "\"char\"",
        oids::FLOAT4 => "real",
        oids::FLOAT8 => "double precision",
        oids::INT2 => "smallint",
        oids::INT4 => "integer",
        oids::INT8 => "bigint",
        oids::NUMERIC => "numeric",
        oids::INTERVAL => "interval",
        oids::TIME => "time without time zone",
        oids::TIMETZ => "time with time zone",
        oids::TIMESTAMP => "timestamp without time zone",
        oids::TIMESTAMPTZ => "timestamp with time zone",
        oids::VARBIT => "bit varying",
        oids::VARCHAR => "character varying",
        _ => return None,
    })
}
