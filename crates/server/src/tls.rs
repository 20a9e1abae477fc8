//! TLS, by rustls: the server's certificate, what clients may be asked for, and the channel that passwords are bound to.
//!
//! Read at the start from the files that the directory's settings name. TLS 1.2 and 1.3 with rustls's own choice of ciphers
//! and groups; `ssl_ciphers` and its like are OpenSSL's language and are not read.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use stegodon_catalog::settings::Settings;
use stegodon_types::{SqlError, SqlResult, SqlState};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

use crate::certificate;

/// The name of the protocol inside, for clients that begin with a handshake.
const ALPN: &[u8] = b"postgresql";

/// What handshakes are made with.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    /// The hash of our certificate, where it can bind a channel.
    end_point: Option<Vec<u8>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// What is known of an encrypted channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    /// What SCRAM binds to, where it can.
    pub end_point: Option<Vec<u8>>,
    /// The client's certificate, which one of our authorities has signed.
    pub client: Option<ClientName>,
}

/// Whom a client's certificate names.
#[derive(Clone, Debug)]
pub(crate) struct ClientName {
    pub common_name: Option<String>,
}

fn cannot(what: &str, path: &Path, why: impl std::fmt::Display) -> SqlError {
    let message = format!("could not load {what} \"{}\": {why}", path.display());
    let hint = "Set \"ssl\" to off (-c ssl=off) to start without TLS.";
    SqlError::new(SqlState::ConfigFileError, message).hint(hint)
}

impl Tls {
    /// As the settings say; `None` where `ssl` is off.
    pub(crate) fn load(settings: &Settings, directory: &Path) -> SqlResult<Option<Self>> {
        if !settings.bool("ssl") {
            return Ok(None);
        }
        let file = |name: &str| match settings.text(name) {
            "" => None,
            file => Some(directory.join(file)),
        };
        let certificate = file("ssl_cert_file").unwrap_or_else(|| directory.join("server.crt"));
        let chain = certificates(&certificate, "server certificate file")?;
        let end_point = chain.first().and_then(|own| certificate::end_point_hash(own));
        let key = private_key(&file("ssl_key_file").unwrap_or_else(|| directory.join("server.key")), directory)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions(settings)?)
            .map_err(|e| SqlError::internal(format_args!("TLS cannot be set up: {e}")))?;
        let builder = match file("ssl_ca_file") {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(&path, file("ssl_crl_file"), provider)?),
        };
        if !settings.text("ssl_crl_dir").is_empty() {
            return Err(SqlError::unsupported("the setting ssl_crl_dir"));
        }
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|e| cannot("server certificate and its key from", &certificate, e))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Sessions are not taken up again, as in PostgreSQL: nothing is kept for clients that have gone.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Some(Self { acceptor: TlsAcceptor::from(Arc::new(config)), end_point }))
    }

    /// A handshake. Without `requested`, the client begins with it unasked: then it must say what is to be spoken inside.
    pub(crate) async fn accept(&self, socket: TcpStream, requested: bool) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = self.acceptor.accept(socket).await?;
        if !requested && stream.get_ref().1.alpn_protocol() != Some(ALPN) {
            let message = "received direct SSL connection request without ALPN protocol negotiation extension";
            return Err(std::io::Error::other(message));
        }
        Ok(stream)
    }

    /// What is known once a handshake has been made.
    pub(crate) fn channel(&self, stream: &TlsStream<TcpStream>) -> Channel {
        let theirs = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let client = theirs.map(|der| ClientName { common_name: certificate::common_name(der) });
        Channel { end_point: self.end_point.clone(), client }
    }
}

fn certificates(path: &Path, what: &str) -> SqlResult<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|e| cannot(what, path, e))?;
    let all = read.collect::<Result<Vec<_>, _>>().map_err(|e| cannot(what, path, e))?;
    if all.is_empty() { Err(cannot(what, path, "there is no certificate in it")) } else { Ok(all) }
}

/// Reads a key that nobody else can read, as PostgreSQL demands. Whoever the directory belongs to counts as its owner:
/// another user may serve a copy.
fn private_key(path: &Path, directory: &Path) -> SqlResult<PrivateKeyDer<'static>> {
    let what = "private key file";
    let metadata = std::fs::metadata(path).map_err(|e| cannot(what, path, e))?;
    let is_own = metadata.uid() == crate::startup::own_uid()
        || std::fs::metadata(directory).is_ok_and(|d| d.uid() == metadata.uid());
    let is_roots = metadata.uid() == 0;
    if !is_own && !is_roots {
        let message = format!("private key file \"{}\" must be owned by the database user or root", path.display());
        return Err(SqlError::new(SqlState::ConfigFileError, message));
    }
    let forbidden = if is_roots { 0o037 } else { 0o077 };
    if !metadata.is_file() || metadata.mode() & forbidden != 0 {
        let message = format!("private key file \"{}\" has group or world access", path.display());
        let detail = "File must have permissions u=rw (0600) or less if owned by the database user, or permissions \
                      u=rw,g=r (0640) or less if owned by root.";
        return Err(SqlError::new(SqlState::ConfigFileError, message).detail(detail));
    }
    // One that a passphrase protects is not among those it knows.
    PrivateKeyDer::from_pem_file(path).map_err(|e| cannot(what, path, e))
}

/// From `ssl_min_protocol_version` to `ssl_max_protocol_version`, of those rustls has.
fn versions(settings: &Settings) -> SqlResult<&'static [&'static SupportedProtocolVersion]> {
    const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
    const ONLY_1_3: &[&SupportedProtocolVersion] = &[&TLS13];
    const ONLY_1_2: &[&SupportedProtocolVersion] = &[&TLS12];
    let from_1_3 = settings.text("ssl_min_protocol_version") == "TLSv1.3";
    match (from_1_3, settings.text("ssl_max_protocol_version")) {
        (true, "" | "TLSv1.3") => Ok(ONLY_1_3),
        (false, "" | "TLSv1.3") => Ok(BOTH),
        (false, "TLSv1.2") => Ok(ONLY_1_2),
        (_, max) => {
            let message = format!("could not set SSL protocol version range: nothing is left up to {max}");
            Err(SqlError::new(SqlState::ConfigFileError, message))
        }
    }
}

/// Asks clients for a certificate, and takes those that come without.
fn verifier(
    authorities: &Path,
    revoked: Option<PathBuf>,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> SqlResult<Arc<dyn ClientCertVerifier>> {
    let what = "root certificate file";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities, what)? {
        roots.add(certificate).map_err(|e| cannot(what, authorities, e))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated();
    if let Some(path) = revoked {
        let what = "SSL certificate revocation list file";
        let read = CertificateRevocationListDer::pem_file_iter(&path).map_err(|e| cannot(what, &path, e))?;
        builder = builder.with_crls(read.collect::<Result<Vec<_>, _>>().map_err(|e| cannot(what, &path, e))?);
    }
    builder.build().map_err(|e| cannot(what, authorities, e))
}
