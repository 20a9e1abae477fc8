//! Who may do what: role membership and access control lists, as PostgreSQL's `aclmask` decides.

use std::collections::HashSet;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::acl::privilege::*;
use crate::lookup::Catalog;
use crate::rows::{Acl, AclItem, Relation};

const PG_DATABASE_OWNER: Oid = Oid(6171);
const PG_READ_ALL_DATA: Oid = Oid(6181);
const PG_WRITE_ALL_DATA: Oid = Oid(6182);
const PG_MAINTAIN: Oid = Oid(6337);

/// What sort of object an access control list belongs to: each has its own privileges where none were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ObjectKind {
    Relation,
    Sequence,
    Column,
    Database,
    Function,
    Language,
    Schema,
    Tablespace,
    Type,
}

impl ObjectKind {
    /// What PUBLIC and what the owner may do where no list was ever written (`acldefault`).
    fn defaults(self) -> (u64, u64) {
        let table = INSERT | SELECT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER | MAINTAIN;
        match self {
            ObjectKind::Relation => (0, table),
            ObjectKind::Sequence => (0, USAGE | SELECT | UPDATE),
            // A column's owner has what the table's list says.
            ObjectKind::Column => (0, 0),
            ObjectKind::Database => (CREATE_TEMP | CONNECT, CREATE | CREATE_TEMP | CONNECT),
            ObjectKind::Function => (EXECUTE, EXECUTE),
            ObjectKind::Language | ObjectKind::Type => (USAGE, USAGE),
            ObjectKind::Schema => (0, USAGE | CREATE),
            ObjectKind::Tablespace => (0, CREATE),
        }
    }

    /// The list that holds where none was written.
    pub fn default_acl(self, owner: Oid) -> Vec<AclItem> {
        let (public, own) = self.defaults();
        let mut list = Vec::new();
        if public != 0 {
            list.push(AclItem { grantee: Oid::INVALID, grantor: owner, privileges: public });
        }
        if own != 0 {
            list.push(AclItem { grantee: owner, grantor: owner, privileges: own });
        }
        list
    }
}

impl Catalog {
    /// Whether a role is a superuser; one that does not exist is not.
    pub fn is_superuser(&self, role: Oid) -> bool {
        self.role(role).is_some_and(|r| r.superuser)
    }

    /// All roles that `role` is a member of, itself included; with `inherited_only`, those whose privileges it has
    /// without SET ROLE.
    pub fn roles_of(&self, role: Oid, inherited_only: bool) -> HashSet<Oid> {
        let mut seen: HashSet<Oid> = [role].into();
        let mut queue = vec![role];
        while let Some(at) = queue.pop() {
            if self.database().is_some_and(|d| d.owner == at) && seen.insert(PG_DATABASE_OWNER) {
                queue.push(PG_DATABASE_OWNER);
            }
            for &(above, inherits, _) in self.role(at).map_or(&[][..], |r| r.member_of.as_slice()) {
                if (inherits || !inherited_only) && seen.insert(above) {
                    queue.push(above);
                }
            }
        }
        seen
    }

    /// Whether `member` has the privileges of `role` (`has_privs_of_role`).
    pub fn has_privileges_of_role(&self, member: Oid, role: Oid) -> bool {
        member == role || self.is_superuser(member) || self.roles_of(member, true).contains(&role)
    }

    /// Whether `member` is a member of `role`, inheriting or not.
    pub fn is_member_of_role(&self, member: Oid, role: Oid) -> bool {
        member == role || self.is_superuser(member) || self.roles_of(member, false).contains(&role)
    }

    /// Whether `member` may `SET ROLE` to `role`.
    pub fn can_set_role(&self, member: Oid, role: Oid) -> bool {
        if member == role || self.is_superuser(member) {
            return true;
        }
        let mut seen: HashSet<Oid> = [member].into();
        let mut queue = vec![member];
        while let Some(at) = queue.pop() {
            for &(above, _, set) in self.role(at).map_or(&[][..], |r| r.member_of.as_slice()) {
                if set && seen.insert(above) {
                    queue.push(above);
                }
            }
        }
        seen.contains(&role)
    }

    /// Which of the privileges `mask` (with grant options in the upper half) `role` has by a list (`aclmask`), superuser
    /// aside.
    pub fn acl_mask(&self, acl: Option<&Acl>, kind: ObjectKind, owner: Oid, role: Oid, mask: u64) -> u64 {
        let default;
        let items: &[AclItem] = if let Some(acl) = acl {
            acl
        } else {
            default = kind.default_acl(owner);
            &default
        };
        let roles = self.roles_of(role, true);
        let mut found = 0;
        // An owner can always grant.
        if mask >> 32 != 0 && roles.contains(&owner) {
            found |= mask & 0xFFFF_FFFF_0000_0000;
        }
        for item in items {
            if !item.grantee.is_valid() || roles.contains(&item.grantee) {
                found |= item.privileges & mask;
            }
        }
        found
    }

    /// Which of the privileges `mask` `role` has on a relation as a whole (`pg_class_aclmask`).
    pub fn relation_privileges(&self, relation: &Relation, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        let kind = if relation.kind == b'S' { ObjectKind::Sequence } else { ObjectKind::Relation };
        // Nobody but a superuser changes a catalog.
        let changes = INSERT | UPDATE | DELETE | TRUNCATE | USAGE;
        let mask = if relation.oid.0 < crate::builtin::FIRST_NORMAL_OID
            && matches!(relation.namespace.0, 11 | 99)
            && relation.kind != b'v'
        {
            mask & !changes
        } else {
            mask
        };
        let mut found = self.acl_mask(relation.acl.as_ref(), kind, relation.owner, role, mask);
        let by_role = |role_oid, bits| if self.has_privileges_of_role(role, role_oid) { mask & bits } else { 0 };
        if mask & SELECT & !found != 0 {
            found |= by_role(PG_READ_ALL_DATA, SELECT);
        }
        if mask & (INSERT | UPDATE | DELETE) & !found != 0 {
            found |= by_role(PG_WRITE_ALL_DATA, INSERT | UPDATE | DELETE);
        }
        if mask & MAINTAIN & !found != 0 {
            found |= by_role(PG_MAINTAIN, MAINTAIN);
        }
        found
    }

