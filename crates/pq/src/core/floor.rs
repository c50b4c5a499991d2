//! Which part of a stream may go: what every consumer has, what is too old, what is over a byte limit, in this order.
//!
//! ```text
//!   | delivered | expired | trimmed |  kept  | being written
//!   floor ──────────────────────────>|            └─ rotated if it is in the way
//! ```
//!
//! Invariants: only whole rotated segments go; what not every consumer had goes with its exact range and reason in the same save as the
//! floor; a stream without consumers keeps everything but what its limits drop.

use std::sync::Arc;

use offsets::{Floor, FloorReason, Trim};
use wal_format::{Now, SegmentId, Seq};
use wal_store::{Pressure, RetirePoint, SegmentState};

use super::tick::Plan;
use super::{ConsumerState, Core, Ledger, StreamState};

/// What asks for a stream's segments.
struct Asked {
    /// The least cursor that will be durable; `None`: no consumer.
    least: Option<Seq>,
    /// Everything below is too old.
    old_below: Option<Seq>,
    pressure: Pressure,
}

impl Core {
    /// Plans the floor a stream may rise to, and what is unlinked then.
    pub(super) fn plan_stream(&self, plan: &mut Plan, ledger: &Ledger, stream: Arc<StreamState>, now: Now) {
        let about_to_be =
            |c: &Arc<ConsumerState>| plan.cursors.get(&c.key).copied().unwrap_or_else(|| c.saved());
        let least = stream.consumers().iter().map(about_to_be).min();
        let old_below = self.plan_age(plan, ledger, &stream, now);
        let asked = Asked { least, old_below, pressure: stream.log.space_pressure() };
        self.rotate_out_of_the_way(&stream, &asked, now);
        let floor = ledger.offsets.floor(stream.id);
        let mut below = floor.map(|floor| floor.segment);
        if let Some((point, reason)) = plan_point(plan, &stream, &asked, floor) {
            let tags = stream.log.last_tags().into_iter().map(tag_of).collect();
            plan.floors.push((stream.id, Floor { seq: point.seq, segment: point.segment, reason, tags }));
            below = Some(point.segment);
        }
        let below = below.unwrap_or(SegmentId::FIRST);
        let oldest = stream.log.segments().first().map(|segment| segment.id);
        if oldest.is_some_and(|oldest| oldest < below) || stream.log.has_void_files() {
            plan.retire.push((stream, below));
        }
    }

    /// Rotates the segment being written if it is all that is left to go.
    fn rotate_out_of_the_way(&self, stream: &StreamState, asked: &Asked, now: Now) {
        let segments = stream.log.segments();
        let Some(open) = segments.last().filter(|segment| segment.state == SegmentState::Open) else {
            return;
        };
        let is_all_below =
            |seq: Option<Seq>| seq.is_some_and(|seq| open.end_seq <= seq && stream.ends().appended <= seq);
        let is_short = asked.pressure.refused || self.room.space().is_short();
        let others = stream.log.bytes_below(open.id);
        let must_go = asked.pressure.refused && asked.pressure.excess > others;
        if !(must_go || (is_short && is_all_below(asked.least)) || is_all_below(asked.old_below)) {
            return;
        }
        if let Err(error) = stream.log.rotate(now) {
            if stream.quiet.may_speak(now.instant) {
                tracing::warn!(stream = %stream.name, %error, "a segment could not be rotated to make space");
            }
            // Nobody else would ask again.
            self.hub.touch(stream.id);
        }
    }
}

/// The highest of the points the stream may move to, above its floor; notes what it drops.
fn plan_point(
    plan: &mut Plan,
    stream: &StreamState,
    asked: &Asked,
    floor: Option<&Floor>,
) -> Option<(RetirePoint, FloorReason)> {
    let log = &stream.log;
    let rises = |point: &RetirePoint| {
        floor.is_none_or(|floor| point.segment > floor.segment && point.seq >= floor.seq)
    };
    let delivered = asked.least.and_then(|least| log.plan_retire(least)).filter(rises);
    let mut best = delivered.map(|point| (point, FloorReason::Delivered));
    let mut from = floor.map_or(Seq::FIRST, |floor| floor.seq).max(asked.least.unwrap_or(Seq::FIRST));
    let expired = asked.old_below.and_then(|below| log.plan_drop_below(below));
    let trimmed =
        Some(asked.pressure.excess).filter(|bytes| *bytes > 0).and_then(|bytes| log.plan_drop_bytes(bytes));
    for (point, reason) in [(expired, FloorReason::Expired), (trimmed, FloorReason::Trimmed)] {
        let Some(point) = point.filter(rises) else { continue };
        if best.is_some_and(|(best, _)| point.segment <= best.segment) {
            continue;
        }
        best = Some((point, if point.seq > from { reason } else { FloorReason::Delivered }));
        if point.seq > from {
            plan.trims.push((stream.id, Trim { from, to: point.seq, reason }));
            from = point.seq;
        }
    }
    best
}

fn tag_of(tag: wal_store::OwnedTag) -> offsets::OwnedTag {
    offsets::OwnedTag { producer: tag.producer, value: tag.value, at: tag.at }
}
