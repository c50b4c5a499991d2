//! The tick: everything that changed about cursors in one save, then what that allows to be unlinked.
//!
//! ```text
//!   data ─> directory ─> cursor ┬ one save ─> floor ─> unlink, ascending ─> one directory sync        (I7)
//!                               └ the floor stands behind its cursors in the same save
//! ```
//!
//! It is armed by an acknowledgement, a rotation, a segment read to its end, a seek, a remove; and disarmed before it takes
//! its snapshot, so that what changes meanwhile arms it again. An idle queue has no tick.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use offsets::{CursorMove, DurableEnd, Floor, FloorReason, Save, sites};
use scheduler::Key;
use wal_format::{Instant, Now, SegmentId, Seq, StreamId};
use wal_store::{Log, ReadLevel, Want};

use crate::SaveError;
use crate::clock::locked;

use super::consumer::Later;
use super::hub::Changed;
use super::{ConsumerState, Core, Ledger, Phase, StreamState};

/// Longest wait between two tries of a failed save.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// What a tick did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TickReport {
    /// Cursors saved.
    pub cursors_count: usize,
    /// Floors that rose.
    pub floors_count: usize,
    /// Segments unlinked.
    pub retired_count: usize,
}

/// What one tick is about to save.
#[derive(Default)]
struct Plan {
    moves: Vec<(Arc<ConsumerState>, CursorMove)>,
    cursors: HashMap<Key, Seq>,
    floors: Vec<(StreamId, Floor)>,
    ends: Vec<(StreamId, DurableEnd)>,
    /// Where segments may be unlinked afterwards.
    retire: Vec<(Arc<StreamState>, SegmentId)>,
}

impl Core {
    /// When the next tick is due; `None`: nothing changed.
    pub(crate) fn tick_due(&self, now: Instant) -> Option<Instant> {
        // The request stands until the tick takes its snapshot: one wake-up a tick, whoever asks.
        if self.hub.saver.is_requested() && self.hub.saver.due().is_none() {
            let ledger = locked(&self.ledger);
            let wait = self.options.cursor_interval.saturating_mul(1 << ledger.failures.min(10)).min(
                if ledger.failures == 0 {
                    Duration::MAX
                } else {
                    RETRY_MAX.max(self.options.cursor_interval)
                },
            );
            let due = ledger.last_tick.map_or(now, |last| last.saturating_add(wait));
            drop(ledger);
            self.hub.saver.arm(due);
        }
        self.hub.saver.due()
    }

    /// Saves and retires, if that is due.
    ///
    /// # Errors
    /// As [`Core::tick`].
    pub fn tick_if_due(&self, now: Now) -> Result<TickReport, SaveError> {
        match self.tick_due(now.instant) {
            Some(due) if due <= now.instant => self.tick(now),
            _ => Ok(TickReport::default()),
        }
    }

    /// Saves what changed, with one write and one sync, and unlinks what no consumer needs.
    ///
    /// # Errors
    /// Nothing was saved or unlinked; it is tried again by itself, later each time. Once the queue is closed nothing ever is: its
    /// directory may have another owner.
    pub fn tick(&self, now: Now) -> Result<TickReport, SaveError> {
        self.hub.saw(now.instant);
        let mut ledger = locked(&self.ledger);
        if self.phase() == Phase::Closed {
            return Err(SaveError::Closed);
        }
        let _ = self.hub.saver.take_request();
        let _ = self.hub.saver.take(Instant::MAX);
        ledger.last_tick = Some(now.instant);
        let changed = self.hub.take_changed();
        let plan = self.plan(&ledger, &changed, now);
        if let Err(error) = save(&mut ledger, &plan) {
            ledger.failures = ledger.failures.saturating_add(1);
            drop(ledger);
            self.save_failed(changed, &plan, &error, now.instant);
            return Err(error);
        }
        ledger.failures = 0;
        for (consumer, entry) in &plan.moves {
            consumer.did_save(entry);
        }
        if !plan.moves.is_empty() {
            self.saves.fetch_add(1, Ordering::Relaxed);
        }
        for (stream, floor) in &plan.floors {
            self.stream_of(*stream).inspect(|stream| stream.raise_floor(floor.seq));
        }
        // From here on the floors are durable: the long lock is not needed to unlink below them.
        drop(ledger);
        let mut report =
            TickReport { cursors_count: plan.moves.len(), floors_count: plan.floors.len(), retired_count: 0 };
        for (stream, below) in &plan.retire {
            report.retired_count += self.retire(stream, *below, now.instant);
        }
        Ok(report)
    }

