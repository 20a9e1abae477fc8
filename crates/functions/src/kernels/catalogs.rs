//! Questions about the catalogs: names, visibility, comments, privileges.

use stegodon_catalog::Catalog;
use stegodon_catalog::acl::privilege;
use stegodon_catalog::lookup::PG_CATALOG;
use stegodon_format::version::Version;
use stegodon_types::{Oid, RegKind, SqlError, SqlResult, SqlState, TypeContext, ValueRef};

use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether an object's bare name finds it; NULL where there is no such object.
fn visible(
    call: &Call<'_>,
    exists: impl Fn(&Catalog, Oid) -> bool,
    is: impl Fn(&Catalog, Oid, &stegodon_catalog::SearchPath) -> bool,
) -> SqlResult<Column> {
    let path = call.cx.session.search_path();
    map1(call, |oid: u32| {
        let catalog = call.cx.catalog;
        Ok(exists(catalog, Oid(oid)).then(|| is(catalog, Oid(oid), path)))
    })
}

/// `to_regclass` and its like: NULL where the name means nothing.
fn to_reg(call: &Call<'_>) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let ty = &call.info.result_type;
    let input = stegodon_types::ops(ty)?.text_in;
    map1(call, |text: &[u8]| match input(&cx, ty, text, -1) {
        Ok(datum) => match datum.as_ref() {
            ValueRef::UInt32(oid) => Ok(Some(oid)),
            _ => Err(SqlError::internal("a reg type is no number")),
        },
        Err(e) if matches!(e.state, SqlState::FeatureNotSupported | SqlState::InternalError) => Err(e),
        // Before 16 only what is missing was NULL.
        Err(e)
            if call.cx.settings.version < Version::V16
                && !matches!(
                    e.state,
                    SqlState::UndefinedTable
                        | SqlState::UndefinedObject
                        | SqlState::UndefinedFunction
                        | SqlState::InvalidSchemaName
                ) =>
        {
            Err(SqlError::unsupported("such a name, in a directory of version 15"))
        }
        Err(_) => Ok(None),
    })
}

/// A comment on an object of the catalog named.
fn described(call: &Call<'_>, shared: bool) -> SqlResult<Column> {
    write2(call, |object: u32, catalog: &[u8], out: &mut Vec<u8>| {
        let Some(class) = call.cx.catalog.relation_by_name(PG_CATALOG, &string(catalog)) else { return Ok(false) };
        let text = if shared {
            call.cx.session.shared_description(class.oid, Oid(object))?
        } else {
            call.cx.session.description(class.oid, Oid(object), 0)?
        };
        out.extend_from_slice(text.as_deref().unwrap_or_default().as_bytes());
        Ok(text.is_some())
    })
}

/// The privileges that a list like `SELECT, INSERT WITH GRANT OPTION` names; any one of them suffices.
fn privileges(catalog: &Catalog, text: &[u8], known: &[(&str, u64)]) -> SqlResult<u64> {
    let text = string(text);
    let mut mask = 0;
    for word in text.split(',') {
        let word = word.trim().to_ascii_uppercase();
        let (name, grant) = match word.strip_suffix("WITH GRANT OPTION") {
            Some(name) => (name.trim_end().to_owned(), true),
            None => (word.clone(), false),
        };
        let since = if name == "MAINTAIN" { Version::V17 } else { Version::V15 };
        let bit =
            known.iter().find(|(n, _)| *n == name && catalog.version() >= since).map(|(_, bit)| *bit).ok_or_else(
                || {
                    SqlError::new(
                        SqlState::InvalidParameterValue,
                        format!("unrecognized privilege type: \"{}\"", word_as_written(&text, &word)),
                    )
                },
            )?;
        mask |= if grant { bit << 32 } else { bit };
    }
    Ok(mask)
}

/// The item of the list as the user wrote it.
fn word_as_written(text: &str, upper: &str) -> String {
    text.split(',').map(str::trim).find(|w| w.to_ascii_uppercase() == upper).unwrap_or(upper).to_owned()
}

