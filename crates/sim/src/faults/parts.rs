//! Room for only a part of what waits, and never for all of it at once: that part is stored, then the next.
//!
//! ```text
//!   12 batches wait ─> room for k ─> commit: at least k durable ─> room for one more, again and again, timers alone ─> all durable
//! ```
//!
//! Invariant: the limit is never lifted before everything is stored.

use std::time::Duration;

use pq::StreamSettings;
use sim_disk::SimDisk;

use super::Tally;
use crate::operation::{Load, Operation, StreamIndex};
use crate::setup::{Setup, kinds_of_streams, options};
use crate::violation::{Checked, Kind, ensure};
use crate::world::World;

const BATCHES: u64 = 12;
const RECORD_BYTES: usize = 1 << 10;
/// Most bytes of a batch of one record.
const BATCH_BYTES: u64 = RECORD_BYTES as u64 + 64 + 16;
const HEADER_BYTES: u64 = 4096;
/// Far more waits than any back-off takes.
const ROUNDS_MAX: u32 = 100;

/// What runs out.
#[derive(Debug, Clone, Copy)]
enum Lack {
    Space,
    Quota,
    FileSize,
}

impl Lack {
    /// Leaves room for a new segment with so many batches.
    fn leave(self, disk: &SimDisk, batches: u64) {
        let bytes = HEADER_BYTES + batches * BATCH_BYTES;
        match self {
            Self::Space => disk.set_capacity(Some(disk.used_bytes() + bytes.next_multiple_of(4096))),
            Self::Quota => disk.set_quota(Some(disk.used_bytes() + bytes.next_multiple_of(4096))),
            Self::FileSize => disk.set_file_bytes_max(Some(bytes)),
        }
    }
}

/// Every number of batches that there may be room for, for every reason.
#[must_use]
pub fn run_parts() -> Tally {
    let mut tally = Tally::default();
    for lack in [Lack::Space, Lack::Quota, Lack::FileSize] {
        for batches in 1..BATCHES {
            tally.cases += 1;
            if let Err(violation) = run(lack, batches) {
                tally
                    .found
                    .push(format!("room for part of a set: {batches} of {BATCHES}, {lack:?}: {violation}"));
            }
        }
    }
    tally
}

fn setup() -> Setup {
    let usual = kinds_of_streams().into_iter().next().unwrap_or_default();
    // Nothing but the end of the set makes it sync.
    let stream = StreamSettings {
        segment_bytes_max: 64 << 10,
        unsynced_bytes_max: 64 << 10,
        batch_records_max: 1,
        record_bytes_max: RECORD_BYTES,
        ..usual
    };
    let options = pq::Options { buffer_bytes_max: 64 << 10, stream: stream.clone(), ..options() };
    Setup { streams: vec![stream], pulls_count: 1, options, ..Setup::usual(11) }
}

fn run(lack: Lack, batches: u64) -> Checked {
    let mut world = World::new(setup())?;
    let stream = StreamIndex(0);
    for _ in 0..BATCHES {
        world.step(&Operation::Append(stream, Load { count: 1, bytes: u16::MAX }))?;
    }
    let durable = |world: &World| world.durable_end(0).map_or(0, |end| end - 1);
    world.expect_trouble();
    lack.leave(world.disk(), batches);
    world.step(&Operation::CommitDurable(stream))?;
    let stored = durable(&world);
    ensure(stored >= batches, Kind::Stuck, || format!("{stored} stored with room for {batches}"))?;
    let mut rounds = 0;
    while durable(&world) < BATCHES {
        rounds += 1;
        ensure(rounds < ROUNDS_MAX, Kind::Stuck, || {
            format!("{} stored after {rounds} rounds", durable(&world))
        })?;
        lack.leave(world.disk(), 1);
        world
            .step(&Operation::Pass(u32::try_from(Duration::from_secs(1).as_micros()).unwrap_or(u32::MAX)))?;
        world.step(&Operation::Timers)?;
    }
    world.settle()?;
    world.discard();
    Ok(())
}
