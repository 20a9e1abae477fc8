//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677, RFC 5929): the server's side.
//!
//! ```text
//!   client                                   server
//!   n,,n=USER,r=NONCE                ──▸
//!                                    ◂──     r=NONCE+OURS,s=SALT,i=ITERATIONS
//!   c=biws,r=NONCE+OURS,p=PROOF      ──▸     H(PROOF xor HMAC(stored key, what was said)) = stored key ?
//!                                    ◂──     v=HMAC(server key, what was said)
//! ```
//! `pg_authid.rolpassword` holds `SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY`: a directory's own passwords work, and no
//! password is ever seen. A user without one is led through the same steps, so that nobody learns who has none.
//!
//! Over TLS the header may be `p=tls-server-end-point,,`, and `c=` then repeats it with the hash of the certificate that the
//! client has seen: whoever stands between the two has another certificate. A client that says `y` would bind, but believes
//! that we cannot: somebody has struck it from what we offered.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac, pbkdf2};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::wire::violation;

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// Its name where it is bound to the channel.
pub(crate) const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The one way to bind.
const BINDING: &str = "tls-server-end-point";
/// What PostgreSQL hashes new passwords by, and what a pretended one is said to be hashed by.
const ITERATIONS: u32 = 4096;
const KEY_BYTES: usize = 32;

/// What the server knows of a password.
#[derive(Clone)]
pub(crate) struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: [u8; KEY_BYTES],
    server_key: [u8; KEY_BYTES],
    /// Whether there is a password that fits it at all.
    real: bool,
}

impl Verifier {
    /// From `rolpassword`. `None` where that is no SCRAM secret.
    pub(crate) fn parse(secret: &str) -> Option<Self> {
        let (scheme, rest) = secret.split_once('$')?;
        let (salted, keys) = rest.split_once('$')?;
        let (iterations, salt) = salted.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| <[u8; KEY_BYTES]>::try_from(BASE64.decode(text).ok()?).ok();
        let verifier = Self {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
            real: true,
        };
        (scheme == MECHANISM).then_some(verifier)
    }

    /// For a user who has none: always the same salt for the same user, also after another start (`nonce` is the cluster's
    /// own), and no password that fits.
    pub(crate) fn pretended(nonce: &[u8], user: &str) -> Self {
        let salt = digest::digest(&digest::SHA256, &[user.as_bytes(), nonce].concat());
        let salt = salt.as_ref().get(..16).unwrap_or_default().to_vec();
        let none = [0; KEY_BYTES];
        Self { iterations: ITERATIONS, salt, stored_key: none, server_key: none, real: false }
    }

    /// Whether this is the password: for those who send it as it is. Takes milliseconds.
    pub(crate) fn is_password(&self, password: &str) -> bool {
        let Some(iterations) = NonZeroU32::new(self.iterations) else { return false };
        let mut salted = [0; KEY_BYTES];
        // What cannot be prepared is taken as it is, as in PostgreSQL.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &self.salt, prepared.as_bytes(), &mut salted);
        let server_key = sign(&salted, b"Server Key");
        is_same(server_key.as_ref(), &self.server_key) && self.real
    }
}

/// Compares whole, whatever the first difference.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn sign(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

fn refused(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidAuthorizationSpecification, message)
}

fn malformed(what: &str) -> SqlError {
    SqlError::new(SqlState::ProtocolViolation, "malformed SCRAM message").detail(what)
}

/// How a channel may be bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binding<'a> {
    /// There is none to bind to: PLUS was not offered.
    Impossible,
    /// PLUS was offered, the client has chosen the other.
    Declined,
    /// The client has chosen PLUS; the hash of our certificate.
    Chosen(&'a [u8]),
}

/// One exchange, after the client's first message.
pub(crate) struct Exchange {
    verifier: Verifier,
    /// What the client's last message must repeat: its header, and the hash if it is bound.
    bound: Vec<u8>,
    nonce: String,
    /// What both sides have said before the client's last message.
    said: String,
}

