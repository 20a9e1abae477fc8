//! Startup: who a client is, whether it may come in, and the settings it brings.

use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};
use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::net::TcpStream;

use crate::auth::{self, Applicant, Peer};
use crate::cluster::Cluster;
use crate::packet::Packet;
use crate::session::Session;
use crate::socket::Socket;
use crate::tls::{Channel, Tls};
use crate::wire::{Wire, violation};

/// The newest minor version of protocol 3 that is spoken. What 3.2 adds is longer keys for cancelling.
const MINOR_MAX: u16 = 2;
/// The key's length before 3.2.
const SHORT_KEY_BYTES: usize = 4;
/// Names are cut off behind so many bytes (`NAMEDATALEN`).
const NAME_BYTES_MAX: usize = 63;
/// How a TLS handshake begins.
const HANDSHAKE: u8 = 0x16;

/// What a client begins with.
struct Startup {
    minor: u16,
    parameters: Vec<(String, String)>,
}

impl Startup {
    fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Takes a client in: encryption settled, cancel requests carried out, the startup packet answered. `None` where there is
/// nothing to serve.
pub(crate) async fn start(cluster: &Arc<Cluster>, wire: &mut Wire<Socket>, peer: Peer) -> SqlResult<Option<Session>> {
    let mut channel = None;
    if let Socket::Tcp(socket) = &wire.socket
        && begins_with_handshake(socket).await
    {
        // Whoever begins so could not read an answer that is not encrypted.
        let Some(tls) = cluster.tls() else { return Ok(None) };
        let Some(made) = handshake(wire, tls, false).await else { return Ok(None) };
        channel = Some(made);
    }
    let Some(startup) = negotiate(cluster, wire, &mut channel).await? else { return Ok(None) };
    answer_version(wire, &startup)?;
    let name = |name: &str| startup.get(name).filter(|n| !n.is_empty()).map(cut);
    let user = name("user").ok_or_else(|| {
        let message = "no PostgreSQL user name specified in startup packet";
        SqlError::new(SqlState::InvalidAuthorizationSpecification, message)
    })?;
    let database = name("database").unwrap_or(user);
    cluster.check_has_room()?;
    // `database` means a connection to one, for its changes; anything else that is true, the log.
    let replication = startup.get("replication").filter(|r| !matches!(*r, "false" | "off" | "no" | "0"));
    let physical_replication = replication.is_some_and(|r| r != "database");
    let applicant = Applicant { peer, channel: channel.as_ref(), user, database, physical_replication };
    auth::authenticate(cluster, wire, &applicant).await?;
    if replication.is_some() {
        return Err(SqlError::unsupported("a replication connection"));
    }
    let options = options(&startup.parameters)?;
    let connect = || Session::connect(cluster, database, user, &options);
    // Catalogs may have to be read from disk.
    let session = tokio::task::block_in_place(connect)?;
    wire.send(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    let reported = session.settings.read().reported();
    for (name, value) in reported {
        wire.send(&PgWireBackendMessage::ParameterStatus(ParameterStatus::new(name.to_owned(), value)))?;
    }
    let key = session.secret;
    let key = match key.first_chunk::<SHORT_KEY_BYTES>().filter(|_| startup.minor < 2) {
        Some(short) => {
            cluster.shorten_key(session.pid, SHORT_KEY_BYTES);
            SecretKey::I32(i32::from_be_bytes(*short))
        }
        None => SecretKey::Bytes(bytes::Bytes::copy_from_slice(&key)),
    };
    wire.send(&PgWireBackendMessage::BackendKeyData(BackendKeyData::new(session.pid, key)))?;
    Ok(Some(session))
}

async fn begins_with_handshake(socket: &TcpStream) -> bool {
    let mut first = [0];
    matches!(socket.peek(&mut first).await, Ok(1)) && first == [HANDSHAKE]
}

/// Encrypts the connection. `None` where the handshake failed: there is nothing to say, and nobody to say it to.
async fn handshake(wire: &mut Wire<Socket>, tls: &Tls, requested: bool) -> Option<Channel> {
    let Socket::Tcp(socket) = std::mem::replace(&mut wire.socket, Socket::Gone) else { return None };
    match tls.accept(socket, requested).await {
        Ok(stream) => {
            let channel = tls.channel(&stream);
            wire.socket = Socket::Tls(Box::new(stream));
            Some(channel)
        }
        Err(error) => {
            tracing::info!("could not accept SSL connection: {error}");
            None
        }
    }
}

/// Reads packets up to the one that begins. Each kind of encryption may be asked for once, and inside TLS none.
async fn negotiate(
    cluster: &Cluster,
    wire: &mut Wire<Socket>,
    channel: &mut Option<Channel>,
) -> SqlResult<Option<Startup>> {
    let (mut asked_tls, mut asked_gss) = (false, false);
    loop {
        let Some(packet) = wire.read_startup().await? else { return Ok(None) };
        let (major, minor) = match packet {
            Packet::Tls if !asked_tls => {
                asked_tls = true;
                let tls = cluster.tls().filter(|_| matches!(wire.socket, Socket::Tcp(_)));
                wire.output().push(if tls.is_some() { b'S' } else { b'N' });
                wire.flush().await?;
                check_nothing_behind(wire, "SSL request")?;
                if let Some(tls) = tls {
                    asked_gss = true;
                    *channel = handshake(wire, tls, true).await;
                    if channel.is_none() {
                        return Ok(None);
                    }
                }
                continue;
            }
            Packet::Gss if !asked_gss => {
                asked_gss = true;
                wire.output().push(b'N');
                wire.flush().await?;
                check_nothing_behind(wire, "GSSAPI encryption request")?;
                continue;
            }
            Packet::Cancel { pid, key } => {
                cluster.cancel(pid, &key);
                return Ok(None);
            }
            Packet::Startup { major: 3, minor, parameters } => return Ok(Some(Startup { minor, parameters })),
            Packet::Startup { major, minor, .. } => (major, minor),
            Packet::Tls => (1234, 5679),
            Packet::Gss => (1234, 5680),
        };
        let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_MAX}");
        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
    }
}

/// What is sent behind a request for encryption, before its answer, is not encrypted, and would be taken for what is (CVE-2021-23214).
fn check_nothing_behind(wire: &Wire<Socket>, request: &str) -> SqlResult<()> {
    if !wire.has_input() {
        return Ok(());
    }
    let detail = "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.";
    Err(violation(format!("received unencrypted data after {request}")).detail(detail))
}

/// Says what of the protocol that is asked for is not spoken, if anything.
fn answer_version(wire: &mut Wire<Socket>, startup: &Startup) -> SqlResult<()> {
    let names = startup.parameters.iter().map(|(name, _)| name);
    let unknown: Vec<String> = names.filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if startup.minor <= MINOR_MAX && unknown.is_empty() {
        return Ok(());
    }
    // The whole version, although the protocol's description speaks of its minor part.
    let version = (3 << 16) | i32::from(startup.minor.min(MINOR_MAX));
    wire.send(&PgWireBackendMessage::NegotiateProtocolVersion(NegotiateProtocolVersion::new(version, unknown)))
}

/// A name as far as it counts.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

pub(crate) fn own_uid() -> u32 {
    std::fs::metadata("/proc/self").map_or(u32::MAX, |m| std::os::unix::fs::MetadataExt::uid(&m))
}

/// Settings of the startup packet: its own parameters, and `-c name=value` in `options`.
fn options(parameters: &[(String, String)]) -> SqlResult<Vec<(String, String)>> {
    let mut options = Vec::new();
    for (name, value) in parameters {
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
