//! The rules of the house that the compiler does not check: arrows between floors, file lengths, forbidden calls,
//! DataFusion in one crate, a README for each crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken rule must fail")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stegodon_testkit::workspace_root;

/// The floors, lowest first (ARCHITECTURE.md). A crate may depend on those before it.
const FLOORS: [&str; 19] = [
    "format",
    "types",
    "io",
    "buffer",
    "txn",
    "heap",
    "nbtree",
    "bitmap",
    "access",
    "nodes",
    "catalog",
    "sql",
    "functions",
    "plan",
    "exec",
    "server",
    "lab",
    "testkit",
    "stegodon",
];

/// Longest file, in lines; generated tables and tests aside.
const LINES_MAX: usize = 800;

fn crates() -> Vec<(String, PathBuf)> {
    let root = workspace_root().join("crates");
    FLOORS.iter().map(|f| ((*f).to_owned(), root.join(f))).collect()
}

fn rust_files(directory: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn sources() -> Vec<(String, PathBuf, String)> {
    let mut all = Vec::new();
    for (floor, path) in crates() {
        let mut files = Vec::new();
        rust_files(&path.join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a readable file");
            all.push((floor.clone(), file, text));
        }
    }
    all
}

/// The names in one section of a manifest.
fn section(manifest: &str, name: &str) -> Vec<String> {
    let header = format!("[{name}]");
    let lines = manifest.lines().skip_while(|l| l.trim() != header).skip(1).take_while(|l| !l.starts_with('['));
    let names = lines.filter_map(|l| l.split(['.', '=', ' ']).next());
    names.filter(|n| !n.is_empty() && !n.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn every_crate_is_a_floor() {
    let found = std::fs::read_dir(workspace_root().join("crates")).expect("crates");
    for entry in found {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(FLOORS.contains(&name.as_str()), "crate {name} has no place in the house");
    }
}

#[test]
fn arrows_point_down() {
    for (floor, path) in crates() {
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        let own = FLOORS.iter().position(|f| *f == floor);
        for dependency in section(&manifest, "dependencies") {
            let Some(name) = dependency.strip_prefix("stegodon-") else { continue };
            let other = FLOORS.iter().position(|f| *f == name);
            assert!(other < own, "{floor} depends on {name}, which is not below it");
        }
    }
    let lab = std::fs::read_to_string(workspace_root().join("crates/lab/Cargo.toml")).expect("a manifest");
    assert!(!lab.contains("stegodon-server") && !lab.contains("stegodon-exec"), "the laboratory links no engine");
}

#[test]
fn datafusion_lives_in_exec_only() {
    for (floor, path) in crates() {
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        assert!(floor == "exec" || !manifest.contains("datafusion"), "{floor} depends on DataFusion");
        assert!(
            floor == "exec" || !manifest.lines().any(|l| l.starts_with("arrow.")),
            "{floor} depends on all of arrow"
        );
    }
}

#[test]
fn files_hold_one_thing() {
    for (_, file, text) in sources() {
        let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let is_test = name.contains("test") || file.components().any(|c| c.as_os_str() == "tests");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(&text);
        let generated =
            text.contains("A table:") || name.ends_with("table.rs") || name == "oids.rs" || name == "rows.rs";
        let lines = code.lines().count();
        assert!(is_test || generated || lines <= LINES_MAX, "{} has {lines} lines", file.display());
    }
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    for (floor, path) in crates() {
        let lib = path.join("src/lib.rs");
        let text = std::fs::read_to_string(&lib).expect("a crate root");
        // `sql` calls libpg_query's own functions where the crate around it has no safe one.
        let may = matches!(floor.as_str(), "io" | "buffer" | "sql");
        assert!(may || text.contains("#![forbid(unsafe_code)]"), "{} does not forbid unsafe code", lib.display());
    }
}

#[test]
fn library_code_leaves_nothing_for_later() {
    for (_, file, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or(&text);
        for forbidden in ["todo!(", "unimplemented!(", "dbg!("] {
            assert!(!code.contains(forbidden), "{} calls {forbidden}", file.display());
        }
    }
}

#[test]
fn nothing_is_compiled_with_the_checkouts_path() {
    // Cargo takes what another checkout has built into the same cache for its own; a test runs in its package's directory.
    let baked_in = concat!("env!(\"CARGO_MANIFEST", "_DIR\")");
    for (_, path) in crates() {
        let mut files = Vec::new();
        rust_files(&path, &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a readable file");
            assert!(!text.contains(baked_in), "{} uses {baked_in}", file.display());
        }
    }
}

#[test]
fn every_crate_says_what_it_is() {
    let mut missing = BTreeMap::new();
    for (floor, path) in crates() {
        let tour = std::fs::read_to_string(path.join("src/lib.rs")).is_ok_and(|t| t.starts_with("//! "));
        let readme = path.join("README.md").exists();
        if !tour || !readme {
            missing.insert(floor, (tour, readme));
        }
    }
    assert!(missing.is_empty(), "crates without a tour in lib.rs or a README: {missing:?}");
}
