//! Types that hold domains with constraints: their input function checks them, which ours does not.
//!
//! ```text
//!   '{5}'::posint[]      ->  '{5}'::int[]::posint[]: the cast of each element checks
//!   others (a row with a domain in it, a range over one)  ->  refused
//! ```

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{CoercionForm, Const, Location};
use stegodon_types::{Datum, SqlResult};

use crate::coerce::Context;
use crate::context::Analyzer;

impl Analyzer<'_> {
    /// Whether values of a type hold values of a domain with constraints, the type itself aside where it is a domain.
    pub(crate) fn holds_checked_domain(&self, ty: Oid) -> bool {
        self.cx.catalog.holds_checked_domain(self.base_type(ty))
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
        let below =
            element.map(|e| self.base_type(e)).filter(|&b| Some(b) != element && !self.cx.catalog.is_checked(b));
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
