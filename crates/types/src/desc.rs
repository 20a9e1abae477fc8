//! What is known of a type, and who knows it.

use std::sync::Arc;

use stegodon_format::ids::Oid;

use crate::{Align, Collation, Layout, SqlResult};

/// What sort of type, as `pg_type.typtype` says, with what each sort needs to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A type of the table of types (`crate::table`).
    Base,
    /// Values are OIDs of `pg_enum` rows.
    Enum,
    /// Another type with constraints.
    Domain {
        /// The type below, perhaps a domain again.
        base: Oid,
        /// The typmod that the domain applies, -1 for none.
        typmod: i32,
    },
    /// A row type.
    Composite {
        /// The relation whose columns it has.
        relation: Oid,
    },
    /// An array whose elements are of one type (true arrays; not `oidvector`, `int2vector`, `name`).
    Array {
        /// The elements' type.
        element: Oid,
    },
    /// A range.
    Range {
        /// The bounds' type.
        subtype: Oid,
        /// The bounds' collation, or none.
        collation: Oid,
    },
    /// A set of ranges.
    Multirange {
        /// The range type of its members.
        range: Oid,
    },
    /// `anyelement`, `record`, `void` and their like: not stored, except `record` values in flight.
    Pseudo,
}

/// One row of `pg_type`, as much of it as reading values needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDesc {
    /// The type's OID.
    pub oid: Oid,
    /// Its bare name.
    pub name: String,
    /// The schema it lives in.
    pub namespace: Oid,
    /// `typlen`: bytes on disk, -1 for varlena, -2 for cstring.
    pub len: i16,
    /// `typalign`.
    pub align: Align,
    /// `typbyval`.
    pub by_value: bool,
    /// What sort of type.
    pub kind: TypeKind,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub preferred: bool,
    /// `typdelim`: between the elements of an array's text.
    pub delimiter: u8,
    /// `typelem`: what subscripting yields, also for the fixed-length array-likes such as `point` and `oidvector`.
    pub element: Oid,
    /// `typarray`: the array type over this one.
    pub array: Oid,
    /// `typcollation`.
    pub collation: Oid,
    /// The form its values are computed in; `None` where the type is not supported, which becomes an error when a
    /// value is used.
    pub layout: Option<Layout>,
}

/// One column of a composite type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositeAttribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_oid: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// Its collation, 0 for none.
    pub collation: Oid,
    /// Whether it was dropped: its place remains, always NULL.
    pub dropped: bool,
    /// `attlen`, kept for dropped columns, whose type is gone.
    pub len: i16,
    /// `attalign`.
    pub align: Align,
}

/// The kinds of object that the `reg*` types name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegKind {
    /// `regclass`
    Class,
    /// `regtype`
    Type,
    /// `regproc`
    Proc,
    /// `regprocedure`
    Procedure,
    /// `regoper`
    Oper,
    /// `regoperator`
    Operator,
    /// `regnamespace`
    Namespace,
    /// `regrole`
    Role,
    /// `regcollation`
    Collation,
    /// `regconfig`
    Config,
    /// `regdictionary`
    Dictionary,
}

/// What reading and printing values must ask the catalogs. The `catalog` crate implements it; tests use
/// [`crate::BuiltinTypes`], which knows the table of types only.
pub trait TypeCatalog: Send + Sync {
    /// The type's description; `42704` where there is none.
    fn type_desc(&self, oid: Oid) -> SqlResult<Arc<TypeDesc>>;
    /// The label of an enum value.
    fn enum_label(&self, value: Oid) -> SqlResult<String>;
    /// The value of an enum type that has this label.
    fn enum_value(&self, enum_type: Oid, label: &str) -> SqlResult<Option<Oid>>;
    /// `enumsortorder` of a value.
    fn enum_order(&self, value: Oid) -> SqlResult<f32>;
    /// The columns of a composite type, dropped ones included.
    fn composite(&self, type_oid: Oid) -> SqlResult<Arc<[CompositeAttribute]>>;
    /// How the `reg*` output function prints `oid` under the current search path; `None` where there is no such object
    /// (it is then printed as a number).
    fn object_name(&self, kind: RegKind, oid: Oid) -> SqlResult<Option<String>>;
    /// What the `reg*` input function makes of a name.
    fn object_oid(&self, kind: RegKind, name: &str) -> SqlResult<Oid>;
    /// What is known of a collation. Known here: the C-like built-in ones; all else is [`Collation::Unsupported`] until a
    /// catalog says more.
    fn collation(&self, oid: Oid) -> SqlResult<Collation> {
        Ok(match oid.0 {
            0 => Collation::None,
            // C, POSIX, and the builtin provider's, which all order by bytes.
            950 | 951 | 962 | 811 | 6411 => Collation::C,
            _ => Collation::Unsupported(format!("with OID {oid}").into()),
        })
    }
}
