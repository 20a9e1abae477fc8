//! The command tags of statements that write.

use pg_query::{NodeEnum, protobuf as pb};

/// The command tag of a statement that writes; `None` for what is not known to.
pub(crate) fn write_tag(node: &NodeEnum) -> Option<&'static str> {
    use pb::ObjectType as O;
    let object = |t: i32| O::try_from(t).unwrap_or(O::Undefined);
    Some(match node {
        NodeEnum::CreateStmt(_) => "CREATE TABLE",
        NodeEnum::CreateTableAsStmt(c) => match object(c.objtype) {
            O::ObjectMatview => "CREATE MATERIALIZED VIEW",
            _ if c.is_select_into => "SELECT INTO",
            _ => "CREATE TABLE AS",
        },
        NodeEnum::RefreshMatViewStmt(_) => "REFRESH MATERIALIZED VIEW",
        NodeEnum::ViewStmt(_) => "CREATE VIEW",
        NodeEnum::IndexStmt(_) => "CREATE INDEX",
        NodeEnum::CreateSchemaStmt(_) => "CREATE SCHEMA",
        NodeEnum::CreateSeqStmt(_) => "CREATE SEQUENCE",
        NodeEnum::AlterSeqStmt(_) => "ALTER SEQUENCE",
        NodeEnum::CreateFunctionStmt(f) => {
            if f.is_procedure {
                "CREATE PROCEDURE"
            } else {
                "CREATE FUNCTION"
            }
        }
        NodeEnum::AlterFunctionStmt(_) => "ALTER FUNCTION",
        NodeEnum::CreateTrigStmt(_) => "CREATE TRIGGER",
        NodeEnum::CreateEventTrigStmt(_) => "CREATE EVENT TRIGGER",
        NodeEnum::AlterEventTrigStmt(_) => "ALTER EVENT TRIGGER",
        NodeEnum::CreateDomainStmt(_) => "CREATE DOMAIN",
        NodeEnum::AlterDomainStmt(_) => "ALTER DOMAIN",
        NodeEnum::CreateEnumStmt(_) | NodeEnum::CompositeTypeStmt(_) | NodeEnum::CreateRangeStmt(_) => "CREATE TYPE",
        NodeEnum::AlterEnumStmt(_) | NodeEnum::AlterTypeStmt(_) => "ALTER TYPE",
        NodeEnum::CreateExtensionStmt(_) => "CREATE EXTENSION",
        NodeEnum::AlterExtensionStmt(_) | NodeEnum::AlterExtensionContentsStmt(_) => "ALTER EXTENSION",
        NodeEnum::CreateRoleStmt(_) => "CREATE ROLE",
        NodeEnum::AlterRoleStmt(_) | NodeEnum::AlterRoleSetStmt(_) => "ALTER ROLE",
        NodeEnum::DropRoleStmt(_) => "DROP ROLE",
        NodeEnum::CreatedbStmt(_) => "CREATE DATABASE",
        NodeEnum::AlterDatabaseStmt(_)
        | NodeEnum::AlterDatabaseSetStmt(_)
        | NodeEnum::AlterDatabaseRefreshCollStmt(_) => "ALTER DATABASE",
        NodeEnum::DropdbStmt(_) => "DROP DATABASE",
        NodeEnum::CreateTableSpaceStmt(_) => "CREATE TABLESPACE",
        NodeEnum::DropTableSpaceStmt(_) => "DROP TABLESPACE",
        NodeEnum::AlterTableSpaceOptionsStmt(_) => "ALTER TABLESPACE",
        NodeEnum::RuleStmt(_) => "CREATE RULE",
        NodeEnum::CreatePolicyStmt(_) => "CREATE POLICY",
        NodeEnum::AlterPolicyStmt(_) => "ALTER POLICY",
        NodeEnum::CreateStatsStmt(_) => "CREATE STATISTICS",
        NodeEnum::AlterStatsStmt(_) => "ALTER STATISTICS",
        NodeEnum::CreateCastStmt(_) => "CREATE CAST",
        NodeEnum::CreateOpClassStmt(_) => "CREATE OPERATOR CLASS",
        NodeEnum::CreateOpFamilyStmt(_) => "CREATE OPERATOR FAMILY",
        NodeEnum::AlterOpFamilyStmt(_) => "ALTER OPERATOR FAMILY",
        NodeEnum::AlterOperatorStmt(_) => "ALTER OPERATOR",
        NodeEnum::CreatePublicationStmt(_) => "CREATE PUBLICATION",
        NodeEnum::AlterPublicationStmt(_) => "ALTER PUBLICATION",
        NodeEnum::CreateSubscriptionStmt(_) => "CREATE SUBSCRIPTION",
        NodeEnum::AlterSubscriptionStmt(_) => "ALTER SUBSCRIPTION",
        NodeEnum::DropSubscriptionStmt(_) => "DROP SUBSCRIPTION",
        NodeEnum::CreateForeignTableStmt(_) => "CREATE FOREIGN TABLE",
        NodeEnum::CreateForeignServerStmt(_) => "CREATE SERVER",
        NodeEnum::AlterForeignServerStmt(_) => "ALTER SERVER",
        NodeEnum::CreateFdwStmt(_) => "CREATE FOREIGN DATA WRAPPER",
        NodeEnum::AlterFdwStmt(_) => "ALTER FOREIGN DATA WRAPPER",
        NodeEnum::CreateUserMappingStmt(_) => "CREATE USER MAPPING",
        NodeEnum::AlterUserMappingStmt(_) => "ALTER USER MAPPING",
        NodeEnum::DropUserMappingStmt(_) => "DROP USER MAPPING",
        NodeEnum::ImportForeignSchemaStmt(_) => "IMPORT FOREIGN SCHEMA",
        NodeEnum::CreatePlangStmt(_) => "CREATE LANGUAGE",
        NodeEnum::CreateConversionStmt(_) => "CREATE CONVERSION",
        NodeEnum::CreateTransformStmt(_) => "CREATE TRANSFORM",
        NodeEnum::CreateAmStmt(_) => "CREATE ACCESS METHOD",
        NodeEnum::AlterTsdictionaryStmt(_) => "ALTER TEXT SEARCH DICTIONARY",
        NodeEnum::AlterTsconfigurationStmt(_) => "ALTER TEXT SEARCH CONFIGURATION",
        NodeEnum::AlterCollationStmt(_) => "ALTER COLLATION",
        NodeEnum::AlterDefaultPrivilegesStmt(_) => "ALTER DEFAULT PRIVILEGES",
        NodeEnum::AlterObjectDependsStmt(a) => alter_tag(object(a.object_type)),
        NodeEnum::AlterObjectSchemaStmt(a) => alter_tag(object(a.object_type)),
        NodeEnum::AlterOwnerStmt(a) => alter_tag(object(a.object_type)),
        NodeEnum::AlterTableMoveAllStmt(a) => alter_tag(object(a.objtype)),
        NodeEnum::AlterTableStmt(a) => alter_tag(object(a.objtype)),
        NodeEnum::RenameStmt(r) => {
            // Renaming a column is a change of its table.
            let what = object(r.rename_type);
            let of = object(r.relation_type);
            alter_tag(if matches!(what, O::ObjectColumn | O::ObjectTabconstraint) && of != O::Undefined {
                of
            } else {
                what
            })
        }
        NodeEnum::DefineStmt(d) => match object(d.kind) {
            O::ObjectAggregate => "CREATE AGGREGATE",
            O::ObjectOperator => "CREATE OPERATOR",
            O::ObjectType => "CREATE TYPE",
            O::ObjectTsparser => "CREATE TEXT SEARCH PARSER",
            O::ObjectTsdictionary => "CREATE TEXT SEARCH DICTIONARY",
            O::ObjectTstemplate => "CREATE TEXT SEARCH TEMPLATE",
            O::ObjectTsconfiguration => "CREATE TEXT SEARCH CONFIGURATION",
            O::ObjectCollation => "CREATE COLLATION",
            O::ObjectAccessMethod => "CREATE ACCESS METHOD",
            _ => return None,
        },
        NodeEnum::DropStmt(d) => drop_tag(object(d.remove_type))?,
        NodeEnum::DropOwnedStmt(_) => "DROP OWNED",
        NodeEnum::ReassignOwnedStmt(_) => "REASSIGN OWNED",
        NodeEnum::TruncateStmt(_) => "TRUNCATE TABLE",
        NodeEnum::CommentStmt(_) => "COMMENT",
        NodeEnum::SecLabelStmt(_) => "SECURITY LABEL",
        NodeEnum::GrantStmt(g) => {
            if g.is_grant {
                "GRANT"
            } else {
                "REVOKE"
            }
        }
        NodeEnum::GrantRoleStmt(g) => {
            if g.is_grant {
                "GRANT ROLE"
            } else {
                "REVOKE ROLE"
            }
        }
        NodeEnum::VacuumStmt(v) => {
            if v.is_vacuumcmd {
                "VACUUM"
            } else {
                "ANALYZE"
            }
        }
        NodeEnum::ClusterStmt(_) => "CLUSTER",
        NodeEnum::ReindexStmt(_) => "REINDEX",
        NodeEnum::CheckPointStmt(_) => "CHECKPOINT",
        NodeEnum::AlterSystemStmt(_) => "ALTER SYSTEM",
        NodeEnum::NotifyStmt(_) => "NOTIFY",
        NodeEnum::LoadStmt(_) => "LOAD",
        NodeEnum::DoStmt(_) => "DO",
        NodeEnum::CallStmt(_) => "CALL",
        _ => return None,
    })
}

