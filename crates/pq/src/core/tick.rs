//! The tick: everything that changed about cursors in one save, then what that allows to be unlinked.
//!
//! ```text
//!   losses ─> data ─> directory ─> cursor ┬ one save ─> floor ─> unlink, ascending ─> one directory sync        (I7)
//!                                         └ the floor stands behind its cursors in the same save
//! ```
//!
//! What readers met as lost is written down first: a cursor that passed it never meets it again.
//!
//! It is armed by an acknowledgement, a rotation, a segment read to its end, a seek, a remove; and disarmed before it takes
//! its snapshot, so that what changes meanwhile arms it again. An idle queue has no tick.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use offsets::{AgeMark, CursorMove, DurableEnd, Floor, OpenTime, Save, Trim, sites};
use scheduler::Key;
use wal_format::{Instant, Now, SegmentId, Seq, StreamId};
use wal_store::{Log, ReadLevel, Want};

use crate::clock::locked;
use crate::{Gap, GapReason, SaveError};

use super::changed::Changed;
use super::consumer::Later;
use super::hub::Hub;
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
    /// Records dropped by policies that not every consumer had.
    pub dropped_count: u64,
    /// Losses that readers met, written down.
    pub losses_count: usize,
}

/// What one tick is about to save.
#[derive(Default)]
pub(super) struct Plan {
    moves: Vec<(Arc<ConsumerState>, CursorMove)>,
    pub(super) cursors: HashMap<Key, Seq>,
    pub(super) floors: Vec<(StreamId, Floor)>,
    ends: Vec<(StreamId, DurableEnd)>,
    pub(super) trims: Vec<(StreamId, Trim)>,
    pub(super) marks: Vec<(StreamId, AgeMark)>,
    /// Where segments may be unlinked afterwards.
    pub(super) retire: Vec<(Arc<StreamState>, SegmentId)>,
}

