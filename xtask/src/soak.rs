//! The random tests again and again, each round with seeds of its own.
//!
//! `cargo test` runs them with the one seed of `.cargo/config.toml`, so that a change that fails has failed by itself and the same
//! run can be had again. Looking for what that seed does not show is this command: a seed that fails is printed with the
//! command that repeats it, and the case it came down to belongs into the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use crate::shell::{command, root, verdict};

/// The variable that gives proptest its seed.
const SEED: &str = "PROPTEST_RNG_SEED";

/// How long, and from where.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs every random test once.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// The first round's seed; the next one's is one more.
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// Only tests whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

/// The random tests there are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    packages: BTreeSet<String>,
    tests: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

/// Runs the rounds; a failed one is told, and the next one still runs.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut found = Found::default();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let mut names = BTreeSet::new();
        look(&folder, &mut names)?;
        names.retain(|name| name.contains(&arguments.only));
        if !names.is_empty() {
            found.packages.insert(package(&folder)?);
            found.tests.append(&mut names);
        }
    }
    ensure!(!found.tests.is_empty(), "no random test is named like {}", arguments.only);
    let mut failed = Vec::new();
    for seed in (arguments.seed..).take(usize::try_from(arguments.rounds).unwrap_or(usize::MAX)) {
        match round(&found, seed)? {
            None => println!("seed {seed}: {} tests passed", found.tests.len()),
            Some(said) => {
                eprintln!("{said}");
                failed.push(format!(
                    "seed {seed} fails; again: {SEED}={seed} cargo test {}",
                    repeat(&found).join(" ")
                ));
            }
        }
    }
    let figures = format!(
        "{} random tests, {} rounds from seed {}, {} failed",
        found.tests.len(),
        arguments.rounds,
        arguments.seed,
        failed.len()
    );
    verdict("soak", &figures, &failed)
}

/// One run of all of them; what it printed if it failed.
fn round(found: &Found, seed: u64) -> Result<Option<String>> {
    let mut test = command("cargo test --quiet");
    test.args(repeat(found)).env(SEED, seed.to_string()).stdin(Stdio::null());
    let output = test.output().context("could not start cargo")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if !output.status.success() {
        return Ok(Some(said));
    }
    let (ran, wanted) = (passed(&said), found.tests.len());
    ensure!(ran >= wanted, "{ran} tests ran of {wanted}: {said}");
    Ok(None)
}

/// How many tests passed, in all programs together.
fn passed(said: &str) -> usize {
    let counts =
        said.lines().filter_map(|line| line.strip_prefix("test result: ok. ")?.split_once(" passed"));
    counts.filter_map(|(count, _)| count.parse::<usize>().ok()).sum()
}

fn repeat(found: &Found) -> Vec<String> {
    let packages = found.packages.iter().flat_map(|name| ["--package".to_owned(), name.clone()]);
    let kinds = ["--lib", "--tests", "--"].map(str::to_owned);
    packages.chain(kinds).chain(found.tests.iter().cloned()).collect()
}

fn package(folder: &Path) -> Result<String> {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    Ok(manifest.package.name)
}

/// The random tests of all sources below a folder.
fn look(folder: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            look(&path, names)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(random_tests(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Names of the tests inside `proptest!` blocks, which begin and end at the left margin.
fn random_tests(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut is_random, mut is_test) = (false, false);
    for line in source.lines() {
        match line.trim_start() {
            "proptest! {" => is_random = true,
            "}" if line == "}" => is_random = false,
            "#[test]" => is_test = is_random,
            code if is_test && code.starts_with("fn ") => {
                names.extend(code["fn ".len()..].split_once('(').map(|(name, _)| name.to_owned()));
                is_test = false;
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
#[path = "soak_tests.rs"]
mod tests;
