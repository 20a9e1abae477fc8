//! Expanding GROUPING SETS, ROLLUP and CUBE into plain lists of columns.

use stegodon_types::{SqlError, SqlResult, SqlState};

/// One item of GROUP BY where grouping sets are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupingSet {
    /// `()`
    Empty,
    /// A plain expression or a parenthesised list: all of the references together.
    Simple(Vec<u32>),
    /// `ROLLUP (...)`
    Rollup(Vec<GroupingSet>),
    /// `CUBE (...)`
    Cube(Vec<GroupingSet>),
    /// `GROUPING SETS (...)`
    Sets(Vec<GroupingSet>),
}

/// More sets than this are refused, as PostgreSQL does.
pub const MAX_GROUPING_SETS: usize = 4096;

fn too_many() -> SqlError {
    SqlError::new(
        SqlState::StatementTooComplex,
        format!("too many grouping sets present (maximum {MAX_GROUPING_SETS})"),
    )
}

/// The references that `set` itself names, without repeats, in their order.
fn merge(into: &mut Vec<u32>, from: &[u32]) {
    for &r in from {
        if !into.contains(&r) {
            into.push(r);
        }
    }
}

fn simple(set: &GroupingSet) -> &[u32] {
    match set {
        GroupingSet::Simple(refs) => refs,
        _ => &[],
    }
}

fn expand_one(set: &GroupingSet, depth: usize) -> SqlResult<Vec<Vec<u32>>> {
    if depth > 100 {
        return Err(SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded"));
    }
    Ok(match set {
        GroupingSet::Empty => vec![Vec::new()],
        GroupingSet::Simple(refs) => vec![refs.clone()],
        GroupingSet::Rollup(parts) => (0..=parts.len())
            .rev()
            .map(|n| {
                let mut out = Vec::new();
                parts.iter().take(n).for_each(|p| merge(&mut out, simple(p)));
                out
            })
            .collect(),
        GroupingSet::Cube(parts) => {
            // The parser allows at most 12 elements: 4096 sets.
            if parts.len() > 12 {
                return Err(too_many());
            }
            (0_u32..1 << parts.len())
                .map(|mask| {
                    let mut out = Vec::new();
                    for (i, p) in parts.iter().enumerate() {
                        if mask >> i & 1 == 1 {
                            merge(&mut out, simple(p));
                        }
                    }
                    out
                })
                .collect()
        }
        GroupingSet::Sets(parts) => {
            let mut out = Vec::new();
            for part in parts {
                out.extend(expand_one(part, depth + 1)?);
                if out.len() > MAX_GROUPING_SETS {
                    return Err(too_many());
                }
            }
            out
        }
    })
}

/// The product of all items: every list of references to group by, shortest first. `distinct` is GROUP BY DISTINCT.
pub fn expand_grouping_sets(items: &[GroupingSet], distinct: bool) -> SqlResult<Vec<Vec<u32>>> {
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let mut product: Vec<Vec<u32>> = vec![Vec::new()];
    for item in items {
        let sets = expand_one(item, 0)?;
        if product.len().saturating_mul(sets.len()) > MAX_GROUPING_SETS {
            return Err(too_many());
        }
        let mut next = Vec::with_capacity(product.len() * sets.len());
        for left in &product {
            for right in &sets {
                let mut both = left.clone();
                merge(&mut both, right);
                next.push(both);
            }
        }
        product = next;
    }
    if distinct {
        for set in &mut product {
            set.sort_unstable();
        }
        product.sort();
        product.dedup();
    }
    product.sort_by_key(Vec::len);
    Ok(product)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rollup_times_sets() {
        let s = |r: &[u32]| GroupingSet::Simple(r.to_vec());
        let items = [GroupingSet::Rollup(vec![s(&[1]), s(&[2])]), GroupingSet::Sets(vec![s(&[3]), GroupingSet::Empty])];
        let sets = expand_grouping_sets(&items, false).unwrap();
        assert_eq!(sets, [vec![], vec![1], vec![3], vec![1, 2], vec![1, 3], vec![1, 2, 3]]);
        let twice = [GroupingSet::Sets(vec![s(&[1]), s(&[1])])];
        assert_eq!(expand_grouping_sets(&twice, false).unwrap().len(), 2);
        assert_eq!(expand_grouping_sets(&twice, true).unwrap().len(), 1);
        let cube = GroupingSet::Cube((0..12).map(|i| s(&[i])).collect());
        assert_eq!(expand_grouping_sets(std::slice::from_ref(&cube), false).unwrap().len(), 4096);
        assert!(expand_grouping_sets(&[cube.clone(), cube], false).is_err());
    }
}
