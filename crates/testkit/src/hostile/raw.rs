//! A client without manners: bytes in any order, and as much of the protocol as is needed to get in.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where a server is, and who may come in without a password.
#[derive(Clone, Debug)]
pub struct Target {
    /// The directory of its Unix socket.
    pub socket_directory: String,
    /// Its port, on the socket and on localhost.
    pub port: u16,
    /// Its process, to look at its memory.
    pub pid: u32,
    /// A user whom the socket lets in.
    pub user: String,
    /// A database.
    pub database: String,
}

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A message from the server.
pub type Message = (u8, Vec<u8>);

/// A connection.
pub struct Raw {
    socket: Socket,
    /// The process that serves it, and the key that cancels it.
    pub key: (i32, Vec<u8>),
}

macro_rules! each {
    ($self:expr, $socket:ident => $what:expr) => {
        match &mut $self.socket {
            Socket::Unix($socket) => $what,
            Socket::Tcp($socket) => $what,
        }
    };
}

impl Raw {
    /// Connects over the Unix socket, and says nothing.
    pub fn unix(target: &Target) -> std::io::Result<Self> {
        let path = PathBuf::from(&target.socket_directory).join(format!(".s.PGSQL.{}", target.port));
        Self::patient(Socket::Unix(UnixStream::connect(path)?))
    }

    /// Connects over TCP, and says nothing.
    pub fn tcp(target: &Target) -> std::io::Result<Self> {
        Self::patient(Socket::Tcp(TcpStream::connect(("127.0.0.1", target.port))?))
    }

    fn patient(socket: Socket) -> std::io::Result<Self> {
        let mut raw = Self { socket, key: (0, Vec::new()) };
        raw.set_patience(PATIENCE)?;
        Ok(raw)
    }

    /// How long to wait for an answer, or for the server to read.
    pub fn set_patience(&mut self, patience: Duration) -> std::io::Result<()> {
        each!(self, s => s.set_read_timeout(Some(patience)).and_then(|()| s.set_write_timeout(Some(patience))))
    }

    /// A session over the Unix socket.
    pub fn session(target: &Target) -> std::io::Result<Self> {
        let mut raw = Self::unix(target)?;
        raw.send_startup(&[("user", &target.user), ("database", &target.database)])?;
        for (kind, body) in raw.read_until_ready()? {
            match kind {
                b'E' => return Err(Error::other(error_text(&body))),
                b'K' => {
                    let (pid, key) = body.split_first_chunk::<4>().ok_or(ErrorKind::InvalidData)?;
                    raw.key = (i32::from_be_bytes(*pid), key.to_vec());
                }
                _ => {}
            }
        }
        Ok(raw)
    }

    /// Sends a startup packet of protocol 3.0.
    pub fn send_startup(&mut self, parameters: &[(&str, &str)]) -> std::io::Result<()> {
        let mut body = 196_608u32.to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        self.send_packet(&body)
    }

    /// Sends a packet without a kind.
    pub fn send_packet(&mut self, body: &[u8]) -> std::io::Result<()> {
        self.send_bytes(&[&(body.len() as u32 + 4).to_be_bytes(), body].concat())
    }

    /// Sends anything.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        each!(self, s => s.write_all(bytes))
    }

    /// Sends a message.
    pub fn send(&mut self, kind: u8, body: &[u8]) -> std::io::Result<()> {
        self.send_bytes(&message(kind, body))
    }

    /// The next bytes, so many.
    pub fn read_bytes(&mut self, count: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        each!(self, s => s.read_exact(&mut bytes)).map(|()| bytes)
    }

    /// The next message; an error of the kind `UnexpectedEof` or `ConnectionReset` where there is none any more.
    pub fn read(&mut self) -> std::io::Result<Message> {
        let head = self.read_bytes(5)?;
        let (Some(&kind), Some(word)) = (head.first(), head.last_chunk::<4>()) else {
            return Err(ErrorKind::InvalidData.into());
        };
        let length = u32::from_be_bytes(*word) as usize;
        Ok((kind, self.read_bytes(length.saturating_sub(4))?))
    }

    /// All messages up to `ReadyForQuery`, or to the error that ends the connection.
    pub fn read_until_ready(&mut self) -> std::io::Result<Vec<Message>> {
        let mut all = Vec::new();
        loop {
            let message = self.read()?;
            let is_last = message.0 == b'Z' || (message.0 == b'E' && error_field(&message.1, b'V') == "FATAL");
            all.push(message);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Runs a query: its values as text, row by row, or its error.
    pub fn query(&mut self, sql: &str) -> std::io::Result<Result<Vec<String>, String>> {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat())?;
        let mut values = Vec::new();
        let mut failed = None;
        for (kind, body) in self.read_until_ready()? {
            match kind {
                b'E' => failed = Some(error_text(&body)),
                b'D' => values.push(String::from_utf8_lossy(body.get(6..).unwrap_or_default()).into_owned()),
                _ => {}
            }
        }
        Ok(failed.map_or(Ok(values), Err))
    }

    /// Asks for what another session does to be cancelled.
    pub fn cancel(target: &Target, pid: i32, key: &[u8]) -> std::io::Result<()> {
        let mut raw = Self::unix(target)?;
        raw.send_packet(&[&80_877_102u32.to_be_bytes()[..], &pid.to_be_bytes(), key].concat())?;
        // It answers by closing.
        match raw.read() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// A message's bytes.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// A Parse.
pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat())
}

/// A Bind without parameters.
pub fn bind(portal: &str, statement: &str) -> Vec<u8> {
    message(b'B', &[portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0\0\0\0\0"].concat())
}

/// An Execute; 0 rows are all.
pub fn execute(portal: &str, rows: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &rows.to_be_bytes()[..]].concat())
}

/// One field of an error.
pub fn error_field(body: &[u8], field: u8) -> String {
    let found = body.split(|b| *b == 0).find_map(|part| part.strip_prefix(&[field]));
    found.map_or(String::new(), |text| String::from_utf8_lossy(text).into_owned())
}

/// An error's SQLSTATE and message.
pub fn error_text(body: &[u8]) -> String {
    format!("{}: {}", error_field(body, b'C'), error_field(body, b'M'))
}
