//! Which partitions can hold rows that satisfy conditions (`partprune.c`), at planning and when a plan starts.
//!
//! A partition is dropped only where a condition contradicts its bound; what is not understood drops nothing.

use std::cmp::Ordering;

use stegodon_catalog::Catalog;
use stegodon_catalog::rows::Relation;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::reader::{BoundDatum, PartitionBound, PartitionStrategy, read_partition_bound};
use stegodon_types::{Collation, Datum, FormatSettings, SqlError, SqlResult, TypeContext};

use crate::clause::BTREE;
use crate::context::Evaluate;
use crate::exprs::{self, BOOL, strip_relabel};
use crate::node::PrunePlan;
use crate::values;

/// `HASH_PARTITION_SEED`
const HASH_SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// Longer lists of values are not looked through one by one.
const MOST_VALUES: usize = 2000;

/// One partition with its bound.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub oid: Oid,
    pub bound: PartitionBound,
}

/// A partitioned table's key and partitions, in PostgreSQL's order.
#[derive(Clone, Debug)]
pub(crate) struct PartitionTable {
    /// The key columns; `None` for an expression.
    pub columns: Vec<Option<AttrNumber>>,
    pub families: Vec<Oid>,
    pub collations: Vec<Oid>,
    pub parts: Vec<Part>,
}

/// What pruning may ask.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub catalog: &'a Catalog,
    pub evaluate: &'a dyn Evaluate,
}

impl Asker<'_> {
    fn order(&self, family: Oid, collation: Oid, a: (Oid, &Datum), b: (Oid, &Datum)) -> Option<Ordering> {
        if let Some(o) = values::compare(self.catalog, a, b, collation) {
            return Some(o);
        }
        if !crate::rel::is_c_like(self.catalog, collation) {
            return None;
        }
        let constant = |(type_oid, d): (Oid, &Datum)| {
            Expr::Const(Const { type_oid, typmod: -1, collation, value: Some(d.clone()), location: None })
        };
        for (strategy, order) in [(1, Ordering::Less), (3, Ordering::Equal), (5, Ordering::Greater)] {
            let operator = self.catalog.family_operator(family, a.0, b.0, strategy)?;
            let e = Expr::Op(OpExpr {
                operator,
                function: self.catalog.operator(operator)?.function,
                result_type: BOOL,
                returns_set: false,
                collation: Oid::INVALID,
                input_collation: collation,
                args: vec![constant(a), constant(b)],
                location: None,
            });
            if self.evaluate.value_now(&e)?? == Datum::Bool(true) {
                return Some(order);
            }
        }
        None
    }
}

/// Reads a partitioned table's description.
pub(crate) fn describe(ask: Asker<'_>, relation: &Relation) -> SqlResult<PartitionTable> {
    let catalog = ask.catalog;
    let p = relation.partitioned.as_deref().ok_or_else(|| SqlError::internal("not a partitioned table"))?;
    let families = p.opclasses.iter().map(|c| catalog.opclass(*c).map_or(Oid::INVALID, |c| c.family)).collect();
    let mut out = PartitionTable {
        columns: p.columns.iter().map(|c| (c.0 > 0).then_some(*c)).collect(),
        families,
        collations: p.collations.clone(),
        parts: Vec::new(),
    };
    for &child in &relation.children {
        let row = catalog.relation(child).ok_or_else(|| SqlError::internal("a partition is not in the catalog"))?;
        let text = row.partition_bound.as_deref().ok_or_else(|| SqlError::internal("a partition without bound"))?;
        out.parts.push(Part { oid: child, bound: read_partition_bound(text, catalog)? });
    }
    sort_parts(ask, &mut out);
    Ok(out)
}

