//! The log of one stream: appends, commits, ends. Clones share it.
//!
//! ```text
//!   append ──► tail (short lock) ──► Ticket          never the device
//!   commit, wait, rotate, close ──► gate (long) ──► committer (commit.rs) ──► machine (machine.rs)
//! ```
//! Invariants: locks are taken in the order gate, committer, then one short lock at a time (tail, segments, tags, the
//! durable end); no call to the disk and no wake-up happens under a short one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use wal_format::{Instant, Now, Seq, Tag, frame_bytes};

use crate::commit::Committer;
use crate::counters::Counts;
use crate::ends::SharedEnds;
use crate::gate::Gate;
use crate::machine::{Ask, Machine, Start};
use crate::room::Holder;
use crate::stall::Stall;
use crate::sync::lock;
use crate::tags::TagSet;
use crate::tail::{Tail, TailState};
use crate::{
    AppendError, CommitError, Counters, DurableEnd, Ends, LogError, OwnedTag, ReadLevel, Recovery, SegmentList, Settings,
    StoreContext, Ticket,
};

use crate::record::Record;

/// What a commit is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Write what is open; sync as the settings say, or as somebody waits for.
    Batch,
    /// Write what is open, and make everything written durable.
    Durable,
}

/// What a commit reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The ends after it.
    pub ends: Ends,
    /// When it is worth calling again at the latest; `None`: after the next append.
    pub due: Option<Instant>,
}

/// One stream's log. Clones share it; dropping the last one commits what is open, as far as the disk allows.
#[derive(Clone)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

/// What all clones of a log share.
pub(crate) struct Shared {
    pub(crate) ctx: StoreContext,
    pub(crate) settings: Settings,
    /// Short lock: what segments there are.
    pub(crate) segments: Mutex<SegmentList>,
    pub(crate) ends: SharedEnds,
    pub(crate) durable_end: Mutex<DurableEnd>,
    /// The last durable tag of each producer.
    pub(crate) tags: Mutex<TagSet>,
    pub(crate) tail: Mutex<Tail>,
    pub(crate) gate: Gate,
    pub(crate) committer: Mutex<Committer>,
    pub(crate) stall: Stall,
    pub(crate) counts: Counts,
    /// When the machine wants a round, in nanoseconds; `u64::MAX`: it does not.
    pub(crate) machine_due: AtomicU64,
    /// Room held by records not yet written.
    held: AtomicUsize,
    me: Weak<Shared>,
}

