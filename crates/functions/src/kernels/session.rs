//! What the session knows: who, where, when, and its settings.

use stegodon_catalog::lookup::PG_CATALOG;
use stegodon_types::{ColumnBuilder, Datum, Oid, SqlError, SqlResult, SqlState, ValueRef, array, oids};

use crate::adapt::*;
use crate::context::read_only;
use crate::kernel::Entry;
use crate::{Call, Column, EvalContext, Fork};

/// The schemas of `search_path` itself, without what is implied.
fn explicit_path(cx: &EvalContext<'_>) -> impl Iterator<Item = Oid> {
    let path = cx.session.search_path().namespaces.clone();
    let setting = cx.session.setting("search_path").unwrap_or_default();
    let named = stegodon_catalog::path::split_identifiers(&setting, ',').unwrap_or_default();
    let implied = !named.iter().any(|n| n == "pg_catalog");
    path.into_iter().filter(move |&n| !(implied && n == PG_CATALOG))
}

/// The first schema of the search path that exists.
pub(crate) fn current_schema(cx: &EvalContext<'_>) -> Option<String> {
    explicit_path(cx).filter_map(|n| cx.catalog.namespace(n)).map(|n| n.name.clone()).next()
}

/// The same value in every row.
pub(crate) fn constant(call: &Call<'_>, value: Option<&Datum>) -> SqlResult<Column> {
    Column::constant(call.info.layout, value)
}

fn text(call: &Call<'_>, value: Option<&str>) -> SqlResult<Column> {
    constant(call, value.map(Datum::bytes).as_ref())
}

fn role(call: &Call<'_>, oid: Oid) -> SqlResult<Column> {
    match call.cx.catalog.role(oid) {
        Some(role) => text(call, Some(&role.name)),
        None => Err(SqlError::new(SqlState::UndefinedObject, format!("role with OID {oid} does not exist"))),
    }
}

fn current_schemas(call: &Call<'_>) -> SqlResult<Column> {
    let name = call.cx.types.type_desc(oids::NAME)?;
    write1(call, |implied: bool, out| {
        let path: Vec<Oid> =
            if implied { call.cx.session.search_path().namespaces.clone() } else { explicit_path(call.cx).collect() };
        let names: Vec<&str> =
            path.iter().filter_map(|&n| call.cx.catalog.namespace(n)).map(|n| n.name.as_str()).collect();
        let dimensions = [array::Dimension { length: names.len() as i32, lower: 1 }];
        let values = names.iter().map(|n| Some(ValueRef::Bytes(n.as_bytes())));
        out.extend_from_slice(&array::build(&name, &dimensions, values)?);
        Ok(())
    })
}

fn utf8(bytes: &[u8]) -> SqlResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| SqlError::new(SqlState::CharacterNotInRepertoire, "a name is not UTF-8"))
}

fn setting(call: &Call<'_>, name: &[u8], missing_ok: bool, out: &mut Vec<u8>) -> SqlResult<bool> {
    let name = utf8(name)?;
    match call.cx.session.setting(name) {
        Some(value) => {
            out.extend_from_slice(value.as_bytes());
            Ok(true)
        }
        None if missing_ok => Ok(false),
        None => {
            Err(SqlError::new(SqlState::UndefinedObject, format!("unrecognized configuration parameter \"{name}\"")))
        }
    }
}

fn set_config(call: &Call<'_>) -> SqlResult<Column> {
    opt_write3(call, |name: Option<&[u8]>, value: Option<&[u8]>, local: Option<bool>, out| {
        let name = name.ok_or_else(|| SqlError::new(SqlState::NullValueNotAllowed, "SET requires parameter name"))?;
        let value = value.map(utf8).transpose()?;
        let now = call.cx.session.set_setting(utf8(name)?, value, local.unwrap_or(false))?;
        out.extend_from_slice(now.as_bytes());
        Ok(())
    })
}

/// A relation's size over some forks; `None` where there is no such relation.
fn relation_size(call: &Call<'_>, relation: u32, forks: &[Fork]) -> SqlResult<Option<i64>> {
    if call.cx.catalog.relation(Oid(relation)).is_none() {
        return Ok(None);
    }
    let mut total = 0_i64;
    for &fork in forks {
        let bytes = call.cx.session.relation_bytes(Oid(relation), fork)?;
        total += bytes.unwrap_or(0);
    }
    Ok(Some(total))
}

