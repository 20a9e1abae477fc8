//! The packets before the protocol proper, which have no kind: length, a number that says what it is, the rest.
//!
//! ```text
//!  80877103              the client asks for TLS
//!  80877104              for GSSAPI's encryption
//!  80877102 pid key      it wants another session's statement to be cancelled
//!  major<<16 | minor     it begins:  name \0 value \0 … \0
//! ```

use stegodon_types::SqlResult;

use crate::wire::violation;

/// The longest packet (`MAX_STARTUP_PACKET_LENGTH`, and its length).
pub(crate) const BYTES_MAX: usize = 10_004;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Tls,
    Gss,
    Cancel { pid: i32, key: Vec<u8> },
    Startup { major: u16, minor: u16, parameters: Vec<(String, String)> },
}

impl Packet {
    /// Reads what stands behind the length.
    pub(crate) fn read(body: &[u8]) -> SqlResult<Self> {
        let incomplete = || violation("incomplete startup packet".to_owned());
        let (code, rest) = body.split_first_chunk::<4>().ok_or_else(incomplete)?;
        let code = u32::from_be_bytes(*code);
        Ok(match code {
            80_877_103 => Packet::Tls,
            80_877_104 => Packet::Gss,
            80_877_102 => {
                let (pid, key) = rest.split_first_chunk::<4>().ok_or_else(incomplete)?;
                Packet::Cancel { pid: i32::from_be_bytes(*pid), key: key.to_vec() }
            }
            _ => {
                let (major, minor) = ((code >> 16) as u16, code as u16);
                // Of another protocol nothing more is known.
                let parameters = if major == 3 { parameters(rest)? } else { Vec::new() };
                Packet::Startup { major, minor, parameters }
            }
        })
    }
}

/// Names and values in their order, up to an empty name, which must be the last byte.
fn parameters(mut rest: &[u8]) -> SqlResult<Vec<(String, String)>> {
    let wrong = || violation("invalid startup packet layout: expected terminator as last byte".to_owned());
    let mut all = Vec::new();
    let mut text = || -> Option<String> {
        let end = rest.iter().position(|b| *b == 0)?;
        let text = String::from_utf8_lossy(rest.get(..end)?).into_owned();
        rest = rest.get(end + 1..)?;
        Some(text)
    };
    loop {
        let name = text().ok_or_else(wrong)?;
        if name.is_empty() {
            return if rest.is_empty() { Ok(all) } else { Err(wrong()) };
        }
        all.push((name, text().ok_or_else(wrong)?));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn startup(parameters: &[u8]) -> SqlResult<Packet> {
        Packet::read(&[&[0, 3, 0, 2], parameters].concat())
    }

    #[test]
    fn packets_are_told_apart() {
        assert_eq!(Packet::read(&80_877_103u32.to_be_bytes()).unwrap(), Packet::Tls);
        assert_eq!(Packet::read(&80_877_104u32.to_be_bytes()).unwrap(), Packet::Gss);
        let cancel = [&80_877_102u32.to_be_bytes()[..], &7u32.to_be_bytes(), b"secret"].concat();
        assert_eq!(Packet::read(&cancel).unwrap(), Packet::Cancel { pid: 7, key: b"secret".to_vec() });
        assert!(Packet::read(&80_877_102u32.to_be_bytes()).is_err());
        let parameters = [("user", "a"), ("options", "")].map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
        assert_eq!(startup(b"user\0a\0options\0\0\0").unwrap(), Packet::Startup { major: 3, minor: 2, parameters });
        for wrong in [&b""[..], b"user", b"user\0", b"user\0a", b"user\0a\0", b"user\0a\0\0\0", b"\0x"] {
            assert!(startup(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Packet::read(&[0, 2, 0, 0, 9]).unwrap(), Packet::Startup { major: 2, minor: 0, parameters: vec![] });
    }
}
