//! Authentication: what a line of `pg_hba.conf` demands of a connection, and the exchange that shows it.
//!
//! | the line says | over the Unix socket | from this machine | from another |
//! |---|---|---|---|
//! | `trust` | the server's own user comes in, others by SCRAM | SCRAM | SCRAM, over TLS only |
//! | `scram-sha-256`, `md5` | SCRAM | SCRAM | SCRAM, over TLS only |
//! | `password` | the password | over TLS only | over TLS only |
//! | `peer`, `ident` | the user's name, by `pg_ident.conf` | – | – |
//! | `cert` | – | the certificate's name | the certificate's name |
//!
//! So `trust` never means everyone (DESIGN D10), and a secret that is not SCRAM's fits no password. What else PostgreSQL has is
//! refused by name.

use std::net::IpAddr;

use bytes::Buf;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::Authentication;
use stegodon_catalog::Catalog;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::cluster::{Cluster, now_us};
use crate::hba::{Asking, ClientCert, HostRules, Method, Rule};
use crate::scram::{self, Binding, Exchange, Verifier};
use crate::socket::Socket;
use crate::startup::own_uid;
use crate::tls::Channel;
use crate::wire::{Wire, violation};

/// Who is on the other end, as far as the socket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The Unix socket, from a process of this user.
    Local { uid: u32 },
    /// TCP, from this machine or another.
    Remote { ip: IpAddr },
}

impl Peer {
    fn ip(self) -> Option<IpAddr> {
        match self {
            Peer::Local { .. } => None,
            Peer::Remote { ip } => Some(ip.to_canonical()),
        }
    }

    /// Whether what is said crosses a network.
    fn is_far(self) -> bool {
        self.ip().is_some_and(|ip| !ip.is_loopback())
    }
}

/// Who wants in, and how it speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applicant<'a> {
    pub peer: Peer,
    /// What is known of the encryption, where there is any.
    pub channel: Option<&'a Channel>,
    pub user: &'a str,
    pub database: &'a str,
    pub physical_replication: bool,
}

/// What a connection must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Nothing,
    Scram,
    Password,
    Peer,
    Certificate,
}

fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::InvalidAuthorizationSpecification, message)
}

impl Applicant<'_> {
    /// Where no line speaks of it, or one turns it away.
    fn turned_away(&self, by_line: bool) -> SqlError {
        let what = match (by_line, self.physical_replication) {
            (false, false) => "no pg_hba.conf entry for host",
            (false, true) => "no pg_hba.conf entry for replication connection from host",
            (true, false) => "pg_hba.conf rejects connection for host",
            (true, true) => "pg_hba.conf rejects replication connection for host",
        };
        let host = self.peer.ip().map_or("[local]".to_owned(), |ip| ip.to_string());
        let database =
            if self.physical_replication { String::new() } else { format!(", database \"{}\"", self.database) };
        let encryption = if self.channel.is_some() { "SSL encryption" } else { "no encryption" };
        refused(format!("{what} \"{host}\", user \"{}\"{database}, {encryption}", self.user))
    }

    fn failed(&self, method: &Method) -> SqlError {
        let user = self.user;
        match method {
            Method::Peer => refused(format!("Peer authentication failed for user \"{user}\"")),
            Method::Cert => refused(format!("certificate authentication failed for user \"{user}\"")),
            // Whatever a line asks, it was a password that did not fit.
            _ => {
                SqlError::new(SqlState::InvalidPassword, format!("password authentication failed for user \"{user}\""))
            }
        }
    }

    /// What it must show by a line.
    fn proof(&self, rule: &Rule) -> SqlResult<Proof> {
        let is_encrypted = self.channel.is_some();
        match rule.method {
            Method::Reject => Err(self.turned_away(true)),
            Method::Other(name) => {
                Err(SqlError::unsupported(format_args!("the authentication method \"{name}\" of pg_hba.conf")))
            }
            Method::Trust if matches!(self.peer, Peer::Local { uid } if uid == own_uid() || uid == 0) => {
                Ok(Proof::Nothing)
            }
            Method::Trust | Method::Scram | Method::Md5 if self.peer.is_far() && !is_encrypted => {
                Err(refused("connections from another machine must be encrypted".to_owned())
                    .hint("Turn on \"ssl\" in the server's configuration, and connect with sslmode=require."))
            }
            Method::Trust | Method::Scram | Method::Md5 => Ok(Proof::Scram),
            Method::Password if self.peer.ip().is_some() && !is_encrypted => {
                Err(refused("a password is not asked for over an unencrypted connection".to_owned())
                    .hint("Use scram-sha-256 in pg_hba.conf, or connect with sslmode=require."))
            }
            Method::Password => Ok(Proof::Password),
            Method::Peer => Ok(Proof::Peer),
            Method::Cert => Ok(Proof::Certificate),
        }
    }
}

