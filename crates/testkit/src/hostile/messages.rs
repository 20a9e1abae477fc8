//! Attacks with single messages: malformed, out of place, or about others.

use std::io::ErrorKind;
use std::time::Duration;

use super::raw::{Raw, Target, bind, error_field, error_text, execute, message, parse};

type Wrong = Result<(), String>;

fn io(what: &str) -> impl Fn(std::io::Error) -> String + '_ {
    move |e| format!("{what}: {e}")
}

/// The server must end the connection, with or without an error, and not wait for more.
fn must_close(raw: &mut Raw, what: &str) -> Wrong {
    loop {
        match raw.read() {
            Ok((b'E' | b'N', _)) => {}
            Ok((kind, _)) => return Err(format!("{what}: answered with {:?}", kind as char)),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(format!("{what}: neither an answer nor an end"));
            }
            Err(_) => return Ok(()),
        }
    }
}

/// The session must still answer.
fn must_answer(raw: &mut Raw, what: &str) -> Wrong {
    match raw.query("select 42").map_err(io(what))? {
        Ok(values) if values == ["42"] => Ok(()),
        other => Err(format!("{what}: then select 42 gave {other:?}")),
    }
}

pub fn lengths_that_lie(target: &Target) -> Wrong {
    for kind in [b'Q', b'P', b'B', b'D', b'E', b'C', b'S', b'H', b'X', b'd', b'p'] {
        for length in [0u32, 1, 3, 0x4000_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] {
            let what = format!("{:?} of length {length}", kind as char);
            let mut raw = Raw::session(target).map_err(io(&what))?;
            raw.send_bytes(&[&[kind][..], &length.to_be_bytes(), b"select 1\0"].concat()).map_err(io(&what))?;
            must_close(&mut raw, &what)?;
        }
    }
    for length in [0u32, 3, 4, 7, 10_005, 0x7FFF_FFFF, 0xFFFF_FFFF] {
        let what = format!("startup packet of length {length}");
        let mut raw = Raw::unix(target).map_err(io(&what))?;
        raw.send_bytes(&[&length.to_be_bytes()[..], &196_608u32.to_be_bytes(), b"user\0a\0\0"].concat())
            .map_err(io(&what))?;
        must_close(&mut raw, &what)?;
    }
    Ok(())
}

pub fn counts_that_lie(target: &Target) -> Wrong {
    let mut raw = Raw::session(target).map_err(io("session"))?;
    let most = [0xFF, 0xFF];
    let cases: &[(&str, Vec<u8>)] = &[
        ("a Query without its end", message(b'Q', b"select 1")),
        ("an empty Query message", message(b'Q', b"")),
        ("a Query with more behind", message(b'Q', b"select 1\0select 2\0")),
        ("a Parse without its end", message(b'P', b"name")),
        ("a Parse without types", message(b'P', b"\0select 1\0")),
        ("a Parse with 65535 types", message(b'P', &[b"\0select 1\0", &most[..], &[0; 8]].concat())),
        ("an empty Bind", message(b'B', b"")),
        ("a Bind with 65535 formats", message(b'B', &[b"\0\0", &most[..]].concat())),
        ("a Bind with 65535 parameters", message(b'B', &[b"\0\0\0\0", &most[..]].concat())),
        ("a Bind with a long parameter", message(b'B', b"\0\0\0\0\0\x01\x7F\xFF\xFF\xFFabc")),
        ("a Bind with a negative parameter", message(b'B', b"\0\0\0\0\0\x01\xFF\xFF\xFF\xFEabc\0\0")),
        ("a Bind with 65535 results", message(b'B', &[b"\0\0\0\0\0\0", &most[..]].concat())),
        ("a Describe of nothing", message(b'D', b"")),
        ("a Describe of a third kind", message(b'D', b"Xname\0")),
        ("a Describe without its end", message(b'D', b"Sname")),
        ("an Execute without a number", message(b'E', b"\0\0")),
        ("a Close of nothing", message(b'C', b"")),
        ("a Close of a third kind", message(b'C', b"Qname\0")),
        ("a function call", message(b'F', &[0; 10])),
    ];
    for (what, bytes) in cases {
        raw.send_bytes(bytes).and_then(|()| raw.send(b'S', b"")).map_err(io(what))?;
        let mut has_failed = false;
        // A Query is answered whole, and Sync once more.
        let rounds = if matches!(bytes.first(), Some(b'Q' | b'F')) { 2 } else { 1 };
        for _ in 0..rounds {
            let answer = raw.read_until_ready().map_err(io(what))?;
            has_failed |= answer.iter().any(|(kind, _)| *kind == b'E');
            if answer.last().is_none_or(|(kind, _)| *kind != b'Z') {
                return Err(format!("{what} ended the session: {answer:?}"));
            }
        }
        if !has_failed {
            return Err(format!("{what} was taken"));
        }
        must_answer(&mut raw, what)?;
    }
    Ok(())
}

