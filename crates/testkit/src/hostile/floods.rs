//! Attacks with much: of connections, of bytes, of everything that a session may hold.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::anonymous_memory_kb;
use super::raw::{Raw, Target, bind, execute, message, parse};

type Wrong = Result<(), String>;

fn io(what: &str) -> impl Fn(std::io::Error) -> String + '_ {
    move |e| format!("{what}: {e}")
}

/// Fails where the server holds so much more than before.
fn memory_within(target: &Target, before_kb: u64, limit_mb: u64, what: &str) -> Wrong {
    let now = anonymous_memory_kb(target.pid);
    let more_mb = now.saturating_sub(before_kb) / 1024;
    if now == 0 {
        return Err(format!("{what}: the server is gone"));
    }
    if more_mb > limit_mb { Err(format!("{what}: {more_mb} MB more, {limit_mb} would do")) } else { Ok(()) }
}

fn sessions(target: &Target, count: usize) -> Result<Vec<Raw>, String> {
    (0..count).map(|i| Raw::session(target).map_err(|e| format!("session {i}: {e}"))).collect()
}

pub fn many_parameters(target: &Target) -> Wrong {
    let mut raw = Raw::session(target).map_err(io("session"))?;
    let list: Vec<String> = (1..=65_535).map(|i| format!("${i}")).collect();
    let sql = format!("select 7 where 1::int4 in ({})", list.join(","));
    let mut body = b"\0\0\0\0\xFF\xFF".to_vec();
    (0..65_535).for_each(|_| body.extend(b"\0\0\0\x011"));
    body.extend(b"\0\0");
    let messages = [parse("", &sql), message(b'B', &body), execute("", 0), message(b'S', b"")].concat();
    raw.set_patience(Duration::from_secs(120)).map_err(io("patience"))?;
    raw.send_bytes(&messages).map_err(io("send"))?;
    let answer = raw.read_until_ready().map_err(io("read"))?;
    if !answer.iter().any(|(kind, _)| matches!(kind, b'D' | b'E')) {
        return Err(format!("neither a row nor an error: {answer:?}"));
    }
    raw.query("select 1").map_err(io("after it"))?.map(|_| ())
}

/// Statements that are all nesting or all length. What is too much for a limit is an error; nothing is worse than that.
fn statements() -> Vec<(&'static str, String)> {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("select {}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let deep = 100_000;
    vec![
        ("parentheses", nested("(", "1", ")", deep)),
        ("parentheses without end", nested("(", "1", "", deep)),
        ("not", nested("not ", "true", "", deep)),
        ("minus", nested("- ", "1", "", deep)),
        ("array", nested("array[", "1", "]", deep)),
        ("case", nested("case when true then ", "1", " end", deep)),
        ("subqueries", nested("(select ", "1", ")", 20_000)),
        ("from", format!("{}select 1{}", "select * from (".repeat(20_000), ") x".repeat(20_000))),
        ("functions", nested("abs(", "1", ")", deep)),
        ("casts", format!("select 1{}", "::int4".repeat(deep))),
        ("indirections", format!("select x{}", ".x".repeat(deep))),
        ("subscripts", format!("select '{{1}}'::int4[]{}", "[1]".repeat(deep))),
        ("sums", format!("select 1{}", "+1".repeat(300_000))),
        ("ands", format!("select true{}", " and true".repeat(300_000))),
        ("concatenations", format!("select 'a'{}", "||'a'".repeat(100_000))),
        ("unions", format!("select 1{}", " union all select 1".repeat(30_000))),
        (
            "joins",
            format!(
                "select 1 from pg_class c0{}",
                (1..50).map(|i| format!(" cross join pg_class c{i}")).collect::<Vec<_>>().concat()
            ),
        ),
        (
            "with",
            format!("with {} select 1", (0..500).map(|i| format!("w{i} as (select 1)")).collect::<Vec<_>>().join(",")),
        ),
        ("columns", format!("select 1{}", ",1".repeat(20_000))),
        ("values", format!("values (1){}", ",(1)".repeat(300_000))),
        ("in", format!("select 1 where 1 in (1{})", ",1".repeat(300_000))),
        ("statements", "select 1;".repeat(20_000)),
        ("semicolons", ";".repeat(10_000_000)),
        ("a comment", format!("/*{}*/ select 1", "x".repeat(60_000_000))),
        ("comments in comments", format!("{}{} select 1", "/*".repeat(deep), "*/".repeat(deep))),
        ("a string", format!("select length('{}')", "x".repeat(60_000_000))),
        ("a number", format!("select {}", "9".repeat(1_000_000))),
        ("a name", format!("select 1 as \"{}\"", "x".repeat(10_000_000))),
        ("quotes", "'".repeat(1_000_001)),
        ("dollars", "$".repeat(1_000_000)),
        ("json", format!("select '{}'::jsonb", "[".repeat(1_000_000))),
        ("a pattern", format!("select 'a' ~ '{}'", "(".repeat(10_000))),
        ("an array's text", format!("select '{}'::int4[]", "{".repeat(1_000_000))),
        ("repeat", "select length(repeat('x', 2000000000))".to_owned()),
        ("lpad", "select length(lpad('x', 2000000000))".to_owned()),
        ("a pattern's numbers", "select 'a' ~ '((((a{1,250}){1,250}){1,250}){1,250})'".to_owned()),
    ]
}

