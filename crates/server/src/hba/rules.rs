//! One line of `pg_hba.conf`: for whom it speaks, and what it demands.
//!
//! ```text
//!  local                                              databases  users                          method  [name=value …]
//!  host | hostssl | hostnossl | hostgssenc | …        databases  users  address [netmask]       method  [name=value …]
//! ```

use std::net::IpAddr;
use std::sync::Arc;

use super::address::{Address, address};
use super::names::Name;
use super::tokens::{Line, Token};

/// The connections a line speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    HostGssEnc,
    HostNoGssEnc,
}

impl Kind {
    const ALL: [(&'static str, Kind); 6] = [
        ("local", Kind::Local),
        ("host", Kind::Host),
        ("hostssl", Kind::HostSsl),
        ("hostnossl", Kind::HostNoSsl),
        ("hostgssenc", Kind::HostGssEnc),
        ("hostnogssenc", Kind::HostNoGssEnc),
    ];
}

/// What a client must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Trust,
    Reject,
    /// `scram-sha-256`
    Scram,
    /// By the kind of the user's secret, as `md5` is read since SCRAM came.
    Md5,
    Password,
    Peer,
    Cert,
    /// PostgreSQL's, not ours.
    Other(&'static str),
}

/// Methods that are PostgreSQL's, but not ours.
const OTHERS: [&str; 8] = ["ident", "gss", "sspi", "pam", "bsd", "ldap", "radius", "oauth"];

/// What a line demands of a client's certificate, whatever the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientCert {
    #[default]
    No,
    /// One that an authority of ours has signed.
    VerifyCa,
    /// One of the user's own.
    VerifyFull,
}

/// A line that speaks of someone.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub file: Arc<str>,
    pub line: usize,
    pub kind: Kind,
    pub databases: Vec<Name>,
    pub users: Vec<Name>,
    pub address: Address,
    pub method: Method,
    /// The section of `pg_ident.conf` for it.
    pub map: Option<String>,
    pub client_cert: ClientCert,
    /// The certificate's whole name, not its common name, is the user's.
    pub by_dn: bool,
}

/// The one token of a field, or why not.
fn one<'a>(field: &'a [Token], what: &str) -> Result<&'a Token, String> {
    match field {
        [token] => Ok(token),
        _ => Err(format!("multiple values specified for {what}")),
    }
}

/// Reads a line.
pub(crate) fn rule(line: &Line) -> Result<Rule, String> {
    let mut fields = line.fields.iter();
    let kind = &one(fields.next().ok_or("an empty line")?, "connection type")?.text;
    let found = Kind::ALL.iter().find(|(name, _)| name == kind);
    let (_, kind) = found.ok_or_else(|| format!("invalid connection type \"{kind}\""))?;
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("end-of-line before {what}"));
    let databases = names(next("database specification")?)?;
    let users = names(next("role specification")?)?;
    let address = if *kind == Kind::Local {
        Address::All
    } else {
        let token = one(next("IP address specification")?, "host address")?;
        address(token, || Ok(one(next("netmask specification")?, "netmask")?.text.as_str()))?
    };
    let method = &one(next("authentication method")?, "authentication type")?.text;
    let mut rule = Rule {
        file: Arc::clone(&line.file),
        line: line.number,
        kind: *kind,
        databases,
        users,
        address,
        method: self::method(method, *kind)?,
        map: None,
        client_cert: ClientCert::No,
        by_dn: false,
    };
    if rule.method == Method::Cert {
        rule.client_cert = ClientCert::VerifyFull;
    }
    for option in fields.flatten() {
        let (name, value) = option
            .text
            .split_once('=')
            .ok_or_else(|| format!("authentication option not in name=value format: {}", option.text))?;
        rule.option(name, value)?;
    }
    Ok(rule)
}

fn names(field: &[Token]) -> Result<Vec<Name>, String> {
    field.iter().map(|token| Name::new(token.clone())).collect()
}

fn method(name: &str, kind: Kind) -> Result<Method, String> {
    let is_local = kind == Kind::Local;
    Ok(match name {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        "scram-sha-256" => Method::Scram,
        "md5" => Method::Md5,
        "password" => Method::Password,
        "peer" if !is_local => return Err("peer authentication is only supported on local sockets".to_owned()),
        "peer" => Method::Peer,
        // So PostgreSQL reads it where there is no network to ask an identity's server over.
        "ident" if is_local => Method::Peer,
        "cert" if kind != Kind::HostSsl => {
            return Err("cert authentication is only supported on hostssl connections".to_owned());
        }
        "cert" => Method::Cert,
        "gss" if is_local => return Err("gssapi authentication is not supported on local sockets".to_owned()),
        other => {
            let known = OTHERS.iter().find(|o| **o == other);
            Method::Other(known.ok_or_else(|| format!("invalid authentication method \"{other}\""))?)
        }
    })
}

