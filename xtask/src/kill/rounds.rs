//! `pq run` killed again and again on one queue, at named points and at random moments, while its inputs grow.
//!
//! The receiver remembers seq and number of every record, so a record delivered again (same seq) is told from one stored twice
//! (another seq, same number).

use std::time::Duration;

use anyhow::Result;

use super::folder::{Folder, Sizes};
use super::{Arguments, End, Place};
use crate::pipeline::{CrashPoints, Random, Scratch, build};
use crate::receiver::Receiver;
use crate::shell::verdict;

const STREAMS: [&str; 3] = ["a", "b", "c"];
const SIZES: Sizes = Sizes { segment: "256 KiB", batch: "32 KiB", cursor_save: "20ms" };
/// Places inside commit, rotation, cursor save, journal compaction and retirement, and up to which occurrence to draw.
const POINTS: [(&str, u64); 16] = [
    ("write.seg:before", 16),
    ("write.seg:middle", 16),
    ("commit.batch:before", 16),
    ("commit.batch:after", 16),
    ("create.seg:after", 3),
    ("segment.dir:before", 3),
    ("segment.dir:after", 3),
    ("rotate.file:before", 2),
    ("rotate.file:after", 2),
    ("write.cursors:middle", 3),
    ("cursors.save:before", 3),
    ("cursors.save:after", 3),
    ("journal.generation:before", 1),
    ("remove.seg:before", 2),
    ("remove.seg:after", 2),
    ("retire.dir:before", 1),
];
/// A round that nobody kills lasts about twice as long.
const MOMENT_MAX_US: u64 = 80_000;

/// Runs them, and compares once at the end.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let scratch = Scratch::new("kill")?;
    let program = build("pq-queue-cli", "pq", CrashPoints::Compiled)?;
    let receiver = Receiver::start()?;
    let mut random = Random::new(arguments.seed);
    let place = Place { program, folder: scratch.path().to_owned() };
    let streams = STREAMS.map(str::to_owned).to_vec();
    let mut folder = Folder::new(place, &receiver, streams, &SIZES)?;
    let per_round = arguments.records.div_ceil(arguments.rounds * STREAMS.len() as u64);
    let (mut killed, mut inside) = (0, 0);
    for round in 0..arguments.rounds {
        folder.grow_inputs(per_round, &mut random)?;
        match start(&folder, round, &mut random)? {
            End::AtPoint => (killed, inside) = (killed + 1, inside + 1),
            End::AtMoment => killed += 1,
            End::Itself => {}
        }
    }
    let summary = folder.last_run(None)?;
    let found = folder.compare()?;
    let bound = killed * STREAMS.len() as u64 * summary.turn_records_max;
    let mut rules = found.broken;
    if found.again > bound {
        rules.push(format!("{} records were delivered twice, the bound is {bound}", found.again));
    }
    if inside * 3 < arguments.rounds {
        rules.push(format!("only {inside} of {} rounds ended inside a named point", arguments.rounds));
    }
    println!("kill: seed {}, {} records, {inside} kills at named points", arguments.seed, folder.appended);
    let figures = format!(
        "{} rounds, {killed} killed, {} lost, {} out of order, {} twice in a stream, {} delivered twice (bound {bound})",
        arguments.rounds, found.lost, found.out_of_order, found.twice, found.again
    );
    verdict("kill", &figures, &rules)?;
    scratch.passed();
    Ok(())
}

/// One start that is to be killed: two of three times at a named point, else at a random moment.
fn start(folder: &Folder<'_>, round: u64, random: &mut Random) -> Result<End> {
    if round % 3 == 2 {
        return folder.start_to_be_killed(None, Duration::from_micros(random.below(MOMENT_MAX_US)));
    }
    let (point, most) = POINTS[usize::try_from(random.below(POINTS.len() as u64))?];
    let chosen = format!("{point}:{}", random.below(most) + 1);
    folder.start_to_be_killed(Some(&chosen), Duration::ZERO)
}
