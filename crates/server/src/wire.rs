//! The protocol's messages over a socket: pgwire's codec, our own flow of bytes.

use bytes::BytesMut;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion};
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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
/// The longest message taken from a client that is not yet known.
const STARTUP_BYTES_MAX: usize = 10_000;
/// The longest message taken at all: PostgreSQL's limit.
const MESSAGE_BYTES_MAX: usize = (1 << 30) - 1;

/// One connection's two directions.
pub(crate) struct Wire<S> {
    socket: S,
    input: BytesMut,
    output: Vec<u8>,
    context: DecodeContext,
    /// What is wrong with the text of the message last read.
    text: SqlResult<()>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire<S> {
    pub(crate) fn new(socket: S) -> Self {
        let context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
        Self { socket, input: BytesMut::with_capacity(1024), output: Vec::with_capacity(1024), context, text: Ok(()) }
    }

    /// The next message; `None` once the client is gone.
    pub(crate) async fn read(&mut self) -> SqlResult<Option<PgWireFrontendMessage>> {
        loop {
            self.check_length()?;
            self.text = self.check_text();
            // The codec trusts the counts inside a message and panics where they lie.
            let decode = std::panic::AssertUnwindSafe(|| PgWireFrontendMessage::decode(&mut self.input, &self.context));
            let message = std::panic::catch_unwind(decode);
            let message = message.map_err(|_| violation("invalid message format".to_owned()))?;
            if let Some(message) = message.map_err(|e| violation(e.to_string()))? {
                return Ok(Some(message));
            }
            match self.socket.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }

    /// Whether the text of the message last read was in the client's encoding. The codec would read it anyhow, with U+FFFD in
    /// place of what is not.
    pub(crate) fn text(&self) -> SqlResult<()> {
        self.text.clone()
    }

    /// Looks at a whole Query or Parse in the buffer.
    fn check_text(&self) -> SqlResult<()> {
        let Some((b'Q' | b'P', rest)) = self.input.split_first() else { return Ok(()) };
        let Some((word, rest)) = rest.split_first_chunk::<4>() else { return Ok(()) };
        let length = (u32::from_be_bytes(*word) as usize).saturating_sub(4);
        let Some(body) = rest.get(..length) else { return Ok(()) };
        // A Query is one string, a Parse two and then numbers.
        let strings = if self.input.first() == Some(&b'Q') { 1 } else { 2 };
        for text in body.split(|b| *b == 0).take(strings) {
            stegodon_types::scalar::text::validate(Encoding::Utf8, text)?;
        }
        Ok(())
    }

    /// Refuses a message by its length word, before its bytes are waited for.
    fn check_length(&self) -> SqlResult<()> {
        let starting = self.context.awaiting_frontend_startup;
        let (at, max) = if starting { (0, STARTUP_BYTES_MAX) } else { (1, MESSAGE_BYTES_MAX) };
        let Some(word) = self.input.get(at..at + 4).and_then(|w| <[u8; 4]>::try_from(w).ok()) else { return Ok(()) };
        let length = u32::from_be_bytes(word) as usize;
        if length < 4 || length > max {
            return Err(violation("invalid message length".to_owned()));
        }
        Ok(())
    }

    /// From now on a startup packet is expected, no encryption request.
    pub(crate) fn negotiated(&mut self) {
        self.context.awaiting_frontend_ssl = false;
    }

    /// From now on ordinary messages are expected.
    pub(crate) fn started(&mut self, version: ProtocolVersion) {
        self.context.awaiting_frontend_ssl = false;
        self.context.awaiting_frontend_startup = false;
        self.context.protocol_version = version;
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

/// `08P01`
pub(crate) fn violation(message: String) -> SqlError {
    SqlError::new(SqlState::ProtocolViolation, message)
}
