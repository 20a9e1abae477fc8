//! Values of options and settings as written: `SET x = a, b`, `WITH (name value)`.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::names::{node_name, string_list};

/// A constant as text.
fn constant_text(c: &pb::AConst) -> Option<String> {
    use pb::a_const::Val;
    Some(match &c.val {
        _ if c.isnull => return None,
        None => "0".to_owned(),
        Some(Val::Ival(i)) => i.ival.to_string(),
        Some(Val::Fval(f)) => f.fval.clone(),
        Some(Val::Sval(s)) => s.sval.clone(),
        Some(Val::Boolval(b)) => b.boolval.to_string(),
        Some(Val::Bsval(b)) => b.bsval.clone(),
    })
}

/// The text of one value.
fn value_text(node: Option<&NodeEnum>) -> Option<String> {
    Some(match node? {
        NodeEnum::AConst(c) => return constant_text(c),
        NodeEnum::String(s) => s.sval.clone(),
        NodeEnum::Integer(i) => i.ival.to_string(),
        NodeEnum::Float(f) => f.fval.clone(),
        NodeEnum::Boolean(b) => b.boolval.to_string(),
        NodeEnum::TypeName(t) => string_list(&t.names).ok()?.last()?.clone(),
        _ => return None,
    })
}

/// The items of a setting's value.
pub(crate) fn string_values(nodes: &[pb::Node]) -> SqlResult<Vec<String>> {
    nodes
        .iter()
        .map(|n| {
            let text = match n.node.as_ref() {
                // SET TIME ZONE INTERVAL '...' keeps the type's name.
                Some(NodeEnum::TypeCast(c)) => {
                    let inner = c.arg.as_ref().and_then(|a| value_text(a.node.as_ref()));
                    inner.map(|t| format!("INTERVAL '{t}'"))
                }
                other => value_text(other),
            };
            text.ok_or_else(|| {
                SqlError::unsupported(format_args!("{} as a setting's value", node_name(n.node.as_ref())))
            })
        })
        .collect()
}

/// An option's value as text.
pub(crate) fn string_option(d: &pb::DefElem) -> Option<String> {
    value_text(d.arg.as_ref().and_then(|a| a.node.as_ref()))
}

/// An option's value as a boolean; none given means true.
pub(crate) fn bool_option(d: &pb::DefElem) -> SqlResult<bool> {
    if d.arg.is_none() {
        return Ok(true);
    }
    let text = string_option(d).map(|s| s.to_ascii_lowercase());
    match text.as_deref() {
        Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        _ => Err(SqlError::new(SqlState::SyntaxError, format!("{} requires a Boolean value", d.defname))),
    }
}
