//! Filling a [`Catalog`] from named rows: everything but relations, which are put together in [`crate::relations`].

use std::collections::HashMap;
use std::sync::Arc;

use stegodon_format::ids::Oid;
use stegodon_types::{Align, Layout, SqlError, SqlResult, SqlState, TypeDesc, TypeKind};

use crate::array::{self, ElementForm};
use crate::builtin::base_layout;
use crate::extra::*;
use crate::lookup::Catalog;
use crate::rows::*;
use crate::source::{Reader, RowSource};
use crate::tables::{self, Table};

pub(crate) fn read(source: &mut dyn RowSource, table: Table) -> SqlResult<Reader> {
    Reader::new(source, table.0, table.1)
}

pub(crate) fn align(letter: u8) -> SqlResult<Align> {
    Align::from_letter(letter)
        .ok_or_else(|| SqlError::new(SqlState::DataCorrupted, format!("invalid alignment \"{}\"", char::from(letter))))
}

impl Catalog {
    /// The catalogs of the database called `database`, with the shared ones.
    pub fn build(source: &mut dyn RowSource, database: &str) -> SqlResult<Catalog> {
        let mut catalog = Catalog { version: source.version(), ..Catalog::default() };
        catalog.read_shared(source, database)?;
        catalog.read_types(source)?;
        catalog.read_functions(source)?;
        catalog.read_operators(source)?;
        catalog.read_rules_and_constraints(source)?;
        catalog.read_relations(source)?;
        catalog.read_statistics(source)?;
        catalog.read_small(source)?;
        catalog.prepare_trees();
        catalog.prepare_sorting();
        Ok(catalog)
    }

    fn read_shared(&mut self, source: &mut dyn RowSource, database: &str) -> SqlResult<()> {
        for row in read(source, tables::DATABASE)?.rows() {
            let oid = row.oid("oid")?;
            let locale = if row.has("datlocale") { "datlocale" } else { "daticulocale" };
            let entry = Database {
                oid,
                name: row.text("datname")?,
                owner: row.oid("datdba")?,
                encoding: row.i32("encoding")?,
                locale_provider: row.char("datlocprovider")?,
                allow_connections: row.bool("datallowconn")?,
                is_template: row.bool("datistemplate")?,
                connection_limit: row.i32("datconnlimit")?,
                tablespace: row.oid("dattablespace")?,
                collate: row.text("datcollate")?,
                ctype: row.text("datctype")?,
                locale: row.text_opt(locale)?,
                collation_version: row.text_opt("datcollversion")?,
                acl: row.acl("datacl")?,
            };
            if entry.name == database {
                self.database = Some(entry.clone());
            }
            self.databases.insert(oid, entry);
        }
        if self.database.is_none() {
            return Err(SqlError::new(SqlState::InvalidCatalogName, format!("database \"{database}\" does not exist")));
        }
        let mut roles = HashMap::new();
        for row in read(source, tables::AUTHID)?.rows() {
            let oid = row.oid("oid")?;
            roles.insert(
                oid,
                Role {
                    oid,
                    name: row.text("rolname")?,
                    superuser: row.bool("rolsuper")?,
                    inherit: row.bool("rolinherit")?,
                    can_login: row.bool("rolcanlogin")?,
                    bypass_row_security: row.bool("rolbypassrls")?,
                    connection_limit: row.i32("rolconnlimit")?,
                    password: row.text_opt("rolpassword")?,
                    valid_until_us: row.i64_opt("rolvaliduntil")?,
                    member_of: Vec::new(),
                },
            );
        }
        for row in read(source, tables::AUTH_MEMBERS)?.rows() {
            if let Some(member) = roles.get_mut(&row.oid("member")?) {
                // Before 16 the member's own rolinherit decided, and membership always allowed SET ROLE.
                let inherits = row.bool_or("inherit_option", member.inherit)?;
                member.member_of.push((row.oid("roleid")?, inherits, row.bool_or("set_option", true)?));
            }
        }
        self.roles = roles.into_iter().map(|(oid, role)| (oid, Arc::new(role))).collect();
        for row in read(source, tables::TABLESPACE)?.rows() {
            let oid = row.oid("oid")?;
            let entry = Tablespace {
                oid,
                name: row.text("spcname")?,
                owner: row.oid("spcowner")?,
                acl: row.acl("spcacl")?,
                options: row.texts_opt("spcoptions")?.unwrap_or_default(),
            };
            self.tablespaces.insert(oid, entry);
        }
        for row in read(source, tables::DB_ROLE_SETTING)?.rows() {
            self.role_settings.push(RoleSetting {
                database: row.oid("setdatabase")?,
                role: row.oid("setrole")?,
                settings: row.texts_opt("setconfig")?.unwrap_or_default(),
            });
        }
        Ok(())
    }

