//! What all clones of a log share: the state behind its locks, and the way in for records.
//!
//! Invariants: locks are taken in the order gate, committer, then one short lock at a time (tail, segments, tags, the
//! durable end); no call to the disk and no wake-up happens under a short one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use wal_format::{Now, SegmentId, Seq, Tag, frame_bytes};

use crate::commit::Committer;
use crate::counters::Counts;
use crate::ends::SharedEnds;
use crate::gate::Gate;
use crate::machine::{Machine, Start};
use crate::meter::{Meter, Refusal, Shortage};
use crate::record::Record;
use crate::room::Holder;
use crate::stall::Stall;
use crate::sync::{Mutex, lock};
use crate::tags::TagSet;
use crate::tail::Tail;
use crate::{
    AppendError, Counters, DurableEnd, LogError, OnFull, ReadLevel, Recovery, SegmentList, Settings, Space,
    StoreContext, Ticket,
};

/// What all clones of a log share.
pub(crate) struct Shared {
    pub(crate) ctx: StoreContext,
    pub(crate) settings: Settings,
    /// Short lock: what segments there are.
    pub(crate) segments: Mutex<SegmentList>,
    /// Short lock: void files that could not be unlinked.
    pub(crate) void_files: Mutex<Vec<SegmentId>>,
    pub(crate) ends: SharedEnds,
    pub(crate) durable_end: Mutex<DurableEnd>,
    /// The last durable tag of each producer.
    pub(crate) tags: Mutex<TagSet>,
    pub(crate) tail: Mutex<Tail>,
    pub(crate) gate: Gate,
    pub(crate) committer: Mutex<Committer>,
    pub(crate) stall: Stall,
    pub(crate) counts: Counts,
    /// What the log holds on the disk.
    pub(crate) meter: Meter,
    /// When the machine wants a round, in nanoseconds; `u64::MAX`: it does not.
    pub(crate) machine_due: AtomicU64,
    /// When the last round was refused by the disk, in nanoseconds; `u64::MAX`: it was not.
    pub(crate) troubled_at: AtomicU64,
    /// Room held by records not yet written.
    held: AtomicUsize,
    me: Weak<Shared>,
}

impl Shared {
    /// See [`Log::open`](crate::Log::open).
    pub(crate) fn open(
        ctx: StoreContext,
        recovery: &Recovery,
        settings: Settings,
    ) -> Result<Arc<Self>, LogError> {
        settings.validate()?;
        let (needed, limit) = (frame_bytes(settings.record_bytes_max), ctx.room.limit());
        if needed > limit {
            return Err(LogError::RoomTooSmall { needed, limit });
        }
        let next = first_seq(recovery, &settings).ok_or(LogError::SeqsUsedUp)?;
        let machine = Machine::new(
            settings.clone(),
            Start {
                end: recovery.next_seq,
                prev_seq: recovery.prev_seq,
                next_segment: recovery.next_segment,
                predecessor: recovery.predecessor,
            },
        );
        let shared = Arc::new_cyclic(|me| Shared {
            segments: Mutex::new(recovery.segments.clone()),
            void_files: Mutex::new(Vec::new()),
            ends: SharedEnds::new(recovery.next_seq, next),
            durable_end: Mutex::new(machine.durable()),
            tags: Mutex::new(TagSet::from_tags(&recovery.tags)),
            tail: Mutex::new(Tail::new(next)),
            gate: Gate::new(),
            committer: Mutex::new(Committer::new(machine)),
            stall: Stall::default(),
            counts: Counts::default(),
            meter: Meter::new(&settings, &recovery.file_bytes, ctx.room.space()),
            machine_due: AtomicU64::new(u64::MAX),
            troubled_at: AtomicU64::new(u64::MAX),
            held: AtomicUsize::new(0),
            me: me.clone(),
            ctx,
            settings,
        });
        shared.ctx.room.add_holder(shared.holder());
        Ok(shared)
    }

    pub(crate) fn space(&self) -> &Space {
        self.ctx.room.space()
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }

    fn holder(&self) -> Weak<dyn Holder> {
        self.me.clone()
    }

    pub(crate) fn append(&self, record: &Record<'_>, now: Now) -> Result<Ticket, AppendError> {
        let bytes = self.check(record)?;
        self.reserve(bytes)?;
        self.push(std::slice::from_ref(record), None, bytes, now)
    }

