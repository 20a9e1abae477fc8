//! Startup: who a client is, whether it may come in, and the settings it brings.

use std::sync::Arc;

use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, PasswordMessageFamily, SecretKey,
    Startup,
};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion, SslNegotiationMetaMessage};
use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::cluster::{Cluster, now_us};
use crate::scram::{self, Exchange, Verifier};
use crate::session::Session;
use crate::wire::{Wire, violation};

/// Who is on the other end, as far as the socket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The Unix socket, from a process of this user.
    Local { uid: u32 },
    /// TCP, from this machine or another.
    Remote { is_loopback: bool },
}

/// Takes a client in: encryption declined, cancel requests carried out, the startup packet answered. `None` where there is
/// nothing to serve.
pub(crate) async fn start<S>(cluster: &Arc<Cluster>, wire: &mut Wire<S>, peer: Peer) -> SqlResult<Option<Session>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let startup = loop {
        match wire.read().await? {
            None => return Ok(None),
            Some(PgWireFrontendMessage::SslNegotiation(kind)) => match kind {
                SslNegotiationMetaMessage::PostgresSsl(_) => {
                    wire.send(&PgWireBackendMessage::SslResponse(SslResponse::Refuse))?;
                    wire.flush().await?;
                }
                SslNegotiationMetaMessage::PostgresGss(_) => {
                    wire.send(&PgWireBackendMessage::GssEncResponse(GssEncResponse::Refuse))?;
                    wire.flush().await?;
                }
                SslNegotiationMetaMessage::None => wire.negotiated(),
            },
            Some(PgWireFrontendMessage::CancelRequest(request)) => {
                if let SecretKey::I32(secret) = request.secret_key {
                    cluster.cancel(request.pid, secret);
                }
                return Ok(None);
            }
            Some(PgWireFrontendMessage::Startup(startup)) => break startup,
            Some(_) => return Err(violation("expected a startup packet".to_owned())),
        }
    };
    negotiate(wire, &startup)?;
    let user = startup.parameters.get("user").cloned().unwrap_or_default();
    if user.is_empty() {
        return Err(SqlError::new(
            SqlState::InvalidAuthorizationSpecification,
            "no PostgreSQL user name specified in startup packet",
        ));
    }
    let database = startup.parameters.get("database").filter(|d| !d.is_empty()).cloned().unwrap_or(user.clone());
    authenticate(cluster, wire, peer, &user, &database).await?;
    if startup.parameters.contains_key("replication") {
        return Err(SqlError::unsupported("a replication connection"));
    }
    let limit = usize::try_from(cluster.settings().int("max_connections")).unwrap_or(100);
    if cluster.session_count() >= limit {
        return Err(SqlError::new(SqlState::TooManyConnections, "sorry, too many clients already"));
    }
    let options = options(&startup)?;
    let connect = || Session::connect(cluster, &database, &user, &options);
    // Catalogs may have to be read from disk.
    let session = tokio::task::block_in_place(connect)?;
    wire.send(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    let reported = session.settings.read().reported();
    for (name, value) in reported {
        wire.send(&PgWireBackendMessage::ParameterStatus(ParameterStatus::new(name.to_owned(), value)))?;
    }
    let key = BackendKeyData::new(session.pid, SecretKey::I32(session.secret));
    wire.send(&PgWireBackendMessage::BackendKeyData(key))?;
    Ok(Some(session))
}

/// Agrees on protocol 3.0: what is asked beyond it is declined as the protocol says.
fn negotiate<S>(wire: &mut Wire<S>, startup: &Startup) -> SqlResult<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    if startup.protocol_number_major != 3 {
        return Err(SqlError::new(
            SqlState::FeatureNotSupported,
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                startup.protocol_number_major, startup.protocol_number_minor
            ),
        ));
    }
    wire.started(ProtocolVersion::PROTOCOL3_0);
    let unknown: Vec<String> = startup.parameters.keys().filter(|k| k.starts_with("_pq_.")).cloned().collect();
    if startup.protocol_number_minor > 0 || !unknown.is_empty() {
        let answer = NegotiateProtocolVersion::new(0, unknown);
        wire.send(&PgWireBackendMessage::NegotiateProtocolVersion(answer))?;
    }
    Ok(())
}