    fn read_types(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        for row in read(source, tables::RANGE)?.rows() {
            let range = RangeRow {
                range: row.oid("rngtypid")?,
                subtype: row.oid("rngsubtype")?,
                multirange: row.oid("rngmultitypid")?,
                collation: row.oid("rngcollation")?,
                subtype_opclass: row.oid("rngsubopc")?,
                canonical: row.oid("rngcanonical")?,
            };
            self.multiranges.insert(range.multirange, range);
            self.ranges.insert(range.range, range);
        }
        let reader = read(source, tables::TYPE)?;
        let mut types = HashMap::new();
        for row in reader.rows() {
            let oid = row.oid("oid")?;
            let len = row.i16("typlen")?;
            let relation = row.oid("typrelid")?;
            let element = row.oid("typelem")?;
            let subscript = row.oid("typsubscript")?;
            let letter = row.char("typtype")?;
            let (kind, layout) = match letter {
                // A true array is subscripted by array_subscript_handler, 6179; record[] is a pseudo-type.
                b'b' | b'p' if element.is_valid() && subscript == Oid(6179) => {
                    (TypeKind::Array { element }, Some(Layout::Bytes))
                }
                b'b' => (TypeKind::Base, base_layout(oid, len)),
                b'c' => (TypeKind::Composite { relation }, Some(Layout::Bytes)),
                b'd' => {
                    let (base, typmod) = (row.oid("typbasetype")?, row.i32("typtypmod")?);
                    (TypeKind::Domain { base, typmod }, None)
                }
                b'e' => (TypeKind::Enum, Some(Layout::UInt32)),
                b'r' => match self.ranges.get(&oid) {
                    Some(r) => (TypeKind::Range { subtype: r.subtype, collation: r.collation }, Some(Layout::Bytes)),
                    None => (TypeKind::Pseudo, None),
                },
                b'm' => match self.multiranges.get(&oid) {
                    Some(r) => (TypeKind::Multirange { range: r.range }, Some(Layout::Bytes)),
                    None => (TypeKind::Pseudo, None),
                },
                // record has values in flight; an unknown literal is its text; cstring likewise.
                _ => {
                    let in_flight = matches!(oid.0, 2249 | 705 | 2275).then_some(Layout::Bytes);
                    (TypeKind::Pseudo, stegodon_types::builtin(oid).and_then(|row| row.layout).or(in_flight))
                }
            };
            let desc = TypeDesc {
                oid,
                name: row.text("typname")?,
                namespace: row.oid("typnamespace")?,
                len,
                align: align(row.char("typalign")?)?,
                by_value: row.bool("typbyval")?,
                kind,
                category: row.char("typcategory")?,
                preferred: row.bool("typispreferred")?,
                delimiter: row.char("typdelim")?,
                element,
                array: row.oid("typarray")?,
                collation: row.oid("typcollation")?,
                layout,
            };
            let more = TypeRow {
                oid,
                owner: row.oid("typowner")?,
                kind: letter,
                defined: row.bool("typisdefined")?,
                relation,
                subscript,
                input: row.oid("typinput")?,
                output: row.oid("typoutput")?,
                receive: row.oid("typreceive")?,
                send: row.oid("typsend")?,
                typmod_in: row.oid("typmodin")?,
                typmod_out: row.oid("typmodout")?,
                storage: row.char("typstorage")?,
                not_null: row.bool("typnotnull")?,
                dimensions: row.i32("typndims")?,
                acl: row.acl("typacl")?,
            };
            self.type_names.insert((desc.namespace, desc.name.clone()), oid);
            self.type_rows.insert(oid, more);
            types.insert(oid, desc);
        }
        // unknown (705) is a pseudo-type of its own in pg_type; a domain has its base's layout, however deep.
        let domains: Vec<Oid> =
            types.values().filter(|t| matches!(t.kind, TypeKind::Domain { .. })).map(|t| t.oid).collect();
        for domain in domains {
            let mut at = domain;
            // A chain longer than the number of types is a cycle.
            for _ in 0..=types.len() {
                match types.get(&at).map(|t| &t.kind) {
                    Some(TypeKind::Domain { base, .. }) => at = *base,
                    _ => break,
                }
            }
            let layout = types.get(&at).and_then(|t| t.layout);
            if let Some(desc) = types.get_mut(&domain) {
                desc.layout = layout;
            }
        }
        self.types = types.into_iter().map(|(oid, desc)| (oid, Arc::new(desc))).collect();
        for row in read(source, tables::ENUM)?.rows() {
            let value = EnumValue {
                oid: row.oid("oid")?,
                enum_type: row.oid("enumtypid")?,
                order: row.f32("enumsortorder")?,
                label: row.text("enumlabel")?,
            };
            self.enum_types.entry(value.enum_type).or_default().push(value.oid);
            self.enums.insert(value.oid, value);
        }
        for members in self.enum_types.values_mut() {
            let enums = &self.enums;
            let order = |o: &Oid| enums.get(o).map_or(0.0, |v| v.order);
            members.sort_by(|a, b| order(a).total_cmp(&order(b)));
        }
        Ok(())
    }