pub fn no_message_runs_into_the_next(target: &Target) -> Wrong {
    let mut raw = Raw::session(target).map_err(io("session"))?;
    // Its string has no end: what follows is a message of its own.
    let bytes = [message(b'Q', b"select 'a"), message(b'Q', b"select 'b'\0")].concat();
    raw.send_bytes(&bytes).map_err(io("send"))?;
    let first = raw.read_until_ready().map_err(io("first"))?;
    let second = raw.read_until_ready().map_err(io("second"))?;
    let is_error = first.iter().any(|(kind, _)| *kind == b'E');
    let rows: Vec<_> = second.iter().filter(|(kind, _)| *kind == b'D').collect();
    if !is_error || rows.len() != 1 || !rows.iter().all(|(_, body)| body.ends_with(b"b")) {
        return Err(format!("{first:?} {second:?}"));
    }
    must_answer(&mut raw, "after them")
}

pub fn kinds_that_are_none(target: &Target) -> Wrong {
    for kind in (0..=255).filter(|kind| !b"QPBECDHSXFdcf".contains(kind)) {
        let what = format!("kind {kind}");
        let mut raw = Raw::session(target).map_err(io(&what))?;
        raw.send(kind, b"").map_err(io(&what))?;
        must_close(&mut raw, &what)?;
    }
    Ok(())
}

pub fn copy_without_copy(target: &Target) -> Wrong {
    let mut raw = Raw::session(target).map_err(io("session"))?;
    for _ in 0..1000 {
        let messages = [message(b'd', &[7; 1000]), message(b'c', b""), message(b'f', b"why\0")].concat();
        raw.send_bytes(&messages).map_err(io("send"))?;
    }
    must_answer(&mut raw, "after COPY's messages")
}

/// Numbers that look random and are the same each time.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

pub fn startup_noise(target: &Target) -> Wrong {
    let mut noise = Noise::new(1);
    let quick = Duration::from_secs(5);
    for i in 0..300 {
        let mut raw = if i % 2 == 0 { Raw::unix(target) } else { Raw::tcp(target) }.map_err(io("connect"))?;
        raw.set_patience(quick).map_err(io("patience"))?;
        let length = (noise.next() % 300) as usize;
        let body = noise.bytes(length);
        match i % 4 {
            0 => raw.send_bytes(&body),
            1 => raw.send_packet(&[&196_608u32.to_be_bytes()[..], &body].concat()),
            2 => raw.send_bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            _ => raw.send_bytes(&[&b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03"[..], &body].concat()),
        }
        .map_err(io("send"))?;
        // It may wait for the rest, but must not answer as to a client.
        if i % 4 != 0 && i % 4 != 3 {
            match raw.read() {
                Ok((b'E', _)) | Err(_) => {}
                Ok((kind, _)) => return Err(format!("noise was answered with {:?}", kind as char)),
            }
        }
    }
    Ok(())
}

pub fn encryption_requests(target: &Target) -> Wrong {
    let tls = 80_877_103u32.to_be_bytes();
    let gss = 80_877_104u32.to_be_bytes();
    let startup = [&196_608u32.to_be_bytes()[..], b"user\0postgres\0\0"].concat();
    let framed = |body: &[u8]| [&(body.len() as u32 + 4).to_be_bytes(), body].concat();
    for is_tcp in [false, true] {
        let connect = || if is_tcp { Raw::tcp(target) } else { Raw::unix(target) }.map_err(io("connect"));
        // What stands behind a request, unencrypted, must not be taken.
        for request in [tls, gss] {
            let mut raw = connect()?;
            raw.send_bytes(&[framed(&request), framed(&startup)].concat()).map_err(io("send"))?;
            let _ = raw.read_bytes(1).map_err(io("answer"))?;
            must_close(&mut raw, "a startup packet behind an encryption request")?;
        }
        // Each may be asked for once.
        for request in [tls, gss] {
            let mut raw = connect()?;
            raw.send_bytes(&framed(&request)).map_err(io("send"))?;
            if raw.read_bytes(1).map_err(io("answer"))? == b"N" {
                raw.send_bytes(&framed(&request)).map_err(io("send"))?;
                must_close(&mut raw, "a second request")?;
            }
        }
        let mut raw = connect()?;
        raw.send_bytes(&framed(&tls)).map_err(io("send"))?;
        if raw.read_bytes(1).map_err(io("answer"))? == b"S" {
            raw.send_bytes(&Noise::new(3).bytes(500)).map_err(io("send"))?;
            must_close(&mut raw, "noise for a handshake")?;
        }
    }
    Ok(())
}

pub fn random_messages(target: &Target) -> Wrong {
    let mut noise = Noise::new(2);
    for round in 0..200 {
        let mut raw = Raw::session(target).map_err(io("session"))?;
        raw.set_patience(Duration::from_secs(5)).map_err(io("patience"))?;
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let kinds = b"QPBECDHSdcf";
            let kind = kinds.get((noise.next() % kinds.len() as u64) as usize).copied().unwrap_or(b'S');
            let length = (noise.next() % 60) as usize;
            let mut body = noise.bytes(length);
            // Half of them nearly right.
            if noise.next().is_multiple_of(2) {
                let whole = [parse("", "select 1"), bind("", ""), execute("", 0)].concat();
                let at = (noise.next() % whole.len() as u64) as usize;
                let mut broken = whole;
                if let Some(byte) = broken.get_mut(at) {
                    *byte = noise.next() as u8;
                }
                body = broken.get(5..).unwrap_or_default().to_vec();
            }
            bytes.extend(message(kind, &body));
        }
        let _ = raw.send_bytes(&bytes).and_then(|()| raw.send(b'S', b""));
        // Whatever it answers: it answers or ends.
        loop {
            match raw.read() {
                Ok((b'Z' | b'E', _)) => break,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(format!("round {round}: neither an answer nor an end"));
                }
                Err(_) => break,
            }
        }
    }
    Ok(())
}

