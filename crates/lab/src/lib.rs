//! The laboratory's library: the one way to start, stop and ask an engine, PostgreSQL or Stegodon, through the protocol.
//!
//! A tour: [`Engine`] says which engine and how to start it; [`Engine::start`] gives a running [`Server`], stopped when
//! dropped; [`Client`] is one connection, blocking, the same for every engine; [`pairs`] measures two arms side by side. The
//! program `evidence` measures what an issue demands.
//!
//! ```no_run
//! use stegodon_lab::{Client, Engine};
//! let engine = Engine::postgres("/var/cache/stegodon/postgres-18/bin");
//! let server = engine.start("/tmp/data".as_ref(), &[("shared_buffers", "1GB")]).unwrap();
//! let mut client = Client::connect(&server, "postgres", "postgres").unwrap();
//! assert_eq!(client.query("SELECT 1").unwrap().rows, vec![vec![Some("1".to_owned())]]);
//! ```
//!
//! The experiments themselves (DESIGN §7) come with their own issue.
#![forbid(unsafe_code)]

mod client;
mod engine;
pub mod pairs;

pub use client::{Answer, Client, Column, Failure};
pub use engine::{Engine, Error, Server};
