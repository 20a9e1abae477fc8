//! Changing an expression's type: which ways there are, and the nodes that go them.

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{
    ArrayCoerce, CaseTest, CoerceToDomain, CoerceViaIo, CoercionForm, Collate, Const, ConvertRowtype, FuncExpr,
    Location, ParamKind, Relabel, RowExpr,
};
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::context::Analyzer;
use crate::oids;

/// How much a coercion was asked for: an implicit one is the least willing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// Nobody asked.
    Implicit,
    /// A value is assigned to something of the type.
    Assignment,
    /// A cast was written.
    Explicit,
}

/// A way from one type to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Nothing changes but the type.
    Relabel,
    /// By a cast function.
    Func(Oid),
    /// Element by element.
    Array,
    /// Through text.
    ViaIo,
}

impl Analyzer<'_> {
    /// The way from `source` to `target`, in this context.
    pub fn coercion_path(&self, target: Oid, source: Oid, context: Context) -> Option<Path> {
        let (target, source) = (self.base_type(target), self.base_type(source));
        if source == target {
            return Some(Path::Relabel);
        }
        if let Some(cast) = self.cx.catalog.cast(source, target) {
            let needed = match cast.context {
                b'i' => Context::Implicit,
                b'a' => Context::Assignment,
                _ => Context::Explicit,
            };
            if context < needed {
                return None;
            }
            return match cast.method {
                b'f' => Some(Path::Func(cast.function)),
                b'i' => Some(Path::ViaIo),
                b'b' => Some(Path::Relabel),
                _ => None,
            };
        }
        // The vector types are never reached element by element: they have no NULLs and one dimension.
        if !matches!(target, oids::OIDVECTOR | oids::INT2VECTOR)
            && let (Some(te), Some(se)) = (self.element_type(target), self.element_type(source))
            && self.coercion_path(te, se, context).is_some()
        {
            return Some(Path::Array);
        }
        let string = |t| self.category(t) == b'S';
        if (context >= Context::Assignment && string(target)) || (context >= Context::Explicit && string(source)) {
            return Some(Path::ViaIo);
        }
        None
    }

    /// `typcategory`.
    pub fn category(&self, oid: Oid) -> u8 {
        self.cx.catalog.type_desc(oid).map_or(0, |t| t.category)
    }

    /// Whether the type is the preferred one of its category.
    pub fn is_preferred(&self, oid: Oid) -> bool {
        self.cx.catalog.type_desc(oid).is_some_and(|t| t.preferred)
    }

    /// Whether values of these types can be used where those types are expected.
    pub fn can_coerce(&self, inputs: &[Oid], targets: &[Oid], context: Context) -> bool {
        let mut generic = false;
        for (&input, &target) in inputs.iter().zip(targets) {
            if input == target || target == oids::ANY {
                continue;
            }
            if crate::polymorphic::is_polymorphic(target) {
                generic = true;
                continue;
            }
            let ok = input == oids::UNKNOWN
                || self.coercion_path(target, input, context).is_some()
                || (input == oids::RECORD && self.composite_relation(target).is_some())
                || (target == oids::RECORD && self.composite_relation(input).is_some())
                || (target == oids::RECORDARRAY && self.is_composite_array(input))
                || self.row_type_inherits(input, target);
            if !ok {
                return false;
            }
        }
        !generic || self.generic_types_fit(inputs, targets)
    }

    fn is_composite_array(&self, oid: Oid) -> bool {
        self.element_type(oid).is_some_and(|e| self.composite_relation(e).is_some())
    }

    /// Whether one row type's table inherits from the other's, or is a table of that type.
    fn row_type_inherits(&self, child: Oid, parent: Oid) -> bool {
        let table = self.composite_relation(child).and_then(|r| self.cx.catalog.relation(r));
        if table.is_some_and(|r| r.of_type.is_valid() && r.of_type == parent) {
            return true;
        }
        let (Some(child), Some(parent)) = (self.composite_relation(child), self.composite_relation(parent)) else {
            return false;
        };
        let mut seen = vec![child];
        let mut i = 0;
        while let Some(&at) = seen.get(i) {
            if at == parent {
                return true;
            }
            for p in self.cx.catalog.relation(at).map_or(&[][..], |r| r.parents.as_slice()) {
                if !seen.contains(p) {
                    seen.push(*p);
                }
            }
            i += 1;
        }
        false
    }

    /// Coerces to a type and typmod; `None` where there is no way.
    #[allow(clippy::too_many_arguments, reason = "PostgreSQL's own parameters, each independent")]
    pub fn coerce_to_target(
        &mut self,
        expr: Expr,
        target: Oid,
        typmod: i32,
        context: Context,
        form: CoercionForm,
        location: Location,
    ) -> SqlResult<Option<Expr>> {
        let input = self.expr_type(&expr)?;
        if !self.can_coerce(&[input], &[target], context) {
            return Ok(None);
        }
        // Coercion goes below COLLATE, as the collation was asked of the final value.
        let (inner, collation) = strip_collate(expr);
        let unchanged = inner.clone();
        let result = self.coerce_type(inner, input, target, typmod, context, form, location)?;
        let hide = result != unchanged && !matches!(result, Expr::Const(_));
        let mut result = self.coerce_typmod(result, target, typmod, context, form, location, hide)?;
        if let Some(collation) = collation
            && self.type_collation(target).is_valid()
        {
            result = Expr::Collate(Box::new(Collate { arg: result, collation }));
        }
        Ok(Some(result))
    }

    /// Coerces to a type; that it is possible has been checked. The typmod matters for types whose input function needs
    /// it; length coercion is [`Analyzer::coerce_typmod`]'s.
    #[allow(clippy::too_many_arguments, reason = "PostgreSQL's own parameters, each independent")]
    pub fn coerce_type(
        &mut self,
        node: Expr,
        input: Oid,
        target: Oid,
        typmod: i32,
        context: Context,
        form: CoercionForm,
        location: Location,
    ) -> SqlResult<Expr> {
        if target == input {
            return Ok(node);
        }
        match target {
            oids::ANY | oids::ANYELEMENT | oids::ANYNONARRAY | oids::ANYCOMPATIBLE | oids::ANYCOMPATIBLENONARRAY => {
                return Ok(node);
            }
            oids::ANYARRAY
            | oids::ANYENUM
            | oids::ANYRANGE
            | oids::ANYMULTIRANGE
            | oids::ANYCOMPATIBLEARRAY
            | oids::ANYCOMPATIBLERANGE
            | oids::ANYCOMPATIBLEMULTIRANGE
                if input != oids::UNKNOWN =>
            {
                let base = self.base_type(input);
                return Ok(if base == input { node } else { relabel(node, base, -1, Oid::INVALID, form) });
            }
            _ => {}
        }
        if input == oids::UNKNOWN {
            match node {
                Expr::Const(c) => return self.coerce_unknown(c, target, typmod, context, form, location),
                Expr::Param(p) if p.kind == ParamKind::Extern && self.params.variable => {
                    return self.infer_param(p, target, typmod, context, form, location);
                }
                _ => {}
            }
        }
        if let Expr::Collate(c) = node {
            // The outermost node must keep saying the collation.
            let Collate { arg, collation } = *c;
            let arg = self.coerce_type(arg, input, target, typmod, context, form, location)?;
            return Ok(if self.type_collation(target).is_valid() {
                Expr::Collate(Box::new(Collate { arg, collation }))
            } else {
                arg
            });
        }
        if let Some(path) = self.coercion_path(target, input, context) {
            if path == Path::Relabel {
                let (domain, changed) = self.coerce_to_domain(node, None, target, context, form, location)?;
                return Ok(if changed { domain } else { relabel(domain, target, -1, Oid::INVALID, form) });
            }
            let (base, base_typmod) = self.base_type_and_typmod(target, typmod);
            let result = self.build_coercion(node, path, base, base_typmod, context, form, location)?;
            if target == base {
                return Ok(result);
            }
            // The domain shows the cast; the step below it does not.
            let result = hide_coercion(result);
            return Ok(self.coerce_to_domain(result, Some((base, base_typmod)), target, context, form, location)?.0);
        }
        if input == oids::RECORD && self.composite_relation(target).is_some() {
            return self.coerce_record(node, target, context, form, location);
        }
        if (target == oids::RECORD && self.composite_relation(input).is_some())
            || (target == oids::RECORDARRAY && self.is_composite_array(input))
        {
            return Ok(node);
        }
        if self.row_type_inherits(input, target) {
            return Ok(Expr::ConvertRowtype(Box::new(ConvertRowtype { arg: node, result_type: target })));
        }
        Err(SqlError::internal(format_args!(
            "failed to find conversion function from {} to {}",
            self.type_name(input),
            self.type_name(target)
        )))
    }

    /// A literal of unknown type is read by the target type's input function.
    fn coerce_unknown(
        &mut self,
        c: Const,
        target: Oid,
        typmod: i32,
        context: Context,
        form: CoercionForm,
        location: Location,
    ) -> SqlResult<Expr> {
        let (base, base_typmod) = self.base_type_and_typmod(target, typmod);
        if let Some(Datum::Bytes(text)) = &c.value
            && self.holds_checked_domain(base)
        {
            return self.checked_literal(&c, text, target, location);
        }
        // Length coercion is a step of its own, whose errors and truncation depend on the cast; only interval's input
        // needs the typmod, to know what a bare number means.
        let input_typmod = if base == oids::INTERVAL { base_typmod } else { -1 };
        let value = match &c.value {
            None => None,
            Some(Datum::Bytes(text)) => {
                Some(self.read_literal(base, text, input_typmod).map_err(|e| self.place(e, c.location))?)
            }
            Some(_) => return Err(SqlError::internal("an unknown literal that is no text")),
        };
        let read = Expr::Const(Const {
            type_oid: base,
            typmod: input_typmod,
            collation: self.type_collation(base),
            value,
            location: c.location,
        });
        if base == target {
            return Ok(read);
        }
        Ok(self.coerce_to_domain(read, Some((base, base_typmod)), target, context, form, location)?.0)
    }

    /// A parameter of unknown type takes the type that its use asks for.
    fn infer_param(
        &mut self,
        mut p: stegodon_nodes::expr::Param,
        target: Oid,
        _typmod: i32,
        _context: Context,
        _form: CoercionForm,
        location: Location,
    ) -> SqlResult<Expr> {
        let index = p.id.saturating_sub(1) as usize;
        let known = self.params.types.get(index).copied().unwrap_or(Oid::INVALID);
        if known == Oid::INVALID || known == oids::UNKNOWN {
            if let Some(slot) = self.params.types.get_mut(index) {
                *slot = target;
            }
        } else if known != target {
            let e = self.error_at(
                p.location,
                SqlState::AmbiguousParameter,
                format!("inconsistent types deduced for parameter ${}", p.id),
            );
            return Err(e.detail(format!("{} versus {}", self.type_name(known), self.type_name(target))));
        }
        p.type_oid = target;
        p.typmod = -1;
        p.collation = self.type_collation(target);
        p.location = match (p.location, location) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Ok(Expr::Param(p))
    }

    /// Wraps a value of a domain's base type; the flag says whether `target` is a domain at all.
    fn coerce_to_domain(
        &mut self,
        arg: Expr,
        base: Option<(Oid, i32)>,
        target: Oid,
        context: Context,
        form: CoercionForm,
        location: Location,
    ) -> SqlResult<(Expr, bool)> {
        let (base, base_typmod) = base.unwrap_or_else(|| self.base_type_and_typmod(target, -1));
        if base == target {
            return Ok((arg, false));
        }
        let arg = self.coerce_typmod(arg, base, base_typmod, context, CoercionForm::ImplicitCast, location, false)?;
        let domain = CoerceToDomain { arg, result_type: target, typmod: -1, collation: Oid::INVALID, form };
        Ok((Expr::CoerceToDomain(Box::new(domain)), true))
    }

    /// Applies a typmod: by the type's length coercion function, or by saying so.
    #[allow(clippy::too_many_arguments, reason = "PostgreSQL's own parameters, each independent")]
    pub fn coerce_typmod(
        &mut self,
        node: Expr,
        target: Oid,
        typmod: i32,
        context: Context,
        form: CoercionForm,
        location: Location,
        hide_input: bool,
    ) -> SqlResult<Expr> {
        if typmod == node.typmod() {
            return Ok(node);
        }
        let element = self.element_type(target);
        let scalar = element.unwrap_or(target);
        let function = self.cx.catalog.cast(scalar, scalar).map(|c| c.function).filter(|f| f.is_valid());
        match function {
            Some(f) if typmod >= 0 => {
                let node = if hide_input { hide_coercion(node) } else { node };
                let path = if element.is_some() { Path::Array } else { Path::Func(f) };
                self.build_coercion(node, path, target, typmod, context, form, location)
            }
            _ => {
                let collation = node.collation();
                Ok(apply_relabel(node, target, typmod, collation, form))
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "PostgreSQL's own parameters, each independent")]
    fn build_coercion(
        &mut self,
        node: Expr,
        path: Path,
        target: Oid,
        typmod: i32,
        context: Context,
        form: CoercionForm,
        location: Location,
    ) -> SqlResult<Expr> {
        match path {
            Path::Func(function) => {
                let Some(proc) = self.cx.catalog.proc(function) else {
                    return Err(SqlError::internal(format_args!("cache lookup failed for function {function}")));
                };
                let count = proc.arg_types.len();
                let mut args = vec![node];
                if count >= 2 {
                    args.push(int4_const(typmod));
                }
                if count == 3 {
                    args.push(bool_const(context == Context::Explicit));
                }
                Ok(Expr::Func(FuncExpr {
                    function,
                    result_type: target,
                    returns_set: false,
                    variadic: false,
                    form,
                    collation: Oid::INVALID,
                    input_collation: Oid::INVALID,
                    args,
                    location,
                }))
            }
            Path::Array => {
                let (source_base, source_typmod) = self.base_type_and_typmod(self.expr_type(&node)?, node.typmod());
                let (Some(source_element), Some(target_element)) =
                    (self.element_type(source_base), self.element_type(target))
                else {
                    return Err(SqlError::internal("an array coercion of no arrays"));
                };
                let test = Expr::CaseTest(CaseTest {
                    type_oid: source_element,
                    typmod: source_typmod,
                    collation: Oid::INVALID,
                });
                let element = self.coerce_to_target(test, target_element, typmod, context, form, location)?;
                let Some(element) = element else {
                    return Err(SqlError::internal("failed to coerce array element type as expected"));
                };
                Ok(Expr::ArrayCoerce(Box::new(ArrayCoerce {
                    arg: node,
                    typmod: element.typmod(),
                    element,
                    result_type: target,
                    collation: Oid::INVALID,
                    form,
                })))
            }
            Path::ViaIo if self.holds_checked_domain(target) => {
                self.unsupported(location, "a cast by way of text to a type that holds a domain with constraints")
            }
            Path::ViaIo => Ok(Expr::CoerceViaIo(CoerceViaIo {
                arg: Box::new(node),
                result_type: target,
                collation: Oid::INVALID,
                form,
            })),
            Path::Relabel => Err(SqlError::internal("a relabelling is not built")),
        }
    }

    /// `ROW(...)` as a named row type.
    fn coerce_record(
        &mut self,
        node: Expr,
        target: Oid,
        context: Context,
        form: CoercionForm,
        location: Location,
    ) -> SqlResult<Expr> {
        let place = location.or_else(|| node.location());
        let cannot = |a: &Self| {
            let (from, to) = (a.type_name(oids::RECORD), a.type_name(target));
            a.error_at(place, SqlState::CannotCoerce, format!("cannot cast type {from} to {to}"))
        };
        let (fields, row_location) = match node {
            Expr::Row(row) => (row.args, row.location),
            // The row of a FROM item is the row of its columns.
            Expr::Var(v) if v.attno.0 == 0 => {
                let item = self
                    .level(v.levels_up)?
                    .namespace
                    .iter()
                    .find(|i| v.source == stegodon_nodes::expr::VarSource::Relation(i.rtindex));
                let Some(item) = item.cloned() else { return Err(cannot(self)) };
                let columns = self.item_columns(v.levels_up, &item, v.location)?;
                (columns.into_iter().map(|c| c.1).collect(), v.location)
            }
            _ => return Err(cannot(self)),
        };
        let mismatch = |a: &Self, detail: &str| Err(cannot(a).detail(detail));
        let (base, _) = self.base_type_and_typmod(target, -1);
        let relation = self.composite_relation(base).and_then(|r| self.cx.catalog.relation(r));
        let Some(relation) = relation.cloned() else {
            return Err(SqlError::internal("a row type without relation"));
        };
        let mut given = fields.into_iter();
        let mut args = Vec::new();
        for (i, attribute) in relation.attributes.iter().enumerate() {
            if attribute.dropped {
                args.push(Expr::Const(null_const(oids::INT4)));
                continue;
            }
            let Some(arg) = given.next() else { return mismatch(self, "Input has too few columns.") };
            let input = self.expr_type(&arg)?;
            let coerced = self.coerce_to_target(
                arg,
                attribute.type_oid,
                attribute.typmod,
                context,
                CoercionForm::ImplicitCast,
                location,
            )?;
            match coerced {
                Some(e) => args.push(e),
                None => {
                    let detail = format!(
                        "Cannot cast type {} to {} in column {}.",
                        self.type_name(input),
                        self.type_name(attribute.type_oid),
                        i + 1
                    );
                    return mismatch(self, &detail);
                }
            }
        }
        if given.next().is_some() {
            return mismatch(self, "Input has too many columns.");
        }
        let built = Expr::Row(RowExpr { args, row_type: base, names: Vec::new(), form, location: row_location });
        Ok(self.coerce_to_domain(built, None, target, context, form, location)?.0)
    }
}

