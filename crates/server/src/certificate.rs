//! What of an X.509 certificate matters here: how it was signed, and whose it is. A short reader of DER.
//!
//! ```text
//!  SEQUENCE certificate
//!    SEQUENCE what is signed:  [0] version?  serial  algorithm  issuer  validity  SEQUENCE subject  key …
//!    SEQUENCE algorithm:       OID  parameters?
//!    BIT STRING signature
//!  subject: SEQUENCE of SET of SEQUENCE { OID, value }
//! ```

use ring::digest;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const VERSION: u8 = 0xA0;

/// The first element: its tag and contents, and what is behind it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (first as usize, rest),
        // Longer ones would be of more than 16 MB.
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked((first - 0x80) as usize)?;
            (bytes.iter().fold(0, |length, byte| length << 8 | *byte as usize), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

fn tagged(der: &[u8], expected: u8) -> Option<(&[u8], &[u8])> {
    element(der).filter(|(tag, ..)| *tag == expected).map(|(_, contents, rest)| (contents, rest))
}

/// The hash that a TLS channel is bound by (RFC 5929, `tls-server-end-point`): of the whole certificate, by the function it
/// was signed with, SHA-256 where that is an older one. `None` where the signature has no such function, or an unknown one.
pub(crate) fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let (parts, _) = tagged(certificate, SEQUENCE)?;
    let (_, rest) = tagged(parts, SEQUENCE)?;
    let (algorithm, _) = tagged(rest, SEQUENCE)?;
    let (oid, parameters) = tagged(algorithm, OID)?;
    let function = match oid {
        // PKCS #1: the number's last part says which; RSASSA-PSS in its parameters.
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, kind] => match kind {
            4 | 5 | 11 => &digest::SHA256,
            12 => &digest::SHA384,
            13 => &digest::SHA512,
            10 => pss_function(parameters)?,
            _ => return None,
        },
        // ECDSA with SHA-1, SHA-256, SHA-384, SHA-512
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x01] => &digest::SHA256,
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, kind] => sha2(*kind)?,
        _ => return None,
    };
    Some(digest::digest(function, certificate).as_ref().to_vec())
}

/// ECDSA's and NIST's numbers agree but for one.
fn sha2(kind: u8) -> Option<&'static digest::Algorithm> {
    match kind {
        2 => Some(&digest::SHA256),
        3 => Some(&digest::SHA384),
        4 => Some(&digest::SHA512),
        _ => None,
    }
}

/// `SEQUENCE { [0] SEQUENCE { OID … } … }`, SHA-1 where it says nothing.
fn pss_function(parameters: &[u8]) -> Option<&'static digest::Algorithm> {
    let (parts, _) = tagged(parameters, SEQUENCE)?;
    let Some((hash, _)) = tagged(parts, 0xA0) else { return Some(&digest::SHA256) };
    let (algorithm, _) = tagged(hash, SEQUENCE)?;
    let (oid, _) = tagged(algorithm, OID)?;
    match oid {
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, kind @ 1..=3] => sha2(kind + 1),
        [0x2B, 0x0E, 0x03, 0x02, 0x1A] => Some(&digest::SHA256),
        _ => None,
    }
}

/// The subject's common name. `None` where there is none that is plain text, or more than one, of which programs differ which
/// they believe.
pub(crate) fn common_name(certificate: &[u8]) -> Option<String> {
    const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
    let (parts, _) = tagged(certificate, SEQUENCE)?;
    let (mut rest, _) = tagged(parts, SEQUENCE)?;
    if let Some((_, after)) = tagged(rest, VERSION) {
        rest = after;
    }
    // The serial number, the algorithm, the issuer, the validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    let (mut subject, _) = tagged(rest, SEQUENCE)?;
    let mut found = None;
    while !subject.is_empty() {
        let (mut set, after) = tagged(subject, SET)?;
        subject = after;
        while !set.is_empty() {
            let (attribute, after) = tagged(set, SEQUENCE)?;
            set = after;
            let (oid, value) = tagged(attribute, OID)?;
            if oid == COMMON_NAME {
                if found.is_some() {
                    return None;
                }
                // UTF-8, printable and IA5 text, which are UTF-8 too.
                let (tag @ (0x0C | 0x13 | 0x16), text, _) = element(value)? else { return None };
                let text = std::str::from_utf8(text).ok()?;
                let is_plain = tag == 0x0C || text.is_ascii();
                found = Some(text.to_owned()).filter(|t| is_plain && !t.is_empty() && !t.contains('\0'));
                found.as_ref()?;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls;

    use super::*;

    fn certificate(name: &str) -> Vec<u8> {
        let package = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        CertificateDer::from_pem_file(package.join("testdata/tls").join(name)).unwrap().to_vec()
    }

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    #[test]
    fn hashes_and_names_are_openssls() {
        // Each line: a certificate, its hash by `openssl dgst`, its common name by `openssl x509 -subject`.
        let package = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        let cases = std::fs::read_to_string(package.join("testdata/tls/expected.txt")).unwrap();
        for case in cases.lines() {
            let [file, hash, name] = case.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let der = certificate(file);
            assert_eq!(end_point_hash(&der).map_or("none".to_owned(), |h| hex(&h)), hash, "{file}");
            assert_eq!(common_name(&der).unwrap_or("none".to_owned()), name, "{file}");
        }
    }

    #[test]
    fn nonsense_is_no_certificate() {
        let der = certificate("rsa-sha256.crt");
        for length in 0..der.len() {
            let part = der.get(..length).unwrap();
            assert_eq!((end_point_hash(part), common_name(part)), (None, None));
        }
        for at in 0..der.len() {
            let mut broken = der.clone();
            *broken.get_mut(at).unwrap() ^= 0xFF;
            let _ = (end_point_hash(&broken), common_name(&broken));
        }
    }
}
