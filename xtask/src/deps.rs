//! The dependency picture of ARCHITECTURE.md as a table, held against `cargo metadata`.
//!
//! A crate has a row by the name of its folder, whatever prefix its published name carries.
//! It may import what its row names and nothing else, of ours or of others; what only tests may use is named apart.
//! Beside it: the bans that a crate's own clippy.toml carries must be there, and `wal-format` must stay `no_std`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell::{command, output, root, verdict};

/// One crate's row: what it may import (of ours, of others) and what its clippy.toml must ban.
struct Row {
    name: &'static str,
    ours: &'static [&'static str],
    others: &'static [&'static str],
    bans: &'static [&'static str],
}

const NO_FILES: &str = "std::fs::File";
const NO_CLOCK: &str = "std::time::Instant::now";
const NO_THREADS: &str = "std::thread::spawn";
const NO_LOCKS: &str = "std::sync::Mutex";

/// Crates that only tests, checks and benchmarks use: never a normal dependency of a crate we publish.
const DEV_ONLY: &[&str] = &["sim-disk", "sim", "loop-disk", "witness", "xtask", "benches"];
/// Crates that stay here. `sim-disk` does not: whoever builds on one of the layers tests with it.
const UNPUBLISHED: &[&str] = &["sim", "loop-disk", "witness", "xtask", "benches"];

const ROWS: &[Row] = &[
    Row {
        name: "wal-format",
        ours: &[],
        others: &["crc32c"],
        bans: &[NO_FILES, NO_CLOCK, NO_THREADS, NO_LOCKS],
    },
    Row { name: "disk", ours: &[], others: &["bytes", "loom", "memmap2", "rustix", "thiserror"], bans: &[] },
    Row {
        name: "wal-store",
        ours: &["disk", "wal-format"],
        others: &["bytes", "loom", "rustix", "thiserror"],
        bans: &[NO_FILES, NO_CLOCK, NO_THREADS],
    },
    Row {
        name: "offsets",
        ours: &["disk", "wal-format"],
        others: &["bincode", "serde", "thiserror"],
        bans: &[NO_FILES, NO_CLOCK, NO_THREADS],
    },
    Row {
        name: "scheduler",
        ours: &["wal-format"],
        others: &[],
        bans: &[NO_FILES, NO_CLOCK, NO_THREADS, NO_LOCKS],
    },
    Row {
        name: "pq",
        ours: &["disk", "offsets", "scheduler", "wal-format", "wal-store"],
        others: &[
            "bincode",
            "bytes",
            "crossbeam-channel",
            "loom",
            "rustix",
            "serde",
            "thiserror",
            "tokio",
            "tracing",
        ],
        bans: &[NO_FILES],
    },
    Row {
        name: "pq-cli",
        ours: &["pq"],
        others: &[
            "anyhow",
            "bytes",
            "clap",
            "indicatif",
            "jiff",
            "reqwest",
            "rustix",
            "rustls",
            "serde",
            "serde_json",
            "tokio",
            "toml",
        ],
        bans: &[],
    },
    Row { name: "sim-disk", ours: &["disk"], others: &["bytes"], bans: &[] },
    Row {
        name: "sim",
        ours: &["disk", "pq", "sim-disk", "wal-format", "wal-store"],
        others: &["clap", "crc32c", "proptest", "proptest-state-machine"],
        bans: &[],
    },
    Row { name: "loop-disk", ours: &[], others: &["anyhow", "clap", "fuser"], bans: &[] },
    Row { name: "witness", ours: &["pq"], others: &["anyhow", "clap"], bans: &[] },
    Row {
        name: "xtask",
        ours: &[],
        others: &["anyhow", "clap", "rustix", "serde", "serde_json", "toml"],
        bans: &[],
    },
    Row {
        name: "benches",
        ours: &["disk", "pq", "wal-format", "wal-store"],
        others: &[
            "anyhow",
            "bytes",
            "clap",
            "crc32c",
            "hdrhistogram",
            "okaywal",
            "queue-file",
            "rustix",
            "tokio",
            "walrus-rust",
            "yaque",
        ],
        bans: &[],
    },
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    #[serde(default)]
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// The versions it takes; `*` if the manifest names none.
    req: String,
    kind: Option<String>,
    path: Option<PathBuf>,
}

impl Package {
    /// The name of its folder, which is the name of its row.
    fn folder(&self) -> &str {
        last_part(self.manifest_path.parent().unwrap_or(&self.manifest_path))
    }
}

impl Dependency {
    /// One of ours by its folder, one of others' by its published name.
    fn row_name(&self) -> &str {
        self.path.as_deref().map_or(&self.name, last_part)
    }
}

