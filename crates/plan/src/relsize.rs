//! How large a relation is now: its real length, and rows by the density that VACUUM or ANALYZE last saw
//! (`estimate_rel_size`).

use std::rc::Rc;

use stegodon_catalog::Catalog;
use stegodon_catalog::rows::Relation;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_types::SqlResult;

use crate::context::Context;
use crate::rel::{ColumnType, IndexInfo, Rel, is_c_like};

const PAGE_BYTES: f64 = 8192.0;
const PAGE_HEADER_BYTES: f64 = 24.0;
const TUPLE_OVERHEAD_BYTES: f64 = 24.0 + 4.0;

/// A guess at a type's average width (`get_typavgwidth`).
pub fn type_width(catalog: &Catalog, type_oid: Oid, typmod: i32) -> i32 {
    let Some(desc) = catalog.type_desc(type_oid) else { return 32 };
    if desc.len > 0 {
        return i32::from(desc.len);
    }
    // Character types with a length limit: nearly full.
    let limit = match type_oid.0 {
        1042 if typmod > 4 => Some(typmod - 4),
        1043 if typmod > 4 => Some(typmod - 4),
        1560 | 1562 if typmod > 0 => Some((typmod + 7) / 8 + 8),
        1700 if typmod >= 4 => {
            let precision = (typmod - 4) >> 16 & 0xffff;
            Some(8 + 2 * ((precision + 6) / 4))
        }
        _ => None,
    };
    let Some(max) = limit else { return 32 };
    let max = match type_oid.0 {
        // Bytes of the widest character of UTF-8, as `type_maximum_size` counts.
        1042 | 1043 => max.saturating_mul(encoding_max_bytes(catalog)).saturating_add(4),
        _ => max,
    };
    if type_oid.0 == 1042 {
        return max;
    }
    if max <= 32 {
        max
    } else if max < 1000 {
        32 + (max - 32) / 2
    } else {
        32 + (1000 - 32) / 2
    }
}

fn encoding_max_bytes(catalog: &Catalog) -> i32 {
    if catalog.database().is_some_and(|d| d.encoding == 6) { 4 } else { 1 }
}

/// The average width of a base relation's column.
pub fn column_width(catalog: &Catalog, relation: Oid, attno: AttrNumber, column: ColumnType, inherited: bool) -> i32 {
    if attno.0 > 0
        && let Some(s) = catalog.statistic(relation, attno, inherited)
        && s.width_bytes > 0
    {
        return s.width_bytes;
    }
    type_width(catalog, column.type_oid, column.typmod)
}

fn density_from_widths(cx: &Context<'_>, relation: &Relation, inherited: bool) -> f64 {
    let mut width = 0;
    for a in relation.attributes.iter().filter(|a| !a.dropped) {
        let c = ColumnType { type_oid: a.type_oid, typmod: a.typmod, collation: a.collation, not_null: false };
        width += column_width(cx.catalog(), relation.oid, a.number, c, inherited);
    }
    let fillfactor = option(relation, "fillfactor").and_then(|v| v.parse::<f64>().ok()).unwrap_or(100.0);
    let align = |n: f64| (n / 8.0).ceil() * 8.0;
    let tuple = align(f64::from(width)) + align(23.0) + 4.0;
    let _ = TUPLE_OVERHEAD_BYTES;
    // Integer division is intended there as well.
    ((PAGE_BYTES - PAGE_HEADER_BYTES) * fillfactor / 100.0 / tuple).floor().max(1.0)
}

/// A storage option's value.
pub fn option<'r>(relation: &'r Relation, name: &str) -> Option<&'r str> {
    relation.options.iter().find_map(|o| o.split_once('=').filter(|(n, _)| *n == name).map(|(_, v)| v))
}