    fn plan(&self, ledger: &Ledger, changed: &Changed, now: Now) -> Plan {
        let mut plan = Plan::default();
        let mut touched = changed.touched.clone();
        touched.extend(changed.cursors.iter().map(|c| c.key.stream));
        let streams: Vec<_> = touched.iter().filter_map(|id| self.stream_of(*id)).collect();
        streams.iter().for_each(|stream| sync_covered(stream, now));
        for consumer in &changed.cursors {
            let Some(stream) = self.stream_of(consumer.key.stream).filter(|_| !consumer.is_removed()) else {
                continue;
            };
            let (entry, later) = consumer.to_save(stream.ends().durable);
            if later == Later::Yes && consumer.list_again() {
                self.hub.cursor_moved(consumer);
            }
            plan.cursors.insert(consumer.key, entry.cursor);
            plan.moves.push((Arc::clone(consumer), entry));
        }
        for stream in streams {
            plan_floor(&mut plan, ledger, stream);
        }
        // No extra sync for these: they ride along.
        if !plan.moves.is_empty() || !plan.floors.is_empty() {
            for stream in changed.moved.iter().filter_map(|id| self.stream_of(*id)) {
                stream.listener.end_seen();
                let known = ledger.offsets.durable_end(stream.id).map(|known| known.end);
                let end = durable_end_of(&stream.log).filter(|end| known.is_none_or(|known| known < end.end));
                plan.ends.extend(end.map(|end| (stream.id, end)));
            }
        } else {
            self.hub.put_back(Changed { moved: changed.moved.clone(), ..Changed::default() });
        }
        plan
    }

    fn save_failed(&self, mut changed: Changed, plan: &Plan, error: &SaveError, now: Instant) {
        if self.quiet.may_speak(now) {
            tracing::warn!(%error, "cursors could not be saved");
        }
        changed.cursors.retain(|consumer| !consumer.is_removed());
        for consumer in &changed.cursors {
            let _ = consumer.list_again();
        }
        self.hub.put_back(changed);
        self.hub.saver.request();
        for (consumer, _) in &plan.moves {
            consumer.save_failed(error);
        }
    }

    /// Unlinks below a durable floor; what fails is tried again with the next tick.
    fn retire(&self, stream: &StreamState, below: SegmentId, now: Instant) -> usize {
        let count = match stream.log.retire(below) {
            Ok(count) => {
                self.hub.with_cache(|cache| cache.retired(stream.id, below));
                count
            }
            Err(error) => {
                if stream.quiet.may_speak(now) {
                    tracing::warn!(stream = %stream.name, %error, "segments could not be unlinked");
                }
                self.hub.touch(stream.id);
                error.unlinked_count()
            }
        };
        stream.retired.fetch_add(count as u64, Ordering::Relaxed);
        count
    }
}

/// A stream that never syncs by itself syncs what a cursor covers before the cursor is saved.
fn sync_covered(stream: &StreamState, now: Now) {
    if stream.settings.read_level != ReadLevel::Written {
        return;
    }
    let cursors = stream.consumers().iter().map(|c| c.cursor()).max();
    if cursors.is_some_and(|cursor| cursor > stream.ends().durable)
        && let Err(error) = stream.log.commit(now, Want::Durable)
        && stream.quiet.may_speak(now.instant)
    {
        tracing::warn!(stream = %stream.name, %error, "records could not be synced before their cursor");
    }
}

/// The floor a stream may rise to: the least durable cursor of all its consumers; without consumers it keeps everything.
fn plan_floor(plan: &mut Plan, ledger: &Ledger, stream: Arc<StreamState>) {
    let about_to_be = |c: &Arc<ConsumerState>| plan.cursors.get(&c.key).copied().unwrap_or_else(|| c.saved());
    let Some(least) = stream.consumers().iter().map(about_to_be).min() else { return };
    let floor = ledger.offsets.floor(stream.id);
    let mut below = floor.map(|floor| floor.segment);
    if let Some(point) = stream.log.plan_retire(least)
        && floor.is_none_or(|floor| point.segment > floor.segment && point.seq >= floor.seq)
    {
        let tags = stream.log.last_tags().into_iter().map(tag_of).collect();
        let floor = Floor { seq: point.seq, segment: point.segment, reason: FloorReason::Delivered, tags };
        plan.floors.push((stream.id, floor));
        below = Some(point.segment);
    }
    let oldest = stream.log.segments().first().map(|segment| segment.id);
    if let (Some(below), Some(oldest)) = (below, oldest)
        && oldest < below
    {
        plan.retire.push((stream, below));
    }
}

fn tag_of(tag: wal_store::OwnedTag) -> offsets::OwnedTag {
    offsets::OwnedTag { producer: tag.producer, value: tag.value, at: tag.at }
}

fn save(ledger: &mut Ledger, plan: &Plan) -> Result<(), SaveError> {
    let cursors: Vec<CursorMove> = plan.moves.iter().map(|(_, entry)| entry.clone()).collect();
    let save = Save { cursors: &cursors, floors: &plan.floors, durable_ends: &plan.ends };
    ledger.offsets.save(&save, sites::SAVE).map_err(|error| SaveError::of(&error))
}

/// Where the durable end of a log stands; `None` before the first durable record.
pub(crate) fn durable_end_of(log: &Log) -> Option<DurableEnd> {
    let wal_store::DurableEnd { end, segment, offset } = log.durable_end();
    segment.map(|segment| DurableEnd { end, segment, offset })
}
