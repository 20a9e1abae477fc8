//! The catalogs in memory and the lookups over them.

use std::collections::HashMap;
use std::sync::Arc;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_format::version::Version;
use stegodon_types::TypeDesc;

use crate::extra::*;
use crate::rows::*;

/// The schemas that a bare name is looked for in, in order; `pg_catalog` stands first unless named elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SearchPath {
    /// Namespace OIDs.
    pub namespaces: Vec<Oid>,
}

/// `pg_catalog`'s OID.
pub const PG_CATALOG: Oid = Oid(11);

/// One database's catalogs, with the shared ones. Immutable: a change makes a new one.
#[derive(Default)]
pub struct Catalog {
    pub(crate) version: Version,
    pub(crate) database: Option<Database>,
    pub(crate) namespaces: HashMap<Oid, Namespace>,
    pub(crate) relations: HashMap<Oid, Arc<Relation>>,
    pub(crate) relation_names: HashMap<(Oid, String), Oid>,
    pub(crate) types: HashMap<Oid, Arc<TypeDesc>>,
    pub(crate) type_names: HashMap<(Oid, String), Oid>,
    pub(crate) procs: HashMap<Oid, Arc<Proc>>,
    pub(crate) proc_names: HashMap<String, Vec<Oid>>,
    pub(crate) aggregates: HashMap<Oid, Arc<Aggregate>>,
    pub(crate) operators: HashMap<Oid, Arc<Operator>>,
    pub(crate) operator_names: HashMap<String, Vec<Oid>>,
    pub(crate) casts: HashMap<(Oid, Oid), Cast>,
    pub(crate) opclasses: HashMap<Oid, Arc<OpClass>>,
    pub(crate) amops_by_operator: HashMap<Oid, Vec<AmOp>>,
    pub(crate) amops_by_family: HashMap<Oid, Vec<AmOp>>,
    pub(crate) amprocs: HashMap<Oid, Vec<AmProc>>,
    pub(crate) collations: HashMap<Oid, Arc<CollationRow>>,
    pub(crate) databases: HashMap<Oid, Database>,
    pub(crate) roles: HashMap<Oid, Arc<Role>>,
    pub(crate) rules: HashMap<Oid, Vec<Arc<Rule>>>,
    pub(crate) constraints: HashMap<Oid, Vec<Arc<Constraint>>>,
    pub(crate) domain_constraints: HashMap<Oid, Vec<Arc<Constraint>>>,
    pub(crate) statistics: HashMap<(Oid, AttrNumber, bool), Arc<Statistic>>,
    pub(crate) languages: HashMap<Oid, Language>,
    pub(crate) access_methods: HashMap<Oid, AccessMethod>,
    pub(crate) tablespaces: HashMap<Oid, Tablespace>,
    pub(crate) namespace_names: HashMap<String, Oid>,
    pub(crate) type_rows: HashMap<Oid, TypeRow>,
    pub(crate) ranges: HashMap<Oid, RangeRow>,
    pub(crate) multiranges: HashMap<Oid, RangeRow>,
    pub(crate) enums: HashMap<Oid, EnumValue>,
    /// The values of each enum type in their order.
    pub(crate) enum_types: HashMap<Oid, Vec<Oid>>,
    /// The default classes of each access method.
    pub(crate) default_opclasses: HashMap<Oid, Vec<Arc<OpClass>>>,
    pub(crate) trees: crate::trees::Trees,
    /// The operators of types that no row type is part of, which are asked for all the time.
    pub(crate) sorting: HashMap<Oid, crate::operators::SortOperators>,
    pub(crate) opfamilies: HashMap<Oid, OpFamily>,
    pub(crate) aggregate_initial: HashMap<Oid, String>,
    pub(crate) proc_settings: HashMap<Oid, Vec<String>>,
    pub(crate) role_settings: Vec<RoleSetting>,
    pub(crate) ts_configs: HashMap<Oid, NamedObject>,
    pub(crate) ts_dicts: HashMap<Oid, NamedObject>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Catalog {
    /// Catalogs of a version without a row, for tests.
    pub fn empty(version: Version) -> Catalog {
        Catalog { version, ..Catalog::default() }
    }

    /// The version of PostgreSQL whose catalogs these are.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The database this is the catalog of.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    /// All databases of the cluster.
    pub fn databases(&self) -> impl Iterator<Item = &Database> {
        self.databases.values()
    }

    /// A schema by OID.
    pub fn namespace(&self, oid: Oid) -> Option<&Namespace> {
        self.namespaces.get(&oid)
    }

    /// A schema by name.
    pub fn namespace_by_name(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.get(self.namespace_names.get(name)?)
    }

    /// A relation by OID.
    pub fn relation(&self, oid: Oid) -> Option<&Arc<Relation>> {
        self.relations.get(&oid)
    }

    /// A relation by schema and name.
    pub fn relation_by_name(&self, namespace: Oid, name: &str) -> Option<&Arc<Relation>> {
        // A tuple key with a borrowed half needs an owned probe; names are looked up once a statement.
        self.relations.get(self.relation_names.get(&(namespace, name.to_owned()))?)
    }

    /// The first relation of that name along the path.
    pub fn relation_on_path(&self, path: &SearchPath, name: &str) -> Option<&Arc<Relation>> {
        path.namespaces.iter().find_map(|&n| self.relation_by_name(n, name))
    }

    /// All relations.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.values()
    }

