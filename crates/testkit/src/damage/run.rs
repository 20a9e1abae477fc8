//! Rounds: some files of a copy damaged, both servers asked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use stegodon_lab::Engine;

use super::ask::{Asked, Outcome, Patience};
use super::cluster::{Base, Copy};
use super::inflict::{Damage, Random, invalid_blocks};
use super::report::{Report, Verdict};
use super::subjects::{Class, Question, Subject, Way, subjects};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Stegodon.
    pub program: Engine,
    /// How many cases.
    pub cases: usize,
    /// The seed of the first; each next case has the next.
    pub seed: u64,
    /// The judge is asked in every so many rounds; 1: always.
    pub judge_every: usize,
    /// Only these classes, unless empty.
    pub classes: Vec<Class>,
    /// The most memory that the program may take, in kilobytes.
    pub memory_max_kb: u64,
    /// Whether each remark is printed as it comes.
    pub verbose: bool,
}

/// How many relations of one server are damaged at a time.
const CASES_PER_ROUND: usize = 8;

const SETTINGS: &[(&str, &str)] = &[("shared_buffers", "16MB"), ("work_mem", "4MB")];
const JUDGE: &[(&str, &str)] = &[
    ("shared_buffers", "16MB"),
    ("work_mem", "4MB"),
    ("fsync", "off"),
    ("autovacuum", "off"),
    ("full_page_writes", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("jit", "off"),
    // Files in its directory, which go with it even after a crash.
    ("dynamic_shared_memory_type", "mmap"),
];

/// With Stegodon: whatever the damage, it must end by itself.
const PATIENCE: Patience =
    Patience { statement_ms: 20_000, hang: Duration::from_secs(60), recovery: Duration::from_millis(200) };
/// With the judge, who need not.
const WITH_JUDGE: Patience =
    Patience { statement_ms: 2000, hang: Duration::from_secs(8), recovery: Duration::from_secs(20) };

struct Case<'a> {
    seed: u64,
    subject: &'a Subject,
    damage: Damage,
    bytes: Vec<u8>,
    /// Which blocks are no pages.
    invalid: Vec<u32>,
    /// Which of these are leaves of the index that a scan reads.
    invalid_leaves: Vec<u32>,
}

/// The weight of a class: those with rules of their own more often.
fn weight(class: Class) -> u64 {
    match class {
        Class::Heap | Class::Index => 6,
        Class::Toast | Class::Catalog | Class::CatalogIndex => 3,
        Class::VisibilityMap | Class::ToastIndex | Class::TransactionLog | Class::Multixacts => 2,
        _ => 1,
    }
}

fn is_live_leaf(bytes: &[u8], block: u32) -> bool {
    let flags = bytes.get(block as usize * 8192 + 8192 - 4..).and_then(<[u8]>::first_chunk::<2>);
    flags.is_some_and(|flags| u16::from_le_bytes(*flags) & 0b1_0101 == 1)
}

fn case<'a>(seed: u64, all: &'a [Subject], base: &Base, taken: &[String]) -> Option<Case<'a>> {
    let mut random = Random::new(seed);
    let mut classes: Vec<Class> = all.iter().map(|s| s.class).collect();
    classes.sort();
    classes.dedup();
    let total: u64 = classes.iter().map(|c| weight(*c)).sum();
    let mut at = random.below(total);
    let class = classes.iter().copied().find(|class| {
        let found = at < weight(*class);
        at = at.saturating_sub(weight(*class));
        found
    })?;
    let of_class: Vec<&Subject> = all.iter().filter(|s| s.class == class).collect();
    let subject = *random.pick(&of_class);
    if taken.contains(&subject.table) || (class.is_of_cluster() && !taken.is_empty()) {
        return None;
    }
    let whole = base.read(&subject.file);
    let damage = Damage::choose(&mut random, &whole, class.has_pages(), class == Class::Index);
    let bytes = damage.apply(&whole);
    let invalid = if class.has_pages() { invalid_blocks(&bytes, base.checksums) } else { Vec::new() };
    let invalid_leaves = invalid.iter().copied().filter(|block| is_live_leaf(&whole, *block)).collect();
    Some(Case { seed, subject, damage, bytes, invalid, invalid_leaves })
}

/// A judge on an undamaged copy: what the answers would be.
struct Healthy {
    server: Asked,
    answers: BTreeMap<String, Outcome>,
    _copy: Copy,
}

impl Drop for Healthy {
    fn drop(&mut self) {
        self.server.kill();
    }
}

