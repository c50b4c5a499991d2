//! `pq-sim model`: the model test at any size.

use clap::Args;
use sim::{Size, run_model};

/// How much.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Runs.
    #[arg(long, default_value_t = 2000)]
    cases: u32,
    /// Operations of each.
    #[arg(long, default_value_t = 100)]
    steps: usize,
    /// What they follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the check; whether it passed.
pub(crate) fn run(arguments: &Arguments) -> bool {
    let &Arguments { cases, steps, seed } = arguments;
    match run_model(Size { cases, steps, seed }) {
        Ok(tried) => {
            let counts = tried.counts;
            println!(
                "model: seed {seed}, {cases} cases x {steps} steps, {} operations, {} power cuts, {} kills, {} records, {} deliveries OK",
                tried.steps, counts.power_cuts, counts.kills, counts.records, counts.delivered
            );
            true
        }
        Err(found) => {
            println!("{found}");
            println!(
                "model: seed {seed}, {cases} cases x {steps} steps FAILED {}",
                found.lines().next().unwrap_or_default()
            );
            false
        }
    }
}
