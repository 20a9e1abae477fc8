//! What analysis and planning ask of types and operators: coercibility, default operator classes, sorting, hashing.

use stegodon_format::ids::Oid;
use stegodon_types::{Collation, Layout, SqlError, SqlResult, SqlState, TypeKind};

use crate::lookup::Catalog;

/// The access methods' OIDs.
pub mod am {
    use super::Oid;
    /// `heap`
    pub const HEAP: Oid = Oid(2);
    /// `btree`
    pub const BTREE: Oid = Oid(403);
    /// `hash`
    pub const HASH: Oid = Oid(405);
    /// `gist`
    pub const GIST: Oid = Oid(783);
    /// `gin`
    pub const GIN: Oid = Oid(2742);
    /// `brin`
    pub const BRIN: Oid = Oid(3580);
    /// `spgist`
    pub const SPGIST: Oid = Oid(4000);
}

/// btree's strategies: `<` 1, `<=` 2, `=` 3, `>=` 4, `>` 5.
pub mod btree {
    #![allow(missing_docs, reason = "the name is the documentation")]
    pub const LESS: u16 = 1;
    pub const LESS_EQUAL: u16 = 2;
    pub const EQUAL: u16 = 3;
    pub const GREATER_EQUAL: u16 = 4;
    pub const GREATER: u16 = 5;
    /// The support function that orders two values.
    pub const ORDER_PROC: u16 = 1;
    /// The support function behind `RANGE` frames with an offset.
    pub const IN_RANGE_PROC: u16 = 3;
}

/// hash's only strategy is 1, `=`; its support function 1 hashes to 32 bits.
pub const HASH_EQUAL: u16 = 1;

/// The operators that sort, group and hash a type; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortOperators {
    /// `<`
    pub less: Oid,
    /// `=`
    pub equal: Oid,
    /// `>`
    pub greater: Oid,
    /// Whether `equal` can be hashed.
    pub hashable: bool,
    /// The btree family behind `less` and `greater`.
    pub btree_family: Oid,
    /// The hash family behind `equal`.
    pub hash_family: Oid,
}

const ANY: Oid = Oid(2276);
const ANYARRAY: Oid = Oid(2277);
const ANYELEMENT: Oid = Oid(2283);
const ANYNONARRAY: Oid = Oid(2776);
const ANYENUM: Oid = Oid(3500);
const ANYRANGE: Oid = Oid(3831);
const ANYMULTIRANGE: Oid = Oid(4537);
const ANYCOMPATIBLEMULTIRANGE: Oid = Oid(4538);
const ANYCOMPATIBLE: Oid = Oid(5077);
const ANYCOMPATIBLEARRAY: Oid = Oid(5078);
const ANYCOMPATIBLENONARRAY: Oid = Oid(5079);
const ANYCOMPATIBLERANGE: Oid = Oid(5080);
const RECORD: Oid = Oid(2249);
const RECORD_ARRAY: Oid = Oid(2287);

const ARRAY_EQ: Oid = Oid(1070);
const ARRAY_LT: Oid = Oid(1072);
const ARRAY_GT: Oid = Oid(1073);
const RECORD_EQ: Oid = Oid(2988);
const RECORD_LT: Oid = Oid(2990);
const RECORD_GT: Oid = Oid(2991);
const RANGE_EQ: Oid = Oid(3882);
const MULTIRANGE_EQ: Oid = Oid(2860);

/// Nesting of arrays in rows in ranges … beyond this is refused as having no operators.
const MAX_TYPE_DEPTH: u32 = 32;

impl Catalog {
    fn kind(&self, oid: Oid) -> Option<&TypeKind> {
        self.types.get(&oid).map(|t| &t.kind)
    }

    /// The type below a domain, however deep; the type itself otherwise (`getBaseType`).
    pub fn base_type(&self, oid: Oid) -> Oid {
        self.base_type_and_typmod(oid, -1).0
    }

    /// The type below a domain and the typmod that the domain gives it.
    pub fn base_type_and_typmod(&self, mut oid: Oid, mut typmod: i32) -> (Oid, i32) {
        for _ in 0..=self.types.len() {
            match self.kind(oid) {
                Some(TypeKind::Domain { base, typmod: t }) => (oid, typmod) = (*base, *t),
                _ => break,
            }
        }
        (oid, typmod)
    }

    /// The element type of a true array type (`get_element_type`); not looking below domains.
    pub fn element_type(&self, oid: Oid) -> Option<Oid> {
        match self.kind(oid)? {
            TypeKind::Array { element } => Some(*element),
            _ => None,
        }
    }

