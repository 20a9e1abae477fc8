//! Startup: who a client is, whether it may come in, and the settings it brings.

use std::sync::Arc;

use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey, Startup,
};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion, SslNegotiationMetaMessage};
use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::cluster::Cluster;
use crate::session::Session;
use crate::wire::{Wire, violation};

/// Who is on the other end, as far as the socket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The Unix socket, from a process of this user.
    Local { uid: u32 },
    /// TCP.
    Remote,
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
    authenticate(peer, &user)?;
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

/// DESIGN D10: the server's own user may connect over the Unix socket as anyone; others need a password, which is not
/// offered yet.
fn authenticate(peer: Peer, user: &str) -> SqlResult<()> {
    match peer {
        Peer::Local { uid } if uid == own_uid() || uid == 0 => Ok(()),
        Peer::Local { .. } => Err(SqlError::new(
            SqlState::InvalidAuthorizationSpecification,
            format!("Peer authentication failed for user \"{user}\""),
        )
        .detail("Only the operating system user who runs Stegodon may connect.")),
        Peer::Remote => Err(SqlError::new(
            SqlState::InvalidAuthorizationSpecification,
            format!("connections over TCP need a password, which Stegodon does not check yet (user \"{user}\")"),
        )
        .hint("Connect over the Unix socket as the user who runs Stegodon.")),
    }
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
