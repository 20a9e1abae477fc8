//! DECLARE, FETCH, MOVE and CLOSE: cursors that go forward.

use stegodon_sql::Statement;
use stegodon_sql::statement::FetchDirection;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::portal::{Portal, Rows};
use crate::run::{Outcome, start_query};
use crate::session::{Session, Transaction};
use crate::statements::PORTALS_MAX;

/// Runs one of the cursor statements.
pub(crate) async fn run(
    session: &mut Session,
    statement: &Statement,
    params: Vec<Option<Datum>>,
) -> SqlResult<Outcome> {
    match statement {
        Statement::DeclareCursor { name, scroll, hold, binary, query } => {
            if *binary {
                return Err(SqlError::unsupported("a BINARY cursor"));
            }
            if *scroll == Some(true) {
                return Err(SqlError::unsupported("a SCROLL cursor"));
            }
            if *hold {
                return Err(SqlError::unsupported("a cursor WITH HOLD"));
            }
            if session.transaction == Transaction::Idle {
                let message = "DECLARE CURSOR can only be used in transaction blocks";
                return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
            }
            if session.portals.contains_key(name) {
                return Err(SqlError::new(SqlState::DuplicateCursor, format!("cursor \"{name}\" already exists")));
            }
            if session.portals.len() >= PORTALS_MAX {
                return Err(SqlError::new(SqlState::ProgramLimitExceeded, "too many portals"));
            }
            let rows = start_query(session, query, params, true, None)?;
            let depth = session.savepoints.len();
            session.portals.insert(name.clone(), Portal::cursor(rows, depth));
            Ok(Outcome::Command("DECLARE CURSOR".to_owned()))
        }
        Statement::Fetch { cursor, direction, count, is_move } => {
            fetch(session, cursor, *direction, *count, *is_move).await
        }
        Statement::Close(name) => {
            match name {
                None => session.portals.retain(|_, p| !p.is_cursor()),
                Some(name) => {
                    session.portals.remove(name).ok_or_else(|| missing(name))?;
                }
            }
            let tag = if name.is_none() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" };
            Ok(Outcome::Command(tag.to_owned()))
        }
        _ => Err(SqlError::internal("no cursor statement")),
    }
}

fn missing(name: &str) -> SqlError {
    SqlError::new(SqlState::InvalidCursorName, format!("cursor \"{name}\" does not exist"))
}

async fn fetch(
    session: &mut Session,
    name: &str,
    direction: FetchDirection,
    count: i64,
    is_move: bool,
) -> SqlResult<Outcome> {
    let portal = session.portals.get_mut(name).ok_or_else(|| missing(name))?;
    if portal.failed {
        let message = format!("portal \"{name}\" cannot be run");
        return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message));
    }
    let rows = portal.rows.as_mut().ok_or_else(|| missing(name))?;
    // Forward is what every cursor can do; the rest would need the rows again.
    let forward = match direction {
        FetchDirection::Forward if count >= 0 => count,
        FetchDirection::Relative if count == 1 => 1,
        _ => return Err(SqlError::unsupported("FETCH other than forward")),
    };
    let mut left = usize::try_from(forward).unwrap_or(usize::MAX);
    let mut fetched = Vec::new();
    let mut got = 0;
    if left == 0 {
        return Err(SqlError::unsupported("FETCH 0"));
    }
    while left > 0 {
        let batch = match rows.next(left).await {
            Ok(batch) => batch,
            Err(error) => {
                portal.failed = true;
                return Err(error);
            }
        };
        let Some(batch) = batch else { break };
        left -= batch.num_rows();
        got += batch.num_rows();
        fetched.push(batch);
    }
    if is_move {
        return Ok(Outcome::Command(format!("MOVE {got}")));
    }
    let columns = rows.columns.to_vec();
    Ok(Outcome::Rows { rows: Rows::ready(columns, fetched), tag: "FETCH".to_owned(), counted: true })
}