/// Whether an expression returns a set: a set-returning function or operator anywhere in it.
pub(crate) fn returns_set(e: &Expr) -> bool {
    e.any(&mut |x| match x {
        Expr::Func(f) => f.returns_set,
        Expr::Op(o) => o.returns_set,
        _ => false,
    })
}

fn strip_collate(expr: Expr) -> (Expr, Option<Oid>) {
    let mut collation = None;
    let mut expr = expr;
    while let Expr::Collate(c) = expr {
        collation.get_or_insert(c.collation);
        expr = c.arg;
    }
    (expr, collation)
}

/// Marks the outermost coercion as not written, so that display shows the one around it only.
fn hide_coercion(mut node: Expr) -> Expr {
    let implicit = CoercionForm::ImplicitCast;
    match &mut node {
        Expr::Func(f) => f.form = implicit,
        Expr::Relabel(r) => r.form = implicit,
        Expr::CoerceViaIo(c) => c.form = implicit,
        Expr::ArrayCoerce(a) => a.form = implicit,
        Expr::Row(r) => r.form = implicit,
        Expr::CoerceToDomain(c) => c.form = implicit,
        _ => {}
    }
    node
}

pub(crate) fn relabel(node: Expr, ty: Oid, typmod: i32, collation: Oid, form: CoercionForm) -> Expr {
    Expr::Relabel(Relabel { arg: Box::new(node), result_type: ty, typmod, collation, form })
}

