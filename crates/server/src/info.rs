//! What functions ask of a session.

use std::sync::Arc;

use parking_lot::RwLock;
use stegodon_catalog::settings::{Scope, Settings};
use stegodon_catalog::{CatalogView, SearchPath};
use stegodon_exec::CancelFlag;
use stegodon_format::ids::{Fork, Oid};
use stegodon_functions::Session as AskSession;
use stegodon_types::SqlResult;

use crate::cluster::{Cluster, now_us};

/// One statement's view of its session.
pub(crate) struct SessionInfo {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) view: Arc<CatalogView>,
    pub(crate) settings: Arc<RwLock<Settings>>,
    pub(crate) current_user: Oid,
    pub(crate) session_user: Oid,
    pub(crate) database: String,
    pub(crate) pid: i32,
    pub(crate) superuser: bool,
    pub(crate) transaction_start_us: i64,
    pub(crate) statement_start_us: i64,
    pub(crate) cancel: Arc<CancelFlag>,
}

fn fork_of(fork: stegodon_functions::Fork) -> Fork {
    match fork {
        stegodon_functions::Fork::Main => Fork::Main,
        stegodon_functions::Fork::FreeSpaceMap => Fork::FreeSpaceMap,
        stegodon_functions::Fork::VisibilityMap => Fork::VisibilityMap,
        stegodon_functions::Fork::Init => Fork::Init,
    }
}

impl AskSession for SessionInfo {
    fn current_user(&self) -> Oid {
        self.current_user
    }

    fn session_user(&self) -> Oid {
        self.session_user
    }

    fn database_name(&self) -> &str {
        &self.database
    }

    fn version(&self) -> String {
        let version = self.settings.read().text("server_version").to_owned();
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        format!("PostgreSQL {version} (Stegodon {}) on {arch}-{os}, 64-bit", env!("CARGO_PKG_VERSION"))
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.settings.read().show(name).ok()
    }

    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> SqlResult<String> {
        let scope = if local { Scope::Local } else { Scope::Session };
        let mut settings = self.settings.write();
        match value {
            Some(value) => settings.set(name, value, scope, self.superuser)?,
            None => settings.reset(name, scope, self.superuser)?,
        }
        crate::run::check_stays_read_only(&settings, name)?;
        settings.show(name)
    }

    fn transaction_start_us(&self) -> i64 {
        self.transaction_start_us
    }

    fn statement_start_us(&self) -> i64 {
        self.statement_start_us
    }

    fn clock_us(&self) -> i64 {
        now_us()
    }

    fn postmaster_start_us(&self) -> i64 {
        self.cluster.started_us()
    }

    fn backend_pid(&self) -> i32 {
        self.pid
    }

    fn search_path(&self) -> &SearchPath {
        &self.view.path
    }

    fn relation_bytes(&self, relation: Oid, fork: stegodon_functions::Fork) -> SqlResult<Option<i64>> {
        let Some(row) = self.view.catalog.relation(relation) else { return Ok(None) };
        let Some(locator) = row.locator else { return Ok(Some(0)) };
        let blocks = self.cluster.storage().relation(locator).nblocks_or_zero(fork_of(fork))?;
        Ok(Some(i64::from(blocks) * 8192))
    }

    fn pause(&self, moment: std::time::Duration) {
        let shared = tokio::runtime::Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
        let sleep = || std::thread::sleep(moment);
        if shared { tokio::task::block_in_place(sleep) } else { sleep() }
    }

    fn check_cancel(&self) -> SqlResult<()> {
        self.cancel.check()
    }
}