    /// The array type over a type, where there is one.
    pub fn array_type_of(&self, oid: Oid) -> Option<Oid> {
        self.types.get(&oid).map(|t| t.array).filter(|a| a.is_valid())
    }

    /// Whether it is a row type: a composite, `record`, or a domain over one.
    pub fn is_row_type(&self, oid: Oid) -> bool {
        let base = self.base_type(oid);
        base == RECORD || matches!(self.kind(base), Some(TypeKind::Composite { .. }))
    }

    /// The relation whose columns a composite type (or a domain over one) has.
    pub fn relation_of_type(&self, oid: Oid) -> Option<&std::sync::Arc<crate::rows::Relation>> {
        match self.kind(self.base_type(oid))? {
            TypeKind::Composite { relation } => self.relation(*relation),
            _ => None,
        }
    }

    /// Whether a value of `source` may be used as `target` without conversion (`IsBinaryCoercible`).
    pub fn is_binary_coercible(&self, source: Oid, target: Oid) -> bool {
        if source == target || matches!(target, ANY | ANYELEMENT | ANYCOMPATIBLE) {
            return true;
        }
        let source = self.base_type(source);
        if source == target {
            return true;
        }
        let kind = self.kind(source);
        let is_array = matches!(kind, Some(TypeKind::Array { .. }));
        let fits = match target {
            ANYARRAY | ANYCOMPATIBLEARRAY => is_array,
            ANYNONARRAY | ANYCOMPATIBLENONARRAY => !is_array,
            ANYENUM => matches!(kind, Some(TypeKind::Enum)),
            ANYRANGE | ANYCOMPATIBLERANGE => matches!(kind, Some(TypeKind::Range { .. })),
            ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE => matches!(kind, Some(TypeKind::Multirange { .. })),
            RECORD => self.is_row_type(source),
            RECORD_ARRAY => self.element_type(source).is_some_and(|e| self.is_row_type(e)),
            _ => false,
        };
        // Only an implicit cast without a function makes types the same.
        fits || self.cast(source, target).is_some_and(|c| c.method == b'b' && c.context == b'i')
    }

    /// The default operator class of a type for an access method (`GetDefaultOpClass`).
    pub fn default_opclass(&self, type_oid: Oid, access_method: Oid) -> Option<Oid> {
        let type_oid = self.base_type(type_oid);
        let category = self.types.get(&type_oid).map(|t| t.category);
        let classes = self.default_opclasses.get(&access_method)?;
        let (mut exact, mut preferred, mut compatible) = (Vec::new(), Vec::new(), Vec::new());
        for class in classes {
            if class.input_type == type_oid {
                exact.push(class.oid);
            } else if self.is_binary_coercible(type_oid, class.input_type) {
                let input = self.types.get(&class.input_type);
                if input.is_some_and(|t| Some(t.category) == category && t.preferred) {
                    preferred.push(class.oid);
                } else {
                    compatible.push(class.oid);
                }
            }
        }
        for found in [exact, preferred, compatible] {
            match found.as_slice() {
                [only] => return Some(*only),
                [] => {}
                // Several equally good ones: PostgreSQL refuses two exact ones and ignores the other lists' ties.
                _ => {}
            }
        }
        None
    }

    /// The operators that sort and group a type (`lookup_type_cache`, `get_sort_group_operators`). An array has them only
    /// if its elements do, a row only if its columns do.
    pub fn sort_operators(&self, type_oid: Oid) -> SortOperators {
        match self.sorting.get(&type_oid) {
            Some(found) => *found,
            None => self.sort_operators_at(type_oid, 0),
        }
    }

    /// Finds the operators of base types, enums and ranges once.
    pub(crate) fn prepare_sorting(&mut self) {
        let plain = |t: &&std::sync::Arc<stegodon_types::TypeDesc>| {
            matches!(t.kind, TypeKind::Base | TypeKind::Enum | TypeKind::Range { .. })
        };
        let types: Vec<Oid> = self.types.values().filter(plain).map(|t| t.oid).collect();
        self.sorting = types.into_iter().map(|t| (t, self.sort_operators_at(t, 0))).collect();
    }