/// Lets an applicant show what is demanded of it, or says why it may not come in.
pub(crate) async fn authenticate(
    cluster: &Cluster,
    wire: &mut Wire<Socket>,
    applicant: &Applicant<'_>,
) -> SqlResult<()> {
    let catalog = tokio::task::block_in_place(|| cluster.roles())?;
    let is_member = |role: &str| is_member(&catalog, applicant.user, role);
    let rules = cluster.host_rules();
    let asking = Asking {
        ip: applicant.peer.ip(),
        encrypted: applicant.channel.is_some(),
        user: applicant.user,
        database: applicant.database,
        physical_replication: applicant.physical_replication,
    };
    let decided = rules.decide(&asking, &is_member).map_err(|why| {
        tracing::warn!("{why}");
        SqlError::unsupported("a line of pg_hba.conf that may speak of this connection").detail(why)
    })?;
    let rule = decided.ok_or_else(|| applicant.turned_away(false))?;
    let proof = applicant.proof(rule)?;
    let client = applicant.channel.and_then(|channel| channel.client.as_ref());
    if rule.client_cert != ClientCert::No && client.is_none() {
        return Err(refused("connection requires a valid client certificate".to_owned()));
    }
    let is_shown = match proof {
        Proof::Nothing | Proof::Certificate => true,
        Proof::Scram => scram(cluster, &catalog, wire, applicant).await?,
        Proof::Password => password(cluster, &catalog, wire, applicant).await?,
        Proof::Peer => match applicant.peer {
            Peer::Local { uid } => user_name(uid).is_some_and(|name| may_be(rules, rule, &name, applicant, &is_member)),
            Peer::Remote { .. } => false,
        },
    };
    let is_certified = match rule.client_cert {
        ClientCert::No | ClientCert::VerifyCa => true,
        ClientCert::VerifyFull if rule.by_dn => {
            return Err(SqlError::unsupported("the option clientname=DN of pg_hba.conf"));
        }
        ClientCert::VerifyFull => client
            .and_then(|client| client.common_name.as_deref())
            .is_some_and(|name| may_be(rules, rule, name, applicant, &is_member)),
    };
    if is_shown && is_certified {
        return Ok(());
    }
    let (line, file, method, user) = (rule.line, &rule.file, rule.method.name(), applicant.user);
    tracing::info!("line {line} of \"{file}\" ({method}) did not let in user \"{user}\"");
    Err(applicant.failed(&rule.method))
}

/// Whether a user is a member of a role, directly or not. A superuser is not one of all.
fn is_member(catalog: &Catalog, user: &str, role: &str) -> bool {
    // Of this one nobody is a member before there is a database.
    let (Some(user), Some(role)) = (catalog.role_by_name(user), catalog.role_by_name(role)) else { return false };
    role.name != "pg_database_owner" && catalog.roles_of(user.oid, false).contains(&role.oid)
}

fn may_be(
    rules: &HostRules,
    rule: &Rule,
    name: &str,
    applicant: &Applicant<'_>,
    is_member: &dyn Fn(&str) -> bool,
) -> bool {
    match rules.may_be(rule.map.as_deref(), name, applicant.user, is_member) {
        Ok(true) => true,
        Ok(false) => {
            let user = applicant.user;
            tracing::info!("provided user name ({user}) and authenticated user name ({name}) do not match");
            false
        }
        Err(why) => {
            tracing::warn!("{why}");
            false
        }
    }
}

/// A user's name in `/etc/passwd`; others, of a network's directory, are not known.
fn user_name(uid: u32) -> Option<String> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let uid = uid.to_string();
    let name = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    };
    text.lines().find_map(name)
}

/// What is known of a user's password: what the catalogs say, or what looks the same where there is none, or where it is past
/// its time.
fn verifier(cluster: &Cluster, catalog: &Catalog, user: &str) -> Verifier {
    let valid = catalog.role_by_name(user).filter(|r| r.valid_until_us.is_none_or(|until_us| until_us > now_us()));
    let known = valid.and_then(|r| Verifier::parse(r.password.as_deref()?));
    known.unwrap_or_else(|| {
        let nonce = cluster.storage().directory().control().mock_authentication_nonce;
        Verifier::pretended(&nonce, user)
    })
}

fn gone() -> SqlError {
    SqlError::new(SqlState::ConnectionException, "the client went away while it was asked for a password")
}

async fn ask(wire: &mut Wire<Socket>, what: Authentication, expected: &str) -> SqlResult<bytes::BytesMut> {
    wire.send(&PgWireBackendMessage::Authentication(what))?;
    wire.flush().await?;
    wire.read_password(expected).await?.ok_or_else(gone)
}

