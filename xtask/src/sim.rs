//! The simulation's checks: builds `pq-sim` for release and starts it. What it prints, its last line among it, is the check's.

use anyhow::Result;
use clap::Args;

use crate::pipeline::{CrashPoints, build};
use crate::shell::must;

/// What `pq-sim` is told; see `pq-sim crash --help`. `--enumerate` runs the scenarios instead of random seeds.
#[derive(Args)]
pub(crate) struct Arguments {
    /// As `pq-sim crash` takes them: `--seeds N --from S --threads T`, `--seed S --verbose`; or `--enumerate`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs random seeds, or the scenarios.
pub(crate) fn crash(arguments: &Arguments) -> Result<()> {
    let (flags, rest): (Vec<_>, Vec<_>) = arguments.arguments.iter().partition(|word| *word == "--enumerate");
    let check = if flags.is_empty() { "crash" } else { "enumerate" };
    start(check, &rest)
}

/// Runs the model test.
pub(crate) fn model(arguments: &Arguments) -> Result<()> {
    start("model", &arguments.arguments.iter().collect::<Vec<_>>())
}

/// Makes every call fail in every way, on the simulated disk.
pub(crate) fn faults(arguments: &[String]) -> Result<()> {
    start("faults", &arguments.iter().collect::<Vec<_>>())
}

fn start(check: &str, arguments: &[&String]) -> Result<()> {
    let program = build("sim", "pq-sim", CrashPoints::Absent)?;
    must(std::process::Command::new(program).arg(check).args(arguments))
}
