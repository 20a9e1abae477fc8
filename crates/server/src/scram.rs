//! SCRAM-SHA-256 (RFC 5802, RFC 7677): the server's side, without channel binding.
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

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac};
use stegodon_types::{SqlError, SqlResult, SqlState};

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
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

    /// For a user who has none: always the same salt for the same user, and no password that fits.
    pub(crate) fn pretended(secret: &[u8], user: &str) -> Self {
        let salt = sign(secret, user.as_bytes());
        let salt = salt.as_ref().get(..16).unwrap_or_default().to_vec();
        let none = [0; KEY_BYTES];
        Self { iterations: ITERATIONS, salt, stored_key: none, server_key: none, real: false }
    }
}

fn sign(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

fn malformed(what: &str) -> SqlError {
    SqlError::new(SqlState::ProtocolViolation, "malformed SCRAM message").detail(what)
}

/// One exchange, after the client's first message.
pub(crate) struct Exchange {
    verifier: Verifier,
    /// The client's header, which its last message repeats.
    header: String,
    nonce: String,
    /// What both sides have said before the client's last message.
    said: String,
}

impl Exchange {
    /// Takes the client's first message; `ours` is the server's part of the nonce. Gives what to answer.
    pub(crate) fn start(verifier: Verifier, first: &[u8], ours: &str) -> SqlResult<(Self, String)> {
        let first = std::str::from_utf8(first).map_err(|_| malformed("It is not UTF-8."))?;
        let binding = first.get(..1).unwrap_or_default();
        if binding == "p" {
            return Err(malformed("The client selected SCRAM-SHA-256 with channel binding."));
        }
        let header = match binding {
            "n" | "y" if first.get(1..3) == Some(",,") => first.get(..3).unwrap_or_default(),
            _ => return Err(malformed("Its channel binding flag or authorization identity is not supported.")),
        };
        let bare = first.get(3..).unwrap_or_default();
        // The name is the startup packet's; what is said here is not looked at, as in PostgreSQL.
        let mut attributes = bare.split(',');
        let (Some(user), Some(nonce)) = (attributes.next(), attributes.next()) else {
            return Err(malformed("It ends too early."));
        };
        if !user.starts_with("n=") {
            return Err(malformed("It lacks the user's name, or demands an extension."));
        }
        let nonce = nonce.strip_prefix("r=").filter(|n| !n.is_empty());
        let nonce = nonce.ok_or_else(|| malformed("It lacks a nonce."))?;
        let nonce = format!("{nonce}{ours}");
        let answer = format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        let said = format!("{bare},{answer}");
        Ok((Self { verifier, header: header.to_owned(), nonce, said }, answer))
    }

    /// Takes the client's last message. Gives what to answer where the password is right, `None` where it is not.
    pub(crate) fn finish(self, last: &[u8]) -> SqlResult<Option<String>> {
        let last = std::str::from_utf8(last).map_err(|_| malformed("It is not UTF-8."))?;
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or_else(|| malformed("It lacks a proof."))?;
        let proof = BASE64.decode(proof).ok().and_then(|p| <[u8; KEY_BYTES]>::try_from(p).ok());
        let proof = proof.ok_or_else(|| malformed("Its proof is no key."))?;
        let expected = format!("c={},r={}", BASE64.encode(&self.header), self.nonce);
        // Extensions may stand behind the nonce.
        let repeats = without_proof.strip_prefix(expected.as_str()).is_some_and(|r| r.is_empty() || r.starts_with(','));
        if !repeats {
            return Err(malformed("It does not repeat the nonce and the channel binding."));
        }
        let said = format!("{},{without_proof}", self.said);
        let signature = sign(&self.verifier.stored_key, said.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
        let hashed = digest::digest(&digest::SHA256, &client_key);
        // Compared whole, whatever the first difference.
        let different = hashed.as_ref().iter().zip(&self.verifier.stored_key).fold(0, |d, (a, b)| d | (a ^ b));
        if different != 0 || !self.verifier.real {
            return Ok(None);
        }
        Ok(Some(format!("v={}", BASE64.encode(sign(&self.verifier.server_key, said.as_bytes())))))
    }
}

/// A nonce's server part, or another secret of as many characters.
pub(crate) fn random_text() -> SqlResult<String> {
    let mut bytes = [0; 18];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| SqlError::internal("could not generate random nonce"))?;
    Ok(BASE64.encode(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroU32;

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
        let (exchange, answer) = Exchange::start(verifier, FIRST, OURS).unwrap();
        assert_eq!(answer, format!("r=rOprNGfwEbeRWgbNEkqO{OURS},s={SALT},i=4096"));
        let last = exchange.finish(LAST.as_bytes()).unwrap();
        assert_eq!(last.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    }

    #[test]
    fn another_password_a_pretended_one_and_nonsense_are_turned_away() {
        for verifier in [Verifier::parse(&secret(b"pen")).unwrap(), Verifier::pretended(b"secret", "nobody")] {
            let (exchange, _) = Exchange::start(verifier, FIRST, OURS).unwrap();
            assert_eq!(exchange.finish(LAST.as_bytes()).unwrap(), None);
        }
        let verifier = || Verifier::parse(&secret(b"pencil")).unwrap();
        for first in [&b"p=tls-unique,,n=u,r=x"[..], b"n,a=other,n=u,r=x", b"n,,m=x,n=u,r=x", b"n,,n=u", b"", b"\xff"] {
            assert!(Exchange::start(verifier(), first, OURS).is_err());
        }
        for last in ["c=biws,r=other,p=AAAA", LAST.trim_end_matches('='), "c=eSws,r=rOprNGfwEbeRWgbNEkqO,p=", ""] {
            let (exchange, _) = Exchange::start(verifier(), FIRST, OURS).unwrap();
            assert!(exchange.finish(last.as_bytes()).is_err(), "{last}");
        }
        assert!(Verifier::parse("md5abcdef").is_none());
        assert!(Verifier::parse("SCRAM-SHA-256$x:y$z:w").is_none());
    }
}
