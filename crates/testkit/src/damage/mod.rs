//! Seeded damage to a cluster's files, and whether it is met as it must be.
//!
//! A tour: [`subjects`] lists the files of the demo cluster by [`Class`], each with questions that touch it; [`Damage`] is
//! what happens to one; [`run()`] damages copies, asks Stegodon and a judge, and counts [`Verdict`]s in a [`Report`].
//!
//! ```text
//!   what a question reads                                must bring
//!   a page whose checksum or header is wrong             XX001 naming block and relation; the judge need not be asked
//!   anything else                                        the judge's rows, or an error with its SQLSTATE,
//!                                                        or an error where the judge returns what it did not check
//!   whatever it reads                                    no crash, no panic, no hang, little memory; SELECT 1 works after
//! ```

mod ask;
mod cluster;
mod inflict;
mod report;
mod run;
mod subjects;

pub use inflict::{Damage, Random, invalid_blocks};
pub use report::{Report, Verdict};
pub use run::{Options, run};
pub use subjects::{Class, Question, Subject, Way, subjects};
