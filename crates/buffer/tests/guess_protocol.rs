//! A model of guessing a frame (`BufferPool::pin_in`) while the clock hand takes pages away and brings others, through every
//! interleaving of the atomic operations on one frame's header. Whoever believes its guess holds the page that it asked for,
//! as long as it holds the pin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::HashSet;

/// `src/frame.rs`: what matters here of the state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Word {
    valid: bool,
    tagged: bool,
    used: u8,
    pins: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// A guesser: compare the name unpinned; load the word; swap in a pin; compare again.
    Glance,
    Load,
    Pin(Word),
    Compare,
    /// It believes that it has the page.
    Hold,
    Unpin,
    /// The hand, bringing another page: load the word; swap in its pin; take the name away; write another; start; arrive.
    Sweep,
    Claim(Word),
    LoadToUntag,
    Untag(Word),
    GiveUp,
    WriteTag,
    Start,
    Arrive,
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Model {
    word: Word,
    tag: u8,
    /// Each thread's step, its page, and how often it goes on.
    threads: Vec<(Step, u8, u8)>,
}

impl Model {
    fn restart(&mut self, thread: usize, step: Step) -> Step {
        self.threads[thread].2 -= 1;
        if self.threads[thread].2 == 0 { Step::Done } else { step }
    }

    fn swap(&mut self, expected: Word, new: Word) -> bool {
        let same = self.word == expected;
        if same {
            self.word = new;
        }
        same
    }

    fn next(&self, thread: usize) -> Option<Self> {
        let mut model = self.clone();
        let (step, page, _) = model.threads[thread];
        let word = model.word;
        let next = match step {
            Step::Glance if model.tag == page => Step::Load,
            Step::Glance => model.restart(thread, Step::Glance),
            Step::Load if word.valid => Step::Pin(word),
            Step::Load => model.restart(thread, Step::Glance),
            Step::Pin(seen) => {
                let pinned = Word { pins: seen.pins + 1, used: (seen.used + 1).min(1), ..seen };
                if model.swap(seen, pinned) { Step::Compare } else { Step::Load }
            }
            Step::Compare if model.tag == page => Step::Hold,
            Step::Compare => Step::Unpin,
            Step::Hold => Step::Unpin,
            Step::Unpin => {
                assert!(word.pins > 0, "only what is pinned is unpinned");
                model.word.pins -= 1;
                model.restart(thread, Step::Glance)
            }
            Step::Sweep if word.pins > 0 => model.restart(thread, Step::Sweep),
            Step::Sweep => Step::Claim(word),
            Step::Claim(seen) if seen.used > 0 => {
                model.swap(seen, Word { used: seen.used - 1, ..seen });
                Step::Sweep
            }
            Step::Claim(seen) => {
                let claimed = model.swap(seen, Word { pins: 1, ..seen });
                match (claimed, seen.tagged) {
                    (false, _) => Step::Sweep,
                    (true, true) => Step::LoadToUntag,
                    (true, false) => Step::WriteTag,
                }
            }
            Step::LoadToUntag if word.pins == 1 => Step::Untag(word),
            Step::LoadToUntag => Step::GiveUp,
            Step::Untag(seen) => {
                let empty = Word { valid: false, tagged: false, used: 0, pins: 1 };
                if model.swap(seen, empty) { Step::WriteTag } else { Step::GiveUp }
            }
            Step::GiveUp => {
                model.word.pins -= 1;
                model.restart(thread, Step::Sweep)
            }
            Step::WriteTag => {
                let believers = self.threads.iter().filter(|other| other.0 == Step::Hold).count();
                assert_eq!(believers, 0, "no name is written while somebody holds the page");
                model.tag = page;
                Step::Start
            }
            Step::Start => {
                assert_eq!((word.pins, word.valid, word.tagged), (1, false, false), "only a claimed frame is started");
                model.word = Word { valid: false, tagged: true, used: 1, pins: 2 };
                Step::Arrive
            }
            // The read's pin goes at once, the reader's later.
            Step::Arrive => {
                model.word = Word { valid: true, pins: word.pins - 1, ..word };
                Step::GiveUp
            }
            Step::Done => return None,
        };
        model.threads[thread].0 = next;
        for (step, page, _) in &model.threads {
            if *step == Step::Hold {
                assert!(
                    model.word.valid && model.word.pins > 0 && model.tag == *page,
                    "who holds a page has that page"
                );
            }
        }
        Some(model)
    }
}

/// Guessers of page 1, and hands that bring pages; returns how many states there are, and in how many somebody held the page.
fn explore(guessers: usize, rounds: u8, hands: &[u8]) -> (usize, usize) {
    let word = Word { valid: true, tagged: true, used: 0, pins: 0 };
    let mut threads = vec![(Step::Glance, 1, rounds); guessers];
    threads.extend(hands.iter().map(|&page| (Step::Sweep, page, 2)));
    let mut seen = HashSet::new();
    let mut open = vec![Model { word, tag: 1, threads }];
    while let Some(model) = open.pop() {
        if seen.insert(model.clone()) {
            open.extend((0..model.threads.len()).filter_map(|thread| model.next(thread)));
        }
    }
    let held = seen.iter().filter(|model| model.threads.iter().any(|thread| thread.0 == Step::Hold)).count();
    (seen.len(), held)
}

#[test]
fn a_guess_that_is_believed_is_right() {
    let mut states = 0;
    for (guessers, rounds, hands) in [(1, 3, &[2u8, 1][..]), (2, 2, &[2]), (2, 2, &[2, 1]), (1, 2, &[2, 1, 3])] {
        let (all, held) = explore(guessers, rounds, hands);
        println!("{guessers} guessers, hands {hands:?}: {all} states, {held} with the page held");
        assert!(held > 0);
        states += all;
    }
    assert!(states > 10_000, "{states} states");
}
