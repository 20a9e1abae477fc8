//! The protocol's messages over a socket: pgwire's codec, our own flow of bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, BytesMut};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion};
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::packet::{self, Packet};

/// How serious an error is for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    Fatal,
    Warning,
    Notice,
}

impl Severity {
    fn label(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        }
    }
}

/// Bytes kept back before they are written.
const FLUSH_BYTES: usize = 64 << 10;
/// What a connection that waits for its client keeps of its buffers at most.
const IDLE_BYTES: usize = 4 << 10;
/// The longest message that can be one at all: PostgreSQL's limit.
const MESSAGE_BYTES_MAX: usize = (1 << 30) - 1;
/// The longest message taken of the kinds that carry statements and values: somewhat more than the longest statement.
const LONG_BYTES_MAX: usize = stegodon_sql::limits::MAX_LENGTH_BYTES + (64 << 10);
/// The longest message taken of other kinds, PostgreSQL's `PQ_SMALL_MESSAGE_LIMIT`.
const SHORT_BYTES_MAX: usize = 10_000;
/// The longest message taken from a client that is not yet known (`PG_MAX_AUTH_TOKEN_LENGTH`).
const PASSWORD_BYTES_MAX: usize = 65_535;
/// From here on a message counts as large.
const LARGE_BYTES: usize = 1 << 20;
/// What all large messages that are waited for may hold together.
const LARGE_BYTES_MAX: usize = 512 << 20;
/// The bytes of all large messages that are waited for or being carried out.
static LARGE_BYTES_HELD: AtomicUsize = AtomicUsize::new(0);

/// A share of [`LARGE_BYTES_MAX`].
struct Share(usize);

impl Share {
    /// `None` where too much is held already.
    fn take(bytes: usize) -> Option<Self> {
        let held = LARGE_BYTES_HELD.fetch_add(bytes, Ordering::Relaxed);
        let share = Self(bytes);
        (held + bytes <= LARGE_BYTES_MAX).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        LARGE_BYTES_HELD.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// What a client has sent.
pub(crate) enum Incoming {
    Message(PgWireFrontendMessage),
    /// A message that was taken whole but cannot be carried out.
    Refused {
        kind: u8,
        error: SqlError,
    },
}

/// One connection's two directions.
pub(crate) struct Wire<S> {
    pub(crate) socket: S,
    input: BytesMut,
    output: Vec<u8>,
    /// Bytes of a refused message that are still to come.
    to_skip: usize,
    /// Held while a large message is waited for and carried out.
    share: Option<Share>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, input: BytesMut::new(), output: Vec::new(), to_skip: 0, share: None }
    }