async fn scram(
    cluster: &Cluster,
    catalog: &Catalog,
    wire: &mut Wire<Socket>,
    applicant: &Applicant<'_>,
) -> SqlResult<bool> {
    let end_point = applicant.channel.and_then(|channel| channel.end_point.as_deref());
    let mut mechanisms = vec![scram::MECHANISM.to_owned()];
    if end_point.is_some() {
        mechanisms.insert(0, scram::MECHANISM_PLUS.to_owned());
    }
    let mut first = ask(wire, Authentication::SASL(mechanisms), "SASL").await?;
    let end = first.iter().position(|b| *b == 0).ok_or_else(|| violation("invalid string in message".to_owned()))?;
    let mechanism = first.split_to(end);
    first.advance(1);
    let binding = match (&mechanism[..], end_point) {
        (name, Some(hash)) if name == scram::MECHANISM_PLUS.as_bytes() => Binding::Chosen(hash),
        (name, Some(_)) if name == scram::MECHANISM.as_bytes() => Binding::Declined,
        (name, None) if name == scram::MECHANISM.as_bytes() => Binding::Impossible,
        _ => return Err(violation("client selected an invalid SASL authentication mechanism".to_owned())),
    };
    // Its length, and then it is all there is.
    let first = match first.split_first_chunk::<4>() {
        Some((word, data)) if usize::try_from(i32::from_be_bytes(*word)) == Ok(data.len()) => data,
        _ => return Err(violation("insufficient data left in message".to_owned())),
    };
    let verifier = verifier(cluster, catalog, applicant.user);
    let (exchange, answer) = Exchange::start(verifier, binding, first, &scram::random_text()?)?;
    let last = ask(wire, Authentication::SASLContinue(answer.into()), "SASL").await?;
    let Some(answer) = exchange.finish(&last)? else { return Ok(false) };
    wire.send(&PgWireBackendMessage::Authentication(Authentication::SASLFinal(answer.into())))?;
    Ok(true)
}

async fn password(
    cluster: &Cluster,
    catalog: &Catalog,
    wire: &mut Wire<Socket>,
    applicant: &Applicant<'_>,
) -> SqlResult<bool> {
    let message = ask(wire, Authentication::CleartextPassword, "password").await?;
    let text = message.strip_suffix(&[0]).and_then(|text| std::str::from_utf8(text).ok());
    let text = text.filter(|text| !text.contains('\0')).map(str::to_owned);
    let text = text.ok_or_else(|| violation("invalid password packet size".to_owned()))?;
    if text.is_empty() {
        return Err(SqlError::new(SqlState::InvalidPassword, "empty password returned by client"));
    }
    let verifier = verifier(cluster, catalog, applicant.user);
    // Thousands of hashes: not on a thread that serves sockets, and not for more clients at once than there are threads.
    let checked = tokio::task::spawn_blocking(move || verifier.is_password(&text)).await;
    checked.map_err(|e| SqlError::internal(format_args!("a password's thread ended: {e}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What one line makes of a connection.
    fn proof(line: &str, peer: Peer, encrypted: bool) -> Result<Proof, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("pg_hba.conf"), line).unwrap();
        let rules = HostRules::load(directory.path(), "", "").unwrap();
        let channel = Channel::default();
        let channel = encrypted.then_some(&channel);
        let (user, database) = ("u", "d");
        let applicant = Applicant { peer, channel, user, database, physical_replication: false };
        let asking = Asking { ip: peer.ip(), encrypted, user, database, physical_replication: false };
        let rule = rules.decide(&asking, &|_| false).unwrap();
        rule.map_or(Err(applicant.turned_away(false)), |r| applicant.proof(r)).map_err(|e| e.message)
    }

    #[test]
    fn trust_is_for_the_servers_own_user() {
        let own = Peer::Local { uid: own_uid() };
        let other = Peer::Local { uid: own_uid() + 1 };
        let near = Peer::Remote { ip: "127.0.0.1".parse().unwrap() };
        let far = Peer::Remote { ip: "203.0.113.9".parse().unwrap() };
        let both = "local all all trust\nhost all all all trust\n";
        let far_plain = Err("connections from another machine must be encrypted".to_owned());
        assert_eq!(proof(both, own, false), Ok(Proof::Nothing));
        assert_eq!(proof(both, other, false), Ok(Proof::Scram));
        assert_eq!(proof(both, near, false), Ok(Proof::Scram));
        assert_eq!(proof(both, far, false), far_plain);
        assert_eq!(proof(both, far, true), Ok(Proof::Scram));
        assert_eq!(proof("host all all all scram-sha-256", far, false), far_plain);
        assert_eq!(proof("local all all scram-sha-256", own, false), Ok(Proof::Scram));
        assert_eq!(proof("local all all md5", own, false), Ok(Proof::Scram));
        assert_eq!(proof("local all all peer", own, false), Ok(Proof::Peer));
        assert_eq!(proof("local all all password", other, false), Ok(Proof::Password));
        assert!(proof("host all all all password", near, false).is_err());
        assert_eq!(proof("host all all all password", near, true), Ok(Proof::Password));
        assert!(proof("host all all all ldap ldapserver=x", near, true).unwrap_err().contains("\"ldap\""));
        let none = "no pg_hba.conf entry for host \"203.0.113.9\", user \"u\", database \"d\", no encryption";
        assert_eq!(proof("hostssl all all all trust", far, false), Err(none.to_owned()));
        let rejected = "pg_hba.conf rejects connection for host \"[local]\", user \"u\", database \"d\", no encryption";
        assert_eq!(proof("local all all reject", own, false), Err(rejected.to_owned()));
    }
}
