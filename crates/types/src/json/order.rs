//! How `jsonb` compares: null < string < number < boolean < array < object; arrays by their length, objects by their
//! number of pairs, then child by child, an object's pairs in stored order. Strings compare under the database's
//! collation. A scalar alone is an array of one that is below every other array of one (so `[]` is below it).

use std::cmp::Ordering;

use stegodon_format::ids::Oid;

use super::{Container, Item, MAX_DEPTH, too_deep};
use crate::ops::get;
use crate::{Collation, SqlResult, TypeContext, TypeDesc, ValueRef, hash as hashing, key as keys, numeric};

/// The collation that is called `default`.
const DEFAULT_COLLATION: Oid = Oid(100);

fn rank(item: &Item<'_>) -> u8 {
    match item {
        Item::Null => 0,
        Item::String(_) => 1,
        Item::Number(_) => 2,
        Item::Bool(_) => 3,
        Item::Container(c) if c.is_object() => 0x11,
        Item::Container(_) => 0x10,
    }
}

/// How strings compare, once it is known that they may be.
struct Order {
    /// Strings were compared, or would have been.
    bytewise: SqlResult<()>,
}

impl Order {
    fn strings(&self, a: &[u8], b: &[u8]) -> SqlResult<Ordering> {
        if a != b {
            self.bytewise.clone()?;
        }
        Ok(a.cmp(b))
    }

    fn items(&self, a: &Item<'_>, b: &Item<'_>, depth: usize) -> SqlResult<Ordering> {
        match (a, b) {
            (Item::String(a), Item::String(b)) => self.strings(a, b),
            (Item::Number(a), Item::Number(b)) => numeric::compare_payloads(a, b),
            (Item::Bool(a), Item::Bool(b)) => Ok(a.cmp(b)),
            (Item::Container(a), Item::Container(b)) => self.containers(a, b, depth + 1),
            (a, b) => Ok(rank(a).cmp(&rank(b))),
        }
    }

    fn containers(&self, a: &Container<'_>, b: &Container<'_>, depth: usize) -> SqlResult<Ordering> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        // A scalar alone is below an array, but only where the lengths are the same.
        let heads =
            (a.is_object().cmp(&b.is_object())).then(a.count().cmp(&b.count())).then(b.is_scalar().cmp(&a.is_scalar()));
        if heads.is_ne() {
            return Ok(heads);
        }
        let (left, right) = (children(a)?, children(b)?);
        for (x, y) in left.iter().zip(&right) {
            let order = self.items(x, y, depth)?;
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}

/// The children of a container in order, keys before their values.
fn children<'a>(container: &Container<'a>) -> SqlResult<Vec<Item<'a>>> {
    let mut out = Vec::with_capacity(container.count() * 2);
    container.for_each_element(|v| {
        out.push(v);
        Ok(())
    })?;
    container.for_each_pair(|key, v| {
        out.extend([Item::String(key), v]);
        Ok(())
    })?;
    Ok(out)
}

/// `jsonb_cmp`.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = (Container::new(get::bytes(ty, a)?)?, Container::new(get::bytes(ty, b)?)?);
    Order { bytewise: cx.types.collation(DEFAULT_COLLATION)?.check_order() }.containers(&a, &b, 0)
}

/// `jsonb_eq`.
pub(super) fn equal(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<bool> {
    let (a, b) = (Container::new(get::bytes(ty, a)?)?, Container::new(get::bytes(ty, b)?)?);
    let bytewise = cx.types.collation(DEFAULT_COLLATION)?.for_equality().check_equality();
    Ok(Order { bytewise }.containers(&a, &b, 0)?.is_eq())
}

fn item_key(item: &Item<'_>, depth: usize, out: &mut Vec<u8>) -> SqlResult<()> {
    if let Item::Container(container) = item {
        return container_key(container, depth + 1, out);
    }
    out.push(rank(item));
    match item {
        Item::Bool(v) => out.push(u8::from(*v)),
        Item::Number(payload) => numeric::encode_key(payload, out)?,
        Item::String(text) => keys::bytes(text, out),
        Item::Null | Item::Container(_) => {}
    }
    Ok(())
}

fn container_key(container: &Container<'_>, depth: usize, out: &mut Vec<u8>) -> SqlResult<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    out.push(rank(&Item::Container(*container)));
    keys::u32(container.count() as u32, out);
    if container.is_object() {
        return container.for_each_pair(|key, v| {
            keys::bytes(key, out);
            item_key(&v, depth, out)
        });
    }
    out.push(u8::from(!container.is_scalar()));
    container.for_each_element(|v| item_key(&v, depth, out))
}

/// A type's key says nothing of whether order or equality is wanted, and `jsonb` has no collation to say it either: where
/// the database's collation cannot order, there is no key.
pub(super) fn key(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    v: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    cx.types.collation(DEFAULT_COLLATION)?.check_order()?;
    container_key(&Container::new(get::bytes(ty, v)?)?, 0, out)
}

/// Both halves of a hash rotated by one.
fn rotate(v: u64) -> u64 {
    (v << 1 & 0xffff_fffe_ffff_fffe) | (v >> 31 & 0x1_0000_0001)
}

fn hash_scalar(item: &Item<'_>, seed: u64, to: &mut u64) -> SqlResult<()> {
    let hash = match item {
        Item::Null => seed.wrapping_add(1),
        Item::String(text) => hashing::bytes_extended(text, seed),
        Item::Number(payload) => numeric::hash_payload(payload, seed)?,
        Item::Bool(v) if seed != 0 => hashing::uint32_extended(u32::from(*v), seed),
        Item::Bool(v) => {
            if *v {
                2
            } else {
                4
            }
        }
        Item::Container(_) => return Ok(()),
    };
    *to = rotate(*to) ^ hash;
    Ok(())
}

fn hash_container(container: &Container<'_>, depth: usize, seed: u64, to: &mut u64) -> SqlResult<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let kind = if container.is_object() { super::read::OBJECT } else { super::read::ARRAY };
    *to ^= u64::from(kind) << 32 | u64::from(kind);
    for item in children(container)? {
        match item {
            Item::Container(inner) => hash_container(&inner, depth + 1, seed, to)?,
            scalar => hash_scalar(&scalar, seed, to)?,
        }
    }
    Ok(())
}

/// `jsonb_hash_extended`.
pub(super) fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let container = Container::new(get::bytes(ty, v)?)?;
    if container.count() == 0 {
        return Ok(seed);
    }
    let mut hash = 0;
    hash_container(&container, 0, seed, &mut hash)?;
    Ok(hash)
}