/// PostgreSQL's order: by the bounds, NULL's list partition after the others, the default last.
fn sort_parts(ask: Asker<'_>, t: &mut PartitionTable) {
    let (families, collations) = (t.families.clone(), t.collations.clone());
    let order = |n: usize, a: &Const, b: &Const| {
        let (f, c) = (families.get(n).copied().unwrap_or_default(), collations.get(n).copied().unwrap_or_default());
        match (&a.value, &b.value) {
            (Some(x), Some(y)) => ask.order(f, c, (a.type_oid, x), (b.type_oid, y)).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        }
    };
    let smallest = |b: &PartitionBound| {
        b.list.iter().filter(|c| c.value.is_some()).fold(None::<Const>, |best, c| match best {
            Some(x) if order(0, &x, c) != Ordering::Greater => Some(x),
            _ => Some(c.clone()),
        })
    };
    t.parts.sort_by(|a, b| {
        let (x, y) = (&a.bound, &b.bound);
        x.is_default.cmp(&y.is_default).then_with(|| match x.strategy {
            PartitionStrategy::Hash => (x.modulus, x.remainder).cmp(&(y.modulus, y.remainder)),
            PartitionStrategy::List => match (smallest(x), smallest(y)) {
                (Some(p), Some(q)) => order(0, &p, &q),
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (None, None) => Ordering::Equal,
            },
            PartitionStrategy::Range => {
                for (n, (p, q)) in x.lower.iter().zip(&y.lower).enumerate() {
                    let o = match (p, q) {
                        (BoundDatum::MinValue, BoundDatum::MinValue) | (BoundDatum::MaxValue, BoundDatum::MaxValue) => {
                            Ordering::Equal
                        }
                        (BoundDatum::MinValue, _) | (_, BoundDatum::MaxValue) => Ordering::Less,
                        (_, BoundDatum::MinValue) | (BoundDatum::MaxValue, _) => Ordering::Greater,
                        (BoundDatum::Value(p), BoundDatum::Value(q)) => order(n, p, q),
                    };
                    if o != Ordering::Equal {
                        return o;
                    }
                }
                Ordering::Equal
            }
        })
    });
}

/// What a condition says of one key column.
#[derive(Clone, Debug)]
enum Says {
    /// It compares so (btree strategy) with the value.
    Compares(u16, Oid, Datum),
    /// It does not equal the value.
    Differs(Oid, Datum),
    IsNull,
    IsNotNull,
    /// It is never true.
    Never,
}

/// Which partitions may hold rows for which all of `conditions` (over relation `rti`'s columns) are true.
pub(crate) fn surviving(ask: Asker<'_>, t: &PartitionTable, rti: usize, conditions: &[Expr]) -> Vec<bool> {
    let mut keep = vec![true; t.parts.len()];
    narrow(ask, t, rti, conditions, &mut keep, 0);
    keep
}

fn narrow(ask: Asker<'_>, t: &PartitionTable, rti: usize, conditions: &[Expr], keep: &mut [bool], depth: u32) {
    if depth > 20 {
        return;
    }
    let mut facts: Vec<(usize, Says)> = Vec::new();
    let mut alternatives: Vec<Vec<Vec<Expr>>> = Vec::new();
    for c in conditions {
        match c {
            Expr::Bool(b) if b.kind == BoolKind::Or => {
                alternatives.push(b.args.iter().map(|a| exprs::conjuncts(a.clone())).collect());
            }
            Expr::Bool(b) if b.kind == BoolKind::And => narrow(ask, t, rti, &b.args, keep, depth + 1),
            Expr::ScalarArrayOp(s) => {
                if let Some(list) = array_alternatives(ask, t, rti, s) {
                    if s.any {
                        alternatives.push(list.into_iter().map(|e| vec![e]).collect());
                    } else {
                        narrow(ask, t, rti, &list, keep, depth + 1);
                    }
                }
            }
            c => {
                if let Some(fact) = says(ask, t, rti, c) {
                    facts.push(fact);
                }
            }
        }
    }
    if facts.iter().any(|(_, s)| matches!(s, Says::Never)) {
        keep.fill(false);
        return;
    }
    if !facts.is_empty() {
        apply(ask, t, &facts, keep);
    }
    for arms in alternatives {
        let mut any = vec![false; keep.len()];
        for arm in arms {
            let mut one = keep.to_vec();
            narrow(ask, t, rti, &arm, &mut one, depth + 1);
            any.iter_mut().zip(&one).for_each(|(a, o)| *a |= *o);
        }
        keep.iter_mut().zip(&any).for_each(|(k, a)| *k &= *a);
    }
}

