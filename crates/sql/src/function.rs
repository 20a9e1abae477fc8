//! Choosing among overloaded functions and operators.

use std::sync::Arc;

use stegodon_catalog::rows::{Operator, Proc};
use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult};

use crate::coerce::{Context, Path};
use crate::context::Analyzer;
use crate::oids::{self, UNKNOWN};

/// A function or operator that a call might mean.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub oid: Oid,
    /// Position of its schema along the path.
    pub path_position: usize,
    /// The types it takes, as this call would pass its arguments (variadic ones expanded, named ones in the call's
    /// order), then the defaulted ones.
    pub arg_types: Vec<Oid>,
    /// For named notation: for each argument of the call, then each defaulted one, its place in the declaration.
    pub arg_numbers: Option<Vec<usize>>,
    /// How many arguments make up the variadic array; 0 where it is not expanded.
    pub variadic_count: usize,
    /// How many defaults are used.
    pub default_count: usize,
    /// Two functions fit this call equally.
    pub ambiguous: bool,
}

impl Candidate {
    pub fn of_operator(o: &Operator, prefix: bool) -> Self {
        Self {
            oid: o.oid,
            path_position: 0,
            arg_types: if prefix { vec![o.right] } else { vec![o.left, o.right] },
            arg_numbers: None,
            variadic_count: 0,
            default_count: 0,
            ambiguous: false,
        }
    }
}

/// What a function call means.
pub(crate) enum FunctionDetail {
    /// Nothing.
    NotFound,
    /// More than one thing.
    Multiple,
    /// A cast, written as a call of the type's name.
    Coercion(Oid),
    /// A function, aggregate, window function or procedure.
    Found { proc: Arc<Proc>, candidate: Candidate },
}

