//! Polymorphic types: what `anyelement` and its like stand for in one call.
//!
//! ```text
//!  family 1     anyelement anyarray anynonarray anyenum anyrange anymultirange      all one element type, exactly
//!  family 2     anycompatible anycompatiblearray -nonarray -range -multirange       a common element type, coerced to
//! ```

use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState, TypeKind};

use crate::coerce::Context;
use crate::context::Analyzer;
use crate::oids::{
    self, ANYARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLEMULTIRANGE, ANYCOMPATIBLENONARRAY,
    ANYCOMPATIBLERANGE, ANYELEMENT, ANYENUM, ANYMULTIRANGE, ANYNONARRAY, ANYRANGE, UNKNOWN,
};

/// Whether a type is of family 1.
fn family1(t: Oid) -> bool {
    matches!(t, ANYELEMENT | ANYARRAY | ANYNONARRAY | ANYENUM | ANYRANGE | ANYMULTIRANGE)
}

/// Whether a type is of family 2.
fn family2(t: Oid) -> bool {
    matches!(
        t,
        ANYCOMPATIBLE | ANYCOMPATIBLEARRAY | ANYCOMPATIBLENONARRAY | ANYCOMPATIBLERANGE | ANYCOMPATIBLEMULTIRANGE
    )
}

/// Whether a type is polymorphic.
pub(crate) fn is_polymorphic(t: Oid) -> bool {
    family1(t) || family2(t)
}

/// What the arguments say of one family.
#[derive(Default)]
struct Family {
    element: Option<Oid>,
    array: Option<Oid>,
    range: Option<Oid>,
    multirange: Option<Oid>,
    compatible: Vec<Oid>,
    non_array: bool,
    is_enum: bool,
    unknowns: bool,
}

fn mismatch(message: String) -> SqlError {
    SqlError::new(SqlState::DatatypeMismatch, message)
}

