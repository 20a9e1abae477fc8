//! Statements' text.

use stegodon_sql::parse;

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse::parse(&text) {
        Ok(statements) => {
            for statement in statements {
                assert!(text.contains(statement.text()));
                let _ = statement.ends_failed_transaction();
            }
        }
        Err(error) => {
            let characters = text.chars().count() as u32;
            assert!(error.position.is_none_or(|position| position <= characters + 1), "{error:?}");
        }
    }
}