/// Says a type and typmod of a value without stacking relabellings.
fn apply_relabel(node: Expr, ty: Oid, typmod: i32, collation: Oid, form: CoercionForm) -> Expr {
    let mut node = node;
    while let Expr::Relabel(r) = node {
        node = *r.arg;
    }
    if let Expr::Const(mut c) = node {
        c.type_oid = ty;
        c.typmod = typmod;
        c.collation = collation;
        return Expr::Const(c);
    }
    if node.type_oid() == ty && node.typmod() == typmod && node.collation() == collation {
        return node;
    }
    relabel(node, ty, typmod, collation, form)
}

pub(crate) fn int4_const(value: i32) -> Expr {
    Expr::Const(Const {
        type_oid: oids::INT4,
        typmod: -1,
        collation: Oid::INVALID,
        value: Some(Datum::Int32(value)),
        location: None,
    })
}

pub(crate) fn bool_const(value: bool) -> Expr {
    Expr::Const(Const {
        type_oid: oids::BOOL,
        typmod: -1,
        collation: Oid::INVALID,
        value: Some(Datum::Bool(value)),
        location: None,
    })
}

pub(crate) fn null_const(type_oid: Oid) -> Const {
    Const { type_oid, typmod: -1, collation: Oid::INVALID, value: None, location: None }
}