impl Healthy {
    fn start(judge: &Engine, base: &Base) -> Self {
        let copy = base.owned(&[]);
        let server = Asked::start(judge, &copy.directory, JUDGE, WITH_JUDGE).expect("the judge starts");
        Self { server, answers: BTreeMap::new(), _copy: copy }
    }

    fn client(&mut self) -> stegodon_lab::Client {
        self.server.connect().expect("a connection")
    }

    fn answer(&mut self, question: &Question) -> &Outcome {
        let key = format!("{} {:?}", question.sql, question.settings);
        self.answers.entry(key).or_insert_with(|| self.server.ask(question))
    }
}

/// Runs the cases.
pub fn run(options: &Options) -> Report {
    let judge = crate::postgres("18");
    let bases = [Base::demo(true), Base::demo(false)];
    let fingerprints = bases.each_ref().map(|base| crate::fingerprint(&base.directory));
    let mut healthy = Healthy::start(&judge, &bases[0]);
    let mut all = subjects(&mut healthy.client());
    if !options.classes.is_empty() {
        all.retain(|subject| options.classes.contains(&subject.class));
    }
    let mut report = Report::default();
    let end = options.seed + options.cases as u64;
    let (mut seed, mut round) = (options.seed, 0_usize);
    // Cases that do not fit into a round wait for a later one, so no damage is left out.
    let mut waiting: Vec<u64> = Vec::new();
    while seed < end || !waiting.is_empty() {
        while waiting.len() < 4 * CASES_PER_ROUND && seed < end {
            waiting.push(seed);
            seed += 1;
        }
        let base = &bases[round % 2];
        let mut cases: Vec<Case<'_>> = Vec::new();
        let mut taken = Vec::new();
        waiting.retain(|seed| {
            let full = cases.len() >= CASES_PER_ROUND || cases.iter().any(|c| c.subject.class.is_of_cluster());
            // A seed decides whether there are checksums, too.
            if full || seed.is_multiple_of(2) != base.checksums {
                return true;
            }
            let Some(case) = case(*seed, &all, base, &taken) else { return true };
            taken.push(case.subject.table.clone());
            cases.push(case);
            false
        });
        let judged =
            round.is_multiple_of(options.judge_every.max(1)) || (round + 1).is_multiple_of(options.judge_every.max(1));
        round += 1;
        if !cases.is_empty() {
            play(options, &judge, base, &cases, judged, &mut healthy, &mut report);
        }
    }
    for (base, before) in bases.iter().zip(fingerprints) {
        assert_eq!(crate::fingerprint(&base.directory), before, "somebody wrote into the undamaged cluster");
    }
    report
}