    /// The next message; `None` once the client is gone.
    ///
    /// A message is taken out of the buffer whole before it is looked at: the codec trusts counts and lengths, and where they
    /// lie it must meet the end of the message, not the next one.
    pub(crate) async fn read(&mut self) -> SqlResult<Option<Incoming>> {
        self.share = None;
        loop {
            self.skip();
            if self.to_skip == 0
                && let Some((&kind, rest)) = self.input.split_first()
            {
                if !b"QPBECDHSXFdcf".contains(&kind) {
                    return Err(violation(format!("invalid frontend message type {kind}")));
                }
                let length = rest.first_chunk::<4>().map(|word| u32::from_be_bytes(*word) as usize);
                if let Some(length) = length {
                    if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
                        return Err(violation("invalid message length".to_owned()));
                    }
                    if let Err(error) = self.check_length(kind, length) {
                        self.to_skip = 1 + length;
                        return Ok(Some(Incoming::Refused { kind, error }));
                    }
                    if self.input.len() > length {
                        return Ok(Some(decode(kind, self.input.split_to(1 + length))));
                    }
                }
            }
            if !self.fill().await {
                return Ok(None);
            }
        }
    }

    /// Drops what has come of a refused message.
    fn skip(&mut self) {
        let now = self.to_skip.min(self.input.len());
        self.input.advance(now);
        self.to_skip -= now;
    }

    /// Refuses a message by its length, before its bytes are waited for.
    fn check_length(&mut self, kind: u8, length: usize) -> SqlResult<()> {
        let max = if b"QPBFd".contains(&kind) { LONG_BYTES_MAX } else { SHORT_BYTES_MAX };
        if length > max {
            let message = format!("message of {length} bytes is too long");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
        }
        if length >= LARGE_BYTES && self.share.is_none() {
            self.share = Share::take(length);
            if self.share.is_none() {
                let detail = "Too many large messages are under way.";
                return Err(SqlError::new(SqlState::OutOfMemory, "out of memory").detail(detail));
            }
        }
        Ok(())
    }

    /// The next bytes, in any number; false once the client is gone.
    async fn fill(&mut self) -> bool {
        if self.input.is_empty() {
            // An idle connection keeps no more than it may.
            if self.input.capacity() > IDLE_BYTES {
                self.input = BytesMut::new();
            }
            if self.output.is_empty() && self.output.capacity() > IDLE_BYTES {
                self.output = Vec::new();
            }
        }
        !matches!(self.socket.read_buf(&mut self.input).await, Ok(0) | Err(_))
    }

    /// So many bytes, still kept; `None` once the client is gone.
    async fn peek(&mut self, bytes: usize) -> Option<&[u8]> {
        while self.input.len() < bytes {
            if !self.fill().await {
                return None;
            }
        }
        self.input.get(..bytes)
    }

    /// The next packet of a client that has not begun to speak yet: without a kind, short. `None` once it is gone.
    pub(crate) async fn read_startup(&mut self) -> SqlResult<Option<Packet>> {
        let Some(word) = self.peek(4).await else { return Ok(None) };
        let length = word.first_chunk::<4>().map_or(0, |word| u32::from_be_bytes(*word) as usize);
        if !(8..=packet::BYTES_MAX).contains(&length) {
            return Err(violation("invalid length of startup packet".to_owned()));
        }
        if self.peek(length).await.is_none() {
            return Ok(None);
        }
        let packet = self.input.split_to(length);
        Packet::read(packet.get(4..).unwrap_or_default()).map(Some)
    }

    /// The body of the next message, which answers a demand for a password or a proof; `None` once the client is gone.
    pub(crate) async fn read_password(&mut self, expected: &str) -> SqlResult<Option<BytesMut>> {
        let Some(&[kind, a, b, c, d]) = self.peek(5).await.and_then(|head| head.first_chunk::<5>()) else {
            return Ok(None);
        };
        if kind != b'p' {
            return Err(violation(format!("expected {expected} response, got message type {kind}")));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=PASSWORD_BYTES_MAX).contains(&length) {
            return Err(violation("invalid message length".to_owned()));
        }
        if self.peek(1 + length).await.is_none() {
            return Ok(None);
        }
        let mut message = self.input.split_to(1 + length);
        message.advance(5);
        Ok(Some(message))
    }

    /// Whether bytes have come that nobody has looked at.
    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Keeps a message to be written.
    pub(crate) fn send(&mut self, message: &PgWireBackendMessage) -> SqlResult<()> {
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes).map_err(|e| SqlError::internal(format_args!("cannot encode a message: {e}")))?;
        self.output.extend_from_slice(&bytes);
        Ok(())
    }

    /// Keeps an error or notice to be written.
    pub(crate) fn send_error(&mut self, severity: Severity, error: &SqlError) -> SqlResult<()> {
        let mut fields = vec![
            (b'S', severity.label().to_owned()),
            (b'V', severity.label().to_owned()),
            (b'C', error.state.code().to_owned()),
            (b'M', error.message.clone()),
        ];
        fields.extend(error.detail.clone().map(|d| (b'D', d)));
        fields.extend(error.hint.clone().map(|h| (b'H', h)));
        fields.extend(error.position.map(|p| (b'P', p.to_string())));
        self.send(&match severity {
            Severity::Error | Severity::Fatal => PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields)),
            Severity::Warning | Severity::Notice => PgWireBackendMessage::NoticeResponse(NoticeResponse::new(fields)),
        })
    }

    /// The bytes kept to be written, for whoever encodes messages itself.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Writes what is kept if there is much of it.
    pub(crate) async fn flush_if_full(&mut self) -> SqlResult<()> {
        if self.output.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Writes what is kept.
    pub(crate) async fn flush(&mut self) -> SqlResult<()> {
        let written = self.socket.write_all(&self.output).await;
        self.output.clear();
        self.output.shrink_to(4 * FLUSH_BYTES);
        let gone = |_| SqlError::new(SqlState::ConnectionException, "connection to client lost");
        written.map_err(gone)?;
        self.socket.flush().await.map_err(gone)
    }

    /// Waits until the client is gone, or sends the next message, whose bytes are kept. True when gone.
    pub(crate) async fn wait_for_client(&mut self) -> bool {
        // What a pipelining client sends ahead is kept up to a bound; beyond it nothing more is read meanwhile.
        if self.input.len() > FLUSH_BYTES {
            return std::future::pending().await;
        }
        matches!(self.socket.read_buf(&mut self.input).await, Ok(0) | Err(_))
    }
}

/// Reads one whole message, and nothing but it.
fn decode(kind: u8, mut message: BytesMut) -> Incoming {
    let refused = |error| Incoming::Refused { kind, error };
    if kind == b'F' {
        return refused(SqlError::unsupported("the function call message"));
    }
    if let Err(error) = check_text(kind, &message) {
        return refused(error);
    }
    let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    context.awaiting_frontend_ssl = false;
    context.awaiting_frontend_startup = false;
    // The codec panics where a count or a length promises more than there is.
    let decoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        PgWireFrontendMessage::decode(&mut message, &context)
    }));
    match decoded {
        Ok(Ok(Some(decoded))) if message.is_empty() => Incoming::Message(decoded),
        Ok(Ok(Some(_))) => refused(violation("invalid message format".to_owned())),
        Ok(Ok(None) | Err(_)) | Err(_) => refused(violation("insufficient data left in message".to_owned())),
    }
}

/// Looks at the text of a Query or Parse. The codec would read what is no UTF-8 anyhow, with U+FFFD in its place.
fn check_text(kind: u8, message: &[u8]) -> SqlResult<()> {
    let body = message.get(5..).unwrap_or_default();
    // A Query is one string, a Parse two and then numbers.
    let strings = match kind {
        b'Q' => 1,
        b'P' => 2,
        _ => 0,
    };
    let mut parts = body.split(|b| *b == 0);
    for text in parts.by_ref().take(strings) {
        stegodon_types::scalar::text::validate(Encoding::Utf8, text)?;
    }
    // Behind the last string there is at least its end.
    if strings > 0 && parts.next().is_none() {
        return Err(violation("invalid string in message".to_owned()));
    }
    Ok(())
}

/// `08P01`
pub(crate) fn violation(message: String) -> SqlError {
    SqlError::new(SqlState::ProtocolViolation, message)
}
