//! Placeholder until merged.