    fn sort_operators_at(&self, type_oid: Oid, depth: u32) -> SortOperators {
        let mut found = SortOperators::default();
        if depth > MAX_TYPE_DEPTH {
            return found;
        }
        let class = |am| self.default_opclass(type_oid, am).and_then(|c| self.opclass(c));
        if let Some(c) = class(am::BTREE) {
            let op = |strategy| self.family_operator(c.family, c.input_type, c.input_type, strategy);
            found.btree_family = c.family;
            found.less = op(btree::LESS).unwrap_or_default();
            found.equal = op(btree::EQUAL).unwrap_or_default();
            found.greater = op(btree::GREATER).unwrap_or_default();
        }
        if let Some(c) = class(am::HASH) {
            let equal = self.family_operator(c.family, c.input_type, c.input_type, HASH_EQUAL).unwrap_or_default();
            if !found.equal.is_valid() {
                found.equal = equal;
            }
            if equal == found.equal {
                found.hash_family = c.family;
                found.hashable = self.family_proc(c.family, c.input_type, c.input_type, 1).is_some();
            }
        }
        self.restrict_to_parts(type_oid, depth, &mut found);
        found
    }

    /// Takes away what the parts of a container cannot do.
    fn restrict_to_parts(&self, type_oid: Oid, depth: u32, found: &mut SortOperators) {
        let base = self.base_type(type_oid);
        let parts: Vec<Oid> = match self.kind(base) {
            Some(TypeKind::Array { element }) => vec![*element],
            Some(TypeKind::Composite { relation }) => match self.relation(*relation) {
                Some(r) => r.attributes.iter().filter(|a| !a.dropped).map(|a| a.type_oid).collect(),
                None => Vec::new(),
            },
            // A range always orders; its hash is its bounds'.
            Some(TypeKind::Range { subtype, .. }) => vec![*subtype],
            Some(TypeKind::Multirange { range }) => vec![*range],
            // An anonymous record may turn out to compare; it is never assumed to hash.
            _ if base == RECORD => {
                found.hashable = false;
                return;
            }
            _ => return,
        };
        let parts: Vec<SortOperators> = parts.into_iter().map(|p| self.sort_operators_at(p, depth + 1)).collect();
        if matches!(found.equal, ARRAY_EQ | RECORD_EQ) && !parts.iter().all(|p| p.equal.is_valid()) {
            found.equal = Oid::INVALID;
        }
        if matches!(found.less, ARRAY_LT | RECORD_LT) && !parts.iter().all(|p| p.less.is_valid()) {
            found.less = Oid::INVALID;
        }
        if matches!(found.greater, ARRAY_GT | RECORD_GT) && !parts.iter().all(|p| p.less.is_valid()) {
            found.greater = Oid::INVALID;
        }
        let hashes_parts = matches!(found.equal, ARRAY_EQ | RECORD_EQ | RANGE_EQ | MULTIRANGE_EQ);
        if !found.equal.is_valid() || hashes_parts && !parts.iter().all(|p| p.hashable) {
            found.hashable = false;
        }
    }

    /// [`Catalog::sort_operators`] where `<`, `=` and `>` must exist: else PostgreSQL's `42883`.
    pub fn ordering_operators(&self, type_oid: Oid) -> SqlResult<SortOperators> {
        let found = self.sort_operators(type_oid);
        if found.less.is_valid() && found.greater.is_valid() && found.equal.is_valid() {
            return Ok(found);
        }
        let message = format!("could not identify an ordering operator for type {}", self.format_type(type_oid, None));
        Err(SqlError::new(SqlState::UndefinedFunction, message)
            .hint("Use an explicit ordering operator or modify the query."))
    }

    /// [`Catalog::sort_operators`] where only `=` must exist: else PostgreSQL's `42883`.
    pub fn grouping_operators(&self, type_oid: Oid) -> SqlResult<SortOperators> {
        let found = self.sort_operators(type_oid);
        if found.equal.is_valid() {
            return Ok(found);
        }
        let message = format!("could not identify an equality operator for type {}", self.format_type(type_oid, None));
        Err(SqlError::new(SqlState::UndefinedFunction, message))
    }

    /// The type's `=`.
    pub fn equality_operator(&self, type_oid: Oid) -> Option<Oid> {
        Some(self.sort_operators(type_oid).equal).filter(|o| o.is_valid())
    }

    /// The operator with its sides swapped.
    pub fn commutator(&self, operator: Oid) -> Option<Oid> {
        self.operators.get(&operator).map(|o| o.commutator).filter(|o| o.is_valid())
    }

    /// The operator whose result is the opposite.
    pub fn negator(&self, operator: Oid) -> Option<Oid> {
        self.operators.get(&operator).map(|o| o.negator).filter(|o| o.is_valid())
    }

    /// The btree families an operator is in, with its strategy and input types, by family OID.
    pub fn btree_members(&self, operator: Oid) -> impl Iterator<Item = &crate::rows::AmOp> {
        self.amops_of_operator(operator).iter().filter(|a| a.access_method == am::BTREE && a.purpose == b's')
    }