const TABLE: [(&str, u64); 8] = [
    ("SELECT", privilege::SELECT),
    ("INSERT", privilege::INSERT),
    ("UPDATE", privilege::UPDATE),
    ("DELETE", privilege::DELETE),
    ("TRUNCATE", privilege::TRUNCATE),
    ("REFERENCES", privilege::REFERENCES),
    ("TRIGGER", privilege::TRIGGER),
    ("MAINTAIN", privilege::MAINTAIN),
];
const SCHEMA: [(&str, u64); 2] = [("CREATE", privilege::CREATE), ("USAGE", privilege::USAGE)];
const DATABASE: [(&str, u64); 4] = [
    ("CREATE", privilege::CREATE),
    ("TEMPORARY", privilege::CREATE_TEMP),
    ("TEMP", privilege::CREATE_TEMP),
    ("CONNECT", privilege::CONNECT),
];
const FUNCTION: [(&str, u64); 1] = [("EXECUTE", privilege::EXECUTE)];
const TYPE: [(&str, u64); 1] = [("USAGE", privilege::USAGE)];
const TABLESPACE: [(&str, u64); 1] = [("CREATE", privilege::CREATE)];

/// A role by name; `public` is nobody in particular.
fn role_named(catalog: &Catalog, name: &[u8]) -> SqlResult<Oid> {
    let name = string(name);
    if name == "public" {
        return Ok(Oid(0));
    }
    catalog
        .role_by_name(&name)
        .map(|r| r.oid)
        .ok_or_else(|| SqlError::new(SqlState::UndefinedObject, format!("role \"{name}\" does not exist")))
}

/// What sort of object privileges are asked on.
#[derive(Clone, Copy)]
enum On {
    Table,
    Schema,
    Database,
    Function,
    Type,
    Tablespace,
}

impl On {
    fn known(self) -> &'static [(&'static str, u64)] {
        match self {
            On::Table => &TABLE,
            On::Schema => &SCHEMA,
            On::Database => &DATABASE,
            On::Function => &FUNCTION,
            On::Type => &TYPE,
            On::Tablespace => &TABLESPACE,
        }
    }

    /// Whether the role has any of them; `None` where there is no such object.
    fn has(self, catalog: &Catalog, role: Oid, object: Oid, mask: u64) -> Option<bool> {
        let held = match self {
            On::Table => catalog.relation_privileges(catalog.relation(object)?, role, mask),
            On::Schema => {
                catalog.namespace(object)?;
                catalog.namespace_privileges(object, role, mask)
            }
            On::Database => {
                catalog.databases().find(|d| d.oid == object)?;
                catalog.database_privileges(object, role, mask)
            }
            On::Function => {
                catalog.proc(object)?;
                catalog.function_privileges(object, role, mask)
            }
            On::Type => {
                catalog.type_desc(object)?;
                catalog.type_privileges(object, role, mask)
            }
            On::Tablespace => {
                catalog.tablespace(object)?;
                catalog.tablespace_privileges(object, role, mask)
            }
        };
        Some(held != 0)
    }

    /// The object of a name.
    fn named(self, call: &Call<'_>, name: &[u8]) -> SqlResult<Oid> {
        let text = string(name);
        let catalog = call.cx.catalog;
        match self {
            On::Table => call.cx.types.object_oid(RegKind::Class, &text),
            On::Function => call.cx.types.object_oid(RegKind::Procedure, &text),
            On::Type => call.cx.types.object_oid(RegKind::Type, &text),
            On::Schema => catalog
                .namespace_by_name(&text)
                .map(|n| n.oid)
                .ok_or_else(|| SqlError::new(SqlState::InvalidSchemaName, format!("schema \"{text}\" does not exist"))),
            On::Database => catalog.databases().find(|d| d.name == text).map(|d| d.oid).ok_or_else(|| {
                SqlError::new(SqlState::InvalidCatalogName, format!("database \"{text}\" does not exist"))
            }),
            On::Tablespace => catalog.tablespace_by_name(&text).map(|t| t.oid).ok_or_else(|| {
                SqlError::new(SqlState::UndefinedObject, format!("tablespace \"{text}\" does not exist"))
            }),
        }
    }
}