    /// A type by OID.
    pub fn type_desc(&self, oid: Oid) -> Option<&Arc<TypeDesc>> {
        self.types.get(&oid)
    }

    /// A type by schema and name.
    pub fn type_by_name(&self, namespace: Oid, name: &str) -> Option<&Arc<TypeDesc>> {
        self.types.get(self.type_names.get(&(namespace, name.to_owned()))?)
    }

    /// The first type of that name along the path.
    pub fn type_on_path(&self, path: &SearchPath, name: &str) -> Option<&Arc<TypeDesc>> {
        path.namespaces.iter().find_map(|&n| self.type_by_name(n, name))
    }

    /// A function, aggregate or procedure by OID.
    pub fn proc(&self, oid: Oid) -> Option<&Arc<Proc>> {
        self.procs.get(&oid)
    }

    /// All functions of a bare name, whatever their schema.
    pub fn procs_named(&self, name: &str) -> impl Iterator<Item = &Arc<Proc>> {
        self.proc_names.get(name).into_iter().flatten().filter_map(|o| self.procs.get(o))
    }

    /// An aggregate's row.
    pub fn aggregate(&self, function: Oid) -> Option<&Arc<Aggregate>> {
        self.aggregates.get(&function)
    }

    /// An operator by OID.
    pub fn operator(&self, oid: Oid) -> Option<&Arc<Operator>> {
        self.operators.get(&oid)
    }

    /// All operators of a bare name, whatever their schema.
    pub fn operators_named(&self, name: &str) -> impl Iterator<Item = &Arc<Operator>> {
        self.operator_names.get(name).into_iter().flatten().filter_map(|o| self.operators.get(o))
    }

    /// The cast between two types, where `pg_cast` has one.
    pub fn cast(&self, source: Oid, target: Oid) -> Option<&Cast> {
        self.casts.get(&(source, target))
    }

    /// An operator class.
    pub fn opclass(&self, oid: Oid) -> Option<&Arc<OpClass>> {
        self.opclasses.get(&oid)
    }

    /// All operator classes.
    pub fn opclasses(&self) -> impl Iterator<Item = &Arc<OpClass>> {
        self.opclasses.values()
    }

    /// The operator families an operator is in.
    pub fn amops_of_operator(&self, operator: Oid) -> &[AmOp] {
        self.amops_by_operator.get(&operator).map_or(&[], Vec::as_slice)
    }

    /// The operators of a family.
    pub fn amops_of_family(&self, family: Oid) -> &[AmOp] {
        self.amops_by_family.get(&family).map_or(&[], Vec::as_slice)
    }

    /// The operator of a family for a strategy and a pair of types.
    pub fn family_operator(&self, family: Oid, left: Oid, right: Oid, strategy: u16) -> Option<Oid> {
        let found = |a: &&AmOp| a.purpose == b's' && a.left == left && a.right == right && a.strategy == strategy;
        self.amops_of_family(family).iter().find(found).map(|a| a.operator)
    }

    /// The support function of a family for a number and a pair of types.
    pub fn family_proc(&self, family: Oid, left: Oid, right: Oid, number: u16) -> Option<Oid> {
        let found = |a: &&AmProc| a.left == left && a.right == right && a.number == number;
        self.amprocs.get(&family)?.iter().find(found).map(|a| a.function)
    }

    /// The support functions of a family.
    pub fn amprocs_of_family(&self, family: Oid) -> &[AmProc] {
        self.amprocs.get(&family).map_or(&[], Vec::as_slice)
    }