fn last_part(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Runs the check on this checkout.
pub(crate) fn run() -> Result<()> {
    let text = output(&mut command("cargo metadata --format-version 1 --no-deps --offline"))
        .or_else(|_| output(&mut command("cargo metadata --format-version 1 --no-deps")))?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata is not as expected")?;
    let mut found = imports(&metadata.packages);
    for row in ROWS {
        let folder = root().join("crates").join(row.name);
        let bans = fs::read_to_string(folder.join("clippy.toml")).unwrap_or_default();
        found.extend(missing_bans(row, &bans));
    }
    let lib = fs::read_to_string(root().join("crates/wal-format/src/lib.rs")).unwrap_or_default();
    found.extend(not_no_std(&lib));
    let edges: usize = metadata.packages.iter().map(|package| package.dependencies.len()).sum();
    verdict("deps", &format!("{} crates, {edges} dependencies", metadata.packages.len()), &found)
}

/// Every dependency that its crate's row does not allow.
fn imports(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let folder = package.folder();
        let Some(row) = ROWS.iter().find(|row| row.name == folder) else {
            found.push(format!("{folder} has no row in xtask/src/deps.rs: say what it may import"));
            continue;
        };
        let dev_only = DEV_ONLY.contains(&row.name);
        if UNPUBLISHED.contains(&row.name) != package.publish.as_ref().is_some_and(Vec::is_empty) {
            found.push(format!(
                "{}: `publish = false` goes with the crates of `UNPUBLISHED`, and only them",
                row.name
            ));
        }
        let allowed: BTreeSet<_> = row.ours.iter().chain(row.others).copied().collect();
        for dependency in &package.dependencies {
            let name = dependency.row_name();
            if dependency.kind.as_deref() == Some("dev") {
                continue;
            }
            if !allowed.contains(name) {
                let whose = if dependency.path.is_some() { "our" } else { "the outside" };
                found
                    .push(format!("{} imports {whose} crate {name}, which its row does not allow", row.name));
            }
            if DEV_ONLY.contains(&name) && !dev_only {
                found.push(format!("{} imports {name}, which only tests may use", row.name));
            }
            if dependency.req == "*" || UNPUBLISHED.contains(&name) {
                let why = "no version is named, or it stays here";
                found.push(format!("{} imports {name}, and cannot be packaged: {why}", row.name));
            }
        }
    }
    found
}

fn missing_bans(row: &Row, clippy_toml: &str) -> Vec<String> {
    row.bans
        .iter()
        .filter(|ban| !clippy_toml.contains(&format!("path = \"{ban}\"")))
        .map(|ban| format!("crates/{}/clippy.toml no longer bans {ban}", row.name))
        .collect()
}

fn not_no_std(lib: &str) -> Option<String> {
    let declared =
        lib.lines().any(|line| matches!(line.trim(), "#![no_std]" | "#![cfg_attr(not(test), no_std)]"));
    (!declared).then(|| "crates/wal-format/src/lib.rs is not `no_std` any more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependency: &str, kind: Option<&str>) -> Package {
        Package {
            manifest_path: Path::new("crates").join(name).join("Cargo.toml"),
            publish: UNPUBLISHED.contains(&name).then(Vec::new),
            dependencies: vec![Dependency {
                name: format!("published-{dependency}"),
                req: "^0.1.0".to_owned(),
                kind: kind.map(str::to_owned),
                path: Some(Path::new("crates").join(dependency)),
            }],
        }
    }

    #[test]
    fn an_upward_import_is_found() {
        assert_eq!(imports(&[package("wal-store", "scheduler", None)]).len(), 1);
        assert_eq!(imports(&[package("wal-format", "disk", None)]).len(), 1);
        assert!(imports(&[package("wal-store", "disk", None)]).is_empty());
    }

    #[test]
    fn a_dev_only_crate_is_for_tests() {
        assert!(imports(&[package("offsets", "sim-disk", Some("dev"))]).is_empty());
        assert_eq!(imports(&[package("offsets", "sim-disk", None)]).len(), 2);
    }

    #[test]
    fn what_no_registry_would_find_is_found() {
        assert_eq!(imports(&[package("witness", "pq", None)]).len(), 0);
        let mut unnamed = package("witness", "pq", None);
        unnamed.dependencies[0].req = "*".to_owned();
        assert_eq!(imports(&[unnamed]).len(), 1);
        assert!(imports(&[package("benches", "sim", None)]).len() > 1, "and no row allows it");
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert_eq!(imports(&[package("helpers", "disk", None)]).len(), 1);
    }

    #[test]
    fn a_lifted_ban_is_found() {
        let row = &ROWS[0];
        assert_eq!(missing_bans(row, "").len(), row.bans.len());
    }

    #[test]
    fn std_in_the_format_is_found() {
        assert!(not_no_std("//! Bytes.\n#![no_std]\n").is_none());
        assert!(not_no_std("//! Bytes.\n").is_some());
    }
}