const ALL_FORKS: [Fork; 4] = [Fork::Main, Fork::FreeSpaceMap, Fork::VisibilityMap, Fork::Init];

fn indexes_size(call: &Call<'_>, relation: u32) -> SqlResult<Option<i64>> {
    let Some(row) = call.cx.catalog.relation(Oid(relation)) else { return Ok(None) };
    let mut total = 0;
    for index in &row.indexes {
        total += relation_size(call, index.0, &ALL_FORKS)?.unwrap_or(0);
    }
    Ok(Some(total))
}

fn table_size(call: &Call<'_>, relation: u32) -> SqlResult<Option<i64>> {
    let Some(row) = call.cx.catalog.relation(Oid(relation)) else { return Ok(None) };
    let mut total = relation_size(call, relation, &ALL_FORKS)?.unwrap_or(0);
    if row.toast != Oid(0) {
        total += relation_size(call, row.toast.0, &ALL_FORKS)?.unwrap_or(0);
        total += indexes_size(call, row.toast.0)?.unwrap_or(0);
    }
    Ok(Some(total))
}

fn fork_named(name: &[u8]) -> SqlResult<Fork> {
    match name {
        b"main" => Ok(Fork::Main),
        b"fsm" => Ok(Fork::FreeSpaceMap),
        b"vm" => Ok(Fork::VisibilityMap),
        b"init" => Ok(Fork::Init),
        _ => Err(SqlError::new(SqlState::InvalidParameterValue, "invalid fork name")
            .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")),
    }
}

/// `pg_size_pretty`.
fn size_pretty(size: i64, out: &mut Vec<u8>) {
    // Name, the size up to which it is used, whether it is rounded, and its power of two.
    const UNITS: [(&str, i64, bool, u32); 6] = [
        ("bytes", 10 * 1024, false, 0),
        ("kB", 20 * 1024 - 1, true, 10),
        ("MB", 20 * 1024 - 1, true, 20),
        ("GB", 20 * 1024 - 1, true, 30),
        ("TB", 20 * 1024 - 1, true, 40),
        ("PB", 20 * 1024 - 1, true, 50),
    ];
    let mut size = size;
    for (n, (name, limit, round, bits)) in UNITS.iter().enumerate() {
        let next = UNITS.get(n + 1);
        let magnitude = size.unsigned_abs();
        match next {
            Some((_, _, next_round, next_bits)) if magnitude >= limit.unsigned_abs() => {
                let shift = next_bits - bits - u32::from(*next_round) + u32::from(*round);
                size /= 1 << shift;
            }
            _ => {
                if *round {
                    size = size.midpoint(size.signum());
                }
                out.extend_from_slice(format!("{size} {name}").as_bytes());
                return;
            }
        }
    }
}

const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

fn sleep(call: &Call<'_>) -> SqlResult<Column> {
    write1(call, |seconds: f64, _out| {
        let end = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let start = std::time::Instant::now();
        loop {
            call.cx.session.check_cancel()?;
            let Some(rest) = end.checked_sub(start.elapsed()).filter(|d| !d.is_zero()) else { return Ok(()) };
            call.cx.session.pause(rest.min(std::time::Duration::from_millis(10)));
        }
    })
}

fn relation_name(call: &Call<'_>, oid: u32) -> String {
    call.cx.catalog.relation(Oid(oid)).map_or_else(|| oid.to_string(), |r| r.name.clone())
}

/// The session.
pub(crate) static KERNELS: &[Entry] = &[
    (89, |c| text(c, Some(&c.cx.session.version()))),
    (745, |c| role(c, c.cx.session.current_user())),
    (710, |c| role(c, c.cx.session.current_user())),
    (746, |c| role(c, c.cx.session.session_user())),
    (861, |c| text(c, Some(c.cx.session.database_name()))),
    (1402, |c| text(c, current_schema(c.cx).as_deref())),
    (1403, current_schemas),
    (810, |c| text(c, c.cx.session.setting("client_encoding").as_deref())),
    (2077, |c| write1(c, |name: &[u8], out| setting(c, name, false, out))),
    (3294, |c| write2(c, |name: &[u8], ok: bool, out| setting(c, name, ok, out))),
    (2078, set_config),
    (1299, |c| constant(c, Some(&Datum::Int64(c.cx.session.transaction_start_us())))),
    (2647, |c| constant(c, Some(&Datum::Int64(c.cx.session.transaction_start_us())))),
    (2648, |c| constant(c, Some(&Datum::Int64(c.cx.session.statement_start_us())))),
    (2649, |c| constant(c, Some(&Datum::Int64(c.cx.session.clock_us())))),
    (2560, |c| constant(c, Some(&Datum::Int64(c.cx.session.postmaster_start_us())))),
    (2026, |c| constant(c, Some(&Datum::Int32(c.cx.session.backend_pid())))),
    (3810, |c| constant(c, Some(&Datum::Bool(c.cx.session.in_recovery())))),
    (2854, |c| constant(c, Some(&Datum::UInt32(0)))),
    (315, |c| constant(c, Some(&Datum::Bool(false)))),
    (3163, |c| constant(c, Some(&Datum::Int32(0)))),
    (5060, |c| constant(c, None)),
    (3348, |c| constant(c, None)),
    (1610, |c| constant(c, Some(&Datum::Float64(std::f64::consts::PI)))),
    (2626, sleep),
    (1597, |c| {
        write1(c, |n: i32, out: &mut Vec<u8>| {
            let name = usize::try_from(n).ok().and_then(|n| ENCODINGS.get(n)).copied().unwrap_or_default();
            out.extend_from_slice(name.as_bytes());
            Ok(())
        })
    }),
    // Sizes.
    (2325, |c| map1(c, |r: u32| relation_size(c, r, &[Fork::Main]))),
    (2332, |c| map2(c, |r: u32, fork: &[u8]| relation_size(c, r, &[fork_named(fork)?]))),
    (2997, |c| map1(c, |r: u32| table_size(c, r))),
    (2998, |c| map1(c, |r: u32| indexes_size(c, r))),
    (2286, |c| {
        map1(c, |r: u32| {
            let (Some(table), Some(indexes)) = (table_size(c, r)?, indexes_size(c, r)?) else { return Ok(None) };
            Ok(Some(table + indexes))
        })
    }),
    (2324, |c| map1(c, |d: u32| c.cx.session.database_bytes(Oid(d)))),
    (2168, |c| {
        map1(c, |name: &[u8]| {
            let found = c.cx.catalog.databases().find(|d| d.name.as_bytes() == name);
            let found = found.ok_or_else(|| {
                let name = String::from_utf8_lossy(name);
                SqlError::new(SqlState::InvalidCatalogName, format!("database \"{name}\" does not exist"))
            })?;
            c.cx.session.database_bytes(found.oid)
        })
    }),
    (2322, |c| map1(c, |t: u32| c.cx.session.tablespace_bytes(Oid(t)))),
    (2288, |c| {
        write1(c, |n: i64, out: &mut Vec<u8>| {
            size_pretty(n, out);
            Ok(())
        })
    }),
    // What would write.
    (1574, |c| map1(c, |_: u32| Err::<i64, _>(read_only("nextval()")))),
    (1576, |c| map2(c, |_: u32, _: i64| Err::<i64, _>(read_only("setval()")))),
    (1765, |c| map3(c, |_: u32, _: i64, _: bool| Err::<i64, _>(read_only("setval()")))),
    (1575, |c| {
        map1(c, |r: u32| {
            Err::<i64, _>(SqlError::new(
                SqlState::ObjectNotInPrerequisiteState,
                format!("currval of sequence \"{}\" is not yet defined in this session", relation_name(c, r)),
            ))
        })
    }),
    (2559, |_| {
        Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, "lastval is not yet defined in this session"))
    }),
    (5059, |_| Err(read_only("pg_current_xact_id()"))),
    (2943, |_| Err(read_only("txid_current()"))),
];

/// `pg_typeof`, and counting NULLs.
pub(crate) static ANY: &[Entry] = &[
    (1619, |c| {
        let ty = c.info.arg_types.first().ok_or_else(|| SqlError::internal("pg_typeof without an argument"))?;
        constant(c, Some(&Datum::UInt32(ty.oid.0)))
    }),
    (440, |c| count_nulls(c, false)),
    (438, |c| count_nulls(c, true)),
];

fn count_nulls(call: &Call<'_>, nulls: bool) -> SqlResult<Column> {
    if call.info.variadic {
        return Err(SqlError::unsupported("num_nulls of a VARIADIC array"));
    }
    let mut out = ColumnBuilder::new(call.info.layout, call.rows);
    for row in 0..call.rows {
        let n = call.args.iter().filter(|a| a.is_null(row) == nulls).count();
        out.append(ValueRef::Int32(n as i32))?;
    }
    Ok(shape(call, out.finish()))
}
