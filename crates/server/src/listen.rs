//! Listening: a Unix socket and localhost, until told to stop.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::net::{TcpListener, UnixListener};

use crate::auth::Peer;
use crate::cluster::Cluster;
use crate::connection;
use crate::lobby::Lobby;
use crate::socket::Socket;

/// Where a server listens.
#[derive(Debug)]
pub struct Endpoints {
    unix: Vec<(PathBuf, UnixListener)>,
    tcp: Vec<TcpListener>,
    port: u16,
}

fn cannot(what: &str, error: &std::io::Error) -> SqlError {
    SqlError::new(SqlState::IoError, format!("could not listen on {what}: {error}"))
}

impl Endpoints {
    /// Opens the sockets that the settings name. Never one inside the data directory.
    pub async fn open(cluster: &Cluster) -> SqlResult<Self> {
        let settings = cluster.settings();
        let port = u16::try_from(settings.int("port")).unwrap_or(5432);
        let list = |name: &str| -> Vec<String> {
            settings.text(name).split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect()
        };
        let mut unix = Vec::new();
        for directory in list("unix_socket_directories") {
            let path = PathBuf::from(directory).join(format!(".s.PGSQL.{port}"));
            // A socket that nobody answers on was left behind; one that answers is another server's.
            if std::os::unix::net::UnixStream::connect(&path).is_ok() {
                let message = format!("another server is listening on \"{}\"", path.display());
                return Err(SqlError::new(SqlState::ObjectInUse, message));
            }
            let _ = std::fs::remove_file(&path);
            let listener = UnixListener::bind(&path).map_err(|e| cannot(&path.display().to_string(), &e))?;
            // Who may connect is decided by the peer's user, not by the file's mode.
            let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777));
            unix.push((path, listener));
        }
        let mut tcp = Vec::new();
        for address in list("listen_addresses") {
            let address = if address == "*" { "0.0.0.0".to_owned() } else { address };
            let listener = TcpListener::bind((address.as_str(), port)).await;
            tcp.push(listener.map_err(|e| cannot(&format!("{address}:{port}"), &e))?);
        }
        if unix.is_empty() && tcp.is_empty() {
            return Err(SqlError::new(SqlState::ConfigFileError, "there is nothing to listen on"));
        }
        Ok(Self { unix, tcp, port })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of the first Unix socket.
    pub fn socket_directory(&self) -> Option<String> {
        self.unix.first().and_then(|(path, _)| path.parent()).map(|p| p.display().to_string())
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        for (path, _) in &self.unix {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// How long sessions have to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// How long nobody is let in when that has failed, for want of a file descriptor, say.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that have not said who they are: so many more than those that may be there.
const LOBBY_EXTRA: usize = 64;

/// Serves connections until `stop` completes; then ends all sessions.
pub async fn serve(cluster: Arc<Cluster>, endpoints: Endpoints, stop: impl Future<Output = ()>) {
    raise_file_limit();
    let mut tasks = tokio::task::JoinSet::new();
    let max_connections = usize::try_from(cluster.settings().int("max_connections")).unwrap_or(0);
    let lobby = Lobby::new(max_connections + LOBBY_EXTRA);
    let serve = |tasks: &mut tokio::task::JoinSet<()>, socket: Socket, peer: Peer| {
        let place = lobby.enter(peer);
        let number = place.number();
        let task = tasks.spawn(connection::serve(Arc::clone(&cluster), socket, peer, place));
        lobby.serves(number, task);
    };
    let (unix, tcp) = (&endpoints.unix, &endpoints.tcp);
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept_unix(unix), if !unix.is_empty() => match accepted {
                Ok(socket) => {
                    if let Ok(peer) = socket.peer_cred() {
                        serve(&mut tasks, Socket::Unix(socket), Peer::Local { uid: peer.uid() });
                    }
                }
                Err(error) => pause(&error).await,
            },
            accepted = accept_tcp(tcp), if !tcp.is_empty() => match accepted {
                Ok(socket) => {
                    let _ = socket.set_nodelay(true);
                    // A client that has vanished without a word is noticed, after hours.
                    let _ = rustix::net::sockopt::set_socket_keepalive(&socket, true);
                    if let Ok(address) = socket.peer_addr() {
                        serve(&mut tasks, Socket::Tcp(socket), Peer::Remote { ip: address.ip() });
                    }
                }
                Err(error) => pause(&error).await,
            },
            // Forget tasks that have ended.
            Some(_) = tasks.join_next() => {}
        }
    }
    cluster.cancel_all();
    let _ = tokio::time::timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await;
}

async fn pause(error: &std::io::Error) {
    tracing::warn!("could not accept new connection: {error}");
    tokio::time::sleep(PAUSE).await;
}

/// Each connection is a file: as many as the system lets us have.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!("could not raise the limit on open files: {error}");
    }
}

async fn accept_unix(listeners: &[(PathBuf, UnixListener)]) -> std::io::Result<tokio::net::UnixStream> {
    std::future::poll_fn(|cx| {
        for (_, listener) in listeners {
            if let std::task::Poll::Ready(accepted) = listener.poll_accept(cx) {
                return std::task::Poll::Ready(accepted.map(|(socket, _)| socket));
            }
        }
        std::task::Poll::Pending
    })
    .await
}

async fn accept_tcp(listeners: &[TcpListener]) -> std::io::Result<tokio::net::TcpStream> {
    std::future::poll_fn(|cx| {
        for listener in listeners {
            if let std::task::Poll::Ready(accepted) = listener.poll_accept(cx) {
                return std::task::Poll::Ready(accepted.map(|(socket, _)| socket));
            }
        }
        std::task::Poll::Pending
    })
    .await
}