impl Analyzer<'_> {
    /// The candidates that the argument types can be passed to.
    pub fn matching(&self, inputs: &[Oid], candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.into_iter().filter(|c| self.can_coerce(inputs, &c.arg_types, Context::Implicit)).collect()
    }

    /// The best of several candidates that fit; `None` where there is no best.
    pub fn best_candidate(&self, inputs: &[Oid], mut list: Vec<Candidate>) -> Option<Candidate> {
        let bases: Vec<Oid> = inputs.iter().map(|&t| if t == UNKNOWN { t } else { self.base_type(t) }).collect();
        let unknowns = bases.iter().filter(|&&t| t == UNKNOWN).count();
        let keep_most = |list: &mut Vec<Candidate>, score: &dyn Fn(&Candidate) -> usize| {
            let most = list.iter().map(score).max().unwrap_or(0);
            list.retain(|c| score(c) == most);
        };
        let preferred_in = |category: u8, t: Oid| self.category(t) == category && self.is_preferred(t);

        // The most exact matches win.
        keep_most(&mut list, &|c| bases.iter().zip(&c.arg_types).filter(|(b, t)| **b != UNKNOWN && b == t).count());
        if list.len() == 1 {
            return list.pop();
        }
        // Then the most exact or preferred ones.
        keep_most(&mut list, &|c| {
            let good = |(b, t): &(&Oid, &Oid)| **b != UNKNOWN && (*b == *t || preferred_in(self.category(**b), **t));
            bases.iter().zip(&c.arg_types).filter(good).count()
        });
        if list.len() == 1 {
            return list.pop();
        }
        if unknowns == 0 {
            return None;
        }
        // Unknown literals: a category that all candidates accept there, string if any does.
        let mut slots: Vec<Option<(u8, bool)>> = vec![None; bases.len()];
        let mut resolved = true;
        for (i, base) in bases.iter().enumerate() {
            if *base != UNKNOWN {
                continue;
            }
            let mut slot: Option<(u8, bool)> = None;
            let mut conflict = false;
            for c in &list {
                let t = c.arg_types.get(i).copied().unwrap_or_default();
                let (category, preferred) = (self.category(t), self.is_preferred(t));
                match &mut slot {
                    None => slot = Some((category, preferred)),
                    Some(s) if s.0 == category => s.1 |= preferred,
                    Some(s) if category == b'S' => *s = (category, preferred),
                    Some(_) => conflict = true,
                }
            }
            if conflict && slot.is_none_or(|s| s.0 != b'S') {
                resolved = false;
                break;
            }
            if let Some(place) = slots.get_mut(i) {
                *place = slot;
            }
        }
        if resolved {
            let keep = |c: &Candidate| {
                slots.iter().zip(&c.arg_types).all(|(slot, &t)| {
                    slot.is_none_or(|(category, has_preferred)| {
                        self.category(t) == category && (!has_preferred || self.is_preferred(t))
                    })
                })
            };
            let kept: Vec<Candidate> = list.iter().filter(|c| keep(c)).cloned().collect();
            if !kept.is_empty() {
                list = kept;
            }
            if list.len() == 1 {
                return list.pop();
            }
        }
        // If all known inputs are of one type, take the unknowns to be of it too.
        if unknowns < bases.len() {
            let mut known = bases.iter().filter(|&&t| t != UNKNOWN);
            let first = *known.next()?;
            if known.all(|&t| t == first) {
                let all = vec![first; bases.len()];
                let mut fits = list.into_iter().filter(|c| self.can_coerce(&all, &c.arg_types, Context::Implicit));
                if let (Some(only), None) = (fits.next(), fits.next()) {
                    return Some(only);
                }
            }
        }
        None
    }

    /// The functions that a call of this name with so many arguments might mean.
    pub fn function_candidates(
        &self,
        name: &[String],
        arg_count: usize,
        arg_names: &[String],
        expand_variadic: bool,
    ) -> SqlResult<Vec<Candidate>> {
        let (path, bare): (Vec<Oid>, &str) = match name {
            [bare] => (self.cx.path.namespaces.clone(), bare),
            // A schema that is not there has no functions: the call is then said not to exist.
            [schema, bare] => (vec![self.namespace_named(schema)?], bare),
            [database, schema, bare] => {
                self.check_database(database, &name.join("."))?;
                (vec![self.namespace_named(schema)?], bare)
            }
            _ => return Err(SqlError::unsupported("a function name of four or more parts")),
        };
        let mut list: Vec<Candidate> = Vec::new();
        let mut procs: Vec<&Arc<Proc>> = self.cx.catalog.procs_named(bare).collect();
        procs.sort_by_key(|p| p.oid);
        for p in procs {
            let Some(path_position) = path.iter().position(|&n| n == p.namespace) else { continue };
            let declared = p.arg_types.len();
            let mut variadic = false;
            let mut defaults = 0;
            let mut numbers = None;
            if arg_names.is_empty() {
                variadic = expand_variadic && p.variadic.is_valid();
                if declared > arg_count {
                    if arg_count + p.default_count < declared {
                        continue;
                    }
                    defaults = declared - arg_count;
                } else if declared != arg_count && !variadic {
                    continue;
                }
            } else {
                // A VARIADIC parameter cannot be passed by name unless as an array.
                if expand_variadic && p.variadic.is_valid() {
                    continue;
                }
                let Some(order) = match_named_call(p, arg_count, arg_names) else { continue };
                defaults = order.len() - arg_count;
                numbers = Some(order);
            }
            let effective = declared.max(arg_count);
            let mut arg_types = match &numbers {
                Some(order) => order.iter().map(|&i| p.arg_types.get(i).copied().unwrap_or_default()).collect(),
                None => p.arg_types.clone(),
            };
            let mut variadic_count = 0;
            if variadic {
                arg_types.truncate(declared.saturating_sub(1));
                arg_types.resize(effective, p.variadic);
                variadic_count = effective + 1 - declared;
            }
            let new = Candidate {
                oid: p.oid,
                path_position,
                arg_types,
                arg_numbers: numbers,
                variadic_count,
                default_count: defaults,
                ambiguous: false,
            };
            // One that takes the same arguments as this call passes them hides, is hidden, or is ambiguous.
            let shown = |c: &Candidate| c.arg_types.len() - c.default_count;
            let same = list.iter().position(|c| {
                shown(c) == shown(&new) && c.arg_types.iter().zip(&new.arg_types).take(shown(c)).all(|(a, b)| a == b)
            });
            let Some(at) = same else {
                list.push(new);
                continue;
            };
            let Some(old) = list.get_mut(at) else { continue };
            let rank = |c: &Candidate| (c.path_position, c.variadic_count > 0);
            match rank(&new).cmp(&rank(old)) {
                std::cmp::Ordering::Less => *old = new,
                std::cmp::Ordering::Equal => old.ambiguous = true,
                std::cmp::Ordering::Greater => {}
            }
        }
        Ok(list)
    }

    /// What a call means, from its name and argument types.
    pub fn function_detail(
        &self,
        name: &[String],
        inputs: &[Oid],
        arg_names: &[String],
        expand_variadic: bool,
    ) -> SqlResult<FunctionDetail> {
        let candidates = match self.function_candidates(name, inputs.len(), arg_names, expand_variadic) {
            Err(e) if e.state == stegodon_types::SqlState::InvalidSchemaName => return Err(e),
            other => other?,
        };
        let exact = candidates
            .iter()
            .position(|c| c.arg_types.len() >= inputs.len() && c.arg_types.iter().zip(inputs).all(|(a, b)| a == b));
        let chosen = match exact {
            Some(i) => candidates.into_iter().nth(i),
            None => {
                if let (&[source], true) = (inputs, arg_names.is_empty())
                    && let Some(target) = self.function_name_as_type(name)
                {
                    let is_coercion = source == UNKNOWN
                        || match self.coercion_path(target, source, Context::Explicit) {
                            Some(Path::Relabel) => true,
                            Some(Path::ViaIo) => !(self.is_row_type(source) && self.category(target) == b'S'),
                            _ => false,
                        };
                    if is_coercion {
                        return Ok(FunctionDetail::Coercion(target));
                    }
                }
                let shown_matching = self.matching(inputs, candidates);
                match shown_matching.len() {
                    0 => return Ok(FunctionDetail::NotFound),
                    1 => shown_matching.into_iter().next(),
                    _ => match self.best_candidate(inputs, shown_matching) {
                        Some(c) => Some(c),
                        None => return Ok(FunctionDetail::Multiple),
                    },
                }
            }
        };
        let Some(candidate) = chosen else { return Ok(FunctionDetail::NotFound) };
        if candidate.ambiguous {
            return Ok(FunctionDetail::Multiple);
        }
        match self.cx.catalog.proc(candidate.oid) {
            Some(p) => Ok(FunctionDetail::Found { proc: Arc::clone(p), candidate }),
            None => Err(SqlError::internal("a function has gone")),
        }
    }

    /// A function's name as a type's: only what a cast can be written with.
    fn function_name_as_type(&self, name: &[String]) -> Option<Oid> {
        let found = match name {
            [bare] => self.cx.catalog.type_on_path(self.cx.path, bare),
            [schema, bare] => match self.cx.catalog.namespace_by_name(schema) {
                Some(ns) => self.cx.catalog.type_by_name(ns.oid, bare),
                None => None,
            },
            _ => None,
        };
        found.map(|t| t.oid).filter(|&t| {
            !matches!(
                self.cx.catalog.type_desc(t).map(|d| &d.kind),
                None | Some(stegodon_types::TypeKind::Composite { .. })
            ) && t != oids::UNKNOWN
        })
    }
}