/// What a server says on the way to refusing a password: its demands without their random parts, and its error.
fn refusal(target: &Target, user: &str) -> Result<Vec<String>, String> {
    let mut raw = Raw::tcp(target).map_err(io("connect"))?;
    raw.send_startup(&[("user", user), ("database", &target.database)]).map_err(io("startup"))?;
    let mut said = Vec::new();
    let mut nonce = String::new();
    loop {
        let (kind, body) = raw.read().map_err(io("read"))?;
        let text = String::from_utf8_lossy(body.get(4..).unwrap_or_default()).into_owned();
        match (kind, body.get(3)) {
            (b'R', Some(10)) => {
                said.push(text.replace('\0', " "));
                let first = b"n,,n=,r=abcdefgh";
                let body = [b"SCRAM-SHA-256\0", &(first.len() as u32).to_be_bytes()[..], first].concat();
                raw.send(b'p', &body).map_err(io("send"))?;
            }
            (b'R', Some(11)) => {
                text.split(',').next().unwrap_or_default().clone_into(&mut nonce);
                let salt = text.split(',').nth(1).unwrap_or_default().len();
                said.push(format!("salt of {salt}, {}", text.split(',').nth(2).unwrap_or_default()));
                let proof = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
                raw.send(b'p', format!("c=biws,{nonce},p={proof}").as_bytes()).map_err(io("send"))?;
            }
            (b'E', _) => {
                said.push(error_text(&body).replace(&format!("\"{user}\""), "USER"));
                return Ok(said);
            }
            _ => return Err(format!("{user} was answered with {:?} {nonce}", kind as char)),
        }
    }
}

pub fn guessing_names(target: &Target) -> Wrong {
    let (known, unknown) = (refusal(target, &target.user)?, refusal(target, "nobody_has_this_name")?);
    if known != unknown {
        return Err(format!("a user can be told from none:\n      {known:?}\n      {unknown:?}"));
    }
    let database = |name: &str| {
        let target = Target { database: name.to_owned(), ..target.clone() };
        refusal(&target, "nobody_has_this_name")
    };
    let (known, unknown) = (database(&target.database)?, database("no_such_database")?);
    if known == unknown { Ok(()) } else { Err(format!("a database can be told from none: {known:?} {unknown:?}")) }
}

pub fn keys_of_others(target: &Target) -> Wrong {
    let mut own = Raw::session(target).map_err(io("session"))?;
    let (pid, key) = own.key.clone();
    let long = "select count(*) from generate_series(1, 3000) a, generate_series(1, 3000) b";
    own.send(b'Q', &[long.as_bytes(), b"\0"].concat()).map_err(io("send"))?;
    let mut noise = Noise::new(4);
    for i in 0..1000 {
        let wrong = match i % 4 {
            0 => Vec::new(),
            1 => noise.bytes(32),
            2 => key.iter().map(|b| b ^ 1).collect(),
            _ => noise.bytes(key.len()),
        };
        // Some are for nobody.
        let pid = if i % 5 == 0 { noise.next() as i32 } else { pid };
        Raw::cancel(target, pid, &wrong).map_err(io("cancel"))?;
    }
    let answer = own.read_until_ready().map_err(io("the query under attack"))?;
    if let Some((_, body)) = answer.iter().find(|(kind, _)| *kind == b'E') {
        return Err(format!("a wrong key has cancelled a query: {}", error_text(body)));
    }
    let longer = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b";
    own.send(b'Q', &[longer.as_bytes(), b"\0"].concat()).map_err(io("send"))?;
    std::thread::sleep(Duration::from_millis(200));
    Raw::cancel(target, pid, &key).map_err(io("cancel"))?;
    let answer = own.read_until_ready().map_err(io("its own cancelling"))?;
    let state = answer.iter().find(|(kind, _)| *kind == b'E').map(|(_, body)| error_field(body, b'C'));
    if state.as_deref() != Some("57014") {
        return Err(format!("the right key did not cancel: {state:?}"));
    }
    must_answer(&mut own, "after being cancelled")
}
