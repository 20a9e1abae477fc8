//! The search path: which schemas a bare name is looked for in, and whether an object is the one its bare name finds.

use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::acl::privilege;
use crate::lookup::{Catalog, PG_CATALOG, SearchPath};

impl SearchPath {
    /// `pg_catalog` alone.
    pub fn catalog_only() -> Self {
        Self { namespaces: vec![PG_CATALOG] }
    }
}

/// Splits a list of identifiers as `search_path` and its like are written: commas, quotes, unquoted ones in lower case.
/// `None` where the syntax is wrong.
pub fn split_identifiers(list: &str, separator: char) -> Option<Vec<String>> {
    let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}');
    let mut rest = list.trim_start_matches(space);
    let mut names = Vec::new();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let name = if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            loop {
                let (part, after) = quoted.split_once('"')?;
                name.push_str(part);
                let Some(more) = after.strip_prefix('"') else {
                    rest = after;
                    break;
                };
                name.push('"');
                quoted = more;
            }
            name
        } else {
            let end = rest.find(|c| c == separator || space(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at_checked(end)?;
            if name.is_empty() {
                return None;
            }
            rest = after;
            // Only ASCII folds: a multibyte encoding's other letters stay.
            name.to_ascii_lowercase()
        };
        names.push(truncate(name));
        rest = rest.trim_start_matches(space);
        match rest.strip_prefix(separator) {
            Some(after) => rest = after.trim_start_matches(space),
            None if rest.is_empty() => return Some(names),
            None => return None,
        }
    }
}

/// An identifier cut to 63 bytes at a character.
pub fn truncate(mut name: String) -> String {
    if name.len() > 63 {
        let cut = (0..=63).rev().find(|&i| name.is_char_boundary(i)).unwrap_or(0);
        name.truncate(cut);
    }
    name
}

impl Catalog {
    /// The schemas that a `search_path` names, for a role: `"$user"` is the schema of the role's name; what does not
    /// exist or may not be used is left out. Without what is implied: [`Catalog::resolve_search_path`] adds that.
    pub fn explicit_search_path(&self, setting: &str, role: Oid) -> SqlResult<Vec<Oid>> {
        let names = split_identifiers(setting, ',').ok_or_else(|| {
            SqlError::new(
                SqlState::InvalidParameterValue,
                format!("invalid value for parameter \"search_path\": \"{setting}\""),
            )
            .detail("List syntax is invalid.")
        })?;
        let mut path = Vec::new();
        for name in names {
            let name = match name.as_str() {
                "$user" => match self.role(role) {
                    Some(role) => role.name.clone(),
                    None => continue,
                },
                // A session over a read-only directory has no temporary schema.
                "pg_temp" => continue,
                _ => name,
            };
            let Some(namespace) = self.namespace_by_name(&name) else { continue };
            if !path.contains(&namespace.oid) && self.namespace_privileges(namespace.oid, role, privilege::USAGE) != 0 {
                path.push(namespace.oid);
            }
        }
        Ok(path)
    }

    /// The schemas searched under a `search_path`, for a role: `pg_catalog` stands first unless named.
    pub fn resolve_search_path(&self, setting: &str, role: Oid) -> SqlResult<SearchPath> {
        let mut namespaces = self.explicit_search_path(setting, role)?;
        if !namespaces.contains(&PG_CATALOG) {
            namespaces.insert(0, PG_CATALOG);
        }
        Ok(SearchPath { namespaces })
    }

    fn first_with(path: &SearchPath, own: Oid, mut has: impl FnMut(Oid) -> bool) -> bool {
        path.namespaces.iter().find(|&&n| n == own || has(n)).is_some_and(|&n| n == own)
    }

