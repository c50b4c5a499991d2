//! Starts the benchmarks, built for release.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::shell::{command, must};

/// How much to measure, and where.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A quick run of some minutes (the default).
    #[arg(long, conflicts_with_all = ["tiny", "full"])]
    quick: bool,
    /// Shows that everything runs; checks no bound.
    #[arg(long, conflicts_with = "full")]
    tiny: bool,
    /// Many rounds.
    #[arg(long)]
    full: bool,
    /// Where to measure. Default: beside the build.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Only the benchmarks whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Measure on a file system where a sync reaches no device.
    #[arg(long)]
    force: bool,
}

/// Builds and runs them.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut bench = command("cargo run --release --quiet -p pq-bench --");
    for (given, flag) in
        [(arguments.tiny, "--tiny"), (arguments.full, "--full"), (arguments.force, "--force")]
    {
        if given {
            bench.arg(flag);
        }
    }
    if let Some(dir) = &arguments.dir {
        bench.arg("--dir").arg(std::path::absolute(dir)?);
    }
    if let Some(only) = &arguments.only {
        bench.args(["--only", only]);
    }
    must(&mut bench)
}
