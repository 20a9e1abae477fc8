//! Serving: sessions, and PostgreSQL's protocol over sockets.
//!
//! A tour: [`Cluster`] is an opened data directory with what all sessions share; a [`Session`] turns statements into rows
//! and knows no protocol; [`serve`] listens, authenticates and drives sessions over connections (`connection`).
#![forbid(unsafe_code)]

mod auth;
mod certificate;
mod cluster;
mod connection;
mod cursor;
mod encode;
mod explain;
mod hba;
mod info;
mod listen;
mod lobby;
mod packet;
mod planning;
mod plans;
mod portal;
mod run;
mod scram;
mod session;
mod socket;
mod startup;
mod statements;
mod tls;
mod wire;

pub use cluster::Cluster;
pub use encode::{Format, OutputColumn};
pub use listen::{Endpoints, serve};
pub use plans::Raw;
pub use portal::{Portal, Rows};
pub use run::{Outcome, Run};
pub use session::{Notice, Prepared, Session, Transaction};