    pub(crate) fn append_batch(
        &self,
        records: &[Record<'_>],
        tag: Option<&Tag<'_>>,
        now: Now,
    ) -> Result<Ticket, AppendError> {
        if records.is_empty() {
            return Err(AppendError::Empty);
        }
        let mut bytes = tag.map_or(0, Tag::frame_bytes);
        for record in records {
            bytes = bytes.saturating_add(self.check(record)?);
        }
        let limit = self.meter.limits().bytes_max.unwrap_or(u64::MAX);
        let limit = limit.min(self.space().limit().unwrap_or(u64::MAX)).saturating_sub(self.meter.overhead());
        let bytes_max = self.settings.batch_bytes_max.min(self.ctx.room.limit());
        // What never fits on the disk is as little a batch as what never fits in memory.
        let bytes_max = bytes_max.min(usize::try_from(limit).unwrap_or(usize::MAX));
        let records_max = self.settings.batch_records_max;
        if bytes > bytes_max || records.len() as u64 > u64::from(records_max) {
            return Err(AppendError::BatchTooLarge { bytes, count: records.len(), bytes_max, records_max });
        }
        self.reserve(bytes)?;
        self.push(records, tag, bytes, now)
    }

    /// Bytes of the record's frame, if it may be taken.
    fn check(&self, record: &Record<'_>) -> Result<usize, AppendError> {
        let (bytes, limit) = (record.payload_bytes(), self.settings.record_bytes_max);
        if bytes > limit {
            return Err(AppendError::RecordTooLarge { bytes, limit });
        }
        Ok(frame_bytes(bytes))
    }

    fn reserve(&self, bytes: usize) -> Result<(), AppendError> {
        let room = &self.ctx.room;
        if let Err(used) = room.reserve(bytes) {
            self.counts.busy.add(1);
            room.ask_holders();
            return Err(AppendError::Busy { needed: bytes, used, limit: room.limit() });
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Tells that space is short, if that is news.
    pub(crate) fn tell_shortage(&self, shortage: Shortage) {
        if shortage == Shortage::News {
            self.ctx.events.short_of_space(self.ctx.identity.stream);
        }
    }

    /// What becomes of records that do not fit on the disk.
    pub(crate) fn refused(&self, refusal: &Refusal, count: u64) -> AppendError {
        let Refusal { needed, used, limit, of } = *refusal;
        if self.meter.limits().on_full == OnFull::DropNewest && needed <= limit {
            self.counts.dropped_records.add(count);
            return AppendError::Dropped { needed, used, limit, of };
        }
        self.counts.full.add(1);
        AppendError::Full { needed, used, limit, of }
    }

    /// Whether a blocking append waits after this refusal.
    pub(crate) fn waits_for_space(&self, error: &AppendError) -> bool {
        matches!(error, AppendError::Full { .. })
            && error.is_retryable()
            && matches!(self.meter.limits().on_full, OnFull::Block | OnFull::DropOldest)
    }

    /// Gives room back that was reserved for records of this log.
    pub(crate) fn release_room(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.ctx.room.release(bytes);
    }

    /// Nobody is left to write what still holds room.
    pub(crate) fn release_all_room(&self) {
        self.release_room(self.held.load(Ordering::Relaxed));
    }

    pub(crate) fn holds_room(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn counters(&self) -> Counters {
        let counts = &self.counts;
        let (records, payload_bytes) = {
            let tail = lock(&self.tail);
            (tail.records, tail.payload_bytes)
        };
        Counters {
            records,
            payload_bytes,
            written_bytes: counts.written_bytes.get(),
            writes: counts.writes.get(),
            syncs: counts.syncs.get(),
            dir_syncs: counts.dir_syncs.get(),
            batches: counts.batches.get(),
            segments_created: counts.segments_created.get(),
            rotations: counts.rotations.get(),
            poisoned_files: counts.poisoned_files.get(),
            records_failed: counts.records_failed.get(),
            busy: counts.busy.get(),
            full: counts.full.get(),
            dropped_records: counts.dropped_records.get(),
            inline_commits: counts.inline_commits.get(),
            chunks_allocated: self.ctx.room.chunks().allocated(),
        }
    }
}

impl Holder for Shared {
    fn give_up_room(&self) {
        if self.holds_room() {
            self.ctx.events.enlist(self.ctx.identity.stream);
        }
    }
}

/// A stream whose readers see what is only written never gives a seq again that the last run may have shown.
fn first_seq(recovery: &Recovery, settings: &Settings) -> Option<Seq> {
    match settings.read_level {
        ReadLevel::Durable => Some(recovery.next_seq),
        ReadLevel::Written => {
            let told = recovery.shown_unsynced_max;
            let is_untold = told == 0 && !recovery.report.clean && recovery.next_seq > Seq::FIRST;
            // Every segment was retired, and no header tells what the last run may have left unsynced: as much as this one may.
            let bytes = settings.unsynced_bytes_max.saturating_add(settings.batch_bytes_max as u64);
            let jump = if is_untold { bytes / wal_format::FRAME_HEAD_BYTES as u64 } else { told };
            recovery.next_seq.checked_add(jump)
        }
    }
}