pub fn deep_and_wide_statements(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut slow = Vec::new();
    for (what, sql) in statements() {
        let mut raw = Raw::session(target).map_err(io(what))?;
        raw.set_patience(Duration::from_secs(60)).map_err(io(what))?;
        let started = Instant::now();
        // A statement limit of the client's own, since some of them are just much work.
        let _ = raw.query("set statement_timeout = '10s'");
        let answer = raw.query(&sql).map_err(io(what))?;
        if std::env::var_os("STEGODON_SHOW_ATTACKS").is_some() {
            let text = format!("{answer:?}").chars().take(100).collect::<String>();
            eprintln!(
                "  {what}: {:.1} s, {} MB: {text}",
                started.elapsed().as_secs_f64(),
                anonymous_memory_kb(target.pid) / 1024
            );
        }
        if started.elapsed() > Duration::from_secs(25) {
            slow.push(format!("{what} {:.0} s", started.elapsed().as_secs_f64()));
        }
        raw.query("select 1").map_err(io(what))??;
        memory_within(target, before, 2048, what)?;
    }
    if slow.is_empty() { Ok(()) } else { Err(format!("timeouts do not reach: {slow:?}")) }
}

pub fn half_a_startup(target: &Target) -> Wrong {
    let mut held = Vec::new();
    for i in 0..800 {
        // Some are closed by the server to make room.
        let Ok(mut raw) = (if i % 2 == 0 { Raw::unix(target) } else { Raw::tcp(target) }) else { continue };
        let _ = raw.send_bytes(match i % 3 {
            0 => &[],
            1 => &[0],
            _ => b"\0\0\0\x50\0\x03\0\0user\0",
        });
        held.push(raw);
    }
    std::thread::sleep(Duration::from_secs(3));
    // Beside them, a client comes in.
    Raw::session(target).map(|_| ()).map_err(io("a session beside them"))
}

pub fn half_a_message(target: &Target) -> Wrong {
    let mut held = sessions(target, 50)?;
    for (i, raw) in held.iter_mut().enumerate() {
        let whole = message(b'Q', b"select pg_sleep(0)\0");
        raw.send_bytes(whole.get(..1 + i % (whole.len() - 1)).unwrap_or_default()).map_err(io("send"))?;
    }
    std::thread::sleep(Duration::from_secs(2));
    Ok(())
}

