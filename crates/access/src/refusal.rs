//! Why a directory is not served, and what its owner can do about it (DESIGN D7).

use std::path::Path;

use stegodon_format::control::{ClusterState, ControlFile};
use stegodon_types::{SqlError, SqlState};

/// Why a directory is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `postmaster.pid` is there.
    #[error("a PostgreSQL server is running on \"{0}\", or ended without cleaning up")]
    Running(String),
    /// `pg_control` says that the cluster was not shut down.
    #[error("the cluster \"{0}\" was not shut down cleanly: its state is \"{1}\"")]
    NotShutDown(String, &'static str),
    /// `backup_label` is there.
    #[error("\"{0}\" is a backup that has not been recovered: it has a file \"backup_label\"")]
    Backup(String),
    /// A signal file asks for recovery.
    #[error("\"{0}\" is to be recovered or is a standby: it has a file \"{1}\"")]
    Recovery(String, &'static str),
}

impl Refusal {
    fn hint(&self) -> &'static str {
        match self {
            Refusal::Running(_) => {
                "Stop it with pg_ctl stop, or, after a crash, start PostgreSQL once and stop it cleanly."
            }
            Refusal::NotShutDown(..) => {
                "Start PostgreSQL on it once, so that it recovers, and stop it with pg_ctl stop."
            }
            Refusal::Backup(_) | Refusal::Recovery(..) => {
                "Let PostgreSQL finish the recovery, stop it with pg_ctl stop, and serve the result."
            }
        }
    }
}

impl From<Refusal> for SqlError {
    fn from(refusal: Refusal) -> Self {
        SqlError::new(SqlState::ObjectNotInPrerequisiteState, refusal.to_string()).hint(refusal.hint())
    }
}

/// Files whose presence means that the pages are not at rest.
const SIGNAL_FILES: [&str; 3] = ["recovery.signal", "standby.signal", "recovery.conf"];

/// Whether a postmaster has started on the directory since.
pub(crate) fn postmaster_is_there(directory: &Path) -> bool {
    directory.join("postmaster.pid").symlink_metadata().is_ok()
}

/// Refuses a cluster that is not at rest.
pub(crate) fn check(directory: &Path, control: &ControlFile) -> Result<(), Refusal> {
    let name = directory.display().to_string();
    if postmaster_is_there(directory) {
        return Err(Refusal::Running(name));
    }
    if directory.join("backup_label").symlink_metadata().is_ok() {
        return Err(Refusal::Backup(name));
    }
    if let Some(file) = SIGNAL_FILES.iter().find(|f| directory.join(f).symlink_metadata().is_ok()) {
        return Err(Refusal::Recovery(name, file));
    }
    match control.state {
        ClusterState::ShutDown => Ok(()),
        other => Err(Refusal::NotShutDown(name, other.label())),
    }
}
