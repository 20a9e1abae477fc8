//! Reading every stored tree of a catalog.

use std::collections::BTreeMap;

use stegodon_catalog::Catalog;
use stegodon_nodes::reader::{read_exprs, read_partition_bound, read_queries, read_view_query};

/// Reads all of them; counts what was read and what was refused, by message.
pub fn read_all(catalog: &Catalog) -> (usize, BTreeMap<String, Vec<String>>) {
    let (mut read, mut refused) = (0, BTreeMap::<String, Vec<String>>::new());
    let mut note = |what: String, result: Result<(), stegodon_types::SqlError>| match result {
        Ok(()) => read += 1,
        Err(e) => refused.entry(e.to_string()).or_default().push(what),
    };
    for relation in catalog.relations() {
        for rule in catalog.rules(relation.oid) {
            let what = format!("rule {} on {}", rule.name, relation.name);
            let query = if rule.event == b'1' {
                read_view_query(&rule.action, catalog).map(|_| ())
            } else {
                read_queries(&rule.action, catalog).map(|_| ())
            };
            note(what, query);
        }
        for a in relation.attributes.iter() {
            if let Some(tree) = &a.default {
                note(format!("default of {}.{}", relation.name, a.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
        for c in catalog.constraints(relation.oid) {
            if let Some(tree) = &c.expression {
                note(format!("constraint {}", c.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
        if let Some(tree) = &relation.partition_bound {
            note(format!("bound of {}", relation.name), read_partition_bound(tree, catalog).map(|_| ()));
        }
        if let Some(index) = &relation.index {
            for tree in index.expressions.iter().chain(&index.predicate) {
                note(format!("index {}", relation.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
        if let Some(tree) = relation.partitioned.as_ref().and_then(|p| p.expressions.as_ref()) {
            note(format!("key of {}", relation.name), read_exprs(tree, catalog).map(|_| ()));
        }
    }
    for t in catalog.types() {
        for c in catalog.domain_constraints(t.oid) {
            if let Some(tree) = &c.expression {
                note(format!("constraint {} of domain {}", c.name, t.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
    }
    for proc in catalog.procs() {
        if let Some(tree) = &proc.arg_defaults {
            note(format!("defaults of {}", proc.name), read_exprs(tree, catalog).map(|_| ()));
        }
        if let Some(tree) = &proc.sql_body {
            note(format!("body of {}", proc.name), read_queries(tree, catalog).map(|_| ()));
        }
    }
    for whats in refused.values_mut() {
        whats.sort();
    }
    (read, refused)
}