pub fn half_a_large_message(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut held = sessions(target, 60)?;
    let mut refused = 0;
    for raw in &mut held {
        raw.set_patience(Duration::from_millis(50)).map_err(io("patience"))?;
        // It says 60 MB, and sends 1.
        let head = [&b"P"[..], &60_000_000u32.to_be_bytes(), b"\0", &vec![b' '; 1 << 20]].concat();
        let _ = raw.send_bytes(&head);
        refused += usize::from(raw.read().is_ok());
    }
    memory_within(target, before, 600, "sixty that announce 60 MB each")?;
    drop(held);
    // What was held for them is free again.
    let mut raw = Raw::session(target).map_err(io("session"))?;
    let sql = format!("select length('{}')", "x".repeat(20_000_000));
    let answer = raw.query(&sql).map_err(io("a large statement after them"))?;
    if answer != Ok(vec!["20000000".to_owned()]) {
        return Err(format!("a large statement after them ({refused} refused): {answer:?}"));
    }
    Ok(())
}

pub fn never_reading(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut held = sessions(target, 60)?;
    for raw in &mut held {
        let sql = b"select repeat('x', 1000) || x from generate_series(1, 100000000) x\0";
        raw.send(b'Q', sql).map_err(io("send"))?;
    }
    std::thread::sleep(Duration::from_secs(3));
    memory_within(target, before, 900, "sixty that do not read")
}

pub fn pipeline_without_reading(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut raw = Raw::session(target).map_err(io("session"))?;
    raw.set_patience(Duration::from_millis(500)).map_err(io("patience"))?;
    // Describes without Sync: more is answered than asked.
    let columns: Vec<String> = (0..1000).map(|i| format!("1 as a_column_with_a_long_name_{i}")).collect();
    raw.send_bytes(&parse("wide", &format!("select {}", columns.join(",")))).map_err(io("send"))?;
    let describes = message(b'D', b"Swide\0").repeat(1000);
    let mut sent = 0;
    while sent < 100 && raw.send_bytes(&describes).is_ok() {
        sent += 1;
    }
    memory_within(target, before, 200, "100,000 Describes")?;
    // The same with executions, which then are read: all are answered.
    let mut raw = Raw::session(target).map_err(io("session"))?;
    raw.send_bytes(&[parse("s", "select 1"), message(b'S', b"")].concat()).map_err(io("send"))?;
    raw.read_until_ready().map_err(io("prepare"))?;
    let count = 100_000;
    let once = [bind("", "s"), execute("", 0), message(b'S', b"")].concat();
    raw.send_bytes(&once.repeat(count / 100)).map_err(io("send"))?;
    for _ in 0..count / 100 {
        let answer = raw.read_until_ready().map_err(io("read"))?;
        let kinds: Vec<u8> = answer.iter().map(|(kind, _)| *kind).collect();
        if kinds != b"2DCZ" {
            return Err(format!("a pipelined execution was answered with {answer:?}"));
        }
    }
    Ok(())
}

pub fn hoard_of_statements(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut raw = Raw::session(target).map_err(io("session"))?;
    let mut kept = 0;
    // Each of some columns, so that it weighs something.
    let columns = "relname,".repeat(50);
    for i in 0..300 {
        let many: Vec<u8> = (0..100)
            .flat_map(|j| parse(&format!("s{i}_{j}"), &format!("select {columns} {i} from pg_class")))
            .collect();
        raw.send_bytes(&[many, message(b'S', b"")].concat()).map_err(io("send"))?;
        let answer = raw.read_until_ready().map_err(io("read"))?;
        kept += answer.iter().filter(|(kind, _)| *kind == b'1').count();
        if answer.iter().any(|(kind, _)| *kind == b'E') {
            break;
        }
    }
    memory_within(target, before, 600, &format!("{kept} statements"))
}