fn play(
    options: &Options,
    judge: &Engine,
    base: &Base,
    cases: &[Case<'_>],
    judged: bool,
    healthy: &mut Healthy,
    report: &mut Report,
) {
    let files: Vec<(String, Vec<u8>)> = cases.iter().map(|c| (c.subject.file.clone(), c.bytes.clone())).collect();
    for case in cases {
        *report.cases.entry((case.subject.class, base.checksums, case.damage.sort())).or_default() += 1;
    }
    let started = Instant::now();
    let ours = {
        let copy = base.linked(&files);
        ask_all(&options.program, &copy.directory, SETTINGS, cases, PATIENCE)
    };
    let ours_took = started.elapsed();
    let judge_started = Instant::now();
    let theirs = judged.then(|| {
        let copy = base.owned(&files);
        ask_all(judge, &copy.directory, JUDGE, cases, WITH_JUDGE)
    });
    if options.verbose {
        let seeds: Vec<u64> = cases.iter().map(|case| case.seed).collect();
        println!(
            "seeds {seeds:?}: {:.1} s, the judge {:.1} s",
            ours_took.as_secs_f32(),
            judge_started.elapsed().as_secs_f32()
        );
    }
    report.memory_peak_kb = report.memory_peak_kb.max(ours.memory_peak_kb);
    let mut remark = |case: &Case<'_>, verdict: Verdict, text: String| {
        report.count(case.subject.class, base.checksums, verdict);
        let quiet = matches!(
            verdict,
            Verdict::Detected
                | Verdict::Refused
                | Verdict::SameRows
                | Verdict::SameError
                | Verdict::Unharmed
                | Verdict::ErrorUnjudged
                | Verdict::RowsUnjudged
        );
        if !quiet {
            let sums = if base.checksums { "checksums" } else { "no checksums" };
            let line = format!(
                "{verdict:?}: seed {}, {sums}, {:?} {} ({}), {:?}: {text}",
                case.seed, case.subject.class, case.subject.name, case.subject.file, case.damage
            );
            if options.verbose {
                println!("{line}");
            }
            report.remarks.push((verdict, line));
        }
    };
    let first = &cases[0];
    if ours.panicked {
        remark(first, Verdict::Fault, format!("panic: {}", ours.log_tail));
    }
    if ours.hung || ours.dead {
        remark(first, Verdict::Fault, format!("hung: {}, dead: {}; {}", ours.hung, ours.dead, ours.log_tail));
    }
    if ours.memory_peak_kb > options.memory_max_kb {
        remark(first, Verdict::Fault, format!("{} MB of memory", ours.memory_peak_kb / 1024));
    }
    if let Some(refusal) = &ours.refused {
        let of_cluster = first.subject.class.is_of_cluster();
        let (verdict, text) = match theirs.as_ref().map(|t| &t.refused) {
            _ if !of_cluster => (Verdict::Fault, format!("does not start: {refusal}")),
            Some(Some(_)) => (Verdict::Refused, String::new()),
            Some(None) if refuses_all(theirs.as_ref()) => (Verdict::Refused, String::new()),
            Some(None) => (Verdict::Stricter, format!("does not start: {refusal}")),
            None => (Verdict::ErrorUnjudged, String::new()),
        };
        remark(first, verdict, text);
        return;
    }
    for (number, case) in cases.iter().enumerate() {
        for (at, question) in case.subject.questions.iter().enumerate() {
            let Some(our) = ours.outcomes.get(&(number, at)) else { continue };
            // PostgreSQL 18 fails to plan a range over a "char" column even in health.
            if healthy.answer(question).state().is_some() {
                continue;
            }
            let their = theirs.as_ref().map(|theirs| match (&theirs.refused, theirs.outcomes.get(&(number, at))) {
                (Some(why), _) => Their::Refused(why),
                (None, Some(outcome)) => Their::Says(outcome),
                (None, None) => Their::Gone,
            });
            let (mut verdict, text) = judge_answer(case, question, our, their);
            // What was damaged was not needed: the catalogs' indexes, statistics, the map of a table that is read whole.
            if matches!(verdict, Verdict::Laxer | Verdict::OtherRows) && our == healthy.answer(question) {
                verdict = Verdict::Unharmed;
            }
            remark(case, verdict, format!("{} [{}] {text}", question.sql, question.settings.join(", ")));
        }
    }
}

/// Whether nobody could connect to a server that did start.
fn refuses_all(said: Option<&Said>) -> bool {
    said.is_some_and(|said| said.outcomes.values().all(|outcome| outcome.state().is_some()))
}