/// DESIGN D10: the server's own user may connect over the Unix socket as anyone; others by a password. Passwords' proofs, and
/// then data, would cross a network in the open: from another machine it is refused.
async fn authenticate<S>(
    cluster: &Arc<Cluster>,
    wire: &mut Wire<S>,
    peer: Peer,
    user: &str,
    database: &str,
) -> SqlResult<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    match peer {
        Peer::Local { uid } if uid == own_uid() || uid == 0 => return Ok(()),
        Peer::Remote { is_loopback: false } => {
            let message = "connections from another machine need encryption, which Stegodon does not offer yet";
            return Err(SqlError::new(SqlState::InvalidAuthorizationSpecification, message));
        }
        Peer::Local { .. } | Peer::Remote { .. } => {}
    }
    let verifier = tokio::task::block_in_place(|| verifier(cluster, user, database));
    wire.send(&PgWireBackendMessage::Authentication(Authentication::SASL(vec![scram::MECHANISM.to_owned()])))?;
    let Some(first) = password_message(wire).await? else { return Err(gone()) };
    let first = first.into_sasl_initial_response().map_err(|e| violation(e.to_string()))?;
    if first.auth_method != scram::MECHANISM {
        return Err(violation("client selected an invalid SASL authentication mechanism".to_owned()));
    }
    let first = first.data.ok_or_else(|| violation("expected SASL data".to_owned()))?;
    let (exchange, answer) = Exchange::start(verifier, &first, &scram::random_text()?)?;
    wire.send(&PgWireBackendMessage::Authentication(Authentication::SASLContinue(answer.into())))?;
    let Some(last) = password_message(wire).await? else { return Err(gone()) };
    let last = last.into_sasl_response().map_err(|e| violation(e.to_string()))?;
    let Some(answer) = exchange.finish(&last.data)? else {
        let message = format!("password authentication failed for user \"{user}\"");
        return Err(SqlError::new(SqlState::InvalidPassword, message));
    };
    wire.send(&PgWireBackendMessage::Authentication(Authentication::SASLFinal(answer.into())))
}

/// What is known of a user's password: what the catalogs say, or what looks the same where there is none, or where it is past
/// its time.
fn verifier(cluster: &Cluster, user: &str, database: &str) -> Verifier {
    // Whether the database exists is told only to who has a password.
    let catalog = cluster.catalog(database).or_else(|_| cluster.catalog("template1"));
    let role = catalog.ok().and_then(|c| c.role_by_name(user).cloned());
    let valid = role.filter(|r| r.valid_until_us.is_none_or(|until_us| until_us > now_us()));
    let known = valid.and_then(|r| Verifier::parse(r.password.as_deref()?));
    known.unwrap_or_else(|| Verifier::pretended(cluster.secret(), user))
}

/// The next message of an authentication; `None` once the client is gone (to ask its user, say).
async fn password_message<S>(wire: &mut Wire<S>) -> SqlResult<Option<PasswordMessageFamily>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    wire.flush().await?;
    match wire.read().await? {
        None => Ok(None),
        Some(PgWireFrontendMessage::PasswordMessageFamily(message)) => Ok(Some(message)),
        Some(_) => Err(violation("expected SASL response".to_owned())),
    }
}

fn gone() -> SqlError {
    SqlError::new(SqlState::ConnectionException, "the client went away while it was asked for a password")
}

fn own_uid() -> u32 {
    std::fs::metadata("/proc/self").map_or(u32::MAX, |m| std::os::unix::fs::MetadataExt::uid(&m))
}

/// Settings of the startup packet: its own parameters, and `-c name=value` in `options`.
fn options(startup: &Startup) -> SqlResult<Vec<(String, String)>> {
    let mut options = Vec::new();
    for (name, value) in &startup.parameters {
        match name.as_str() {
            "user" | "database" | "replication" => {}
            "options" => command_line(value, &mut options)?,
            name if name.starts_with("_pq_.") => {}
            name => options.push((name.to_owned(), value.clone())),
        }
    }
    Ok(options)
}

fn command_line(text: &str, out: &mut Vec<(String, String)>) -> SqlResult<()> {
    let invalid = |what: &str| {
        SqlError::new(SqlState::SyntaxError, format!("invalid command-line argument for server process: {what}"))
    };
    let mut words = words(text).into_iter();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("-c").or_else(|| word.strip_prefix("--")) {
            Some("") => words.next().ok_or_else(|| invalid(&word))?,
            Some(rest) => rest.to_owned(),
            None => return Err(invalid(&word)),
        };
        let (name, value) = assignment.split_once('=').ok_or_else(|| invalid(&assignment))?;
        out.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(())
}

/// Words at white space; a backslash keeps the next character.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut kept) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if kept {
            word.push(c);
            kept = false;
        } else if c == '\\' {
            kept = true;
        } else if c.is_ascii_whitespace() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        } else {
            word.push(c);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_of_the_startup_packet() {
        let mut out = Vec::new();
        command_line(r"-c geqo=off --work-mem=1MB -c search_path=a\ b", &mut out).unwrap();
        let expected = [("geqo", "off"), ("work_mem", "1MB"), ("search_path", "a b")];
        assert_eq!(out, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(command_line("-x", &mut out).is_err());
        assert!(command_line("-c", &mut out).is_err());
    }
}
