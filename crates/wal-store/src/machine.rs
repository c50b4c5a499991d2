//! The commit state machine: what has to happen to the files, in which order, and what a failure means. It does no
//! I/O, holds no bytes, no lock and no clock; a driver (see `commit.rs`) does each [`Step`] and answers with a
//! [`Reply`]. Tests drive it without a disk.
//!
//! ```text
//!   begin ─► Take ─► [ rotate? SyncFile ─► Publish ─► Close ] ─► Create ─► Write … ─► SyncFile ─► SyncDir ─► Publish ─► Done
//!   failure ─► (ReadBack) ─► Close ─► again in a new segment, up to 3 ─► GiveUp ─► paused ─► probe ─► Take
//! ```
//!
//! Invariants: nothing is published as durable before the file and its directory entry are synced; the old segment is
//! durable and closed before the new one is created; a file of which a write or sync failed gets no further step but
//! reading back; a batch leaves the queue only when published or given up.

use std::collections::VecDeque;

use disk::{DiskError, SyncSite};
use wal_format::{BATCH_HEADER_BYTES, Instant, Now, Predecessor, SegmentId, Seq};

use crate::{Settings, SyncSetting};

mod failure;
mod outcome;
mod steps;

use failure::Trouble;
pub(crate) use failure::is_refusal;
use outcome::Active;
pub use steps::DurableEnd;
pub(crate) use steps::{
    Ask, Closed, Meta, Publish, Reply, RoundEnd, SITE_BATCH, SITE_DIR, SITE_PROBE, SITE_ROTATE, Start, Step,
    Write,
};

/// What the driver does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    Taking,
    Creating { segment: SegmentId, first: Seq },
    Opening,
    Writing { index: usize },
    SyncingFile,
    SyncingDir,
    Closing,
    ReadingBack,
    Probing(Probe),
    Telling,
}

/// The stages of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Create(SegmentId),
    Write(SegmentId),
    Sync(SegmentId),
    Remove(SegmentId),
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    now: Now,
    ask: Ask,
    doing: Doing,
    taken: bool,
    held: Option<DiskError>,
    queue: VecDeque<Meta>,
    /// How many batches of the queue are written to the active segment.
    cursor: usize,
    active: Option<Active>,
    next_segment: Option<SegmentId>,
    predecessor: Option<Predecessor>,
    written: Seq,
    durable: DurableEnd,
    /// The last seq written, and the last of these that is durable; 0: none.
    prev_seq: u64,
    durable_prev_seq: u64,
    last_sync: Instant,
    publish: bool,
    trouble: Trouble,
}

impl Machine {
    pub(crate) fn new(settings: Settings, start: Start) -> Self {
        let durable = DurableEnd {
            end: start.end,
            segment: start.predecessor.map(|p| p.id),
            offset: start.predecessor.map_or(0, |p| p.end_offset),
        };
        Self {
            settings,
            now: Now::default(),
            ask: Ask::default(),
            doing: Doing::Nothing,
            taken: false,
            held: None,
            queue: VecDeque::new(),
            cursor: 0,
            active: None,
            next_segment: Some(start.next_segment),
            predecessor: start.predecessor,
            written: start.end,
            durable,
            prev_seq: start.prev_seq,
            durable_prev_seq: start.prev_seq,
            last_sync: Instant::ZERO,
            publish: false,
            trouble: Trouble::default(),
        }
    }

    /// Begins a round. Whoever drives it may have learned the time long ago: the machine's time does not run backwards.
    /// While the little space that is left is for something else, `held` says so: no record is written.
    pub(crate) fn begin(&mut self, now: Now, ask: Ask, held: Option<DiskError>) {
        debug_assert_eq!(self.doing, Doing::Nothing);
        self.now = Now { instant: self.now.instant.max(now.instant), ..now };
        self.ask = Ask { rotate: self.ask.rotate | ask.rotate, ..ask };
        self.taken = false;
        self.held = held;
        self.trouble.begin();
    }