/// Each line: what on, and the OIDs of the six forms: (name, text), (name, oid), (oid, text), (oid, oid), (text), (oid).
macro_rules! has_privilege {
    ($($on:ident [$nn:literal $no:literal $on_name:literal $oo:literal $n:literal $o:literal];)*) => {
        &[$(
            ($nn, |c| map3(c, |role: &[u8], object: &[u8], p: &[u8]| {
                let (role, mask) = (role_named(c.cx.catalog, role)?, privileges(c.cx.catalog, p, On::$on.known())?);
                Ok(On::$on.has(c.cx.catalog, role, On::$on.named(c, object)?, mask))
            })),
            ($no, |c| map3(c, |role: &[u8], object: u32, p: &[u8]| {
                let (role, mask) = (role_named(c.cx.catalog, role)?, privileges(c.cx.catalog, p, On::$on.known())?);
                Ok(On::$on.has(c.cx.catalog, role, Oid(object), mask))
            })),
            ($on_name, |c| map3(c, |role: u32, object: &[u8], p: &[u8]| {
                let object = On::$on.named(c, object)?;
                Ok(On::$on.has(c.cx.catalog, Oid(role), object, privileges(c.cx.catalog, p, On::$on.known())?))
            })),
            ($oo, |c| map3(c, |role: u32, object: u32, p: &[u8]| {
                Ok(On::$on.has(c.cx.catalog, Oid(role), Oid(object), privileges(c.cx.catalog, p, On::$on.known())?))
            })),
            ($n, |c| map2(c, |object: &[u8], p: &[u8]| {
                let object = On::$on.named(c, object)?;
                Ok(On::$on.has(c.cx.catalog, c.cx.session.current_user(), object, privileges(c.cx.catalog, p, On::$on.known())?))
            })),
            ($o, |c| map2(c, |object: u32, p: &[u8]| {
                let mask = privileges(c.cx.catalog, p, On::$on.known())?;
                Ok(On::$on.has(c.cx.catalog, c.cx.session.current_user(), Oid(object), mask))
            })),
        )*]
    };
}

/// `has_…_privilege`.
pub(crate) static PRIVILEGES: &[Entry] = has_privilege! {
    Table [1922 1923 1924 1925 1926 1927];
    Schema [2268 2269 2270 2271 2272 2273];
    Database [2250 2251 2252 2253 2254 2255];
    Function [2256 2257 2258 2259 2260 2261];
    Type [3138 3139 3140 3141 3142 3143];
    Tablespace [2390 2391 2392 2393 2394 2395];
};

