//! What every change must pass, in the order that fails soonest.

use std::time::Instant;

use anyhow::Result;

use crate::shell::{command, must};
use crate::{deps, tidy};

/// All features but `pq-bench/peers`: the crates compared with are many and slow to build, and no part of the product.
const OUR_FEATURES: &str = "pq-queue-cli/crash-points,pq-bench/crash-points,pq-disk/contract";

/// The libraries, each alone: together, one crate's features would be another's, and hide what it lacks without them.
const LIBRARIES: [&str; 6] = ["wal-format", "pq-disk", "wal-store", "offsets", "pq-scheduler", "pq-queue"];

/// Runs all steps and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let begun = Instant::now();
    step("format", || must(&mut command("cargo fmt --all --check")))?;
    step("tidy", tidy::run)?;
    step("deps", deps::run)?;
    step("clippy", || {
        must(command("cargo clippy --workspace --all-targets").args([
            "--features",
            OUR_FEATURES,
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    step("clippy, features off", || LIBRARIES.iter().try_for_each(|package| without_features(package)))?;
    // The corpus of every fuzz target is replayed by the tests of the crate that owns the entry point.
    step("tests and corpus replay", || must(&mut command("cargo test --workspace")))?;
    step("docs", || must(command("cargo doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings")))?;
    step("benches, tiny", || must(&mut command("cargo run --release --quiet -p pq-bench -- --tiny")))?;
    println!("ci: 8 steps in {:.0} s OK", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Without its tests: they may ask for all features.
fn without_features(package: &str) -> Result<()> {
    let line = format!("cargo clippy --quiet --package {package} --no-default-features -- -D warnings");
    must(&mut command(&line))
}

fn step(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let begun = Instant::now();
    run()?;
    println!("== {name}: {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}