pub fn hoard_of_portals(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut raw = Raw::session(target).map_err(io("session"))?;
    raw.query("begin").map_err(io("begin"))??;
    raw.send_bytes(&[parse("s", "select relname from pg_class"), message(b'S', b"")].concat()).map_err(io("send"))?;
    raw.read_until_ready().map_err(io("prepare"))?;
    let mut kept = 0;
    for i in 0..300 {
        // Each has begun and stands after its first row.
        let many: Vec<u8> = (0..100)
            .flat_map(|j| {
                let name = format!("p{i}_{j}");
                [bind(&name, "s"), execute(&name, 1)].concat()
            })
            .collect();
        raw.send_bytes(&[many, message(b'S', b"")].concat()).map_err(io("send"))?;
        let answer = raw.read_until_ready().map_err(io("read"))?;
        kept += answer.iter().filter(|(kind, _)| *kind == b's').count();
        if answer.iter().any(|(kind, _)| *kind == b'E') {
            break;
        }
    }
    memory_within(target, before, 600, &format!("{kept} portals"))?;
    raw.query("rollback").map_err(io("rollback"))?.map(|_| ())
}

pub fn come_and_go(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    for i in 0..1500 {
        let mut raw = Raw::session(target).map_err(io("session"))?;
        let sql = "select count(*) from generate_series(1, 1000000)\0";
        match i % 4 {
            // Goes at once, or with a query under way, or within a message, or after asking for much.
            0 => {}
            1 => raw.send(b'Q', sql.as_bytes()).map_err(io("send"))?,
            2 => raw.send_bytes(b"Q\0\0\0\x40sel").map_err(io("send"))?,
            _ => raw.send(b'Q', b"select * from generate_series(1, 10000000)\0").map_err(io("send"))?,
        }
    }
    std::thread::sleep(Duration::from_secs(3));
    memory_within(target, before, 300, "1500 that came and went")
}

pub fn storm_busy(target: &Target) -> Wrong {
    let count = 1000;
    let mut all = sessions(target, count)?;
    let started = Instant::now();
    let mut rounds = 0;
    // All have a query under way at once.
    while started.elapsed() < Duration::from_secs(5) {
        for raw in &mut all {
            raw.send(b'Q', b"select sum(x) from generate_series(1, 1000) x\0").map_err(io("send"))?;
        }
        for raw in &mut all {
            let answer = raw.read_until_ready().map_err(io("read"))?;
            if !answer.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"500500")) {
                return Err(format!("a busy session was answered with {answer:?}"));
            }
        }
        rounds += 1;
    }
    if std::env::var_os("STEGODON_SHOW_ATTACKS").is_some() {
        let rate = (rounds * count) as f64 / started.elapsed().as_secs_f64();
        eprintln!("  {count} busy sessions: {rate:.0} queries a second");
    }
    Ok(())
}

/// How many idle connections, and what each may take of memory beyond its socket.
const IDLE: usize = 10_000;
const IDLE_KB_MAX: f64 = 50.0;

pub fn storm_idle(target: &Target) -> Wrong {
    let before = anonymous_memory_kb(target.pid);
    let mut all = sessions(target, IDLE)?;
    let each_kb = anonymous_memory_kb(target.pid).saturating_sub(before) as f64 / IDLE as f64;
    // Having worked, they keep no more.
    for raw in &mut all {
        match raw.query("select repeat('x', 100000)") {
            Ok(Ok(_)) => {}
            other => return Err(format!("an idle session gave {other:?}")),
        }
    }
    // It may remember for a while what it was asked.
    std::thread::sleep(Duration::from_secs(15));
    let after_kb = anonymous_memory_kb(target.pid).saturating_sub(before) as f64 / IDLE as f64;
    eprintln!("  {IDLE} idle connections: {each_kb:.1} kB each, {after_kb:.1} kB after a query");
    if each_kb > IDLE_KB_MAX || after_kb > IDLE_KB_MAX {
        return Err(format!("{each_kb:.1} kB for an idle connection, {after_kb:.1} after a query"));
    }
    if let Some(raw) = all.last_mut() {
        raw.set_patience(Duration::from_millis(100)).map_err(io("patience"))?;
    }
    match all.last_mut().map(Raw::read) {
        Some(Err(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        other => Err(format!("an idle session was told {other:?}")),
    }
}
