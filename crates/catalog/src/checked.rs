//! Types whose values are checked by a domain's constraints, their own or of something inside them. PostgreSQL's input
//! functions check those; ours read a value and check nothing, so whoever reads one must ask here first.

use stegodon_format::ids::Oid;
use stegodon_types::TypeKind;

use crate::Catalog;

/// How many types may be inside each other.
const MAX_DEPTH: usize = 32;

impl Catalog {
    /// Whether a type is a domain with constraints, or holds values of one.
    pub fn is_checked(&self, ty: Oid) -> bool {
        self.checked(ty, 0)
    }

    /// Whether a type, no domain itself, holds values of a domain with constraints.
    pub fn holds_checked_domain(&self, ty: Oid) -> bool {
        let Some(desc) = self.type_desc(ty) else { return false };
        match &desc.kind {
            TypeKind::Array { element } => self.checked(*element, 0),
            kind => self.parts_checked(kind, 0),
        }
    }

    fn checked(&self, ty: Oid, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return true;
        }
        let Some(desc) = self.type_desc(ty) else { return false };
        if let TypeKind::Domain { base, .. } = desc.kind {
            return self.type_row(ty).is_none_or(|t| t.not_null)
                || self.domain_constraints(ty).iter().any(|c| c.kind == b'c')
                || self.checked(base, depth + 1);
        }
        self.parts_checked(&desc.kind, depth)
    }

    fn parts_checked(&self, kind: &TypeKind, depth: usize) -> bool {
        match kind {
            TypeKind::Array { element } => self.checked(*element, depth + 1),
            TypeKind::Range { subtype, .. } => self.checked(*subtype, depth + 1),
            TypeKind::Multirange { range } => self.checked(*range, depth + 1),
            TypeKind::Composite { relation } => {
                let columns = self.relation(*relation).map(|r| &r.attributes);
                columns.is_none_or(|c| c.iter().any(|a| !a.dropped && self.checked(a.type_oid, depth + 1)))
            }
            _ => false,
        }
    }
}
