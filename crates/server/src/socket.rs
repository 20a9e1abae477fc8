//! What a connection's bytes go through.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A connected socket.
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Taken away for a handshake, which failed.
    Gone,
}

macro_rules! each {
    ($self:expr, $socket:ident => $what:expr) => {
        match $self.get_mut() {
            Socket::Unix($socket) => $what,
            Socket::Tcp($socket) => $what,
            Socket::Tls($socket) => $what,
            Socket::Gone => Poll::Ready(Err(std::io::ErrorKind::NotConnected.into())),
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        each!(self, socket => Pin::new(socket).poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        each!(self, socket => Pin::new(socket).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        each!(self, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        each!(self, socket => Pin::new(socket).poll_shutdown(cx))
    }
}