impl Exchange {
    /// Takes the client's first message; `ours` is the server's part of the nonce. Gives what to answer.
    pub(crate) fn start(
        verifier: Verifier,
        binding: Binding<'_>,
        first: &[u8],
        ours: &str,
    ) -> SqlResult<(Self, String)> {
        let first = std::str::from_utf8(first).map_err(|_| malformed("It is not UTF-8."))?;
        let (flag, rest) = first.split_once(',').ok_or_else(|| malformed("It ends too early."))?;
        let (authorization, bare) = rest.split_once(',').ok_or_else(|| malformed("It ends too early."))?;
        let hash = match (flag, binding) {
            ("n" | "y", Binding::Chosen(_)) => {
                return Err(malformed(
                    "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.",
                ));
            }
            ("y", Binding::Declined) => {
                return Err(refused("SCRAM channel binding negotiation error").detail(
                    "The client supports SCRAM channel binding but thinks the server does not.  However, this server does \
                     support channel binding.",
                ));
            }
            ("n" | "y", Binding::Declined | Binding::Impossible) => &[],
            (flag, binding) => match (flag.strip_prefix("p="), binding) {
                (None, _) => return Err(malformed("Unexpected channel-binding flag.")),
                (Some(BINDING), Binding::Chosen(hash)) => hash,
                (Some(other), Binding::Chosen(_)) => {
                    return Err(violation(format!("unsupported SCRAM channel-binding type \"{other}\"")));
                }
                (Some(_), Binding::Declined | Binding::Impossible) => {
                    return Err(malformed(
                        "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel \
                         binding data.",
                    ));
                }
            },
        };
        if !authorization.is_empty() {
            return Err(SqlError::new(
                SqlState::FeatureNotSupported,
                "client uses authorization identity, but it is not supported",
            ));
        }
        let bound = [flag.as_bytes(), b",,", hash].concat();
        // The name is the startup packet's; what is said here is not looked at, as in PostgreSQL.
        let mut attributes = bare.split(',');
        let (Some(user), Some(nonce)) = (attributes.next(), attributes.next()) else {
            return Err(malformed("It ends too early."));
        };
        if !user.starts_with("n=") {
            return Err(malformed("It lacks the user's name, or demands an extension."));
        }
        let nonce = nonce.strip_prefix("r=").filter(|n| !n.is_empty() && n.bytes().all(|b| matches!(b, 0x21..=0x7E)));
        let nonce = nonce.ok_or_else(|| malformed("It lacks a nonce."))?;
        let nonce = format!("{nonce}{ours}");
        let answer = format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        let said = format!("{bare},{answer}");
        Ok((Self { verifier, bound, nonce, said }, answer))
    }

    /// Takes the client's last message. Gives what to answer where the password is right, `None` where it is not.
    pub(crate) fn finish(self, last: &[u8]) -> SqlResult<Option<String>> {
        let last = std::str::from_utf8(last).map_err(|_| malformed("It is not UTF-8."))?;
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or_else(|| malformed("It lacks a proof."))?;
        let proof = BASE64.decode(proof).ok().and_then(|p| <[u8; KEY_BYTES]>::try_from(p).ok());
        let proof = proof.ok_or_else(|| malformed("Its proof is no key."))?;
        let (channel, rest) = without_proof.split_once(',').ok_or_else(|| malformed("It lacks a nonce."))?;
        let channel = channel.strip_prefix("c=").ok_or_else(|| malformed("It lacks the channel binding."))?;
        if channel != BASE64.encode(&self.bound) {
            return Err(if self.bound.starts_with(b"p") {
                refused("SCRAM channel binding check failed")
            } else {
                violation("unexpected SCRAM channel-binding attribute in client-final-message".to_owned())
            });
        }
        // Extensions may stand behind the nonce.
        let nonce = rest.split(',').next().and_then(|n| n.strip_prefix("r="));
        if nonce != Some(&self.nonce) {
            return Err(malformed("Nonce does not match."));
        }
        let said = format!("{},{without_proof}", self.said);
        let signature = sign(&self.verifier.stored_key, said.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
        let hashed = digest::digest(&digest::SHA256, &client_key);
        if !is_same(hashed.as_ref(), &self.verifier.stored_key) || !self.verifier.real {
            return Ok(None);
        }
        Ok(Some(format!("v={}", BASE64.encode(sign(&self.verifier.server_key, said.as_bytes())))))
    }
}

/// Fills with bytes that cannot be guessed.
pub(crate) fn random(bytes: &mut [u8]) -> SqlResult<()> {
    let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), bytes);
    filled.map_err(|_| SqlError::internal("could not generate random bytes"))
}

