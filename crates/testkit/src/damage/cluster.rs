//! The cluster that is damaged, and copies of it.
//!
//! ```text
//!   base (nobody touches it) ─▸ linked: a tree of hard links, the damaged file a file of its own ─▸ Stegodon, which writes nothing
//!                            └▸ owned: a copy of what PostgreSQL writes, the same file damaged  ─▸ PostgreSQL
//! ```

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use stegodon_format::control::ControlFile;

/// Where the control file lies.
pub const CONTROL: &str = "global/pg_control";

/// An undamaged cluster at rest.
pub struct Base {
    /// Its directory.
    pub directory: PathBuf,
    /// Whether its pages have checksums.
    pub checksums: bool,
    _keep: tempfile::TempDir,
}

/// In memory where there is room, because there are thousands of copies.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let directory = made.expect("a temporary directory");
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("its permissions");
    directory
}

fn run(command: &mut Command) {
    let output = command.output().expect("a program of the system");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Base {
    /// The demo cluster, its checksums as they are (on) or switched off as `pg_checksums --disable` does.
    pub fn demo(checksums: bool) -> Self {
        let keep = scratch();
        let archive = crate::workspace_root().join("fixtures/demo.tar.xz");
        run(Command::new("tar").arg("-C").arg(keep.path()).arg("-xJf").arg(&archive));
        let directory = keep.path().join("demo");
        if !checksums {
            let path = directory.join(CONTROL);
            let mut bytes = std::fs::read(&path).expect("a control file");
            bytes[252..256].fill(0);
            let crc = crc32c::crc32c(&bytes[..292]);
            bytes[292..296].copy_from_slice(&crc.to_le_bytes());
            std::fs::write(&path, bytes).expect("the control file is written");
        }
        crate::give_to_judge(&directory);
        Self { directory, checksums, _keep: keep }
    }

    /// The content of one of its files.
    pub fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.directory.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    /// A tree of hard links to it, in which `files` have other content.
    pub fn linked(&self, files: &[(String, Vec<u8>)]) -> Copy {
        let keep = scratch();
        let directory = keep.path().join("linked");
        run(Command::new("cp").arg("-al").arg(&self.directory).arg(&directory));
        let copy = Copy { directory, _keep: keep };
        copy.replace(files);
        copy
    }

    /// A copy that PostgreSQL may write, in which `files` have other content. Databases that nobody connects to are links,
    /// and of the log there is what a clean start reads.
    pub fn owned(&self, files: &[(String, Vec<u8>)]) -> Copy {
        let keep = scratch();
        let directory = keep.path().join("owned");
        run(Command::new("cp").arg("-al").arg(&self.directory).arg(&directory));
        let unlink = |path: &Path| {
            let bytes = std::fs::read(path).expect("a file to copy");
            std::fs::remove_file(path).expect("a link to remove");
            std::fs::write(path, bytes).expect("a copy to write");
        };
        let control = ControlFile::parse(&self.read(CONTROL)).expect("a control file");
        let redo = control.checkpoint.redo.0 / u64::from(control.wal_segment_size);
        let mut pending = vec![directory.clone()];
        while let Some(next) = pending.pop() {
            for entry in std::fs::read_dir(&next).expect("a readable directory") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    let idle = next.ends_with("base") && matches!(name.as_str(), "1" | "4" | "5");
                    if !idle {
                        pending.push(path);
                    }
                } else if next.ends_with("pg_wal") {
                    // Timeline 1: the rest of the name is the segment's number, in two parts.
                    let number = u64::from_str_radix(name.get(8..).unwrap_or_default(), 16).unwrap_or(0);
                    let parts = 0x1_0000_0000 / u64::from(control.wal_segment_size);
                    if (number >> 32) * parts + (number & 0xFFFF_FFFF) == redo {
                        unlink(&path);
                    } else {
                        std::fs::remove_file(&path).expect("a link to remove");
                    }
                } else {
                    unlink(&path);
                }
            }
        }
        let copy = Copy { directory, _keep: keep };
        copy.replace(files);
        crate::give_to_judge(&copy.directory);
        copy
    }
}

/// A copy of a cluster, removed when dropped.
pub struct Copy {
    /// Its directory.
    pub directory: PathBuf,
    _keep: tempfile::TempDir,
}

impl Copy {
    fn replace(&self, files: &[(String, Vec<u8>)]) {
        for (file, bytes) in files {
            let path = self.directory.join(file);
            let metadata = std::fs::metadata(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
            std::fs::remove_file(&path).expect("a link to remove");
            std::fs::write(&path, bytes).expect("a damaged file to write");
            std::fs::set_permissions(&path, metadata.permissions()).expect("its permissions");
            if metadata.uid() != 0 {
                let _ = std::os::unix::fs::chown(&path, Some(metadata.uid()), Some(metadata.gid()));
            }
        }
    }
}