enum Their<'a> {
    Refused(&'a str),
    Says(&'a Outcome),
    Gone,
}

/// What must be found whatever the judge says.
fn must_detect<'a>(case: &'a Case<'_>, question: &Question) -> &'a [u32] {
    match (question.way, case.subject.class) {
        (Way::Whole, Class::Heap | Class::Toast | Class::Sequence | Class::Catalog) => &case.invalid,
        (Way::Leaves, Class::Index) => &case.invalid_leaves,
        _ => &[],
    }
}

fn judge_answer(case: &Case<'_>, question: &Question, our: &Outcome, their: Option<Their<'_>>) -> (Verdict, String) {
    let names_block = |failure: &stegodon_lab::Failure| {
        failure.state == "XX001"
            && case.invalid.iter().any(|block| {
                failure.message == format!("invalid page in block {block} of relation \"{}\"", case.subject.relation)
            })
    };
    if let Outcome::Error(failure) = our {
        if matches!(failure.state.as_str(), "57014" | "53200") || failure.state.starts_with("08") {
            let same = matches!(&their, Some(Their::Says(Outcome::Error(f))) if f.state == failure.state);
            if !same || failure.state == "57014" {
                return (Verdict::Fault, our.to_string());
            }
        }
        if names_block(failure) {
            return (Verdict::Detected, String::new());
        }
    }
    if !must_detect(case, question).is_empty() {
        // Other damage may be met before the page is: what lies around it is damaged too.
        return match our.state() {
            Some("XX001" | "XX002") => (Verdict::Detected, String::new()),
            Some(state) if case.subject.class == Class::Catalog && state.starts_with("XX") => {
                (Verdict::Detected, String::new())
            }
            _ => (Verdict::Missed, format!("blocks {:?}: {our}", must_detect(case, question))),
        };
    }
    match (our, their) {
        (Outcome::Error(_), None) => (Verdict::ErrorUnjudged, String::new()),
        (Outcome::Rows { .. }, None) => (Verdict::RowsUnjudged, String::new()),
        (Outcome::Rows { .. }, Some(Their::Refused(why))) => (Verdict::Laxer, format!("{our}; the judge: {why}")),
        (Outcome::Error(_), Some(Their::Refused(_))) => (Verdict::Refused, String::new()),
        (Outcome::Error(_), Some(Their::Gone)) => (Verdict::Stricter, format!("{our}; the judge crashed")),
        (Outcome::Rows { .. }, Some(Their::Gone)) => (Verdict::RowsUnjudged, String::new()),
        (Outcome::Rows { .. }, Some(Their::Says(theirs @ Outcome::Rows { .. }))) => {
            if our == theirs {
                (Verdict::SameRows, String::new())
            } else {
                (Verdict::OtherRows, format!("{our}; the judge: {theirs}"))
            }
        }
        (Outcome::Error(_), Some(Their::Says(theirs @ Outcome::Rows { .. }))) => {
            (Verdict::Stricter, format!("{our}; the judge: {theirs}"))
        }
        (Outcome::Rows { .. }, Some(Their::Says(theirs @ Outcome::Error(f)))) => {
            if f.state.starts_with("08") || f.state.starts_with("57") {
                (Verdict::RowsUnjudged, String::new())
            } else {
                (Verdict::Laxer, format!("{our}; the judge: {theirs}"))
            }
        }
        (Outcome::Error(a), Some(Their::Says(theirs @ Outcome::Error(b)))) => {
            // Of a file that cannot be, PostgreSQL says what the last system call left in errno.
            let file = "could not open file";
            if a.state == b.state || (a.message.starts_with(file) && b.message.starts_with(file)) {
                (Verdict::SameError, String::new())
            } else if b.state.starts_with("08") || b.state.starts_with("57") {
                (Verdict::Stricter, format!("{our}; the judge crashed"))
            } else {
                let named = matches!(a.state.as_str(), "XX001" | "XX002" | "0A000");
                let verdict = if named { Verdict::OtherError } else { Verdict::Misnamed };
                (verdict, format!("{our}; the judge: {theirs}"))
            }
        }
    }
}

/// What one server said to all questions of a round.
#[derive(Default)]
struct Said {
    outcomes: BTreeMap<(usize, usize), Outcome>,
    refused: Option<String>,
    panicked: bool,
    hung: bool,
    dead: bool,
    memory_peak_kb: u64,
    log_tail: String,
}

fn ask_all(
    engine: &Engine,
    directory: &std::path::Path,
    settings: &[(&str, &str)],
    cases: &[Case<'_>],
    patience: Patience,
) -> Said {
    let mut said = Said::default();
    let mut asked = match Asked::start(engine, directory, settings, patience) {
        Ok(asked) => asked,
        Err(refusal) => {
            said.panicked = refusal.contains("panicked at");
            said.log_tail.clone_from(&refusal);
            said.refused = Some(refusal);
            return said;
        }
    };
    'cases: for (number, case) in cases.iter().enumerate() {
        for (at, question) in case.subject.questions.iter().enumerate() {
            let outcome = asked.ask(question);
            let broken = outcome.state().is_some_and(|state| state.starts_with("08") || state.starts_with("57P"));
            let slow = outcome.state() == Some("57014");
            said.outcomes.insert((number, at), outcome);
            // Where the judge loops, the other questions would only wait for it again.
            if (slow || broken) && matches!(engine, Engine::Postgres { .. }) && !case.subject.class.is_of_cluster() {
                if !asked.is_alive() {
                    said.dead = true;
                    break 'cases;
                }
                break;
            }
            // Where a catalog is damaged nobody may connect at all; the process must live.
            if broken && !asked.is_alive() {
                said.dead = true;
                break 'cases;
            }
        }
        asked.hang_up();
    }
    let catalogs = cases.iter().any(|case| case.subject.class.is_of_cluster());
    if !said.dead && !catalogs && !asked.is_alive() {
        said.dead = true;
    }
    said.hung = asked.hung();
    said.memory_peak_kb = asked.memory_peak_kb();
    let log = asked.log();
    said.panicked = log.contains("panicked at");
    let panics = log.lines().filter(|line| line.contains("panicked at"));
    said.log_tail = panics.chain(log.lines().rev().take(2)).collect::<Vec<_>>().join(" | ");
    match engine {
        Engine::Postgres { .. } => asked.kill(),
        Engine::Stegodon { .. } => asked.stop(),
    }
    said
}