impl Log {
    /// Opens a log for appending behind what recovery found. Creates no file: the first commit does, and never goes on in
    /// an old one.
    ///
    /// # Errors
    /// A setting cannot be.
    pub fn open(ctx: StoreContext, recovery: &Recovery, settings: Settings) -> Result<Self, LogError> {
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
            ends: SharedEnds::new(recovery.next_seq, next),
            durable_end: Mutex::new(machine.durable()),
            tags: Mutex::new(TagSet::from_tags(&recovery.tags)),
            tail: Mutex::new(Tail::new(next)),
            gate: Gate::new(),
            committer: Mutex::new(Committer::new(machine)),
            stall: Stall::default(),
            counts: Counts::default(),
            machine_due: AtomicU64::new(u64::MAX),
            held: AtomicUsize::new(0),
            me: me.clone(),
            ctx,
            settings,
        });
        shared.ctx.room.add_holder(shared.holder());
        Ok(Self { shared })
    }

    /// Takes a record. Never calls the device, never waits on a sync.
    ///
    /// # Errors
    /// The payload was not taken; [`AppendError::is_retryable`] says whether it may be later.
    pub fn append<'a>(&self, record: impl Into<Record<'a>>, now: Now) -> Result<Ticket, AppendError> {
        self.shared.append(&record.into(), now)
    }

    /// As [`Log::append`], but without room it commits, or blocks until other streams gave room back.
    ///
    /// # Errors
    /// As [`Log::append`], without [`AppendError::Busy`].
    pub fn append_blocking<'a>(&self, record: impl Into<Record<'a>>, now: Now) -> Result<Ticket, AppendError> {
        self.shared.append_waiting(&record.into(), now)
    }

    /// As [`Log::append`], but pending without room; somebody must commit the streams that hold it.
    ///
    /// # Errors
    /// As [`Log::append`], without [`AppendError::Busy`].
    pub fn poll_append<'a>(
        &self,
        record: impl Into<Record<'a>>,
        now: Now,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Ticket, AppendError>> {
        let record = record.into();
        match self.shared.append(&record, now) {
            Err(AppendError::Busy { .. }) => self.shared.ctx.room.register_waker(cx.waker()),
            settled => return Poll::Ready(settled),
        }
        match self.shared.append(&record, now) {
            Err(AppendError::Busy { .. }) => Poll::Pending,
            settled => Poll::Ready(settled),
        }
    }

    /// Takes all records or none: one batch, all or nothing after a crash and in visibility, with an optional tag. The
    /// ticket is for all of them.
    ///
    /// # Errors
    /// As [`Log::append`]; what can never fit into one batch is refused with the numbers.
    pub fn append_batch(&self, records: &[Record<'_>], tag: Option<Tag<'_>>, now: Now) -> Result<Ticket, AppendError> {
        self.shared.append_batch(records, tag.as_ref(), now)
    }

    /// Writes what is open, syncing as `want` and the settings say. Blocks while another thread commits: it never
    /// returns before what was appended before the call is at least written.
    ///
    /// # Errors
    /// What is durable: [`Log::ends`]. A retryable error leaves the records buffered.
    pub fn commit(&self, now: Now, want: Want) -> Result<Progress, CommitError> {
        self.shared.gate.enter();
        self.commit_entered(now, want)
    }

    /// As [`Log::commit`], or `None` at once when another thread commits.
    pub fn try_commit(&self, now: Now, want: Want) -> Option<Result<Progress, CommitError>> {
        self.shared.gate.try_enter().then(|| self.commit_entered(now, want))
    }

    fn commit_entered(&self, now: Now, want: Want) -> Result<Progress, CommitError> {
        let end = self.shared.run_rounds(now, Ask { durable: want == Want::Durable, ..Ask::default() });
        self.shared.outcome_of(end)?;
        Ok(self.progress())
    }

    /// When a commit is due: commit interval, sync interval, segment age, retry, probe. `None`: nothing is.
    pub fn due(&self) -> Option<Instant> {
        let open = {
            let tail = lock(&self.shared.tail);
            let opened = tail.full.front().or((!tail.open.is_empty()).then_some(&tail.open));
            opened.map(|batch| batch.opened.instant.saturating_add(self.shared.settings.commit_interval))
        };
        let machine = self.shared.machine_due.load(Ordering::Acquire);
        let machine = (machine != u64::MAX).then(|| Instant::from_nanos(machine));
        open.into_iter().chain(machine).min()
    }

    /// Commits what is open and closes the segment: the next batch begins another. Does nothing to a log without an open
    /// segment.
    ///
    /// # Errors
    /// As [`Log::commit`]. The request is kept and done by a later commit.
    pub fn rotate(&self, now: Now) -> Result<Progress, CommitError> {
        self.shared.drive(now, Ask { durable: true, rotate: true, ..Ask::default() })?;
        Ok(self.progress())
    }

    /// Refuses appends from now on, commits and syncs everything. Calling it again tries again what failed.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn close(&self, now: Now) -> Result<DurableEnd, CommitError> {
        lock(&self.shared.tail).state = TailState::Closed;
        self.shared.drive(now, Ask { durable: true, release_file: true, ..Ask::default() })?;
        Ok(self.durable_end())
    }

    /// How far the log is.
    pub fn ends(&self) -> Ends {
        self.shared.ends.get()
    }

    /// Where everything durable ends, for a record of it elsewhere.
    pub fn durable_end(&self) -> DurableEnd {
        *lock(&self.shared.durable_end)
    }

    /// What was counted since open.
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }

    /// The last durable tag of every producer.
    pub fn last_tags(&self) -> Vec<OwnedTag> {
        lock(&self.shared.tags).to_tags()
    }

    /// The segments there are, oldest first.
    pub fn segments(&self) -> SegmentList {
        lock(&self.shared.segments).clone()
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The context it was opened with.
    pub fn context(&self) -> &StoreContext {
        &self.shared.ctx
    }

    fn progress(&self) -> Progress {
        Progress { ends: self.ends(), due: self.due() }
    }
}

/// A stream whose readers see what is only written never gives a seq again that the last run may have shown.
fn first_seq(recovery: &Recovery, settings: &Settings) -> Option<Seq> {
    match settings.read_level {
        ReadLevel::Durable => Some(recovery.next_seq),
        ReadLevel::Written => recovery.next_seq.checked_add(recovery.shown_unsynced_max),
    }
}

impl Shared {
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

    fn append_batch(&self, records: &[Record<'_>], tag: Option<&Tag<'_>>, now: Now) -> Result<Ticket, AppendError> {
        if records.is_empty() {
            return Err(AppendError::Empty);
        }
        let mut bytes = tag.map_or(0, Tag::frame_bytes);
        for record in records {
            bytes = bytes.saturating_add(self.check(record)?);
        }
        let bytes_max = self.settings.batch_bytes_max.min(self.ctx.room.limit());
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

    /// Gives room back that was reserved for records of this log.
    pub(crate) fn release_room(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.ctx.room.release(bytes);
    }

    pub(crate) fn holds_room(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    fn counters(&self) -> Counters {
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

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("ctx", &self.shared.ctx).field("ends", &self.ends()).finish_non_exhaustive()
    }
}