/// `pg_has_role`: MEMBER, USAGE, SET, each also WITH GRANT OPTION or WITH ADMIN OPTION (refused).
fn has_role(catalog: &Catalog, member: Oid, role: Oid, privilege: &[u8]) -> SqlResult<bool> {
    for word in string(privilege).split(',') {
        let held = match word.trim().to_ascii_uppercase().as_str() {
            "MEMBER" => catalog.is_member_of_role(member, role),
            "USAGE" => catalog.has_privileges_of_role(member, role),
            "SET" if catalog.version() >= Version::V16 => catalog.can_set_role(member, role),
            other if other.contains("WITH") => return Err(SqlError::unsupported("pg_has_role WITH ADMIN OPTION")),
            _ => {
                return Err(SqlError::new(
                    SqlState::InvalidParameterValue,
                    format!("unrecognized privilege type: \"{}\"", word.trim()),
                ));
            }
        };
        if held {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Names, visibility, comments, roles.
pub(crate) static KERNELS: &[Entry] = &[
    (1642, |c| {
        write1(c, |oid: u32, out: &mut Vec<u8>| {
            match c.cx.catalog.role(Oid(oid)) {
                Some(role) => out.extend_from_slice(role.name.as_bytes()),
                None => out.extend_from_slice(format!("unknown (OID={oid})").as_bytes()),
            }
            Ok(())
        })
    }),
    (1081, |c| {
        opt_write2(c, |oid: Option<u32>, typmod: Option<i32>, out| {
            let Some(oid) = oid else { return Ok(false) };
            let name = c.cx.catalog.format_type_on(c.cx.session.search_path(), Oid(oid), typmod);
            out.extend_from_slice(name.as_bytes());
            Ok(true)
        })
    }),
    (1282, |c| {
        write1(c, |name: &[u8], out| {
            let name = std::str::from_utf8(name).map_err(|_| SqlError::unsupported("quoting what is not UTF-8"))?;
            out.extend_from_slice(stegodon_catalog::keywords::quote_identifier(name).as_bytes());
            Ok(())
        })
    }),
    (2079, |c| visible(c, |k, o| k.relation(o).is_some(), Catalog::relation_is_visible)),
    (2080, |c| visible(c, |k, o| k.type_desc(o).is_some(), Catalog::type_is_visible)),
    (2081, |c| visible(c, |k, o| k.proc(o).is_some(), Catalog::function_is_visible)),
    (2082, |c| visible(c, |k, o| k.operator(o).is_some(), Catalog::operator_is_visible)),
    (2083, |c| visible(c, |k, o| k.opclass(o).is_some(), Catalog::opclass_is_visible)),
    (3815, |c| visible(c, |k, o| k.collation(o).is_some(), Catalog::collation_is_visible)),
    (3495, to_reg),
    (4195, to_reg),
    (4086, to_reg),
    (3492, to_reg),
    (3476, to_reg),
    (3494, to_reg),
    (3479, to_reg),
    (4093, to_reg),
    (3493, to_reg),
    (1079, |c| map1(c, |name: &[u8]| text_regclass(c, &string(name)))),
    (1215, |c| described(c, false)),
    (1993, |c| described(c, true)),
    (1216, |c| {
        write2(c, |relation: u32, column: i32, out: &mut Vec<u8>| {
            let text = c.cx.session.description(Oid(1259), Oid(relation), column)?;
            out.extend_from_slice(text.as_deref().unwrap_or_default().as_bytes());
            Ok(text.is_some())
        })
    }),
    (2705, |c| {
        map3(c, |member: &[u8], role: &[u8], p: &[u8]| {
            let k = c.cx.catalog;
            has_role(k, role_named(k, member)?, role_named(k, role)?, p)
        })
    }),
    (2706, |c| {
        map3(c, |member: &[u8], role: u32, p: &[u8]| {
            has_role(c.cx.catalog, role_named(c.cx.catalog, member)?, Oid(role), p)
        })
    }),
    (2707, |c| {
        map3(c, |member: u32, role: &[u8], p: &[u8]| {
            has_role(c.cx.catalog, Oid(member), role_named(c.cx.catalog, role)?, p)
        })
    }),
    (2708, |c| map3(c, |member: u32, role: u32, p: &[u8]| has_role(c.cx.catalog, Oid(member), Oid(role), p))),
    (2709, |c| {
        map2(c, |role: &[u8], p: &[u8]| {
            has_role(c.cx.catalog, c.cx.session.current_user(), role_named(c.cx.catalog, role)?, p)
        })
    }),
    (2710, |c| map2(c, |role: u32, p: &[u8]| has_role(c.cx.catalog, c.cx.session.current_user(), Oid(role), p))),
];

/// `text::regclass`: a name only, where `regclass`'s input takes numbers too.
fn text_regclass(call: &Call<'_>, name: &str) -> SqlResult<u32> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("relation \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::UndefinedTable, message));
    }
    call.cx.types.object_oid(RegKind::Class, name).map(|o| o.0)
}