impl Plan {
    /// Whether nothing of it asks for a save.
    fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.floors.is_empty() && self.marks.is_empty()
    }

    fn report(&self) -> TickReport {
        TickReport {
            cursors_count: self.moves.len(),
            floors_count: self.floors.len(),
            retired_count: 0,
            dropped_count: self.trims.iter().map(|(_, trim)| trim.from.distance_to(trim.to)).sum(),
            losses_count: 0,
        }
    }
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
        let others = [self.ages.due(), self.reserve.due()];
        self.hub.saver.due().into_iter().chain(others.into_iter().flatten()).min()
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
        let mut changed = self.hub.take_changed();
        changed.touched.extend(self.ages.take_due(now.instant));
        if self.room.space().is_short() {
            // Whoever holds what could go, not only whoever was refused.
            changed.touched.extend(self.all_streams().iter().map(|stream| stream.id));
        }
        let remembered = self.remember(&mut ledger, &changed, now);
        let plan = self.plan(&ledger, &changed, now);
        if let Err(error) = self.save(&mut ledger, &plan, now.instant) {
            ledger.failures = ledger.failures.saturating_add(1);
            drop(ledger);
            self.save_failed(changed, &plan, &error, now.instant);
            self.reserve.postpone(now.instant);
            return Err(error);
        }
        ledger.failures = if remembered.is_some() { 0 } else { ledger.failures.saturating_add(1) };
        for (consumer, entry) in &plan.moves {
            consumer.did_save(entry);
        }
        if !plan.moves.is_empty() {
            self.saves.fetch_add(1, Ordering::Relaxed);
        }
        self.tell_dropped(&ledger, &plan);
        for (stream, floor) in &plan.floors {
            self.stream_of(*stream).inspect(|stream| stream.raise_floor(floor.seq));
        }
        self.count_other(&ledger);
        // From here on the floors are durable: the long lock is not needed to unlink below them.
        drop(ledger);
        let mut report = plan.report();
        report.losses_count = remembered.unwrap_or(0);
        if remembered.is_none() {
            // Cursors go on meanwhile: a full disk must be able to drain.
            self.hub.put_back(Changed { lost: changed.lost, ..Changed::default() });
            self.hub.saver.request();
        }
        for (stream, below) in &plan.retire {
            report.retired_count += self.retire(stream, *below, now.instant);
        }
        self.reserve.keep(now.instant);
        Ok(report)
    }

    /// Writes down what readers met as lost; says how many ranges were new. `None`: the catalog could not be written.
    fn remember(&self, ledger: &mut Ledger, changed: &Changed, now: Now) -> Option<usize> {
        let mut by_stream: BTreeMap<StreamId, Vec<Gap>> = BTreeMap::new();
        for (stream, from, to) in &changed.lost {
            let gap = Gap { from: *from, to: *to, reason: GapReason::Lost };
            by_stream.entry(*stream).or_default().push(gap);
        }
        let mut count = 0;
        for (id, gaps) in by_stream {
            match ledger.catalog.add_losses(id, &gaps, now.wall) {
                Ok(new) => count += new.len(),
                Err(error) => {
                    if self.quiet.may_speak(now.instant) {
                        tracing::warn!(%error, "losses could not be written down");
                    }
                    return None;
                }
            }
            if let (Some(stream), Some(losses)) = (self.stream_of(id), ledger.catalog.losses(id)) {
                stream.set_losses(losses);
            }
        }
        Some(count)
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
                if stream.log.has_given_up() {
                    // Nothing below the cursor will ever become durable: it waits for the next record that does.
                    stream.listener.end_seen();
                    self.hub.cursor_waits(consumer);
                } else {
                    self.hub.cursor_moved(consumer);
                }
            }
            plan.cursors.insert(consumer.key, entry.cursor);
            plan.moves.push((Arc::clone(consumer), entry));
        }
        for stream in streams {
            self.plan_stream(&mut plan, ledger, stream, now);
        }
        // No extra sync for these: they ride along.
        if !plan.is_empty() {
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

    /// One write and one sync; on a full disk once more, with what the reserve gives back.
    fn save(&self, ledger: &mut Ledger, plan: &Plan, now: Instant) -> Result<(), SaveError> {
        let cursors: Vec<CursorMove> = plan.moves.iter().map(|(_, entry)| entry.clone()).collect();
        let known = ledger.offsets.open_time();
        let open_time = self.ages.open_time(now);
        // Whoever never set an age limit is not told of time.
        let tells_time = !plan.marks.is_empty() || (!plan.is_empty() && known > OpenTime::default());
        let save = Save {
            cursors: &cursors,
            floors: &plan.floors,
            durable_ends: &plan.ends,
            trims: &plan.trims,
            marks: &plan.marks,
            open_time: tells_time.then_some(open_time),
        };
        self.saving(now, || ledger.offsets.save(&save, sites::SAVE)).map_err(|error| SaveError::of(&error))
    }

    /// Readers are told before files go.
    fn tell_dropped(&self, ledger: &Ledger, plan: &Plan) {
        for (id, _) in &plan.trims {
            if let (Some(stream), Some(trims)) = (self.stream_of(*id), ledger.offsets.trims(*id)) {
                stream.dropped.set(trims);
            }
        }
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

impl Hub {
    /// A cursor moved and cannot be saved before something else becomes durable: a tick that comes looks at it.
    fn cursor_waits(&self, consumer: &Arc<ConsumerState>) {
        locked(&self.changed).cursors.push(Arc::clone(consumer));
    }

    /// A stream's ends moved: the next save stores that, and comes soon if a cursor waits for it.
    pub(super) fn ends_moved(&self, stream: StreamId) {
        let waits = {
            let mut changed = locked(&self.changed);
            changed.moved.insert(stream);
            !changed.cursors.is_empty()
        };
        if waits {
            self.saver.request();
        }
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

/// Where the durable end of a log stands; `None` before the first durable record.
pub(crate) fn durable_end_of(log: &Log) -> Option<DurableEnd> {
    let wal_store::DurableEnd { end, segment, offset } = log.durable_end();
    segment.map(|segment| DurableEnd { end, segment, offset })
}