fn alter_tag(object: pb::ObjectType) -> &'static str {
    use pb::ObjectType as O;
    match object {
        O::ObjectView => "ALTER VIEW",
        O::ObjectMatview => "ALTER MATERIALIZED VIEW",
        O::ObjectIndex => "ALTER INDEX",
        O::ObjectSequence => "ALTER SEQUENCE",
        O::ObjectForeignTable => "ALTER FOREIGN TABLE",
        O::ObjectType | O::ObjectAttribute => "ALTER TYPE",
        O::ObjectDomain | O::ObjectDomconstraint => "ALTER DOMAIN",
        O::ObjectFunction => "ALTER FUNCTION",
        O::ObjectProcedure => "ALTER PROCEDURE",
        O::ObjectRoutine => "ALTER ROUTINE",
        O::ObjectAggregate => "ALTER AGGREGATE",
        O::ObjectSchema => "ALTER SCHEMA",
        O::ObjectDatabase => "ALTER DATABASE",
        O::ObjectRole => "ALTER ROLE",
        O::ObjectTablespace => "ALTER TABLESPACE",
        O::ObjectOperator => "ALTER OPERATOR",
        O::ObjectOpclass => "ALTER OPERATOR CLASS",
        O::ObjectOpfamily => "ALTER OPERATOR FAMILY",
        O::ObjectCollation => "ALTER COLLATION",
        O::ObjectConversion => "ALTER CONVERSION",
        O::ObjectExtension => "ALTER EXTENSION",
        O::ObjectTrigger => "ALTER TRIGGER",
        O::ObjectRule => "ALTER RULE",
        O::ObjectPolicy => "ALTER POLICY",
        O::ObjectPublication => "ALTER PUBLICATION",
        O::ObjectSubscription => "ALTER SUBSCRIPTION",
        O::ObjectStatisticExt => "ALTER STATISTICS",
        O::ObjectEventTrigger => "ALTER EVENT TRIGGER",
        O::ObjectForeignServer => "ALTER SERVER",
        O::ObjectFdw => "ALTER FOREIGN DATA WRAPPER",
        O::ObjectLanguage => "ALTER LANGUAGE",
        O::ObjectLargeobject => "ALTER LARGE OBJECT",
        O::ObjectTsparser => "ALTER TEXT SEARCH PARSER",
        O::ObjectTsdictionary => "ALTER TEXT SEARCH DICTIONARY",
        O::ObjectTstemplate => "ALTER TEXT SEARCH TEMPLATE",
        O::ObjectTsconfiguration => "ALTER TEXT SEARCH CONFIGURATION",
        _ => "ALTER TABLE",
    }
}

