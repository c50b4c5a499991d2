//! Checks and chores of this repository: `cargo xtask <name>`.
//!
//! It imports none of our crates: it reads sources, starts programs and compares what they left behind, so that a check
//! cannot share a bug with what it checks. Every check ends in one line, `name: figures … OK` or `name: … FAILED what`,
//! and exits 0 or 1.

mod ci;
mod deps;
mod shell;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks and chores of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything a change must pass: format, clippy, tests, docs, tidy, deps, corpus replay, tiny benches.
    Ci,
    /// Holds the dependency picture of ARCHITECTURE.md against the manifests.
    Deps,
    /// Holds the house rules that no lint knows against the sources.
    Tidy,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Ci => ci::run(),
        Task::Deps => deps::run(),
        Task::Tidy => tidy::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