fn key_of(t: &PartitionTable, rti: usize, e: &Expr) -> Option<usize> {
    let (r, attno) = exprs::as_var(strip_relabel(e))?;
    if r != rti {
        return None;
    }
    t.columns.iter().position(|c| *c == Some(attno))
}

/// `key op ANY (array)` as one condition an element; `None` where it says nothing of the key.
fn array_alternatives(ask: Asker<'_>, t: &PartitionTable, rti: usize, s: &ScalarArrayOp) -> Option<Vec<Expr>> {
    let [key, array] = &*s.args;
    key_of(t, rti, key)?;
    let elements: Vec<Expr> = match array {
        Expr::Array(a) if !a.multidims => a.elements.clone(),
        e => {
            let value = ask.evaluate.value_now(e)??;
            let (element, list) = crate::arrays::elements(ask.catalog, value.as_bytes()?)?;
            list.into_iter()
                .map(|value| {
                    Expr::Const(Const {
                        type_oid: element,
                        typmod: -1,
                        collation: s.input_collation,
                        value,
                        location: None,
                    })
                })
                .collect()
        }
    };
    if elements.len() > MOST_VALUES {
        return None;
    }
    Some(
        elements
            .into_iter()
            .map(|e| {
                Expr::Op(OpExpr {
                    operator: s.operator,
                    function: s.function,
                    result_type: BOOL,
                    returns_set: false,
                    collation: Oid::INVALID,
                    input_collation: s.input_collation,
                    args: vec![key.clone(), e],
                    location: None,
                })
            })
            .collect(),
    )
}

fn says(ask: Asker<'_>, t: &PartitionTable, rti: usize, c: &Expr) -> Option<(usize, Says)> {
    match c {
        Expr::NullTest(n) if !n.arg_is_row => {
            Some((key_of(t, rti, &n.arg)?, if n.is_null { Says::IsNull } else { Says::IsNotNull }))
        }
        Expr::Op(op) => {
            let [left, right] = op.args.as_slice() else { return None };
            let (key, other, operator) = match key_of(t, rti, left) {
                Some(k) => (k, right, op.operator),
                None => (key_of(t, rti, right)?, left, ask.catalog.operator(op.operator)?.commutator),
            };
            if t.collations.get(key).is_some_and(|c| c.is_valid() && *c != op.input_collation) {
                return None;
            }
            let strict = ask.catalog.proc(op.function).is_some_and(|p| p.strict);
            let value = match ask.evaluate.value_now(other)? {
                Some(v) => v,
                None if strict => return Some((key, Says::Never)),
                None => return None,
            };
            let type_oid = exprs::type_of(other);
            let family = *t.families.get(key)?;
            let member = |operator: Oid| {
                ask.catalog
                    .amops_of_operator(operator)
                    .iter()
                    .find(|a| a.family == family && a.purpose == b's')
                    .copied()
            };
            if let Some(a) = member(operator) {
                // A hash family's equality is its strategy 1.
                let strategy = if a.access_method == BTREE { a.strategy } else { 3 };
                return Some((key, Says::Compares(strategy, type_oid, value)));
            }
            let negator = ask.catalog.operator(operator)?.negator;
            let equality = member(negator).is_some_and(|a| a.access_method != BTREE || a.strategy == 3);
            equality.then_some((key, Says::Differs(type_oid, value)))
        }
        // A boolean key column alone.
        e if exprs::type_of(e) == BOOL => {
            let (inner, value) = match e {
                Expr::Bool(b) if b.kind == BoolKind::Not => (b.args.first()?, false),
                e => (e, true),
            };
            Some((key_of(t, rti, inner)?, Says::Compares(3, BOOL, Datum::Bool(value))))
        }
        _ => None,
    }
}