/// A nonce's server part.
pub(crate) fn random_text() -> SqlResult<String> {
    let mut bytes = [0; 18];
    random(&mut bytes)?;
    Ok(BASE64.encode(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The example of RFC 7677.
    const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
    const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const OURS: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const LAST: &str =
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    /// What PostgreSQL would store for a password.
    fn secret(password: &[u8]) -> String {
        let mut salted = [0; KEY_BYTES];
        let (rounds, salt) = (NonZeroU32::new(ITERATIONS).unwrap(), BASE64.decode(SALT).unwrap());
        ring::pbkdf2::derive(ring::pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password, &mut salted);
        let stored = digest::digest(&digest::SHA256, sign(&salted, b"Client Key").as_ref());
        let server = sign(&salted, b"Server Key");
        format!("{MECHANISM}${ITERATIONS}:{SALT}${}:{}", BASE64.encode(stored), BASE64.encode(server))
    }

    #[test]
    fn the_rfcs_example() {
        let verifier = Verifier::parse(&secret(b"pencil")).unwrap();
        let (exchange, answer) = Exchange::start(verifier, Binding::Impossible, FIRST, OURS).unwrap();
        assert_eq!(answer, format!("r=rOprNGfwEbeRWgbNEkqO{OURS},s={SALT},i=4096"));
        let last = exchange.finish(LAST.as_bytes()).unwrap();
        assert_eq!(last.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    }

    #[test]
    fn another_password_a_pretended_one_and_nonsense_are_turned_away() {
        for verifier in [Verifier::parse(&secret(b"pen")).unwrap(), Verifier::pretended(b"secret", "nobody")] {
            let (exchange, _) = Exchange::start(verifier, Binding::Impossible, FIRST, OURS).unwrap();
            assert_eq!(exchange.finish(LAST.as_bytes()).unwrap(), None);
        }
        let verifier = || Verifier::parse(&secret(b"pencil")).unwrap();
        for first in [&b"p=tls-unique,,n=u,r=x"[..], b"n,a=other,n=u,r=x", b"n,,m=x,n=u,r=x", b"n,,n=u", b"", b"\xff"] {
            assert!(Exchange::start(verifier(), Binding::Impossible, first, OURS).is_err());
        }
        for last in ["c=biws,r=other,p=AAAA", LAST.trim_end_matches('='), "c=eSws,r=rOprNGfwEbeRWgbNEkqO,p=", ""] {
            let (exchange, _) = Exchange::start(verifier(), Binding::Impossible, FIRST, OURS).unwrap();
            assert!(exchange.finish(last.as_bytes()).is_err(), "{last}");
        }
        assert!(Verifier::parse("md5abcdef").is_none());
        assert!(Verifier::parse("SCRAM-SHA-256$x:y$z:w").is_none());
    }

    #[test]
    fn a_password_sent_as_it_is() {
        let verifier = Verifier::parse(&secret(b"pencil")).unwrap();
        assert!(verifier.is_password("pencil"));
        // A soft hyphen is nothing (RFC 4013).
        assert!(verifier.is_password("pen\u{AD}cil"));
        assert!(!verifier.is_password("pen") && !verifier.is_password(""));
        assert!(!Verifier::pretended(b"nonce", "user").is_password(""));
    }

    /// A client's messages for a password, with what it binds to.
    fn client(header: &str, bound: &[u8], answer: &str) -> String {
        let mut salted = [0; KEY_BYTES];
        let (rounds, salt) = (NonZeroU32::new(ITERATIONS).unwrap(), BASE64.decode(SALT).unwrap());
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, b"pencil", &mut salted);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let nonce = answer.split(',').next().unwrap();
        let last = format!("c={},{nonce}", BASE64.encode([header.as_bytes(), bound].concat()));
        let signature = sign(stored_key.as_ref(), format!("n=,r=abc,{answer},{last}").as_bytes());
        let proof: Vec<u8> = client_key.as_ref().iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        format!("{last},p={}", BASE64.encode(proof))
    }

    #[test]
    fn a_channel_is_bound_to_its_certificate() {
        let verifier = || Verifier::parse(&secret(b"pencil")).unwrap();
        let run = |binding: Binding<'_>, header: &str, bound: &[u8]| {
            let first = format!("{header}n=,r=abc");
            let (exchange, answer) = Exchange::start(verifier(), binding, first.as_bytes(), OURS)?;
            exchange.finish(client(header, bound, &answer).as_bytes()).map(|answer| answer.is_some())
        };
        let (plus, hash) = ("p=tls-server-end-point,,", &[7u8; 32][..]);
        assert_eq!(run(Binding::Chosen(hash), plus, hash), Ok(true));
        assert_eq!(run(Binding::Declined, "n,,", &[]), Ok(true));
        assert_eq!(run(Binding::Impossible, "n,,", &[]), Ok(true));
        // It could bind, and we cannot: true.
        assert_eq!(run(Binding::Impossible, "y,,", &[]), Ok(true));
        let failed = |binding, header, bound: &[u8]| run(binding, header, bound).unwrap_err().message;
        assert_eq!(failed(Binding::Chosen(hash), plus, &[8; 32]), "SCRAM channel binding check failed");
        assert_eq!(failed(Binding::Declined, "y,,", &[]), "SCRAM channel binding negotiation error");
        assert_eq!(failed(Binding::Chosen(hash), "n,,", &[]), "malformed SCRAM message");
        assert_eq!(failed(Binding::Chosen(hash), "y,,", &[]), "malformed SCRAM message");
        assert_eq!(failed(Binding::Declined, plus, hash), "malformed SCRAM message");
        assert_eq!(failed(Binding::Impossible, plus, hash), "malformed SCRAM message");
        let other = failed(Binding::Chosen(hash), "p=tls-unique,,", hash);
        assert_eq!(other, "unsupported SCRAM channel-binding type \"tls-unique\"");
        assert!(failed(Binding::Impossible, "n,,", hash).starts_with("unexpected SCRAM channel-binding attribute"));
    }
}