    /// The driver closed the segment's file, which is clean.
    pub(crate) fn file_closed(&mut self) {
        if let Some(active) = &mut self.active {
            debug_assert!(active.clean);
            active.open = false;
        }
    }

    /// Whether the segment's file is open and everything in it is durable: the driver may close it.
    pub(crate) fn may_close_file(&self) -> bool {
        self.active.is_some_and(|active| active.open && active.clean)
    }

    /// The file the driver is to open, write and sync.
    pub(crate) fn segment(&self) -> Option<SegmentId> {
        self.active.map(|active| active.id)
    }

    /// When a round is worth it even if nothing is appended.
    pub(crate) fn due(&self) -> Option<Instant> {
        if let Some(at) = self.trouble.due() {
            return Some(at);
        }
        let active = self.active?;
        let age = self.settings.segment_age_max.filter(|_| active.offset > 0 && self.next_segment.is_some());
        let age_due = age.map(|age| active.created.saturating_add(age));
        let sync_due = match self.settings.sync {
            SyncSetting::Every(interval) if !active.clean => Some(self.last_sync.saturating_add(interval)),
            _ => None,
        };
        age_due.into_iter().chain(sync_due).min()
    }

    /// Adds a batch to the queue, in answer to [`Step::Take`].
    pub(crate) fn push(&mut self, meta: Meta) {
        debug_assert!(self.doing == Doing::Taking && meta.first < meta.end);
        self.queue.push_back(meta);
    }

    /// Everything durable ends here.
    pub(crate) fn durable(&self) -> DurableEnd {
        self.durable
    }

    /// The next step. After each but `Done` the driver calls [`Machine::reply`].
    pub(crate) fn next(&mut self) -> Step {
        debug_assert_eq!(self.doing, Doing::Nothing);
        if let Some(step) = self.next_in_trouble() {
            return step;
        }
        if self.publish {
            return self.publish_step();
        }
        // While files fail nothing new is put at risk: what is open stays open.
        if !self.taken && (self.queue.is_empty() || !self.trouble.is_failing()) {
            self.doing = Doing::Taking;
            return Step::Take;
        }
        let next = self.queue.get(self.cursor).copied();
        if let Some(error) = self.held.take_if(|_| next.is_some()) {
            return self.next_while_held(error);
        }
        match (self.active, next) {
            (Some(active), _) if self.closes(&active, next) => self.close_step(&active),
            (None, Some(batch)) => self.create_step(batch.first),
            (Some(active), Some(batch)) => self.write_step(&active, batch),
            (Some(active), None) if self.wants_sync(&active) => self.sync_step(&active, SITE_BATCH),
            (_, None) if self.cursor > 0 => self.publish_step(),
            (active, None) => {
                self.ask = Ask::default();
                self.trouble.nothing_left();
                Step::Done(RoundEnd::Clean { dirty: active.is_some_and(|active| !active.clean) })
            }
        }
    }

    /// Whether the segment must be left now: decided here and nowhere else.
    fn closes(&self, active: &Active, next: Option<Meta>) -> bool {
        if active.offset == 0 || self.next_segment.is_none() {
            return false;
        }
        let aged = self.is_aged(active);
        match next {
            Some(batch) => {
                let end = active.offset + BATCH_HEADER_BYTES as u64 + batch.frames_bytes;
                aged || end > self.settings.segment_bytes_max
            }
            None => aged || self.ask.rotate,
        }
    }

    fn is_aged(&self, active: &Active) -> bool {
        let age = self.settings.segment_age_max;
        age.is_some_and(|age| self.now.instant.saturating_since(active.created) >= age)
    }

    fn wants_sync(&self, active: &Active) -> bool {
        if active.clean && active.named {
            return false;
        }
        let by_setting = match self.settings.sync {
            SyncSetting::EachBatch | SyncSetting::EachAppend => true,
            SyncSetting::Every(interval) => self.now.instant.saturating_since(self.last_sync) >= interval,
            SyncSetting::Never | SyncSetting::OnRotate => false,
        };
        // A new file is synced with its first batch at every setting: nothing of it is shown before its name is durable.
        by_setting
            || self.ask.durable
            || self.ask.release_file
            || !active.named
            || self.too_much_unsynced(active)
    }

