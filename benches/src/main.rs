//! Benchmarks of `pq` beside plain reference loops: the same bytes, the same writes, the same syncs, in one run.
//!
//! `cargo xtask bench --quick` is the way in. What counts is the ratio: contenders take turns, round by round, and the table
//! gives medians of their figures and the median of the ratios within a round.

mod definitions;
mod floor;
mod harness;
mod life;
mod load;
mod ours;
mod peer;
mod raw;
mod reference;
mod start;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

use load::Load;

/// Benchmarks of pq beside plain reference loops.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
    /// Shows that everything runs, in seconds; checks no bound.
    #[arg(long, conflicts_with = "full")]
    tiny: bool,
    /// Many rounds. Without --tiny or --full: a quick run of some minutes.
    #[arg(long)]
    full: bool,
    /// Where to measure; the file system there decides what a sync costs. Default: a temporary folder beside the build.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Only the benchmarks whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Measure on a file system where a sync reaches no device.
    #[arg(long)]
    force: bool,
}

#[derive(Subcommand)]
enum Task {
    /// One workload, to be watched from outside.
    Workload(workload::Arguments),
    /// A queue's whole life, to be killed anywhere.
    Life(life::Arguments),
    /// A queue to be opened, or the opening of one.
    Start(start::Arguments),
    /// One crate that claims persistence: append numbered records, or read them back.
    Peer(peer::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.task {
        Some(Task::Workload(workload)) => workload::run(workload),
        Some(Task::Life(life)) => return life::run(life),
        Some(Task::Start(start)) => start::run(start),
        Some(Task::Peer(peer)) => peer::run(peer),
        None => run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bench: FAILED {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let load = match (arguments.tiny, arguments.full) {
        (true, _) => Load::TINY,
        (_, true) => Load::FULL,
        _ => Load::QUICK,
    };
    let folder = match &arguments.dir {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().context("no folder holds the program")?.to_owned(),
    };
    let place = folder.join(format!("pq-bench-{}", std::process::id()));
    let kind = floor::file_system(&folder)?;
    if !arguments.force && !arguments.tiny {
        floor::refuse_without_device(&kind, &folder)?;
    }
    std::fs::create_dir_all(&place)?;
    let outcome = measure(arguments, &load, &place, &kind);
    std::fs::remove_dir_all(&place).ok();
    outcome
}

fn measure(arguments: &Arguments, load: &Load, place: &std::path::Path, kind: &str) -> Result<()> {
    let floor = floor::sync_floor_us(place)?;
    println!(
        "file system {kind}, {} cores, sync floor (4 KiB write + fdatasync, growing file) {floor:.0} µs, payload {} B, {} rounds",
        std::thread::available_parallelism()?,
        load::PAYLOAD_BYTES,
        load.rounds
    );
    let wanted = |benchmark: &harness::Benchmark| benchmark.name.contains(&arguments.only);
    let benchmarks: Vec<_> = definitions::all(load, place).into_iter().filter(wanted).collect();
    ensure!(!benchmarks.is_empty(), "no benchmark is named like {}", arguments.only);
    let mut missed = Vec::new();
    if !arguments.tiny {
        missed.extend(definitions::reference_beside_fio(place)?);
    }
    println!("{}", harness::head());
    let count = benchmarks.len();
    for benchmark in benchmarks {
        let row = harness::run(benchmark, load.rounds)?;
        println!("{}", row.text);
        missed.extend(row.missed);
    }
    ensure!(arguments.tiny || missed.is_empty(), "{}", missed.join("; "));
    println!(
        "bench: {count} benchmarks, {} rounds{} OK",
        load.rounds,
        if arguments.tiny { ", bounds not checked" } else { "" }
    );
    Ok(())
}
