//! `pq-sim`: the simulation's checks as a program. Each ends in one line `name: figures … OK` or `name: … FAILED what`, exits 0 or 1, and
//! prints the seeds it used.

mod crash;
mod each_call_fails;
mod hunt;
mod model_test;
mod scenarios;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The whole queue under simulation.
#[derive(Parser)]
#[command(name = "pq-sim", about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand)]
enum Check {
    /// Random runs with power cuts, one a seed.
    Crash(crash::Arguments),
    /// Every call of every scenario stopped, with every survival that can be listed.
    Enumerate(scenarios::Arguments),
    /// Every bit, truncation and zeroed block of a queue's files, one at a time.
    Flip {
        /// Every how-manieth trial is made: 1 for all.
        #[arg(long, default_value_t = 1)]
        every: u64,
    },
    /// Every call of every scenario fails in every way.
    Faults(each_call_fails::Arguments),
    /// The first seed that finds something.
    Hunt(hunt::Arguments),
    /// The model test at any size.
    Model(model_test::Arguments),
}

fn main() -> ExitCode {
    let passed = match Arguments::parse().check {
        Check::Crash(arguments) => crash::run(&arguments),
        Check::Enumerate(arguments) => scenarios::run(&arguments),
        Check::Flip { every } => sim::flip(every),
        Check::Faults(arguments) => each_call_fails::run(&arguments),
        Check::Hunt(arguments) => hunt::run(arguments),
        Check::Model(arguments) => model_test::run(&arguments),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
