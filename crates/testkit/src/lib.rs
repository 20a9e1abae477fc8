//! For tests only: judges, clusters, and comparing answers.
//!
//! A tour: [`postgres`] is a real PostgreSQL of a version; [`demo_cluster`] a private copy of the committed fixture;
//! [`hostile`] holds clients without manners; [`Duel`] asks a judge and Stegodon the same question and says where they differ; [`fingerprint`] hashes a directory.
//! A test that cannot have its judge fails.
//!
//! The data-driven format of [`cases`]: an input, a line `----`, the expected text, an empty line.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up must fail"
)]

pub mod damage;
mod duel;
mod files;
pub mod hostile;

use std::path::{Path, PathBuf};
use std::process::Command;

use stegodon_lab::Engine;

pub use duel::{Difference, Duel};
pub use files::{cases, fingerprint};
pub use stegodon_lab as lab;

/// The checkout's root. Cargo says at run time where it is: with one build cache for several checkouts, what was known when
/// this was compiled may be another one, or gone.
pub fn workspace_root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.unwrap_or_default().join("../..").canonicalize().expect("the checkout exists")
}

/// A real PostgreSQL: `"15"` … `"18"`, or `"17tools"` (see `scripts/postgres`).
pub fn postgres(version: &str) -> Engine {
    let script = workspace_root().join("scripts/postgres");
    let output = Command::new(&script).arg(version).output().expect("scripts/postgres runs");
    assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    Engine::postgres(String::from_utf8(output.stdout).expect("a path").trim())
}

/// A directory for a cluster, open to the judge's user, removed when dropped.
pub fn scratch() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("its permissions");
    directory
}

/// A private copy of the demo cluster, as PostgreSQL 18 left it.
pub fn demo_cluster() -> (tempfile::TempDir, PathBuf) {
    let directory = scratch();
    let archive = workspace_root().join("fixtures/demo.tar.xz");
    let status = Command::new("tar").arg("-C").arg(directory.path()).arg("-xJf").arg(&archive).status();
    assert!(status.expect("tar runs").success(), "cannot unpack {}", archive.display());
    let cluster = directory.path().join("demo");
    give_to_judge(&cluster);
    (directory, cluster)
}

/// Makes a cluster the judge's own: PostgreSQL demands mode 0700 and its own user.
fn give_to_judge(cluster: &Path) {
    let owner = if std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0) {
        "nobody:nogroup"
    } else {
        return;
    };
    let status = Command::new("chown").arg("-R").arg(owner).arg(cluster).status();
    assert!(status.expect("chown runs").success(), "cannot give {} to the judge", cluster.display());
}

/// A copy of a stopped cluster, so that a judge may write hint bits into its own.
pub fn copy_cluster(from: &Path) -> (tempfile::TempDir, PathBuf) {
    let directory = scratch();
    let to = directory.path().join("copy");
    let status = Command::new("cp").arg("-a").arg(from).arg(&to).status();
    assert!(status.expect("cp runs").success(), "cannot copy {}", from.display());
    (directory, to)
}