/// For named notation: the declared places of the call's arguments and then of the defaulted ones; `None` where the
/// names do not fit.
fn match_named_call(p: &Proc, arg_count: usize, arg_names: &[String]) -> Option<Vec<usize>> {
    let declared = p.arg_types.len();
    if arg_count > declared || declared > arg_count + p.default_count {
        return None;
    }
    let names = p.arg_names.as_ref()?;
    // Only inputs count, and they are numbered among themselves.
    let inputs: Vec<&str> = match &p.arg_modes {
        None => names.iter().map(String::as_str).collect(),
        Some(modes) => names
            .iter()
            .zip(modes)
            .filter(|(_, m)| matches!(**m, b'i' | b'b' | b'v'))
            .map(|(n, _)| n.as_str())
            .collect(),
    };
    let positional = arg_count.checked_sub(arg_names.len())?;
    let mut order: Vec<usize> = (0..positional).collect();
    for name in arg_names {
        let at = inputs.iter().position(|n| n == name)?;
        if order.contains(&at) {
            return None;
        }
        order.push(at);
    }
    for i in 0..declared {
        if !order.contains(&i) {
            // Only the last parameters have defaults.
            if i < declared - p.default_count {
                return None;
            }
            order.push(i);
        }
    }
    Some(order)
}
