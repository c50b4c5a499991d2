//! Every bit, every truncation, every zeroed block of a queue's files: builds the simulator for release and lets it try them all.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::pipeline::{CrashPoints, build};
use crate::shell::must;

/// How thoroughly.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Every how-manieth trial is made: 1 for all.
    #[arg(long, default_value_t = 1)]
    every: u64,
}

/// Runs the check; it prints its own line.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let program = build("sim", "pq-sim", CrashPoints::Absent)?;
    must(Command::new(program).arg("flip").args(["--every", &arguments.every.to_string()]))
}
