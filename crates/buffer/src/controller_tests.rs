//! The controller driven by hand: data-driven traces, and that it never gets stuck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

use super::*;

/// A stream without a pool: says what the controller does when pages are consumed one by one.
struct Driver {
    controller: Controller,
    blocks: VecDeque<u32>,
    cached: HashSet<u32>,
    /// Pages started: block, and whether a read starts with it.
    queue: VecDeque<(u32, bool)>,
    wanted: VecDeque<u32>,
    trace: String,
}

impl Driver {
    fn look_ahead(&mut self) {
        loop {
            match self.controller.next_action() {
                Action::Nothing => return,
                Action::Fetch => {
                    let block = self.blocks.pop_front();
                    self.wanted.extend(block);
                    self.controller.wanted(block.map(BlockNumber));
                }
                Action::Start { first, blocks } => {
                    assert!(blocks >= 1 && self.controller.pinned + blocks <= self.controller.max_pinned);
                    // As the pool does: one page that is there, or those up to the next that is.
                    let hit = self.cached.contains(&first.0);
                    let missing = (first.0..first.0 + blocks).take_while(|block| !self.cached.contains(block)).count();
                    let count = if hit { 1 } else { missing as u32 };
                    for block in first.0..first.0 + count {
                        assert_eq!(self.wanted.pop_front(), Some(block));
                        self.queue.push_back((block, !hit && block == first.0));
                    }
                    if !hit {
                        write!(self.trace, "read {first}+{count}  ").unwrap();
                    }
                    self.controller.started(count, !hit);
                }
            }
        }
    }

    /// The next page's block.
    fn next(&mut self) -> Option<u32> {
        if self.queue.is_empty() {
            self.look_ahead();
        }
        let (block, starts_read) = self.queue.pop_front()?;
        if starts_read {
            self.controller.waited();
        }
        self.controller.consumed();
        self.look_ahead();
        assert!(self.controller.ios_in_progress() <= self.controller.max_ios);
        Some(block)
    }
}

fn ranges(words: &[&str]) -> Vec<u32> {
    let range = |word: &&str| match word.split_once('-') {
        Some((from, to)) => (from.parse::<u32>().unwrap()..=to.parse().unwrap()).collect::<Vec<_>>(),
        None => vec![word.parse().unwrap()],
    };
    words.iter().flat_map(range).collect()
}

/// testdata/look_ahead.txt: settings, blocks and what is cached, `----`, then a line for each page: its block, the reads
/// issued before the next is asked for, and the distance.
#[test]
fn looks_ahead_as_written() {
    let mut result = String::new();
    let file = include_str!("../testdata/look_ahead.txt");
    for case in file.split("\n\n") {
        let (input, _) = case.split_once("----").expect("a case has input, ----, and output");
        let mut driver = Driver {
            controller: Controller::new(16, 16, false),
            blocks: VecDeque::new(),
            cached: HashSet::new(),
            queue: VecDeque::new(),
            wanted: VecDeque::new(),
            trace: String::new(),
        };
        for line in input.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["#", ..] => {}
                ["concurrency", eic, "combine", combine, ref rest @ ..] => {
                    driver.controller =
                        Controller::new(eic.parse().unwrap(), combine.parse().unwrap(), rest.contains(&"full"));
                    if let [.., "quota", quota] = rest {
                        driver.controller.limit_pins(quota.parse().unwrap());
                    }
                }
                ["blocks", ref list @ ..] => driver.blocks = ranges(list).into(),
                ["cached", ref list @ ..] => driver.cached = ranges(list).into_iter().collect(),
                _ => panic!("{line}"),
            }
        }
        let expected: Vec<u32> = driver.blocks.iter().copied().collect();
        let mut got = Vec::new();
        writeln!(result, "{input}----").unwrap();
        while let Some(block) = driver.next() {
            got.push(block);
            let distance = driver.controller.distance();
            let trace = std::mem::take(&mut driver.trace);
            // The first page's line also shows the reads before it.
            if !trace.is_empty() || got.len() == 1 {
                writeln!(result, "page {block}  {trace}distance {distance}").unwrap();
            }
        }
        assert_eq!(got, expected);
        result.push('\n');
    }
    let result = result.trim_end().to_owned() + "\n";
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write("testdata/look_ahead.txt", &result).unwrap();
        return;
    }
    assert_eq!(result, file);
}

#[test]
fn never_gets_stuck_and_never_exceeds_its_limits() {
    let mut seed = 7u64;
    let mut random = |limit: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        ((seed >> 11) % limit) as u32
    };
    for _ in 0..3000 {
        let mut controller = Controller::new(random(5), 1 + random(20), random(2) == 0);
        controller.limit_pins(1 + random(40));
        let mut blocks = Vec::new();
        while blocks.len() < 60 {
            let start = random(50);
            blocks.extend(start..=start + random(12));
        }
        let cached = (0..60).filter(|_| random(2) == 0).collect();
        let mut driver = Driver {
            controller,
            blocks: blocks.iter().copied().collect(),
            cached,
            queue: VecDeque::new(),
            wanted: VecDeque::new(),
            trace: String::new(),
        };
        let mut got = Vec::new();
        while let Some(block) = driver.next() {
            got.push(block);
            driver.controller.limit_pins(1 + random(40));
        }
        assert_eq!(got, blocks);
        assert!(!driver.controller.has_pending() && driver.controller.ios_in_progress() == 0);
    }
}