fn apply(ask: Asker<'_>, t: &PartitionTable, facts: &[(usize, Says)], keep: &mut [bool]) {
    let strategy = t.parts.iter().find(|p| !p.bound.is_default).map(|p| p.bound.strategy);
    match strategy {
        Some(PartitionStrategy::List) => apply_list(ask, t, facts, keep),
        Some(PartitionStrategy::Range) => apply_range(ask, t, facts, keep),
        Some(PartitionStrategy::Hash) => apply_hash(ask, t, facts, keep),
        None => {}
    }
}

fn satisfies(order: Option<Ordering>, strategy: u16) -> bool {
    // Not comparable here: it may.
    order.is_none_or(|o| match strategy {
        1 => o == Ordering::Less,
        2 => o != Ordering::Greater,
        3 => o == Ordering::Equal,
        4 => o != Ordering::Less,
        5 => o == Ordering::Greater,
        _ => true,
    })
}

fn apply_list(ask: Asker<'_>, t: &PartitionTable, facts: &[(usize, Says)], keep: &mut [bool]) {
    let (family, collation) =
        (t.families.first().copied().unwrap_or_default(), t.collations.first().copied().unwrap_or_default());
    for (_, fact) in facts {
        let holds = |c: &Const| match (&c.value, fact) {
            (None, f) => matches!(f, Says::IsNull),
            (Some(_), Says::IsNull) => false,
            (Some(v), Says::Compares(s, ty, x)) => {
                satisfies(ask.order(family, collation, (c.type_oid, v), (*ty, x)), *s)
            }
            (Some(v), Says::Differs(ty, x)) => {
                ask.order(family, collation, (c.type_oid, v), (*ty, x)) != Some(Ordering::Equal)
            }
            (Some(_), _) => true,
        };
        // The default has what no list has: not a value that one lists.
        let listed = |c: &Const| match (&c.value, fact) {
            (None, Says::IsNull) => true,
            (Some(v), Says::Compares(3, ty, x)) => {
                ask.order(family, collation, (c.type_oid, v), (*ty, x)) == Some(Ordering::Equal)
            }
            _ => false,
        };
        let elsewhere = t.parts.iter().any(|p| p.bound.list.iter().any(listed));
        for (k, p) in keep.iter_mut().zip(&t.parts) {
            *k &= if p.bound.is_default { !elsewhere } else { p.bound.list.iter().any(holds) };
        }
    }
}

