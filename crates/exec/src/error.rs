//! Errors on their way through DataFusion's operators: ours in, ours out.

use arrow_schema::ArrowError;
use datafusion_common::DataFusionError;
use stegodon_types::{SqlError, SqlState};

/// Wraps our error so that it survives DataFusion's operators.
pub(crate) fn wrap(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Finds our error again, or says in our terms what DataFusion's own means.
pub(crate) fn unwrap(error: DataFusionError) -> SqlError {
    match find(&error) {
        Some(ours) => ours.clone(),
        None => match error.find_root() {
            DataFusionError::ResourcesExhausted(what) => out_of_memory(what),
            DataFusionError::IoError(e) => {
                SqlError::new(SqlState::IoError, format!("could not write or read a temporary file: {e}"))
            }
            other => SqlError::internal(other),
        },
    }
}

fn out_of_memory(what: &str) -> SqlError {
    SqlError::new(SqlState::OutOfMemory, "out of memory").detail(what.to_owned())
}

fn find(error: &DataFusionError) -> Option<&SqlError> {
    match error {
        DataFusionError::External(inner) => inner
            .downcast_ref::<SqlError>()
            .or_else(|| inner.downcast_ref::<DataFusionError>().and_then(find))
            .or_else(|| inner.downcast_ref::<ArrowError>().and_then(find_in_arrow)),
        DataFusionError::ArrowError(inner, _) => find_in_arrow(inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => find(inner),
        DataFusionError::Shared(inner) => find(inner),
        DataFusionError::Collection(inner) => inner.iter().find_map(find),
        _ => None,
    }
}

fn find_in_arrow(error: &ArrowError) -> Option<&SqlError> {
    match error {
        ArrowError::ExternalError(inner) => {
            inner.downcast_ref::<SqlError>().or_else(|| inner.downcast_ref::<DataFusionError>().and_then(find))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_error_survives_any_wrapping() {
        let ours = SqlError::new(SqlState::DivisionByZero, "division by zero");
        let wrapped = wrap(ours.clone()).context("somewhere");
        let wrapped = DataFusionError::Shared(std::sync::Arc::new(wrapped));
        let wrapped = DataFusionError::ArrowError(Box::new(ArrowError::ExternalError(Box::new(wrapped))), None);
        assert_eq!(unwrap(wrapped), ours);
    }

    #[test]
    fn exhaustion_is_out_of_memory() {
        let error = DataFusionError::ResourcesExhausted("hash".to_owned());
        assert_eq!(unwrap(error).state, SqlState::OutOfMemory);
    }
}
