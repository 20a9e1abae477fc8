//! A model of `src/waiters.rs`, run through every interleaving: readers that find no frame and wait, give up or unpin. Each step is
//! what is atomic there: one sequentially consistent operation, or one critical section. The watchdog is left out, so that a
//! lost wake-up shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// A newcomer looks whether somebody waits.
    Arrive,
    /// A polite look for a frame.
    Look,
    /// Takes or keeps a place, with a waker in it.
    Arm,
    /// Looks for a frame, being at turn.
    Try,
    /// Until woken.
    Sleep,
    /// Leaves the queue, with a frame or without.
    Leave(bool),
    Unpin,
    /// After unpinning: does somebody wait?
    Ask,
    /// Wakes the first who sleeps.
    Wake,
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Model {
    free: u32,
    starving: bool,
    /// Who waits, oldest first, and whether its waker is there.
    queue: Vec<(usize, bool)>,
    /// Each reader's next step, whether it was woken, and how often it may still want a page.
    readers: Vec<(Step, bool, u32)>,
}

impl Model {
    fn new(readers: usize, frames: u32, rounds: u32) -> Self {
        let readers = vec![(Step::Arrive, false, rounds); readers];
        Self { free: frames, starving: false, queue: Vec::new(), readers }
    }

    fn wake_first(&mut self) {
        if let Some(waiter) = self.queue.iter_mut().find(|waiter| waiter.1) {
            waiter.1 = false;
            self.readers[waiter.0].1 = true;
        }
    }

    fn again(&mut self, reader: usize) -> Step {
        let rounds = &mut self.readers[reader].2;
        *rounds -= 1;
        if *rounds == 0 { Step::Done } else { Step::Arrive }
    }

    fn take(&mut self, found: Step, none: Step) -> Step {
        if self.free == 0 {
            return none;
        }
        self.free -= 1;
        found
    }

    /// What one reader does next; all its possibilities.
    fn next(&self, reader: usize, may_give_up: bool) -> Vec<Self> {
        let mut model = self.clone();
        let (step, woken, _) = model.readers[reader];
        let mut others = Vec::new();
        let next = match step {
            Step::Arrive if model.starving => Step::Arm,
            Step::Arrive => Step::Look,
            Step::Look => model.take(Step::Unpin, Step::Arm),
            Step::Arm => {
                let at = model.queue.iter().position(|waiter| waiter.0 == reader);
                let at = at.unwrap_or_else(|| {
                    model.queue.push((reader, true));
                    model.starving = true;
                    model.queue.len() - 1
                });
                let was_woken = !std::mem::replace(&mut model.queue[at].1, true);
                if at == 0 || was_woken { Step::Try } else { Step::Sleep }
            }
            Step::Try => model.take(Step::Leave(true), Step::Sleep),
            Step::Sleep => {
                if may_give_up {
                    let mut given_up = model.clone();
                    given_up.readers[reader].0 = Step::Leave(false);
                    others.push(given_up);
                }
                if !woken {
                    return others;
                }
                Step::Arm
            }
            Step::Leave(found) => {
                model.queue.retain(|waiter| waiter.0 != reader);
                if model.queue.is_empty() {
                    model.starving = false;
                }
                model.wake_first();
                if found { Step::Unpin } else { model.again(reader) }
            }
            Step::Unpin => {
                model.free += 1;
                Step::Ask
            }
            Step::Ask if model.starving => Step::Wake,
            Step::Ask => model.again(reader),
            Step::Wake => {
                model.wake_first();
                model.again(reader)
            }
            Step::Done => return others,
        };
        model.readers[reader].0 = next;
        if step == Step::Sleep || matches!(step, Step::Leave(_)) {
            model.readers[reader].1 = false;
        }
        others.push(model);
        others
    }
}

/// Runs through everything that can happen; returns how many states there are.
fn explore(readers: usize, frames: u32, rounds: u32, may_give_up: bool) -> usize {
    let mut seen = HashSet::new();
    let mut open = vec![Model::new(readers, frames, rounds)];
    while let Some(model) = open.pop() {
        if !seen.insert(model.clone()) {
            continue;
        }
        let next: Vec<_> = (0..readers).flat_map(|reader| model.next(reader, false)).collect();
        if next.is_empty() {
            let steps: Vec<_> = model.readers.iter().map(|reader| reader.0).collect();
            assert!(steps.iter().all(|step| *step == Step::Done), "a wake-up was lost: {steps:?}, {} free", model.free);
            assert_eq!((model.free, model.starving, model.queue.len()), (frames, false, 0), "nothing is left behind");
        }
        open.extend(next);
        if may_give_up {
            open.extend((0..readers).flat_map(|reader| model.next(reader, true)));
        }
    }
    seen.len()
}

#[test]
fn no_interleaving_loses_a_wake_up() {
    let mut states = 0;
    for (readers, frames, rounds) in [(2, 1, 3), (3, 1, 2), (3, 2, 2), (4, 1, 1), (4, 2, 1), (4, 3, 1)] {
        for may_give_up in [false, true] {
            states += explore(readers, frames, rounds, may_give_up);
        }
    }
    println!("{states} states");
    assert!(states > 50_000, "{states} states");
}
