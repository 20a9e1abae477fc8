//! Types that hold domains with constraints: their input function checks them, which ours does not.
//!
//! ```text
//!   '{5}'::posint[]      ->  '{5}'::int[]::posint[]: the cast of each element checks
//!   others (a row with a domain in it, a range over one)  ->  refused
//! ```

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{CoercionForm, Const, Location};
use stegodon_types::{Datum, SqlResult, TypeKind};

use crate::coerce::Context;
use crate::context::Analyzer;

/// How many types may be inside each other.
const MAX_DEPTH: usize = 32;

impl Analyzer<'_> {
    /// Whether values of a type hold values of a domain with constraints, the type itself aside where it is a domain.
    pub(crate) fn holds_checked_domain(&self, ty: Oid) -> bool {
        let Some(desc) = self.cx.catalog.type_desc(self.base_type(ty)) else { return false };
        match &desc.kind {
            TypeKind::Array { element } => self.is_checked(*element, 0),
            _ => self.parts_checked(&desc.kind, 0),
        }
    }

    fn is_checked(&self, ty: Oid, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return true;
        }
        let Some(desc) = self.cx.catalog.type_desc(ty) else { return false };
        if let TypeKind::Domain { base, .. } = desc.kind {
            return self.cx.catalog.type_row(ty).is_none_or(|t| t.not_null)
                || self.cx.catalog.domain_constraints(ty).iter().any(|c| c.kind == b'c')
                || self.is_checked(base, depth + 1);
        }
        self.parts_checked(&desc.kind, depth)
    }

    fn parts_checked(&self, kind: &TypeKind, depth: usize) -> bool {
        match kind {
            TypeKind::Array { element } => self.is_checked(*element, depth + 1),
            TypeKind::Range { subtype, .. } => self.is_checked(*subtype, depth + 1),
            TypeKind::Multirange { range } => self.is_checked(*range, depth + 1),
            TypeKind::Composite { relation } => {
                let columns = self.cx.catalog.relation(*relation).map(|r| &r.attributes);
                columns.is_none_or(|c| c.iter().any(|a| !a.dropped && self.is_checked(a.type_oid, depth + 1)))
            }
            _ => false,
        }
    }

    /// A literal of a type that holds a domain with constraints.
    pub(crate) fn checked_literal(
        &mut self,
        c: &Const,
        text: &[u8],
        target: Oid,
        location: Location,
    ) -> SqlResult<Expr> {
        let element = self.element_type(self.base_type(target));
        // The elements are domains themselves, over what needs no check.
        let below = element.map(|e| self.base_type(e)).filter(|&b| Some(b) != element && !self.is_checked(b, 0));
        let Some(plain) = below.and_then(|b| self.array_type(b)) else {
            return self.unsupported(c.location, "a literal of a type that holds a domain with constraints");
        };
        let value: Datum = self.read_literal(plain, text, -1).map_err(|e| self.place(e, c.location))?;
        let read = Expr::Const(Const {
            type_oid: plain,
            typmod: -1,
            collation: self.type_collation(plain),
            value: Some(value),
            location: c.location,
        });
        // As an assignment: what is too long is an error and not cut off.
        self.coerce_type(read, plain, target, -1, Context::Assignment, CoercionForm::ImplicitCast, location)
    }
}