    /// Which of the privileges `mask` `role` has on one column by the column's own list.
    pub fn column_privileges(&self, relation: &Relation, column: AttrNumber, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        let place = usize::try_from(column.0).ok().and_then(|n| n.checked_sub(1));
        match place.and_then(|n| relation.attributes.get(n)) {
            Some(attribute) if !attribute.dropped => match &attribute.acl {
                Some(acl) => self.acl_mask(Some(acl), ObjectKind::Column, relation.owner, role, mask),
                None => 0,
            },
            _ => 0,
        }
    }

    /// Whether `role` may read these columns (`ExecCheckPermissions` for SELECT): by the relation's list, or column by
    /// column. No column at all (`count(*)`) needs one that may be read; column 0 is the whole row and needs all.
    pub fn can_select(&self, relation: &Relation, role: Oid, columns: &[AttrNumber]) -> bool {
        if self.relation_privileges(relation, role, SELECT) != 0 {
            return true;
        }
        let may = |column: AttrNumber| self.column_privileges(relation, column, role, SELECT) != 0;
        let mut live = relation.attributes.iter().filter(|a| !a.dropped).map(|a| a.number);
        if columns.is_empty() {
            return live.any(may);
        }
        columns.iter().all(|&c| if c.0 == 0 { live.clone().all(may) } else { may(c) })
    }

    /// [`Catalog::can_select`], or PostgreSQL's error.
    pub fn check_select(&self, relation: &Relation, role: Oid, columns: &[AttrNumber]) -> SqlResult<()> {
        if self.can_select(relation, role, columns) {
            return Ok(());
        }
        let what = match relation.kind {
            b'v' => "view",
            b'm' => "materialized view",
            b'S' => "sequence",
            b'i' | b'I' => "index",
            b'f' => "foreign table",
            _ => "table",
        };
        Err(denied(what, &relation.name))
    }

    /// Which of the privileges `mask` `role` has on a schema.
    pub fn namespace_privileges(&self, namespace: Oid, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        let Some(row) = self.namespace(namespace) else { return 0 };
        let mut found = self.acl_mask(row.acl.as_ref(), ObjectKind::Schema, row.owner, role, mask);
        if mask & USAGE & !found != 0
            && (self.has_privileges_of_role(role, PG_READ_ALL_DATA)
                || self.has_privileges_of_role(role, PG_WRITE_ALL_DATA))
        {
            found |= USAGE;
        }
        found
    }

    /// USAGE on a schema, or PostgreSQL's error.
    pub fn check_namespace_usage(&self, namespace: Oid, role: Oid) -> SqlResult<()> {
        if self.namespace_privileges(namespace, role, USAGE) != 0 {
            return Ok(());
        }
        let name = self.namespace(namespace).map_or_else(|| namespace.to_string(), |n| n.name.clone());
        Err(denied("schema", &name))
    }

    /// Which of the privileges `mask` `role` has on a database.
    pub fn database_privileges(&self, database: Oid, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        match self.databases.get(&database) {
            Some(row) => self.acl_mask(row.acl.as_ref(), ObjectKind::Database, row.owner, role, mask),
            None => 0,
        }
    }

    /// Which of the privileges `mask` `role` has on a function.
    pub fn function_privileges(&self, function: Oid, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        match self.proc(function) {
            Some(row) => self.acl_mask(row.acl.as_ref(), ObjectKind::Function, row.owner, role, mask),
            None => 0,
        }
    }

    /// EXECUTE on a function, or PostgreSQL's error.
    pub fn check_execute(&self, function: Oid, role: Oid) -> SqlResult<()> {
        if self.function_privileges(function, role, EXECUTE) != 0 {
            return Ok(());
        }
        let (what, name) = match self.proc(function) {
            Some(p) if p.kind == b'a' => ("aggregate", p.name.clone()),
            Some(p) if p.kind == b'p' => ("procedure", p.name.clone()),
            Some(p) => ("function", p.name.clone()),
            None => ("function", function.to_string()),
        };
        Err(denied(what, &name))
    }

    /// Which of the privileges `mask` `role` has on a type; an array is as its element.
    pub fn type_privileges(&self, type_oid: Oid, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        let type_oid = self.element_type(type_oid).unwrap_or(type_oid);
        match self.type_row(type_oid) {
            Some(row) => self.acl_mask(row.acl.as_ref(), ObjectKind::Type, row.owner, role, mask),
            None => 0,
        }
    }

    /// Which of the privileges `mask` `role` has on a tablespace.
    pub fn tablespace_privileges(&self, tablespace: Oid, role: Oid, mask: u64) -> u64 {
        if self.is_superuser(role) {
            return mask;
        }
        match self.tablespace(tablespace) {
            Some(row) => self.acl_mask(row.acl.as_ref(), ObjectKind::Tablespace, row.owner, role, mask),
            None => 0,
        }
    }
}

fn denied(what: &str, name: &str) -> SqlError {
    SqlError::new(SqlState::InsufficientPrivilege, format!("permission denied for {what} {name}"))
}
