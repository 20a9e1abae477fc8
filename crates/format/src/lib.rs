//! PostgreSQL's bytes: everything that lies in a data directory, decoded without I/O.
#![forbid(unsafe_code)]

pub mod ids;
