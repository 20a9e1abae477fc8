//! The same question to two servers.

use stegodon_lab::{Answer, Client, Failure};

/// Two connections that must answer alike.
pub struct Duel {
    /// The one that is right.
    pub judge: Client,
    /// The one that is tested.
    pub stegodon: Client,
}

/// How two answers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The statement.
    pub sql: String,
    /// What the judge said.
    pub judge: String,
    /// What Stegodon said.
    pub stegodon: String,
    /// Whether Stegodon refused what it does not support (SQLSTATE 0A000): no wrong answer, but none either.
    pub refused: bool,
}

impl Duel {
    /// Runs a statement that must succeed on both and whose answer does not matter, such as SET.
    pub fn run(&mut self, sql: &str) {
        self.judge.query(sql).unwrap_or_else(|e| panic!("the judge failed at {sql}: {e}"));
        self.stegodon.query(sql).unwrap_or_else(|e| panic!("Stegodon failed at {sql}: {e}"));
    }

    /// Asks both and compares column names, types, typmods, SQLSTATEs and rows: as a multiset unless `ordered`.
    pub fn compare(&mut self, sql: &str, ordered: bool) -> Result<(), Box<Difference>> {
        let mut judge = self.judge.ask(sql);
        let mut stegodon = self.stegodon.ask(sql);
        if !ordered {
            for answer in [&mut judge, &mut stegodon].into_iter().flatten() {
                answer.rows.sort();
            }
        }
        let same = match (&judge, &stegodon) {
            (Ok(a), Ok(b)) => a == b,
            (Err(a), Err(b)) => a.state == b.state,
            _ => false,
        };
        if same {
            return Ok(());
        }
        let refused = matches!(&stegodon, Err(e) if e.state == "0A000");
        let (judge, stegodon) = (describe(&judge, &stegodon), describe(&stegodon, &judge));
        Err(Box::new(Difference { sql: sql.to_owned(), judge, stegodon, refused }))
    }
}

/// What one answered, shortened to the first place where the other differs.
fn describe(answer: &Result<Answer, Failure>, other: &Result<Answer, Failure>) -> String {
    let answer = match answer {
        Err(failure) => return failure.to_string(),
        Ok(answer) => answer,
    };
    let Ok(other) = other else { return format!("{} rows", answer.rows.len()) };
    if answer.columns != other.columns {
        return format!("columns {:?}", answer.columns);
    }
    let differing = answer.rows.iter().enumerate().find(|(i, row)| other.rows.get(*i) != Some(*row));
    match differing {
        Some((i, row)) => format!("{} rows, row {i}: {row:?}", answer.rows.len()),
        None => format!("{} rows, no row {}", answer.rows.len(), answer.rows.len()),
    }
}