impl Method {
    /// The name in the file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Method::Trust => "trust",
            Method::Reject => "reject",
            Method::Scram => "scram-sha-256",
            Method::Md5 => "md5",
            Method::Password => "password",
            Method::Peer => "peer",
            Method::Cert => "cert",
            Method::Other(name) => name,
        }
    }
}

/// Options of methods that are not ours: which methods' they are.
fn owner_of_option(name: &str) -> Option<&'static str> {
    Some(match name {
        "pamservice" | "pam_use_hostname" => "pam",
        "krb_realm" | "include_realm" => "gssapi and sspi",
        "compat_realm" | "upn_username" => "sspi",
        "radiusservers" | "radiusports" | "radiussecrets" | "radiusidentifiers" => "radius",
        "issuer" | "scope" | "validator" | "delegate_ident_mapping" => "oauth",
        name if name.starts_with("ldap") => "ldap",
        _ => return None,
    })
}

impl Rule {
    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let only = |methods: &str| {
            format!("authentication option \"{name}\" is only valid for authentication methods {methods}")
        };
        let only_ssl = || Err(format!("{name} can only be configured for \"hostssl\" rows"));
        let invalid = || Err(format!("invalid value for {name}: \"{value}\""));
        let is_ssl = self.kind == Kind::HostSsl;
        match name {
            "map" => {
                let has_map = matches!(self.method, Method::Peer | Method::Cert)
                    || matches!(self.method, Method::Other("ident" | "gss" | "sspi" | "oauth"));
                if !has_map {
                    return Err(only("ident, peer, gssapi, sspi, cert, and oauth"));
                }
                // An empty name is no map.
                self.map = Some(value.to_owned()).filter(|m| !m.is_empty());
            }
            "clientcert" if !is_ssl => return only_ssl(),
            "clientcert" => match value {
                "verify-full" => self.client_cert = ClientCert::VerifyFull,
                "verify-ca" if self.method == Method::Cert => {
                    let message = "clientcert can only be set to \"verify-full\" when using \"cert\" authentication";
                    return Err(message.to_owned());
                }
                "verify-ca" => self.client_cert = ClientCert::VerifyCa,
                _ => return invalid(),
            },
            "clientname" if !is_ssl => return only_ssl(),
            "clientname" => match value {
                "CN" => self.by_dn = false,
                "DN" => self.by_dn = true,
                _ => return invalid(),
            },
            // What they mean is not looked at: the method is refused.
            _ => match (owner_of_option(name), &self.method) {
                (None, _) => return Err(format!("unrecognized authentication option name: \"{name}\"")),
                (Some(_), Method::Other(_)) => {}
                (Some(methods), _) => return Err(only(methods)),
            },
        }
        Ok(())
    }
}

/// Who wants in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    /// `None` on the Unix socket.
    pub ip: Option<IpAddr>,
    pub encrypted: bool,
    pub user: &'a str,
    pub database: &'a str,
    /// For the log itself, not for a database.
    pub physical_replication: bool,
}

impl Rule {
    /// Whether it speaks of this connection. `is_member` says whether the user is a member of a role, directly or not; a
    /// user who does not exist is of none.
    pub(crate) fn matches(&self, asking: &Asking<'_>, is_member: &dyn Fn(&str) -> bool) -> Result<bool, String> {
        let fits = match (self.kind, asking.ip) {
            (Kind::Local, ip) => ip.is_none(),
            (_, None) | (Kind::HostGssEnc, _) => false,
            (Kind::Host | Kind::HostNoGssEnc, Some(_)) => true,
            (Kind::HostSsl, Some(_)) => asking.encrypted,
            (Kind::HostNoSsl, Some(_)) => !asking.encrypted,
        };
        let is_for = |names: &[Name], f: &mut dyn FnMut(&Name) -> Result<bool, String>| -> Result<bool, String> {
            for name in names {
                if f(name)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if !fits
            || !is_for(&self.databases, &mut |n| n.is_database(asking, is_member))?
            || !is_for(&self.users, &mut |n| n.is_user(asking.user, is_member))?
        {
            return Ok(false);
        }
        // Last, although PostgreSQL looks at it first: what cannot be decided matters only to those it may speak of.
        asking.ip.map_or(Ok(true), |ip| self.address.has(ip))
    }
}