/// Pages, tuples and the all-visible fraction of a table.
pub fn table_size(cx: &Context<'_>, relation: &Relation) -> SqlResult<(f64, f64, f64)> {
    if relation.locator.is_none() {
        // No storage: partitioned tables go by what ANALYZE recorded.
        return Ok((f64::from(relation.pages), f64::from(relation.tuples.max(0.0)), 0.0));
    }
    let mut pages = cx.input.storage.relation_blocks(relation.oid)?;
    // Never vacuumed and still small: it is expected to grow.
    if pages < 10 && relation.tuples < 0.0 && !relation.has_subclass {
        pages = 10;
    }
    if pages == 0 {
        return Ok((0.0, 0.0, 0.0));
    }
    let known = f64::from(relation.pages);
    let density = if relation.tuples >= 0.0 && relation.pages > 0 {
        f64::from(relation.tuples) / known
    } else {
        density_from_widths(cx, relation, false)
    };
    let tuples = (density * f64::from(pages)).round_ties_even();
    let visible = f64::from(relation.all_visible);
    let fraction = if visible <= 0.0 {
        0.0
    } else if visible >= f64::from(pages) {
        1.0
    } else {
        visible / f64::from(pages)
    };
    Ok((f64::from(pages), tuples, fraction))
}

fn index_size(cx: &Context<'_>, index: &Relation, table: &Relation) -> SqlResult<(f64, f64)> {
    let mut pages = f64::from(cx.input.storage.relation_blocks(index.oid)?);
    if pages == 0.0 {
        return Ok((0.0, 0.0));
    }
    let mut known = f64::from(index.pages);
    // The metapage holds no rows.
    if known > 0.0 {
        pages -= 1.0;
        known -= 1.0;
    }
    let density = if index.tuples >= 0.0 && known > 0.0 {
        f64::from(index.tuples) / known
    } else {
        density_from_widths(cx, table, false)
    };
    Ok((f64::from(cx.input.storage.relation_blocks(index.oid)?), (density * pages).round_ties_even()))
}

/// Reads stored expressions and points them at range table entry `rti`.
pub fn stored_exprs(catalog: &Catalog, text: Option<&str>, rti: usize) -> Option<Vec<Expr>> {
    match text {
        None => Some(Vec::new()),
        Some(text) => crate::stored::read_list(catalog, text, rti),
    }
}

/// Describes the table's indexes that may be used at all: btree, valid, ready, and in an order that is known.
pub fn indexes(cx: &Context<'_>, table: &Relation, rel: &Rel<'_>) -> SqlResult<Vec<Rc<IndexInfo>>> {
    let catalog = cx.catalog();
    let mut out = Vec::new();
    // PostgreSQL lists an index made later first.
    for &oid in table.indexes.iter().rev() {
        let relation = cx.relation(oid)?;
        let Some(index) = relation.index.as_deref() else { continue };
        if !index.valid || !index.ready || !index.live || index.check_xmin || relation.kind == b'I' {
            continue;
        }
        if relation.access_method != crate::clause::BTREE {
            continue;
        }
        if !index.collations.iter().all(|&c| is_c_like(catalog, c)) {
            continue;
        }
        let classes: Option<Vec<_>> = index.opclasses.iter().map(|&c| catalog.opclass(c)).collect();
        let Some(classes) = classes else { continue };
        let (Some(mut expressions), Some(mut predicate)) = (
            stored_exprs(catalog, index.expressions.as_deref(), rel.rti),
            stored_exprs(catalog, index.predicate.as_deref(), rel.rti),
        ) else {
            continue;
        };
        for e in &mut expressions {
            *e = cx.input.evaluate.fold(e.clone())?;
        }
        predicate = predicate.into_iter().flat_map(crate::exprs::conjuncts).collect();
        let mut folded = Vec::new();
        for e in predicate {
            let e = crate::prep::canonical(cx.input.evaluate.fold(e)?);
            folded.extend(crate::exprs::conjuncts(e));
        }
        let (pages, mut tuples) = index_size(cx, relation, table)?;
        if folded.is_empty() {
            tuples = rel.tuples;
        } else if tuples > rel.tuples {
            tuples = rel.tuples;
        }
        let height = cx.input.storage.btree_height(oid)?.map_or(-1, |h| h as i32);
        out.push(Rc::new(IndexInfo {
            oid,
            name: relation.name.clone(),
            pages,
            tuples,
            height,
            columns: index.columns.clone(),
            key_count: index.key_count,
            collations: index.collations.clone(),
            families: classes.iter().map(|c| c.family).collect(),
            input_types: classes.iter().map(|c| c.input_type).collect(),
            descending: index.descending.clone(),
            nulls_first: index.nulls_first.clone(),
            unique: index.unique,
            immediate: index.immediate,
            expressions,
            predicate: folded,
            predicate_ok: false,
            restrictions: Vec::new(),
            random_page_cost: cx.settings().random_page_cost,
        }));
    }
    Ok(out)
}