impl Analyzer<'_> {
    fn range_subtype(&self, t: Oid) -> Option<Oid> {
        match self.cx.catalog.type_desc(t)?.kind {
            TypeKind::Range { subtype, .. } => Some(subtype),
            _ => None,
        }
    }

    fn multirange_range(&self, t: Oid) -> Option<Oid> {
        match self.cx.catalog.type_desc(t)?.kind {
            TypeKind::Multirange { range } => Some(range),
            _ => None,
        }
    }

    fn multirange_of(&self, range: Oid) -> Option<Oid> {
        self.cx.catalog.range(range).map(|r| r.multirange)
    }

    /// Whether argument types can stand for the declared polymorphic ones.
    pub fn generic_types_fit(&self, actual: &[Oid], declared: &[Oid]) -> bool {
        self.collect_families(actual, declared, false).is_ok_and(|(mut f1, mut f2)| {
            // A literal alone is no enum.
            self.finish_family1(&mut f1, false).is_ok()
                && self.finish_family2(&mut f2).is_ok()
                && !(f1.is_enum && f1.element.is_none())
        })
    }

    /// Looks at each argument once.
    fn collect_families(&self, actual: &[Oid], declared: &[Oid], allow_poly: bool) -> SqlResult<(Family, Family)> {
        let (mut f1, mut f2) = (Family::default(), Family::default());
        for (&declared, &actual) in declared.iter().zip(actual) {
            if !is_polymorphic(declared) {
                continue;
            }
            let f = if family1(declared) { &mut f1 } else { &mut f2 };
            f.non_array |= matches!(declared, ANYNONARRAY | ANYCOMPATIBLENONARRAY);
            f.is_enum |= declared == ANYENUM;
            if actual == UNKNOWN {
                f.unknowns = true;
                continue;
            }
            if allow_poly && declared == actual {
                continue;
            }
            match declared {
                ANYELEMENT | ANYNONARRAY | ANYENUM => {
                    if f.element.is_some_and(|e| e != actual) {
                        let e = mismatch("arguments declared \"anyelement\" are not all alike".to_owned());
                        return Err(e.detail(self.versus(f.element, actual)));
                    }
                    f.element = Some(actual);
                }
                ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY => f.compatible.push(actual),
                ANYARRAY | ANYCOMPATIBLEARRAY => {
                    let actual = self.base_type(actual);
                    if family1(declared) && f.array.is_some_and(|a| a != actual) {
                        let e = mismatch("arguments declared \"anyarray\" are not all alike".to_owned());
                        return Err(e.detail(self.versus(f.array, actual)));
                    }
                    f.array = Some(actual);
                    if family2(declared) {
                        match self.element_type(actual) {
                            Some(e) => f.compatible.push(e),
                            None => return Err(self.not_a("anycompatiblearray", "an array", actual)),
                        }
                    }
                }
                ANYRANGE | ANYCOMPATIBLERANGE => {
                    let actual = self.base_type(actual);
                    let name = if family1(declared) { "anyrange" } else { "anycompatiblerange" };
                    if f.range.is_some_and(|a| a != actual) {
                        let e = mismatch(format!("arguments declared \"{name}\" are not all alike"));
                        return Err(e.detail(self.versus(f.range, actual)));
                    }
                    if self.range_subtype(actual).is_none() {
                        return Err(self.not_a(name, "a range type", actual));
                    }
                    f.range = Some(actual);
                }
                _ => {
                    let actual = self.base_type(actual);
                    let name = if family1(declared) { "anymultirange" } else { "anycompatiblemultirange" };
                    if f.multirange.is_some_and(|a| a != actual) {
                        let e = mismatch(format!("arguments declared \"{name}\" are not all alike"));
                        return Err(e.detail(self.versus(f.multirange, actual)));
                    }
                    if self.multirange_range(actual).is_none() {
                        return Err(self.not_a(name, "a multirange type", actual));
                    }
                    f.multirange = Some(actual);
                }
            }
        }
        Ok((f1, f2))
    }

    fn versus(&self, a: Option<Oid>, b: Oid) -> String {
        format!("{} versus {}", self.type_name(a.unwrap_or_default()), self.type_name(b))
    }

    fn not_a(&self, declared: &str, what: &str, actual: Oid) -> SqlError {
        mismatch(format!("argument declared {declared} is not {what} but type {}", self.type_name(actual)))
    }

    fn inconsistent(&self, a: &str, b: &str, ta: Oid, tb: Oid) -> SqlError {
        mismatch(format!("argument declared {a} is not consistent with argument declared {b}")).detail(format!(
            "{} versus {}",
            self.type_name(ta),
            self.type_name(tb)
        ))
    }

    /// Multirange to range, as far as known, and their agreement.
    fn finish_ranges(&self, f: &mut Family, names: (&str, &str)) -> SqlResult<()> {
        if let Some(m) = f.multirange {
            let range = self.multirange_range(m).unwrap_or_default();
            match f.range {
                Some(r) if r != range => return Err(self.inconsistent(names.0, names.1, m, r)),
                _ => f.range = Some(range),
            }
        }
        Ok(())
    }

    /// Family 1: everything agrees on one element type.
    fn finish_family1(&self, f: &mut Family, need: bool) -> SqlResult<()> {
        self.finish_ranges(f, ("anymultirange", "anyrange"))?;
        if let Some(array) = f.array {
            // An argument of the pseudo-type anyarray itself (pg_statistic) has no known element.
            let element = if array == ANYARRAY { Some(ANYELEMENT) } else { self.element_type(array) };
            let Some(element) = element else { return Err(self.not_a("anyarray", "an array", array)) };
            match f.element {
                None => f.element = Some(element),
                Some(e) if e == element || (array == ANYARRAY && !need) => {}
                Some(e) => return Err(self.inconsistent("anyarray", "anyelement", array, e)),
            }
        }
        if let Some(range) = f.range {
            let subtype = self.range_subtype(range).unwrap_or_default();
            match f.element {
                None => f.element = Some(subtype),
                Some(e) if e == subtype => {}
                Some(e) => return Err(self.inconsistent("anyrange", "anyelement", range, e)),
            }
        }
        let Some(element) = f.element else { return Ok(()) };
        if f.non_array && self.base_element_type(element).is_some() {
            return Err(mismatch(format!("type matched to anynonarray is an array type: {}", self.type_name(element))));
        }
        let is_enum = |t| self.cx.catalog.type_desc(t).is_some_and(|d| d.kind == TypeKind::Enum);
        if f.is_enum && !is_enum(element) {
            return Err(mismatch(format!("type matched to anyenum is not an enum type: {}", self.type_name(element))));
        }
        Ok(())
    }

    /// Family 2: a common type of the elements.
    fn finish_family2(&self, f: &mut Family) -> SqlResult<()> {
        self.finish_ranges(f, ("anycompatiblemultirange", "anycompatiblerange"))?;
        if let Some(range) = f.range {
            f.compatible.push(self.range_subtype(range).unwrap_or_default());
        }
        if f.compatible.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = f.compatible.iter().map(|&t| (t, None)).collect();
        let common = self.select_common_of(&list, Some("anycompatible"))?;
        for &t in &f.compatible {
            if !self.can_coerce(&[t], &[common], Context::Implicit) {
                return Err(SqlError::new(
                    SqlState::DatatypeMismatch,
                    format!(
                        "anycompatible types {} and {} cannot be matched",
                        self.type_name(t),
                        self.type_name(common)
                    ),
                ));
            }
        }
        if let Some(range) = f.range
            && self.range_subtype(range) != Some(common)
        {
            return Err(mismatch(format!(
                "anycompatiblerange type {} does not match anycompatible type {}",
                self.type_name(range),
                self.type_name(common)
            )));
        }
        if f.non_array && self.base_element_type(common).is_some() {
            return Err(mismatch(format!(
                "type matched to anycompatiblenonarray is an array type: {}",
                self.type_name(common)
            )));
        }
        f.element = Some(common);
        Ok(())
    }

    /// Replaces declared polymorphic argument types by the ones that they stand for, and answers the result type.
    pub fn resolve_generic(
        &self,
        actual: &[Oid],
        declared: &mut [Oid],
        result: Oid,
        allow_poly: bool,
    ) -> SqlResult<Oid> {
        if !declared.iter().any(|&d| is_polymorphic(d)) {
            return Ok(result);
        }
        let (mut f1, mut f2) = self.collect_families(actual, declared, allow_poly)?;
        self.finish_family1(&mut f1, true)?;
        self.finish_family2(&mut f2)?;
        let uses1 = declared.iter().any(|&d| family1(d)) || family1(result);
        let uses2 = declared.iter().any(|&d| family2(d)) || family2(result);
        if uses1 && f1.element.is_none() {
            if allow_poly {
                f1.element = Some(ANYELEMENT);
                f1.array = Some(ANYARRAY);
                f1.range = Some(ANYRANGE);
                f1.multirange = Some(ANYMULTIRANGE);
            } else {
                return Err(mismatch("could not determine polymorphic type because input has type unknown".to_owned()));
            }
        }
        if uses2 && f2.element.is_none() {
            // Nothing but unknowns: text, unless a range needs to be told.
            let ranges = |t: &Oid| matches!(*t, ANYCOMPATIBLERANGE | ANYCOMPATIBLEMULTIRANGE);
            if allow_poly {
                f2.element = Some(ANYCOMPATIBLE);
                f2.array = Some(ANYCOMPATIBLEARRAY);
            } else if declared.iter().any(ranges) {
                return Err(mismatch(
                    "could not determine polymorphic type anycompatiblerange because input has type unknown".to_owned(),
                ));
            } else {
                f2.element = Some(oids::TEXT);
            }
        }
        for d in declared.iter_mut() {
            if is_polymorphic(*d) {
                *d = self.stands_for(*d, if family1(*d) { &f1 } else { &f2 }, actual.len() > 1)?;
            }
        }
        if is_polymorphic(result) {
            return self.stands_for(result, if family1(result) { &f1 } else { &f2 }, true);
        }
        Ok(result)
    }

    fn stands_for(&self, declared: Oid, f: &Family, _several: bool) -> SqlResult<Oid> {
        let Some(element) = f.element else {
            return Err(SqlError::internal("a polymorphic family without element"));
        };
        match declared {
            ANYARRAY | ANYCOMPATIBLEARRAY => {
                if matches!(element, ANYELEMENT | ANYCOMPATIBLE) || f.array == Some(ANYARRAY) {
                    return Ok(if declared == ANYARRAY { ANYARRAY } else { ANYCOMPATIBLEARRAY });
                }
                // Family 1 keeps the array type it was given; family 2 has the common element's.
                match f.array.filter(|_| family1(declared)).or_else(|| self.array_type(element)) {
                    Some(a) => Ok(a),
                    None => Err(SqlError::new(
                        SqlState::UndefinedObject,
                        format!("could not find array type for data type {}", self.type_name(element)),
                    )),
                }
            }
            ANYRANGE | ANYCOMPATIBLERANGE => f.range.ok_or_else(|| {
                SqlError::new(
                    SqlState::UndefinedObject,
                    "could not determine polymorphic type anyrange because input has type unknown",
                )
            }),
            ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE => {
                let found = f.multirange.or_else(|| f.range.and_then(|r| self.multirange_of(r)));
                found.ok_or_else(|| {
                    SqlError::new(
                        SqlState::UndefinedObject,
                        "could not determine polymorphic type anymultirange because input has type unknown",
                    )
                })
            }
            _ => Ok(element),
        }
    }
}