    fn read_functions(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        for row in read(source, tables::PROC)?.rows() {
            let oid = row.oid("oid")?;
            let proc = Proc {
                oid,
                name: row.text("proname")?,
                namespace: row.oid("pronamespace")?,
                owner: row.oid("proowner")?,
                language: row.oid("prolang")?,
                cost: row.f32("procost")?,
                rows: row.f32("prorows")?,
                variadic: row.oid("provariadic")?,
                support: row.oid("prosupport")?,
                kind: row.char("prokind")?,
                security_definer: row.bool("prosecdef")?,
                leakproof: row.bool("proleakproof")?,
                strict: row.bool("proisstrict")?,
                returns_set: row.bool("proretset")?,
                volatility: row.char("provolatile")?,
                parallel: row.char("proparallel")?,
                default_count: row.count("pronargdefaults")?,
                result_type: row.oid("prorettype")?,
                arg_types: row.oids("proargtypes")?,
                all_arg_types: row.oids_opt("proallargtypes")?,
                arg_modes: row.chars_opt("proargmodes")?,
                arg_names: row.texts_opt("proargnames")?,
                arg_defaults: row.shared_text("proargdefaults")?,
                source: row.shared_text("prosrc")?.unwrap_or_else(|| Arc::from("")),
                sql_body: row.shared_text("prosqlbody")?,
                acl: row.acl("proacl")?,
            };
            if let Some(settings) = row.texts_opt("proconfig")? {
                self.proc_settings.insert(oid, settings);
            }
            self.proc_names.entry(proc.name.clone()).or_default().push(oid);
            self.procs.insert(oid, Arc::new(proc));
        }
        self.proc_names.values_mut().for_each(|oids| oids.sort_unstable());
        for row in read(source, tables::AGGREGATE)?.rows() {
            let function = row.oid("aggfnoid")?;
            let aggregate = Aggregate {
                function,
                kind: row.char("aggkind")?,
                direct_args: row.count("aggnumdirectargs")?,
                transition: row.oid("aggtransfn")?,
                finalize: row.oid("aggfinalfn")?,
                combine: row.oid("aggcombinefn")?,
                sort_operator: row.oid("aggsortop")?,
                transition_type: row.oid("aggtranstype")?,
                transition_space_bytes: row.i32("aggtransspace")?,
            };
            if let Some(initial) = row.text_opt("agginitval")? {
                self.aggregate_initial.insert(function, initial);
            }
            self.aggregates.insert(function, Arc::new(aggregate));
        }
        Ok(())
    }