    /// A collation by OID.
    pub fn collation(&self, oid: Oid) -> Option<&Arc<CollationRow>> {
        self.collations.get(&oid)
    }

    /// All collations.
    pub fn collations(&self) -> impl Iterator<Item = &Arc<CollationRow>> {
        self.collations.values()
    }

    /// A role by OID.
    pub fn role(&self, oid: Oid) -> Option<&Arc<Role>> {
        self.roles.get(&oid)
    }

    /// A role by name.
    pub fn role_by_name(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.values().find(|r| r.name == name)
    }

    /// The rules of a relation.
    pub fn rules(&self, relation: Oid) -> &[Arc<Rule>] {
        self.rules.get(&relation).map_or(&[], Vec::as_slice)
    }

    /// The constraints of a relation.
    pub fn constraints(&self, relation: Oid) -> &[Arc<Constraint>] {
        self.constraints.get(&relation).map_or(&[], Vec::as_slice)
    }

    /// The check constraints of a domain.
    pub fn domain_constraints(&self, domain: Oid) -> &[Arc<Constraint>] {
        self.domain_constraints.get(&domain).map_or(&[], Vec::as_slice)
    }

    /// A column's statistics; `inherited` for those over a parent and its children.
    pub fn statistic(&self, relation: Oid, column: AttrNumber, inherited: bool) -> Option<&Arc<Statistic>> {
        self.statistics.get(&(relation, column, inherited))
    }

    /// A language by OID.
    pub fn language(&self, oid: Oid) -> Option<&Language> {
        self.languages.get(&oid)
    }

    /// An access method by OID.
    pub fn access_method(&self, oid: Oid) -> Option<&AccessMethod> {
        self.access_methods.get(&oid)
    }

    /// A tablespace by OID.
    pub fn tablespace(&self, oid: Oid) -> Option<&Tablespace> {
        self.tablespaces.get(&oid)
    }

    /// A tablespace by name.
    pub fn tablespace_by_name(&self, name: &str) -> Option<&Tablespace> {
        self.tablespaces.values().find(|t| t.name == name)
    }

    /// What [`TypeDesc`] leaves out of a type's row.
    pub fn type_row(&self, oid: Oid) -> Option<&TypeRow> {
        self.type_rows.get(&oid)
    }

    /// All types.
    pub fn types(&self) -> impl Iterator<Item = &Arc<TypeDesc>> {
        self.types.values()
    }

    /// All functions.
    pub fn procs(&self) -> impl Iterator<Item = &Arc<Proc>> {
        self.procs.values()
    }

    /// All operators.
    pub fn operators(&self) -> impl Iterator<Item = &Arc<Operator>> {
        self.operators.values()
    }

    /// All casts.
    pub fn casts(&self) -> impl Iterator<Item = &Cast> {
        self.casts.values()
    }

    /// All schemas.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.namespaces.values()
    }

    /// All roles.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.roles.values()
    }

    /// The range type's row of `pg_range`.
    pub fn range(&self, range: Oid) -> Option<&RangeRow> {
        self.ranges.get(&range)
    }

    /// The row of `pg_range` whose multirange this is.
    pub fn multirange(&self, multirange: Oid) -> Option<&RangeRow> {
        self.multiranges.get(&multirange)
    }

    /// An enum value.
    pub fn enum_value(&self, oid: Oid) -> Option<&EnumValue> {
        self.enums.get(&oid)
    }

    /// The values of an enum type, in their order.
    pub fn enum_values(&self, enum_type: Oid) -> impl Iterator<Item = &EnumValue> {
        self.enum_types.get(&enum_type).into_iter().flatten().filter_map(|o| self.enums.get(o))
    }

    /// An operator family.
    pub fn opfamily(&self, oid: Oid) -> Option<&OpFamily> {
        self.opfamilies.get(&oid)
    }

    /// `agginitval`, where the aggregate has one.
    pub fn aggregate_initial_value(&self, function: Oid) -> Option<&str> {
        self.aggregate_initial.get(&function).map(String::as_str)
    }

    /// `proconfig`: the settings that a function runs under, as `name=value`.
    pub fn proc_settings(&self, function: Oid) -> &[String] {
        self.proc_settings.get(&function).map_or(&[], Vec::as_slice)
    }

    /// `pg_db_role_setting`.
    pub fn role_settings(&self) -> &[RoleSetting] {
        &self.role_settings
    }
}