    fn too_much_unsynced(&self, active: &Active) -> bool {
        active.offset - active.durable_offset > self.settings.unsynced_bytes_max
    }

    fn close_step(&mut self, active: &Active) -> Step {
        if !active.clean || !active.named {
            return self.sync_step(active, SITE_ROTATE);
        }
        if self.cursor > 0 {
            return self.publish_step();
        }
        let next = self.next_segment.unwrap_or(active.id);
        self.doing = Doing::Closing;
        let closed = Closed::Kept { end: self.durable.end, end_offset: active.offset };
        Step::Close { segment: active.id, closed, next }
    }

    fn create_step(&mut self, first: Seq) -> Step {
        let Some(segment) = self.next_segment else {
            return self.ids_used_up();
        };
        self.doing = Doing::Creating { segment, first };
        Step::Create { segment }
    }

    fn write_step(&mut self, active: &Active, batch: Meta) -> Step {
        if !active.open {
            self.doing = Doing::Opening;
            return Step::Open { segment: active.id };
        }
        let unpublished = !active.clean || !active.named;
        if self.too_much_unsynced(active) || (unpublished && self.trouble.is_enough(self.cursor)) {
            return self.sync_step(active, SITE_BATCH);
        }
        self.doing = Doing::Writing { index: self.cursor };
        Step::Write(Write {
            index: self.cursor,
            segment: active.id,
            offset: active.offset,
            header: (active.offset == 0).then_some(self.predecessor),
            prev_seq: self.prev_seq,
            durable: self.durable.end.min(batch.first),
        })
    }

    fn sync_step(&mut self, active: &Active, site: SyncSite) -> Step {
        if !active.open {
            self.doing = Doing::Opening;
            return Step::Open { segment: active.id };
        }
        if active.clean {
            self.doing = Doing::SyncingDir;
            Step::SyncDir(SITE_DIR)
        } else {
            self.doing = Doing::SyncingFile;
            Step::SyncFile(site)
        }
    }

    fn publish_step(&mut self) -> Step {
        self.publish = false;
        let finished = self.cursor;
        if let Some(last) = finished.checked_sub(1).and_then(|last| self.queue.get(last)) {
            self.written = last.end;
        }
        self.queue.drain(..finished);
        self.cursor = 0;
        let mut written_offset = self.durable.offset;
        if let Some(active) = &mut self.active {
            active.published_offset = active.offset;
            written_offset = active.offset;
        }
        self.doing = Doing::Telling;
        let segment = self.active.map(|active| (active.id, active.first));
        Step::Publish(Publish {
            finished,
            written: self.written,
            written_offset,
            durable: self.durable,
            segment,
        })
    }

    /// What the driver's step led to.
    pub(crate) fn reply(&mut self, result: Result<Reply, DiskError>) {
        let doing = std::mem::replace(&mut self.doing, Doing::Nothing);
        match result {
            Ok(reply) => self.went_well(doing, reply),
            Err(error) => self.went_wrong(doing, error),
        }
    }

    fn went_well(&mut self, doing: Doing, reply: Reply) {
        match (doing, reply) {
            (Doing::Taking, Reply::Taken { ask }) => {
                self.ask = Ask { rotate: self.ask.rotate, ..ask };
                self.taken = true;
            }
            (Doing::Creating { segment, first }, _) => self.created(segment, first),
            (Doing::Opening, _) => self.set_open(),
            (Doing::Writing { index }, Reply::Written { end_offset }) => self.wrote(index, end_offset),
            (Doing::SyncingFile, _) => self.synced(),
            (Doing::SyncingDir, _) => self.named(),
            (Doing::Closing, _) => self.closed(),
            (Doing::ReadingBack, Reply::ReadBack { metas }) => self.read_back(metas),
            (Doing::Probing(stage), _) => self.probed(stage),
            (Doing::Telling | Doing::Nothing, _) => {}
            (doing, reply) => unreachable!("{reply:?} is no answer to {doing:?}"),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