    fn read_operators(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        for row in read(source, tables::OPERATOR)?.rows() {
            let operator = Operator {
                oid: row.oid("oid")?,
                name: row.text("oprname")?,
                namespace: row.oid("oprnamespace")?,
                kind: row.char("oprkind")?,
                can_merge: row.bool("oprcanmerge")?,
                can_hash: row.bool("oprcanhash")?,
                left: row.oid("oprleft")?,
                right: row.oid("oprright")?,
                result: row.oid("oprresult")?,
                commutator: row.oid("oprcom")?,
                negator: row.oid("oprnegate")?,
                function: row.oid("oprcode")?,
                restriction: row.oid("oprrest")?,
                join: row.oid("oprjoin")?,
            };
            self.operator_names.entry(operator.name.clone()).or_default().push(operator.oid);
            self.operators.insert(operator.oid, Arc::new(operator));
        }
        self.operator_names.values_mut().for_each(|oids| oids.sort_unstable());
        for row in read(source, tables::CAST)?.rows() {
            let cast = Cast {
                source: row.oid("castsource")?,
                target: row.oid("casttarget")?,
                function: row.oid("castfunc")?,
                context: row.char("castcontext")?,
                method: row.char("castmethod")?,
            };
            self.casts.insert((cast.source, cast.target), cast);
        }
        for row in read(source, tables::OPFAMILY)?.rows() {
            let family = OpFamily {
                oid: row.oid("oid")?,
                access_method: row.oid("opfmethod")?,
                name: row.text("opfname")?,
                namespace: row.oid("opfnamespace")?,
            };
            self.opfamilies.insert(family.oid, family);
        }
        for row in read(source, tables::OPCLASS)?.rows() {
            let class = OpClass {
                oid: row.oid("oid")?,
                access_method: row.oid("opcmethod")?,
                name: row.text("opcname")?,
                namespace: row.oid("opcnamespace")?,
                family: row.oid("opcfamily")?,
                input_type: row.oid("opcintype")?,
                default: row.bool("opcdefault")?,
                key_type: row.oid("opckeytype")?,
            };
            let class = Arc::new(class);
            if class.default {
                self.default_opclasses.entry(class.access_method).or_default().push(Arc::clone(&class));
            }
            self.opclasses.insert(class.oid, class);
        }
        for row in read(source, tables::AMOP)?.rows() {
            let amop = AmOp {
                family: row.oid("amopfamily")?,
                left: row.oid("amoplefttype")?,
                right: row.oid("amoprighttype")?,
                strategy: row.count("amopstrategy")? as u16,
                purpose: row.char("amoppurpose")?,
                operator: row.oid("amopopr")?,
                access_method: row.oid("amopmethod")?,
            };
            self.amops_by_operator.entry(amop.operator).or_default().push(amop);
            self.amops_by_family.entry(amop.family).or_default().push(amop);
        }
        // Where an operator is in several families PostgreSQL takes the first by the index on (opr, purpose, family).
        for amops in self.amops_by_operator.values_mut() {
            amops.sort_by_key(|a| (a.purpose, a.family));
        }
        for amops in self.amops_by_family.values_mut() {
            amops.sort_by_key(|a| (a.left, a.right, a.strategy));
        }
        for row in read(source, tables::AMPROC)?.rows() {
            let amproc = AmProc {
                family: row.oid("amprocfamily")?,
                left: row.oid("amproclefttype")?,
                right: row.oid("amprocrighttype")?,
                number: row.count("amprocnum")? as u16,
                function: row.oid("amproc")?,
            };
            self.amprocs.entry(amproc.family).or_default().push(amproc);
        }
        Ok(())
    }