fn drop_tag(object: pb::ObjectType) -> Option<&'static str> {
    use pb::ObjectType as O;
    Some(match object {
        O::ObjectTable => "DROP TABLE",
        O::ObjectView => "DROP VIEW",
        O::ObjectMatview => "DROP MATERIALIZED VIEW",
        O::ObjectIndex => "DROP INDEX",
        O::ObjectSequence => "DROP SEQUENCE",
        O::ObjectForeignTable => "DROP FOREIGN TABLE",
        O::ObjectType => "DROP TYPE",
        O::ObjectDomain => "DROP DOMAIN",
        O::ObjectFunction => "DROP FUNCTION",
        O::ObjectProcedure => "DROP PROCEDURE",
        O::ObjectRoutine => "DROP ROUTINE",
        O::ObjectAggregate => "DROP AGGREGATE",
        O::ObjectSchema => "DROP SCHEMA",
        O::ObjectOperator => "DROP OPERATOR",
        O::ObjectOpclass => "DROP OPERATOR CLASS",
        O::ObjectOpfamily => "DROP OPERATOR FAMILY",
        O::ObjectCollation => "DROP COLLATION",
        O::ObjectConversion => "DROP CONVERSION",
        O::ObjectExtension => "DROP EXTENSION",
        O::ObjectTrigger => "DROP TRIGGER",
        O::ObjectRule => "DROP RULE",
        O::ObjectPolicy => "DROP POLICY",
        O::ObjectPublication => "DROP PUBLICATION",
        O::ObjectStatisticExt => "DROP STATISTICS",
        O::ObjectEventTrigger => "DROP EVENT TRIGGER",
        O::ObjectForeignServer => "DROP SERVER",
        O::ObjectFdw => "DROP FOREIGN DATA WRAPPER",
        O::ObjectLanguage => "DROP LANGUAGE",
        O::ObjectCast => "DROP CAST",
        O::ObjectTransform => "DROP TRANSFORM",
        O::ObjectAccessMethod => "DROP ACCESS METHOD",
        O::ObjectTsparser => "DROP TEXT SEARCH PARSER",
        O::ObjectTsdictionary => "DROP TEXT SEARCH DICTIONARY",
        O::ObjectTstemplate => "DROP TEXT SEARCH TEMPLATE",
        O::ObjectTsconfiguration => "DROP TEXT SEARCH CONFIGURATION",
        _ => return None,
    })
}
