//! Verdicts and their counts.

use std::collections::BTreeMap;

use super::subjects::Class;

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// A page that could not be taken for one was reported, with block and relation.
    Detected,
    /// Refused at start or on connecting, as the judge does.
    Refused,
    /// The judge's rows.
    SameRows,
    /// An error with the judge's SQLSTATE.
    SameError,
    /// The undamaged cluster's rows, where the judge fails or has others: what was damaged was not needed.
    Unharmed,
    /// XX001, XX002 or a refusal (0A000) where the judge's error is another: the same fault met at another place, or sooner.
    OtherError,
    /// An error that does not say that data is damaged, nor what the judge says.
    Misnamed,
    /// An error where the judge answers, crashes or hangs.
    Stricter,
    /// No judge was asked; an error.
    ErrorUnjudged,
    /// No judge was asked; rows.
    RowsUnjudged,
    /// Rows where the judge has an error.
    Laxer,
    /// Other rows than the judge's.
    OtherRows,
    /// A page that must be reported was not.
    Missed,
    /// A crash, a panic, a hang, too much memory, an internal error.
    Fault,
}

impl Verdict {
    const ALL: [Verdict; 14] = [
        Verdict::Detected,
        Verdict::Refused,
        Verdict::SameRows,
        Verdict::SameError,
        Verdict::Unharmed,
        Verdict::OtherError,
        Verdict::Misnamed,
        Verdict::Stricter,
        Verdict::ErrorUnjudged,
        Verdict::RowsUnjudged,
        Verdict::Laxer,
        Verdict::OtherRows,
        Verdict::Missed,
        Verdict::Fault,
    ];
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases by class, checksums, and sort of damage.
    pub cases: BTreeMap<(Class, bool, &'static str), usize>,
    /// Verdicts by class and checksums.
    pub verdicts: BTreeMap<(Class, bool), BTreeMap<Verdict, usize>>,
    /// One line for each verdict that somebody should look at.
    pub remarks: Vec<(Verdict, String)>,
    /// The most memory that a server under test has had, in kilobytes.
    pub memory_peak_kb: u64,
}

impl Report {
    pub(crate) fn count(&mut self, class: Class, checksums: bool, verdict: Verdict) {
        *self.verdicts.entry((class, checksums)).or_default().entry(verdict).or_default() += 1;
    }

    /// How many cases there were.
    pub fn cases_total(&self) -> usize {
        self.cases.values().sum()
    }

    /// How many answers had this verdict.
    pub fn total(&self, verdict: Verdict) -> usize {
        self.verdicts.values().filter_map(|counts| counts.get(&verdict)).sum()
    }

    /// How many answers had this verdict in a class.
    pub fn of(&self, class: Class, checksums: bool, verdict: Verdict) -> usize {
        self.verdicts.get(&(class, checksums)).and_then(|counts| counts.get(&verdict)).copied().unwrap_or(0)
    }

    /// Fails where something was not met as it must be, or too little was.
    ///
    /// # Panics
    ///
    /// If so, with the remarks.
    pub fn assert_floors(&self) {
        let of = |wanted: &[Verdict]| -> Vec<&str> {
            self.remarks.iter().filter(|(verdict, _)| wanted.contains(verdict)).map(|(_, line)| line.as_str()).collect()
        };
        let wrong = of(&[Verdict::Fault, Verdict::Missed, Verdict::OtherRows]);
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
        // Without a catalog's rows PostgreSQL cannot even plan what we can: that is no wrong answer.
        let lax = of(&[Verdict::Laxer, Verdict::Misnamed]);
        let lax: Vec<&&str> = lax.iter().filter(|line| !line.contains(" Catalog ")).collect();
        assert!(lax.is_empty(), "{} too lax or misnamed:\n{lax:#?}", lax.len());
        for ((class, checksums), counts) in &self.verdicts {
            // Of a few answers one is a large share.
            if counts.values().sum::<usize>() < ANSWERS_MIN {
                continue;
            }
            let (share, floor) = (self.agreement(*class, *checksums), floor(*class, *checksums));
            assert!(
                share >= floor,
                "{class:?}, checksums {checksums}: {share:.3} as the judge, at least {floor} wanted"
            );
        }
    }

    /// The share of answers about judged cases that are exactly the judge's, or detections: 0 to 1; 1 where there is none.
    pub fn agreement(&self, class: Class, checksums: bool) -> f64 {
        let sum = |verdicts: &[Verdict]| -> usize { verdicts.iter().map(|v| self.of(class, checksums, *v)).sum() };
        let good =
            sum(&[Verdict::Detected, Verdict::Refused, Verdict::SameRows, Verdict::SameError, Verdict::Unharmed]);
        let other = sum(&[
            Verdict::OtherError,
            Verdict::Misnamed,
            Verdict::Stricter,
            Verdict::Laxer,
            Verdict::OtherRows,
            Verdict::Missed,
        ]);
        if good + other == 0 { 1.0 } else { good as f64 / (good + other) as f64 }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} cases; peak memory {} MB", self.cases_total(), self.memory_peak_kb / 1024)?;
        for ((class, checksums), counts) in &self.verdicts {
            let sums = if *checksums { "checksums" } else { "no checksums" };
            let sorts: Vec<String> = self
                .cases
                .iter()
                .filter(|((c, s, _), _)| c == class && s == checksums)
                .map(|((_, _, sort), count)| format!("{count} {sort}"))
                .collect();
            let verdicts: Vec<String> = Verdict::ALL
                .iter()
                .filter_map(|verdict| counts.get(verdict).map(|count| format!("{count} {verdict:?}")))
                .collect();
            writeln!(f, "{class:?}, {sums} ({}): {}", sorts.join(", "), verdicts.join(", "))?;
        }
        Ok(())
    }
}

/// How many answers a class must have had for its floor to be asked.
const ANSWERS_MIN: usize = 40;

/// How many of a class's answers must be the judge's own or a detection. The others are errors where the judge reads on
/// unchecked, or another error of damage.
fn floor(class: Class, checksums: bool) -> f64 {
    match (class, checksums) {
        (Class::Catalog, _) => 0.3,
        (Class::VisibilityMap, _) => 0.5,
        (_, true) => 0.9,
        (_, false) => 0.5,
    }
}
