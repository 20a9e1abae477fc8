//! Counting how often two servers answer alike.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test that cannot be set up must fail")]

use std::path::Path;

use stegodon_testkit::{Difference, Duel};

#[derive(Default)]
pub struct Score {
    pub same: usize,
    pub refused: Vec<Difference>,
    pub wrong: Vec<Difference>,
}

impl Score {
    pub fn ask(&mut self, duel: &mut Duel, sql: &str, ordered: bool) -> bool {
        match duel.compare(sql, ordered) {
            Ok(()) => self.same += 1,
            Err(d) if d.refused => self.refused.push(*d),
            Err(d) => self.wrong.push(*d),
        }
        self.wrong.is_empty()
    }

    /// Prints what was found and fails on wrong answers, or on more refusals than are known.
    pub fn judge(&self, refusals_known: usize) {
        println!("{} the same, {} refused, {} wrong", self.same, self.refused.len(), self.wrong.len());
        for d in &self.refused {
            println!("refused: {}\n    {}", d.sql, d.stegodon);
        }
        for d in &self.wrong {
            println!("WRONG: {}\n    PostgreSQL: {}\n    Stegodon:   {}", d.sql, d.judge, d.stegodon);
        }
        assert!(self.wrong.is_empty(), "{} wrong answers", self.wrong.len());
        let refused = self.refused.len();
        assert!(refused <= refusals_known, "{refused} refusals, {refusals_known} are known");
    }
}

/// Asks every line of a file, in one session.
pub fn ask_file(duel: &mut Duel, file: &str) -> Score {
    ask_lines(duel, file, |_| true)
}

/// Asks those lines of a file that are wanted.
pub fn ask_lines(duel: &mut Duel, file: &str, wanted: impl Fn(&str) -> bool) -> Score {
    let text = std::fs::read_to_string(Path::new("testdata").join(file)).unwrap();
    let mut score = Score::default();
    for sql in text.lines().filter(|l| !l.is_empty() && !l.starts_with("--") && wanted(l)) {
        // A last ORDER BY over all of a query's rows makes the order part of the answer.
        score.ask(duel, sql, sql.ends_with("-- ordered"));
    }
    score
}