    /// For an ordering operator (`<` or `>` of a btree family): family, input type, whether it is `>`
    /// (`get_ordering_op_properties`).
    pub fn ordering_operator_properties(&self, operator: Oid) -> Option<(Oid, Oid, bool)> {
        self.btree_members(operator)
            .find(|a| a.left == a.right && matches!(a.strategy, btree::LESS | btree::GREATER))
            .map(|a| (a.family, a.left, a.strategy == btree::GREATER))
    }

    /// The `=` that goes with an ordering operator, and whether the order is descending
    /// (`get_equality_op_for_ordering_op`).
    pub fn equality_for_ordering(&self, operator: Oid) -> Option<(Oid, bool)> {
        let (family, input, descending) = self.ordering_operator_properties(operator)?;
        Some((self.family_operator(family, input, input, btree::EQUAL)?, descending))
    }

    /// The `<` that goes with an equality operator, where some btree family has both (`get_ordering_op_for_equality_op`).
    pub fn ordering_for_equality(&self, operator: Oid) -> Option<Oid> {
        self.btree_members(operator)
            .filter(|a| a.strategy == btree::EQUAL && a.left == a.right)
            .find_map(|a| self.family_operator(a.family, a.left, a.right, btree::LESS))
    }

    /// Whether an equality operator can be hashed for inputs of this type (`op_hashjoinable`).
    pub fn operator_can_hash(&self, operator: Oid, input_type: Oid) -> bool {
        match operator {
            ARRAY_EQ | RECORD_EQ => {
                let sort = self.sort_operators(input_type);
                sort.equal == operator && sort.hashable
            }
            _ => self.operators.get(&operator).is_some_and(|o| o.can_hash),
        }
    }

    /// Whether an equality operator can be merged on for inputs of this type (`op_mergejoinable`).
    pub fn operator_can_merge(&self, operator: Oid, input_type: Oid) -> bool {
        match operator {
            ARRAY_EQ | RECORD_EQ => {
                let sort = self.sort_operators(input_type);
                sort.equal == operator && sort.less.is_valid()
            }
            _ => self.operators.get(&operator).is_some_and(|o| o.can_merge),
        }
    }

    /// What may be done under a collation (DESIGN D9).
    pub fn collation_kind(&self, oid: Oid) -> SqlResult<Collation> {
        if !oid.is_valid() {
            return Ok(Collation::None);
        }
        let row = self.collation(oid).ok_or_else(|| {
            SqlError::new(SqlState::UndefinedObject, format!("collation with OID {oid} does not exist"))
        })?;
        if !row.deterministic {
            return Ok(Collation::Unsupported(row.name.as_str().into()));
        }
        let c_like = |name: Option<&str>| matches!(name, Some("C" | "POSIX"));
        Ok(match row.provider {
            b'd' => {
                let database =
                    self.database.as_ref().ok_or_else(|| SqlError::internal("a catalog without a database"))?;
                match database.locale_provider {
                    b'b' => Collation::C,
                    b'c' if c_like(Some(&database.collate)) => Collation::C,
                    b'c' => Collation::equality_only(database.collate.as_str()),
                    b'i' => Collation::equality_only(database.locale.as_deref().unwrap_or("icu")),
                    _ => Collation::Unsupported(row.name.as_str().into()),
                }
            }
            // Every locale of the builtin provider compares by bytes: C, C.UTF-8, PG_UNICODE_FAST.
            b'b' => Collation::C,
            b'c' if c_like(row.collate.as_deref()) => Collation::C,
            b'c' | b'i' => Collation::equality_only(row.name.as_str()),
            _ => Collation::Unsupported(row.name.as_str().into()),
        })
    }

    /// A relation's children in the order PostgreSQL expands them, itself first: breadth first, each level's children
    /// by OID, none twice (`find_all_inheritors`).
    pub fn inheritors(&self, relation: Oid) -> Vec<Oid> {
        let mut all = vec![relation];
        let mut seen: std::collections::HashSet<Oid> = [relation].into();
        let mut at = 0;
        while let Some(&parent) = all.get(at) {
            at += 1;
            if let Some(r) = self.relation(parent) {
                all.extend(r.children.iter().filter(|c| seen.insert(**c)));
            }
        }
        all
    }
}

impl stegodon_nodes::reader::NodeContext for Catalog {
    fn layout(&self, type_oid: Oid) -> Option<Layout> {
        self.types.get(&type_oid).and_then(|t| t.layout)
    }

    fn is_descending(&self, ordering: Oid) -> Option<bool> {
        self.ordering_operator_properties(ordering).map(|(_, _, descending)| descending)
    }
}
