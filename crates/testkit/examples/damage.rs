//! Damages copies of the demo cluster and tells how a program meets it:
//! `cargo run -p stegodon-testkit --example damage -- PROGRAM CASES [SEED [JUDGE_EVERY [CLASS…]]]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a tool for tests")]

use stegodon_testkit::damage::{Class, Options, run};
use stegodon_testkit::lab::Engine;

const CLASSES: [Class; 15] = [
    Class::Heap,
    Class::VisibilityMap,
    Class::FreeSpaceMap,
    Class::Index,
    Class::Toast,
    Class::ToastIndex,
    Class::Sequence,
    Class::Catalog,
    Class::CatalogIndex,
    Class::RelationMap,
    Class::Control,
    Class::Version,
    Class::TransactionLog,
    Class::Multixacts,
    Class::TwoPhase,
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: u64| arguments.get(at).map_or(or, |text| text.parse().expect("a number"));
    let named = |name: &String| *CLASSES.iter().find(|c| format!("{c:?}") == *name).expect("a class");
    let options = Options {
        program: Engine::stegodon(arguments.first().expect("the program")),
        cases: number(1, 150) as usize,
        seed: number(2, 1),
        judge_every: number(3, 1) as usize,
        classes: arguments.iter().skip(4).map(named).collect(),
        memory_max_kb: 512 << 10,
        verbose: true,
    };
    print!("{}", run(&options));
}