    /// Whether a relation's bare name finds it.
    pub fn relation_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.relation(oid)
            .is_some_and(|r| Self::first_with(path, r.namespace, |n| self.relation_by_name(n, &r.name).is_some()))
    }

    /// Whether a type's bare name finds it.
    pub fn type_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.type_desc(oid)
            .is_some_and(|t| Self::first_with(path, t.namespace, |n| self.type_by_name(n, &t.name).is_some()))
    }

    /// Whether a function's bare name with its argument types finds it.
    pub fn function_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.proc(oid).is_some_and(|p| {
            let same = |n: Oid| self.procs_named(&p.name).any(|q| q.namespace == n && q.arg_types == p.arg_types);
            Self::first_with(path, p.namespace, same)
        })
    }

    /// Whether an operator's bare name with its argument types finds it.
    pub fn operator_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.operator(oid).is_some_and(|o| {
            let same = |n: Oid| {
                self.operators_named(&o.name).any(|q| q.namespace == n && q.left == o.left && q.right == o.right)
            };
            Self::first_with(path, o.namespace, same)
        })
    }

    /// Whether an operator class's bare name finds it, among those of its access method.
    pub fn opclass_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.opclass(oid).is_some_and(|c| {
            let same = |n: Oid| {
                self.opclasses().any(|q| q.namespace == n && q.name == c.name && q.access_method == c.access_method)
            };
            Self::first_with(path, c.namespace, same)
        })
    }

    /// Whether an operator family's bare name finds it, among those of its access method.
    pub fn opfamily_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.opfamily(oid).is_some_and(|f| {
            let same = |n: Oid| {
                self.opfamilies
                    .values()
                    .any(|q| q.namespace == n && q.name == f.name && q.access_method == f.access_method)
            };
            Self::first_with(path, f.namespace, same)
        })
    }

    /// Whether a collation is usable in this database: of any encoding or of the database's.
    fn collation_fits(&self, encoding: i32) -> bool {
        encoding == -1 || self.database().is_some_and(|d| d.encoding == encoding)
    }

    /// A usable collation by schema and name.
    pub fn collation_by_name(&self, namespace: Oid, name: &str) -> Option<Oid> {
        let of = |exact: bool| {
            self.collations()
                .find(|c| {
                    c.namespace == namespace
                        && c.name == name
                        && self.collation_fits(c.encoding)
                        && (c.encoding != -1) == exact
                })
                .map(|c| c.oid)
        };
        of(true).or_else(|| of(false))
    }

    /// The first usable collation of that name along the path.
    pub fn collation_on_path(&self, path: &SearchPath, name: &str) -> Option<Oid> {
        path.namespaces.iter().find_map(|&n| self.collation_by_name(n, name))
    }

    /// Whether a collation's bare name finds it.
    pub fn collation_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.collation(oid).is_some_and(|c| self.collation_on_path(path, &c.name) == Some(oid))
    }

    /// Whether a text search configuration's bare name finds it.
    pub fn ts_config_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.ts_configs.get(&oid).is_some_and(|c| {
            let same = |n: Oid| self.ts_configs.values().any(|q| q.namespace == n && q.name == c.name);
            Self::first_with(path, c.namespace, same)
        })
    }

    /// Whether a text search dictionary's bare name finds it.
    pub fn ts_dictionary_is_visible(&self, oid: Oid, path: &SearchPath) -> bool {
        self.ts_dicts.get(&oid).is_some_and(|c| {
            let same = |n: Oid| self.ts_dicts.values().any(|q| q.namespace == n && q.name == c.name);
            Self::first_with(path, c.namespace, same)
        })
    }

    /// The functions that a name finds, each signature once, the first along the path; all of one schema where one is
    /// given (`FuncnameGetCandidates` without arguments).
    pub fn function_candidates(&self, namespace: Option<Oid>, name: &str, path: &SearchPath) -> Vec<Oid> {
        let place = |n: Oid| match namespace {
            Some(only) => (n == only).then_some(0),
            None => path.namespaces.iter().position(|&p| p == n),
        };
        let mut found: Vec<(usize, Oid, &[Oid])> =
            self.procs_named(name).filter_map(|p| Some((place(p.namespace)?, p.oid, p.arg_types.as_slice()))).collect();
        found.sort_unstable();
        let mut out: Vec<(Oid, &[Oid])> = Vec::new();
        for (_, oid, args) in found {
            if !out.iter().any(|(_, a)| *a == args) {
                out.push((oid, args));
            }
        }
        out.into_iter().map(|(oid, _)| oid).collect()
    }

    /// The operators that a name finds, each signature once, the first along the path.
    pub fn operator_candidates(&self, namespace: Option<Oid>, name: &str, path: &SearchPath) -> Vec<Oid> {
        let place = |n: Oid| match namespace {
            Some(only) => (n == only).then_some(0),
            None => path.namespaces.iter().position(|&p| p == n),
        };
        let mut found: Vec<(usize, Oid, (Oid, Oid))> =
            self.operators_named(name).filter_map(|o| Some((place(o.namespace)?, o.oid, (o.left, o.right)))).collect();
        found.sort_unstable();
        let mut out: Vec<(Oid, (Oid, Oid))> = Vec::new();
        for (_, oid, args) in found {
            if !out.iter().any(|(_, a)| *a == args) {
                out.push((oid, args));
            }
        }
        out.into_iter().map(|(oid, _)| oid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_lists() {
        let split = |s: &str| split_identifiers(s, ',');
        assert_eq!(split("\"$user\", Public"), Some(vec!["$user".into(), "public".into()]));
        assert_eq!(split("  "), Some(vec![]));
        assert_eq!(split("\"a\"\"b\" ,c"), Some(vec!["a\"b".into(), "c".into()]));
        assert_eq!(split("a,"), None);
        assert_eq!(split("a b"), None);
        assert_eq!(split("\"a"), None);
    }
}