fn apply_range(ask: Asker<'_>, t: &PartitionTable, facts: &[(usize, Says)], keep: &mut [bool]) {
    let n = t.columns.len();
    let compare = |column: usize, (ty, x): (&Oid, &Datum), b: &BoundDatum| match b {
        BoundDatum::MinValue => Some(Ordering::Greater),
        BoundDatum::MaxValue => Some(Ordering::Less),
        BoundDatum::Value(c) => {
            let v = c.value.as_ref()?;
            let family = t.families.get(column).copied().unwrap_or_default();
            let collation = t.collations.get(column).copied().unwrap_or_default();
            ask.order(family, collation, (*ty, x), (c.type_oid, v))
        }
    };
    let null = facts.iter().any(|(_, f)| matches!(f, Says::IsNull));
    let equal = |column: usize| {
        facts.iter().find_map(|(c, f)| match f {
            Says::Compares(3, ty, x) if *c == column => Some((ty, x)),
            _ => None,
        })
    };
    let prefix: Vec<(&Oid, &Datum)> = (0..n).map_while(equal).collect();
    let m = prefix.len();
    let bounds = |wanted: [u16; 2]| {
        facts.iter().filter_map(move |(c, f)| match f {
            Says::Compares(s, ty, x) if *c == m && wanted.contains(s) => Some((*s, ty, x)),
            _ => None,
        })
    };
    let mut found_exact = false;
    for (k, p) in keep.iter_mut().zip(&t.parts) {
        if p.bound.is_default || !*k {
            continue;
        }
        if null {
            *k = false;
            continue;
        }
        // How the fixed leading columns lie to a bound's; `None` where that is not known.
        let against = |bound: &[BoundDatum]| -> Option<Ordering> {
            for (i, x) in prefix.iter().enumerate() {
                match compare(i, *x, bound.get(i)?)? {
                    Ordering::Equal => {}
                    o => return Some(o),
                }
            }
            Some(Ordering::Equal)
        };
        match against(&p.bound.upper) {
            Some(Ordering::Greater) => *k = false,
            Some(Ordering::Equal) if m == n => *k = false,
            Some(Ordering::Equal) => {
                if let Some(upper) = p.bound.upper.get(m) {
                    for (_, ty, x) in bounds([4, 5]) {
                        match compare(m, (ty, x), upper) {
                            Some(Ordering::Greater) => *k = false,
                            Some(Ordering::Equal) if m + 1 == n => *k = false,
                            _ => {}
                        }
                    }
                }
            }
            _ => {}
        }
        match against(&p.bound.lower) {
            Some(Ordering::Less) => *k = false,
            Some(Ordering::Equal) if m < n => {
                if let Some(lower) = p.bound.lower.get(m) {
                    for (s, ty, x) in bounds([1, 2]) {
                        match compare(m, (ty, x), lower) {
                            Some(Ordering::Less) => *k = false,
                            Some(Ordering::Equal) if s == 1 => *k = false,
                            _ => {}
                        }
                    }
                }
            }
            Some(_) => {}
            None => continue,
        }
        found_exact |= *k && m == n && against(&p.bound.upper).is_some();
    }
    // A row that another partition takes is not in the default.
    if found_exact {
        for (k, p) in keep.iter_mut().zip(&t.parts) {
            if p.bound.is_default {
                *k = false;
            }
        }
    }
}

fn apply_hash(ask: Asker<'_>, t: &PartitionTable, facts: &[(usize, Says)], keep: &mut [bool]) {
    let Some(hash) = key_hash(ask, t, facts) else { return };
    for (k, p) in keep.iter_mut().zip(&t.parts) {
        if p.bound.modulus > 0 {
            *k &= hash % p.bound.modulus == p.bound.remainder;
        }
    }
}

/// The hash of the only key that satisfies the facts.
fn key_hash(ask: Asker<'_>, t: &PartitionTable, facts: &[(usize, Says)]) -> Option<u64> {
    let settings = FormatSettings::default();
    let types = stegodon_types::BuiltinTypes;
    let cx = TypeContext::new(&types, &settings);
    let mut out: u64 = 0;
    for column in 0..t.columns.len() {
        let fact = facts.iter().find(|(c, f)| *c == column && matches!(f, Says::Compares(3, ..) | Says::IsNull))?;
        let Says::Compares(_, ty, x) = &fact.1 else { continue };
        // The function is the value's type's own: only where that is the key's.
        let families = ask.catalog.amops_of_family(*t.families.get(column)?);
        let same = families.iter().any(|a| a.left == *ty && a.right == *ty)
            || matches!(ty.0, 1043) && families.iter().any(|a| a.left.0 == 25);
        if !same {
            return None;
        }
        let desc = ask.catalog.type_desc(*ty)?;
        let hash = stegodon_types::ops::hash_extended(&cx, desc, &Collation::C, x.as_ref(), HASH_SEED).ok()??;
        // hash_combine64
        out ^= hash.wrapping_add(0x49a0_f4dd_15e5_a8e3).wrapping_add(out << 54).wrapping_add(out >> 7);
    }
    Some(out)
}

/// The conditions with their columns renamed from one table's to another's of the same names.
pub(crate) fn translated(e: &Expr, from: (&Relation, usize), to: (&Relation, usize)) -> SqlResult<Expr> {
    exprs::try_replaced(e, &mut |x| {
        let Some((rti, attno)) = exprs::as_var(x) else { return Ok(None) };
        if rti != from.1 {
            return Ok(None);
        }
        let Expr::Var(v) = x else { return Ok(None) };
        if attno.0 == 0 {
            return translated_row(from.0, to, v).map(Some);
        }
        let attno = translated_column(attno, from.0, to.0)?;
        Ok(Some(Expr::Var(Var { source: VarSource::Relation(to.1), attno, ..v.clone() })))
    })
}

