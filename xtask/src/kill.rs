//! Programs of ours killed with SIGKILL while they work; then what arrived is held against what was put in.
//!
//! ```text
//!   rounds   `pq run` again and again on one queue, at named points and at random moments       kill/rounds.rs
//!   points   on a new queue for each: killed at every named point there is, once, then twice
//!            in a row, the second time in the restart                                            kill/points.rs
//!              `pq run`           what arrived at its sinks is compared                          kill/folder.rs
//!              `pq-bench life`    what no configuration does: delete, re-create, remove, damage  kill/life.rs
//!              `pq repair`        what could be read of a damaged folder before, and after        kill/mend.rs
//! ```
//! A named point is a call that changes the disk, by name and moment (`commit.batch:before`). Which there are, the programs
//! themselves write down in a run that nobody kills.

mod folder;
mod found;
mod life;
mod mend;
mod points;
mod rounds;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::pipeline::{CrashPoints, Running, Scratch, build};
use crate::receiver::Receiver;
use crate::shell::verdict;

/// How often, and with what.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Times the program is started to be killed.
    #[arg(long, default_value_t = 50)]
    rounds: u64,
    /// Records of all streams together.
    #[arg(long, default_value_t = 300_000)]
    records: u64,
    /// What the moments, points and line lengths follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kills at every named point instead, once and twice in a row.
    #[arg(long, conflicts_with_all = ["rounds", "records"])]
    points: bool,
    /// With --points: of the pairs of a kill and a second one elsewhere in the restart, every n-th; 1 for all.
    #[arg(long, default_value_t = 10, requires = "points")]
    every: usize,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    ensure!(arguments.every > 0, "--every must be at least 1");
    if arguments.points { run_points(arguments) } else { rounds::run(arguments) }
}

fn run_points(arguments: &Arguments) -> Result<()> {
    let scratch = Scratch::new("kill-points")?;
    let mut reached = points::Reached::default();
    let receiver = Receiver::start()?;
    let program = build("pq-queue-cli", "pq", CrashPoints::Compiled)?;
    let mut pipeline = folder::Trials::new(program.clone(), scratch.path(), &receiver, arguments.seed);
    points::kill_at_each(&mut pipeline, arguments.every, &mut reached)?;
    let mut repairs = mend::Trials::new(program, scratch.path())?;
    points::kill_at_each(&mut repairs, arguments.every, &mut reached)?;
    let program = build("pq-bench", "pq-bench", CrashPoints::Compiled)?;
    for kind in [life::Kind::Sound, life::Kind::Damaged] {
        let mut life = life::Trials::new(program.clone(), scratch.path(), kind);
        points::kill_at_each(&mut life, arguments.every, &mut reached)?;
    }
    reached.print(arguments.seed);
    verdict("kill-points", &reached.figures(), &reached.broken)?;
    scratch.passed();
    Ok(())
}

/// How a started program ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    AtPoint,
    AtMoment,
    Itself,
}

/// Where things are kept that must outlive a kill.
struct Place {
    program: PathBuf,
    folder: PathBuf,
}
