//! Checks and chores of this repository: `cargo xtask <name>`.
//!
//! It imports none of our crates: it reads sources, starts programs and compares what they left behind, so that a check
//! cannot share a bug with what it checks. Every check ends in one line, `name: figures … OK` or `name: … FAILED what`,
//! and exits 0 or 1.

mod bench;
mod ci;
mod compare;
mod coverage;
mod deps;
mod failed_sync;
mod faults;
mod fds;
mod flip;
mod fuzz;
mod idle;
mod judge;
mod kill;
mod loop_disk;
mod mounted;
mod mutants;
mod pipeline;
mod power_cut;
mod receiver;
mod scenarios;
mod shell;
mod sim;
mod soak;
mod start;
mod syscalls;
mod talking;
mod tidy;
mod witness;

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
    /// Benchmarks beside plain reference loops.
    Bench(bench::Arguments),
    /// Everything a change must pass: format, clippy, tests, docs, tidy, deps, corpus replay, tiny benches.
    Ci,
    /// Random power cuts under simulation, or with --enumerate one at every call of every scenario.
    Crash(sim::Arguments),
    /// pq beside published crates, under the same kills, power cuts and flipped bits.
    Compare(compare::Arguments),
    /// Line coverage of the crates that hold data, and the error arms that no test runs.
    Coverage,
    /// Holds the dependency picture of ARCHITECTURE.md against the manifests.
    Deps,
    /// Fails device writes and flushes under chosen operations on real file systems.
    FailedSync(failed_sync::Arguments),
    /// Faults of real kernels under a queue at work; with --simulated every call fails in every way on a simulated disk.
    Faults(faults::Arguments),
    /// 1,000 streams under a limit of 64 open files.
    Fds,
    /// Every bit, truncation and zeroed block of a queue's files, one at a time.
    Flip(flip::Arguments),
    /// Runs every fuzz target for a while.
    Fuzz(fuzz::Arguments),
    /// What 1,000 idle streams use of a core.
    Idle,
    /// Kills `pq run` again and again, and compares what arrived.
    Kill(kill::Arguments),
    /// Which test covers which line of docs/scenarios.md.
    Scenarios,
    /// The model test at full size: `--cases N --steps N --seed S`.
    Model(sim::Arguments),
    /// Runs the random tests with fresh seeds, round after round.
    Soak(soak::Arguments),
    /// How long a queue takes to open with 10,000 streams, and with 10 GiB of backlog.
    Start(start::Arguments),
    /// Plants bugs, one at a time, and holds the crash suite to finding each.
    SyncMutants(mutants::Arguments),
    /// Cuts the power under a working queue on real file systems, and compares what is there with what was promised.
    PowerCut(power_cut::Arguments),
    /// Counts system calls per MB and per record with strace.
    Syscalls,
    /// Holds the house rules that no lint knows against the sources.
    Tidy,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Ci => ci::run(),
        Task::Crash(arguments) => sim::crash(&arguments),
        Task::Compare(arguments) => compare::run(&arguments),
        Task::Coverage => coverage::run(),
        Task::Deps => deps::run(),
        Task::FailedSync(arguments) => failed_sync::run(&arguments),
        Task::Faults(arguments) => faults::run(&arguments),
        Task::Fds => fds::run(),
        Task::Flip(arguments) => flip::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Idle => idle::run(),
        Task::Kill(arguments) => kill::run(&arguments),
        Task::Scenarios => scenarios::run(),
        Task::Model(arguments) => sim::model(&arguments),
        Task::Soak(arguments) => soak::run(&arguments),
        Task::Start(arguments) => start::run(&arguments),
        Task::SyncMutants(arguments) => mutants::run(&arguments),
        Task::PowerCut(arguments) => power_cut::run(&arguments),
        Task::Syscalls => syscalls::run(),
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