/// A whole row of the parent, made of a child's columns.
fn translated_row(from: &Relation, to: (&Relation, usize), whole: &Var) -> SqlResult<Expr> {
    let mut args = Vec::new();
    for a in from.attributes.iter() {
        args.push(if a.dropped {
            Expr::Const(Const {
                type_oid: exprs::INT4,
                typmod: -1,
                collation: Oid::INVALID,
                value: None,
                location: None,
            })
        } else {
            let attno = translated_column(a.number, from, to.0)?;
            exprs::relation_var(to.1, attno, a.type_oid, a.typmod, a.collation)
        });
    }
    Ok(Expr::Row(RowExpr {
        args,
        row_type: whole.type_oid,
        names: Vec::new(),
        form: CoercionForm::ImplicitCast,
        location: None,
    }))
}

/// A column's number in a table that has the same columns, perhaps in another order.
pub(crate) fn translated_column(attno: AttrNumber, from: &Relation, to: &Relation) -> SqlResult<AttrNumber> {
    if attno.0 == 0 {
        return Err(SqlError::unsupported("a whole-row reference to a partitioned table"));
    }
    if attno.0 < 0 || from.oid == to.oid {
        return Ok(attno);
    }
    let index = usize::from(attno.0.unsigned_abs()).saturating_sub(1);
    let name = from.attributes.get(index).map(|a| a.name.as_str());
    let found = to.attributes.iter().find(|a| !a.dropped && Some(a.name.as_str()) == name);
    found.map(|a| a.number).ok_or_else(|| SqlError::internal("a child table lacks a column of its parent"))
}

/// Which children of an Append may have rows, now that the values are known: indexes into `plan.partitions`.
pub fn prune(
    catalog: &Catalog,
    evaluate: &dyn Evaluate,
    plan: &PrunePlan,
    params: &[Option<Datum>],
    exec_params: &[Option<Datum>],
) -> SqlResult<Vec<usize>> {
    let ask = Asker { catalog, evaluate };
    let bind = |e: &Expr| {
        exprs::replaced(e, &mut |x| match x {
            Expr::Param(p) => {
                let value = match p.kind {
                    ParamKind::Extern => params.get((p.id as usize).checked_sub(1)?)?,
                    ParamKind::Exec => exec_params.get(p.id as usize)?,
                    ParamKind::SubLink => return None,
                };
                Some(Expr::Const(Const {
                    type_oid: p.type_oid,
                    typmod: p.typmod,
                    collation: p.collation,
                    value: value.clone(),
                    location: None,
                }))
            }
            _ => None,
        })
    };
    let root = catalog.relation(plan.relation).ok_or_else(|| SqlError::internal("a partitioned table is gone"))?;
    let conditions: Vec<Expr> = plan.conditions.iter().map(bind).collect();
    let mut out = Vec::new();
    for (i, &leaf) in plan.partitions.iter().enumerate() {
        let mut child = leaf;
        let mut keep = true;
        // Up the tree; each level has its say.
        while keep && child != plan.relation {
            let row = catalog.relation(child).ok_or_else(|| SqlError::internal("a partition is gone"))?;
            let Some(&parent) = row.parents.first() else { break };
            let parent = catalog.relation(parent).ok_or_else(|| SqlError::internal("a partition's parent is gone"))?;
            let rti = plan.range_table_index;
            let mut own = Vec::new();
            for c in &conditions {
                own.push(translated(c, (root, rti), (parent, rti))?);
            }
            let table = describe(ask, parent)?;
            let kept = surviving(ask, &table, rti, &own);
            keep = table.parts.iter().zip(&kept).any(|(p, k)| p.oid == child && *k);
            child = parent.oid;
        }
        if keep {
            out.push(i);
        }
    }
    Ok(out)
}
