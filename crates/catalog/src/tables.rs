//! Which columns of which catalogs are read, by name. A column that a version lacks is left out by the source.
//!
//! `colllocale` and `datlocale` are `colliculocale` and `daticulocale` before 17.

/// One catalog: its name and the columns that [`crate::Catalog::build`] asks for.
pub type Table = (&'static str, &'static [&'static str]);

macro_rules! tables {
    ($($constant:ident = $name:literal: $($column:literal)*;)*) => {
        $(pub(crate) const $constant: Table = ($name, &[$($column),*]);)*

        /// Every catalog that is read.
        pub const TABLES: &[Table] = &[$($constant),*];
    };
}

tables! {
    DATABASE = "pg_database": "oid" "datname" "datdba" "encoding" "datlocprovider" "datistemplate" "datallowconn"
        "datconnlimit" "dattablespace" "datcollate" "datctype" "datlocale" "daticulocale" "datcollversion" "datacl";
    AUTHID = "pg_authid": "oid" "rolname" "rolsuper" "rolinherit" "rolcanlogin" "rolbypassrls" "rolconnlimit"
        "rolpassword" "rolvaliduntil";
    AUTH_MEMBERS = "pg_auth_members": "roleid" "member" "inherit_option" "set_option";
    TABLESPACE = "pg_tablespace": "oid" "spcname" "spcowner" "spcacl" "spcoptions";
    DB_ROLE_SETTING = "pg_db_role_setting": "setdatabase" "setrole" "setconfig";
    NAMESPACE = "pg_namespace": "oid" "nspname" "nspowner" "nspacl";
    CLASS = "pg_class": "oid" "relname" "relnamespace" "reltype" "reloftype" "relowner" "relam" "relfilenode"
        "reltablespace" "relpages" "reltuples" "relallvisible" "reltoastrelid" "relhasindex" "relisshared"
        "relpersistence" "relkind" "relnatts" "relhasrules" "relhassubclass" "relrowsecurity" "relforcerowsecurity"
        "relispopulated" "relispartition" "relfrozenxid" "relacl" "reloptions" "relpartbound";
    ATTRIBUTE = "pg_attribute": "attrelid" "attname" "atttypid" "attlen" "attnum" "atttypmod" "attndims" "attbyval"
        "attalign" "attstorage" "attnotnull" "atthasdef" "atthasmissing" "attidentity" "attgenerated" "attisdropped"
        "attcollation" "attacl" "attmissingval";
    ATTRDEF = "pg_attrdef": "adrelid" "adnum" "adbin";
    INDEX = "pg_index": "indexrelid" "indrelid" "indnkeyatts" "indisunique" "indnullsnotdistinct" "indisprimary"
        "indimmediate" "indisvalid" "indcheckxmin" "indisready" "indislive" "indkey" "indcollation" "indclass"
        "indoption" "indexprs" "indpred";
    INHERITS = "pg_inherits": "inhrelid" "inhparent" "inhseqno" "inhdetachpending";
    PARTITIONED = "pg_partitioned_table": "partrelid" "partstrat" "partdefid" "partattrs" "partclass" "partcollation"
        "partexprs";
    TYPE = "pg_type": "oid" "typname" "typnamespace" "typowner" "typlen" "typbyval" "typtype" "typcategory"
        "typispreferred" "typisdefined" "typdelim" "typrelid" "typsubscript" "typelem" "typarray" "typinput"
        "typoutput" "typreceive" "typsend" "typmodin" "typmodout" "typalign" "typstorage" "typnotnull" "typbasetype"
        "typtypmod" "typndims" "typcollation" "typacl";
    ENUM = "pg_enum": "oid" "enumtypid" "enumsortorder" "enumlabel";
    RANGE = "pg_range": "rngtypid" "rngsubtype" "rngmultitypid" "rngcollation" "rngsubopc" "rngcanonical";
    PROC = "pg_proc": "oid" "proname" "pronamespace" "proowner" "prolang" "procost" "prorows" "provariadic"
        "prosupport" "prokind" "prosecdef" "proleakproof" "proisstrict" "proretset" "provolatile" "proparallel"
        "pronargdefaults" "prorettype" "proargtypes" "proallargtypes" "proargmodes" "proargnames" "proargdefaults"
        "prosrc" "prosqlbody" "proconfig" "proacl";
    AGGREGATE = "pg_aggregate": "aggfnoid" "aggkind" "aggnumdirectargs" "aggtransfn" "aggfinalfn" "aggcombinefn"
        "aggsortop" "aggtranstype" "aggtransspace" "agginitval";
    OPERATOR = "pg_operator": "oid" "oprname" "oprnamespace" "oprkind" "oprcanmerge" "oprcanhash" "oprleft"
        "oprright" "oprresult" "oprcom" "oprnegate" "oprcode" "oprrest" "oprjoin";
    CAST = "pg_cast": "castsource" "casttarget" "castfunc" "castcontext" "castmethod";
    OPFAMILY = "pg_opfamily": "oid" "opfmethod" "opfname" "opfnamespace";
    OPCLASS = "pg_opclass": "oid" "opcmethod" "opcname" "opcnamespace" "opcfamily" "opcintype" "opcdefault"
        "opckeytype";
    AMOP = "pg_amop": "amopfamily" "amoplefttype" "amoprighttype" "amopstrategy" "amoppurpose" "amopopr" "amopmethod";
    AMPROC = "pg_amproc": "amprocfamily" "amproclefttype" "amprocrighttype" "amprocnum" "amproc";
    COLLATION = "pg_collation": "oid" "collname" "collnamespace" "collprovider" "collisdeterministic" "collencoding"
        "collcollate" "collctype" "colllocale" "colliculocale" "collversion";
    REWRITE = "pg_rewrite": "rulename" "ev_class" "ev_type" "is_instead" "ev_action" "ev_enabled" "ev_qual";
    CONSTRAINT = "pg_constraint": "oid" "conname" "contype" "conenforced" "convalidated" "conrelid" "contypid"
        "conindid" "connoinherit" "conkey" "conbin";
    STATISTIC = "pg_statistic": "starelid" "staattnum" "stainherit" "stanullfrac" "stawidth" "stadistinct"
        "stakind1" "stakind2" "stakind3" "stakind4" "stakind5" "staop1" "staop2" "staop3" "staop4" "staop5"
        "stacoll1" "stacoll2" "stacoll3" "stacoll4" "stacoll5"
        "stanumbers1" "stanumbers2" "stanumbers3" "stanumbers4" "stanumbers5"
        "stavalues1" "stavalues2" "stavalues3" "stavalues4" "stavalues5";
    LANGUAGE = "pg_language": "oid" "lanname";
    AM = "pg_am": "oid" "amname" "amtype";
    TS_CONFIG = "pg_ts_config": "oid" "cfgname" "cfgnamespace";
    TS_DICT = "pg_ts_dict": "oid" "dictname" "dictnamespace";
}
