//! Hashing directories, and the data-driven test format.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A hash, size and modification time of every file below a directory, by path: equal before and after means untouched.
pub fn fingerprint(directory: &Path) -> BTreeMap<PathBuf, (u64, u64, std::time::SystemTime)> {
    let mut files = BTreeMap::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(next) = pending.pop() {
        for entry in std::fs::read_dir(&next).expect("a readable directory") {
            let path = entry.expect("a directory entry").path();
            let metadata = std::fs::metadata(&path).expect("metadata");
            if metadata.is_dir() {
                pending.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a readable file");
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            let modified = metadata.modified().expect("a modification time");
            files.insert(path, (hasher.finish(), metadata.len(), modified));
        }
    }
    files
}

/// The cases of a data-driven test file: input and expected text, with the line each starts at.
///
/// ```text
/// input, one or more lines
/// ----
/// expected text, up to an empty line
/// ```
pub fn cases(path: &Path) -> Vec<(usize, String, String)> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut cases = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut input = line.to_owned();
        for (_, line) in lines.by_ref() {
            if line == "----" {
                break;
            }
            input.push('\n');
            input.push_str(line);
        }
        let mut expected = String::new();
        for (_, line) in lines.by_ref() {
            if line.is_empty() {
                break;
            }
            expected.push_str(line);
            expected.push('\n');
        }
        cases.push((number + 1, input, expected));
    }
    assert!(!cases.is_empty(), "{} holds no case", path.display());
    cases
}
