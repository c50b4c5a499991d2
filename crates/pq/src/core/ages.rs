//! Age: by how long the queue was open, over all its runs. No clock can jump it; a queue that is closed does not age.
//!
//! ```text
//!   mark: "below seq 95 all was durable at 2 h" ── open for age_max since ──> what ends below 95 is old
//! ```
//! A stream with an age limit is marked at most every sixteenth of it, and only when it grew; the marks are saved with the cursors.
//!
//! Invariants: a record is never older than it seems; a stream without an age limit, and an idle one, costs no wake-up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use offsets::{AgeMark, OpenTime};
use wal_format::{Instant, Now, Seq, StreamId};

use crate::clock::locked;

use super::tick::Plan;
use super::{Core, Ledger, StreamState};

/// So many marks in the time of the limit.
const MARKS_PER_AGE: u32 = 16;
/// More often would be a busy loop.
const STEP_MIN: Duration = Duration::from_millis(1);

/// For how long the queue was open, and when which stream is to be looked at again.
#[derive(Debug)]
pub(super) struct Ages {
    opened_at: Instant,
    before: OpenTime,
    dues: Mutex<Dues>,
}

#[derive(Debug, Default)]
struct Dues {
    by_time: BTreeSet<(Instant, StreamId)>,
    by_stream: BTreeMap<StreamId, Instant>,
}

impl Ages {
    pub(super) fn new(opened_at: Instant, before: OpenTime) -> Self {
        Self { opened_at, before, dues: Mutex::default() }
    }

    /// For how long the queue was open at `now`.
    pub(super) fn open_time(&self, now: Instant) -> OpenTime {
        self.before.saturating_add(now.saturating_since(self.opened_at))
    }

    /// When it will have been open for that long.
    fn at(&self, time: OpenTime) -> Instant {
        self.opened_at.saturating_add(time.saturating_since(self.before))
    }

    /// When a tick is to look at a stream.
    pub(super) fn due(&self) -> Option<Instant> {
        locked(&self.dues).by_time.first().map(|(at, _)| *at)
    }

    /// The streams that are to be looked at by now.
    pub(super) fn take_due(&self, now: Instant) -> Vec<StreamId> {
        let mut dues = locked(&self.dues);
        let mut streams = Vec::new();
        while let Some((at, stream)) = dues.by_time.first().copied().filter(|(at, _)| *at <= now) {
            dues.by_time.remove(&(at, stream));
            dues.by_stream.remove(&stream);
            streams.push(stream);
        }
        streams
    }

    /// Replaces when a stream is to be looked at.
    fn look_again(&self, stream: StreamId, at: Option<Instant>) {
        let mut dues = locked(&self.dues);
        if let Some(before) = dues.by_stream.remove(&stream) {
            dues.by_time.remove(&(before, stream));
        }
        if let Some(at) = at {
            dues.by_stream.insert(stream, at);
            dues.by_time.insert((at, stream));
        }
    }
}

impl Core {
    /// Marks a stream if it is time, and says below which seq all records are too old.
    pub(super) fn plan_age(
        &self,
        plan: &mut Plan,
        ledger: &Ledger,
        stream: &StreamState,
        now: Now,
    ) -> Option<Seq> {
        let Some(age_max) = stream.log.limits().age_max else {
            self.ages.look_again(stream.id, None);
            return None;
        };
        let time = self.ages.open_time(now.instant);
        stream.listener.all_marked();
        let durable = stream.ends().durable;
        let marks = ledger.offsets.age_marks(stream.id);
        let last = marks.last();
        let floor = ledger.offsets.floor(stream.id).map_or(Seq::FIRST, |floor| floor.seq);
        let mut next = None;
        if last.map_or(floor, |mark| mark.end.max(floor)) < durable {
            let step = (age_max / MARKS_PER_AGE).max(STEP_MIN);
            match last.map(|mark| mark.at.saturating_add(step)).filter(|at| *at > time) {
                Some(at) => {
                    stream.listener.more_to_mark();
                    next = Some(at);
                }
                None => {
                    plan.marks.push((stream.id, AgeMark { end: durable, at: time }));
                    next = Some(time.saturating_add(age_max));
                }
            }
        }
        let is_old = |mark: &&AgeMark| time.saturating_since(mark.at) >= age_max;
        let young = marks.iter().find(|mark| !is_old(mark)).map(|mark| mark.at.saturating_add(age_max));
        let next = young.into_iter().chain(next).min();
        self.ages.look_again(stream.id, next.map(|time| self.ages.at(time)));
        marks.iter().filter(is_old).map(|mark| mark.end).max()
    }
}