    fn read_rules_and_constraints(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        for row in read(source, tables::REWRITE)?.rows() {
            let rule = Rule {
                name: row.text("rulename")?,
                relation: row.oid("ev_class")?,
                event: row.char("ev_type")?,
                instead: row.bool("is_instead")?,
                action: row.shared_text("ev_action")?.unwrap_or_else(|| Arc::from("<>")),
            };
            self.rules.entry(rule.relation).or_default().push(Arc::new(rule));
        }
        for row in read(source, tables::CONSTRAINT)?.rows() {
            let constraint = Arc::new(Constraint {
                oid: row.oid("oid")?,
                name: row.text("conname")?,
                kind: row.char("contype")?,
                relation: row.oid("conrelid")?,
                domain: row.oid("contypid")?,
                index: row.oid("conindid")?,
                validated: row.bool("convalidated")?,
                enforced: row.bool_or("conenforced", true)?,
                no_inherit: row.bool("connoinherit")?,
                columns: row.attnos_opt("conkey")?.unwrap_or_default(),
                expression: row.shared_text("conbin")?,
            });
            if constraint.relation.is_valid() {
                self.constraints.entry(constraint.relation).or_default().push(Arc::clone(&constraint));
            }
            if constraint.domain.is_valid() {
                self.domain_constraints.entry(constraint.domain).or_default().push(constraint);
            }
        }
        // PostgreSQL checks a table's and a domain's constraints in the order of their names.
        for list in self.constraints.values_mut().chain(self.domain_constraints.values_mut()) {
            list.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(())
    }

    fn read_statistics(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        for row in read(source, tables::STATISTIC)?.rows() {
            let mut slots = Vec::new();
            const SLOTS: [[&str; 5]; 5] = [
                ["stakind1", "staop1", "stacoll1", "stanumbers1", "stavalues1"],
                ["stakind2", "staop2", "stacoll2", "stanumbers2", "stavalues2"],
                ["stakind3", "staop3", "stacoll3", "stanumbers3", "stavalues3"],
                ["stakind4", "staop4", "stacoll4", "stanumbers4", "stavalues4"],
                ["stakind5", "staop5", "stacoll5", "stanumbers5", "stavalues5"],
            ];
            for [kind, operator, collation, numbers, values] in SLOTS {
                let kind = row.i16(kind)?;
                if kind == 0 {
                    continue;
                }
                let (value_type, values) = match row.bytes(values)? {
                    None => (Oid::INVALID, Vec::new()),
                    Some(payload) => match self.any_array(payload) {
                        Some(read) => read,
                        // Statistics only guide: a slot that cannot be read is as if never gathered.
                        None => continue,
                    },
                };
                slots.push(StatisticSlot {
                    kind,
                    operator: row.oid(operator)?,
                    collation: row.oid(collation)?,
                    numbers: row.floats_opt(numbers)?.unwrap_or_default(),
                    value_type,
                    values,
                });
            }
            let statistic = Statistic {
                null_fraction: row.f32("stanullfrac")?,
                width_bytes: row.i32("stawidth")?,
                distinct: row.f32("stadistinct")?,
                slots,
            };
            let key = (
                row.oid("starelid")?,
                stegodon_format::ids::AttrNumber(row.i16("staattnum")?),
                row.bool("stainherit")?,
            );
            self.statistics.insert(key, Arc::new(statistic));
        }
        Ok(())
    }

    /// The element type and elements of an `anyarray`; `None` where damaged, unsupported or with nulls.
    pub(crate) fn any_array(&self, payload: &[u8]) -> Option<(Oid, Vec<stegodon_types::Datum>)> {
        let head = array::header(payload)?;
        let desc = self.types.get(&head.element)?;
        let form = ElementForm { len: desc.len, align: desc.align, layout: desc.layout? };
        let values: Option<Vec<_>> = array::elements(payload, form)?.into_iter().collect();
        Some((head.element, values?))
    }

    fn read_small(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        for row in read(source, tables::NAMESPACE)?.rows() {
            let namespace = Namespace {
                oid: row.oid("oid")?,
                name: row.text("nspname")?,
                owner: row.oid("nspowner")?,
                acl: row.acl("nspacl")?,
            };
            self.namespace_names.insert(namespace.name.clone(), namespace.oid);
            self.namespaces.insert(namespace.oid, namespace);
        }
        for row in read(source, tables::COLLATION)?.rows() {
            let locale = if row.has("colllocale") { "colllocale" } else { "colliculocale" };
            let collation = CollationRow {
                oid: row.oid("oid")?,
                name: row.text("collname")?,
                namespace: row.oid("collnamespace")?,
                provider: row.char("collprovider")?,
                deterministic: row.bool("collisdeterministic")?,
                encoding: row.i32("collencoding")?,
                collate: row.text_opt("collcollate")?,
                ctype: row.text_opt("collctype")?,
                locale: row.text_opt(locale)?,
                version: row.text_opt("collversion")?,
            };
            self.collations.insert(collation.oid, Arc::new(collation));
        }
        for row in read(source, tables::LANGUAGE)?.rows() {
            let language = Language { oid: row.oid("oid")?, name: row.text("lanname")? };
            self.languages.insert(language.oid, language);
        }
        for row in read(source, tables::AM)?.rows() {
            let method = AccessMethod { oid: row.oid("oid")?, name: row.text("amname")?, kind: row.char("amtype")? };
            self.access_methods.insert(method.oid, method);
        }
        for row in read(source, tables::TS_CONFIG)?.rows() {
            let object =
                NamedObject { oid: row.oid("oid")?, name: row.text("cfgname")?, namespace: row.oid("cfgnamespace")? };
            self.ts_configs.insert(object.oid, object);
        }
        for row in read(source, tables::TS_DICT)?.rows() {
            let object =
                NamedObject { oid: row.oid("oid")?, name: row.text("dictname")?, namespace: row.oid("dictnamespace")? };
            self.ts_dicts.insert(object.oid, object);
        }
        Ok(())
    }
}
