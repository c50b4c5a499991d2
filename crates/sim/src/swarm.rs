//! Swarm runs: each seed leaves some kinds of operations out and makes others rare, and draws its streams' sizes as well. What a run with
//! everything in it hardly comes to (many rotations and no save, a repair after each stop, faults without a crash) is then common to some.
//! The idea is that of Groce, Zhang, Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012.
//!
//! Invariant: appends are never left out, so that drawing ends.

use pq::StreamSettings;

use crate::operation::Operation;
use crate::random::Draw;

/// Of how many drawn operations a share is told.
const ALL: u64 = 8;
/// Kinds that are kept or left out by themselves.
const KINDS: usize = 14;

/// How many of [`ALL`] drawn operations of each kind are kept.
pub(crate) struct Swarm([u64; KINDS]);

impl Swarm {
    pub(crate) fn draw(from: &mut impl Draw) -> Self {
        let mut kept = [0; KINDS].map(|_: u64| from.pick(0, &[1, ALL, ALL]));
        if let Some(appends) = kept.first_mut() {
            *appends = ALL;
        }
        Self(kept)
    }

    /// The next operation of a kind that is not left out.
    pub(crate) fn operation(&self, from: &mut impl Draw) -> Operation {
        loop {
            let operation = Operation::draw(from);
            let kept = self.0.get(kind(&operation)).copied().unwrap_or(ALL);
            if from.below(ALL) < kept {
                return operation;
            }
        }
    }
}

/// Which share an operation falls under; 0: appends.
fn kind(operation: &Operation) -> usize {
    match operation {
        Operation::Append(..) | Operation::AppendWaiting(..) | Operation::Bound(_) => 0,
        Operation::AppendBatch(..) => 1,
        Operation::Commit(_) => 2,
        Operation::CommitDurable(_) | Operation::Wait(_) => 3,
        Operation::Rotate(_) => 4,
        Operation::Read(..) | Operation::Turn(_) => 5,
        Operation::Ack(..) | Operation::AckAgain(_) | Operation::KeepUp(..) => 6,
        Operation::Seek(..) | Operation::Retake(_) => 7,
        Operation::RemoveReader(_) | Operation::CreateReader(_) => 8,
        Operation::CreateStream(_) | Operation::DeleteStream(_) => 9,
        Operation::Tick | Operation::Timers | Operation::Pass(_) | Operation::WallJump(_) => 10,
        Operation::WriteBack(_) | Operation::Fault(_) | Operation::Limit(_) | Operation::Heal => 11,
        Operation::Close | Operation::Repair(_) => 12,
        Operation::Crash(_) | Operation::CrashAt { .. } => 13,
    }
}

/// Sizes of a stream: batches of one record or many, segments of one batch or many, a sync at each or hardly any.
pub(crate) fn resize(stream: &mut StreamSettings, from: &mut impl Draw) {
    stream.segment_bytes_max = from.pick(5 << 10, &[8 << 10, 16 << 10, 64 << 10]);
    stream.batch_records_max = from.pick(1, &[3, 64]);
    stream.unsynced_bytes_max = from.pick(1, &[4 << 10, 64 << 10]);
}
