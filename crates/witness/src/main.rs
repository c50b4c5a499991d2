//! `pq-witness`: uses a queue as it is told, and writes down elsewhere what the queue promised and showed.
//!
//! It judges nothing: `cargo xtask power-cut`, `failed-sync` and `faults` start it, break the disk under it, start it again, and hold
//! what it wrote down in one life against what it found in the next.
//!
//! ```text
//!   stdin: steps ──> pq-witness ──> queue on the disk under test
//!   stdout: an answer each             └──> testimony, on another disk
//! ```
//! It ends with its standard input, without closing the queue: as a kill would.

mod client;
mod payloads;
mod report;
mod steps;
mod testimony;
mod work;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Parser;
use pq::Queue;

use client::{Client, options};
use payloads::Payloads;
use steps::{Next, Steps};
use testimony::Testimony;

/// Uses a queue and writes down what it promised.
#[derive(Parser)]
struct Arguments {
    /// The queue's directory, on the disk under test
    dir: PathBuf,
    /// Where to write what was promised, on another disk
    #[arg(long)]
    testimony: PathBuf,
    /// A name of this life, not used before with this queue
    #[arg(long)]
    life: String,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The starter reads this where an answer is due.
            println!("failed {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let testimony = Testimony::open(&arguments.testimony)?;
    let queue = Queue::open(&arguments.dir, options()).context("the queue cannot be opened")?;
    let payloads = Payloads::new(&arguments.life);
    let client = Arc::new(Client { queue, testimony, payloads, stop: AtomicBool::new(false) });
    client.say_opening()?;
    client.report(&arguments.dir)?;
    answer("ok")?;
    let mut steps = Steps { client, dir: &arguments.dir, working: Vec::new() };
    for line in std::io::stdin().lock().lines() {
        match steps.obey(&line.context("stdin cannot be read")?) {
            Ok((next, said)) => {
                answer(format!("ok {said}").trim_end())?;
                if next == Next::End {
                    return Ok(());
                }
            }
            Err(error) => answer(&format!("failed {error:#}"))?,
        }
    }
    // Dropping the queue would close it in order.
    std::process::exit(0)
}

fn answer(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("nobody reads the answers")
}
