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

use disk::{DiskError, ErrorClass, SyncSite};
use wal_format::{BATCH_HEADER_BYTES, Instant, Now, Predecessor, SegmentId, Seq};

use crate::{Settings, SyncSetting};

mod failure;

use failure::{Poisoned, Trouble};

/// Syncs of a batch's file.
pub(crate) const SITE_BATCH: SyncSite = SyncSite::new("commit.batch");
/// The sync of a segment before it is closed.
pub(crate) const SITE_ROTATE: SyncSite = SyncSite::new("rotate.file");
/// The sync of the stream's directory after a segment was created.
pub(crate) const SITE_DIR: SyncSite = SyncSite::new("segment.dir");
/// The sync of a probe of the disk.
pub(crate) const SITE_PROBE: SyncSite = SyncSite::new("probe.file");

/// What the machine knows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) first: Seq,
    pub(crate) end: Seq,
    pub(crate) frames_bytes: u64,
}

/// What a round is asked for, beyond writing what is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Make everything written durable.
    pub(crate) durable: bool,
    /// Close the segment afterwards.
    pub(crate) rotate: bool,
    /// Descriptors are short: leave nothing unsynced, so that the file can be closed.
    pub(crate) release_file: bool,
}

/// Where everything durable ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DurableEnd {
    /// The seq after the last durable record.
    pub end: Seq,
    /// The segment that holds it; `None` while the stream has none.
    pub segment: Option<SegmentId>,
    /// Where its last durable batch ends in that segment, in bytes.
    pub offset: u64,
}

/// What a segment is when it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It ends here, for good.
    Kept { end: Seq, end_offset: u64 },
    /// Nothing in it was durable: it is no part of the stream.
    Void { end: Seq },
}

/// What the driver must do next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Move what is open into the queue with [`Machine::push`]; answer [`Reply::Taken`].
    Take,
    /// Create the segment's file.
    Create { segment: SegmentId },
    /// Open the segment's file again.
    Open { segment: SegmentId },
    /// Write a batch of the queue; answer [`Reply::Written`].
    Write(Write),
    /// Sync the segment's file.
    SyncFile(SyncSite),
    /// Sync the stream's directory.
    SyncDir(SyncSite),
    /// Tell the world; drop the first `finished` batches of the queue.
    Publish(Publish),
    /// Leave the segment; `next` is the one that will be created next.
    Close { segment: SegmentId, closed: Closed, next: SegmentId },
    /// Read this range of the failed file back, as batches in front of the queue; answer [`Reply::ReadBack`].
    ReadBack { from: u64, to: u64, first: Seq },
    /// Fail all batches of the queue, and everything written but not durable.
    GiveUp { error: Option<DiskError>, segment: Option<SegmentId> },
    /// Write a block of zeros to the file just created.
    ProbeWrite,
    /// Remove the file just created.
    ProbeRemove { segment: SegmentId },
    /// The round is over.
    Done(RoundEnd),
}

/// One write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Write {
    /// Which batch of the queue.
    pub(crate) index: usize,
    pub(crate) segment: SegmentId,
    pub(crate) offset: u64,
    /// The first batch of a segment: the header rides along, naming this predecessor.
    pub(crate) header: Option<Option<Predecessor>>,
    /// The last seq stored before; 0: none.
    pub(crate) prev_seq: u64,
    pub(crate) durable: Seq,
}

/// What became true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Publish {
    /// How many batches of the queue are finished.
    pub(crate) finished: usize,
    pub(crate) written: Seq,
    pub(crate) written_offset: u64,
    pub(crate) durable: DurableEnd,
    /// The segment being written, and its first seq.
    pub(crate) segment: Option<(SegmentId, Seq)>,
}

/// What the driver answers to a step that went well and returned something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Done as asked.
    Done,
    /// What was open is in the queue; by now the round is asked for this.
    Taken { ask: Ask },
    /// The batch ends here.
    Written { end_offset: u64 },
    /// These batches were put in front of the queue.
    ReadBack { metas: Vec<Meta> },
}

/// How a round ended.
#[derive(Debug, Clone)]
pub(crate) enum RoundEnd {
    /// Everything taken is published; `dirty`: something is written and not durable.
    Clean { dirty: bool },
    /// The disk refused for now; everything is kept.
    Stalled(DiskError),
    /// The disk failed; the next attempt is due then.
    Backoff { error: DiskError, at: Instant },
    /// Paused until the next probe.
    Paused(DiskError),
    /// Given up: the batches of the round failed.
    GaveUp(DiskError),
    /// No segment id is left.
    IdsUsedUp,
}

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

/// The segment being written.
#[derive(Debug, Clone, Copy)]
struct Active {
    id: SegmentId,
    first: Seq,
    created: Instant,
    /// Where the next batch starts; 0 until the first batch brings the header.
    offset: u64,
    /// Everything before is durable; 0: nothing is.
    durable_offset: u64,
    /// Batches that end before here are no longer in the queue.
    published_offset: u64,
    /// Whether the driver has the file open.
    open: bool,
    /// Whether no write happened since the last sync.
    clean: bool,
    /// Whether the file's name is durable.
    named: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    now: Now,
    ask: Ask,
    doing: Doing,
    taken: bool,
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

/// Where a machine starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// Everything stored ends here; the first new seq may lie behind.
    pub(crate) end: Seq,
    pub(crate) prev_seq: u64,
    pub(crate) next_segment: SegmentId,
    pub(crate) predecessor: Option<Predecessor>,
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

    /// Begins a round.
    pub(crate) fn begin(&mut self, now: Now, ask: Ask) {
        debug_assert_eq!(self.doing, Doing::Nothing);
        self.now = now;
        self.ask = Ask { rotate: self.ask.rotate | ask.rotate, ..ask };
        self.taken = false;
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
        if !self.taken && !(self.trouble.is_failing() && !self.queue.is_empty()) {
            self.doing = Doing::Taking;
            return Step::Take;
        }
        let next = self.queue.get(self.cursor).copied();
        match (self.active, next) {
            (Some(active), _) if self.closes(&active, next) => self.close_step(&active),
            (None, Some(batch)) => self.create_step(batch.first),
            (Some(active), Some(batch)) => self.write_step(&active, batch),
            (Some(active), None) if self.wants_sync(&active) => self.sync_step(&active, SITE_BATCH),
            (_, None) if self.cursor > 0 => self.publish_step(),
            (active, None) => {
                self.ask = Ask::default();
                Step::Done(RoundEnd::Clean { dirty: active.is_some_and(|active| !active.clean) })
            }
        }
    }

    /// Whether the segment must be left now: decided here and nowhere else.
    fn closes(&self, active: &Active, next: Option<Meta>) -> bool {
        if active.offset == 0 || self.next_segment.is_none() {
            return false;
        }
        let aged = self.settings.segment_age_max.is_some_and(|age| {
            self.now.instant.saturating_since(active.created) >= age
        });
        match next {
            Some(batch) => {
                let end = active.offset + BATCH_HEADER_BYTES as u64 + batch.frames_bytes;
                aged || end > self.settings.segment_bytes_max
            }
            None => aged || self.ask.rotate,
        }
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
        by_setting || self.ask.durable || self.ask.release_file || !active.named || self.too_much_unsynced(active)
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
        if self.too_much_unsynced(active) {
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
        Step::Publish(Publish { finished, written: self.written, written_offset, durable: self.durable, segment })
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

    fn created(&mut self, segment: SegmentId, first: Seq) {
        self.next_segment = segment.checked_next();
        self.active = Some(Active {
            id: segment,
            first,
            created: self.now.instant,
            offset: 0,
            durable_offset: 0,
            published_offset: 0,
            open: true,
            clean: true,
            named: false,
        });
    }

    fn set_open(&mut self) {
        if let Some(active) = &mut self.active {
            active.open = true;
        }
    }

    fn wrote(&mut self, index: usize, end_offset: u64) {
        let (Some(active), Some(meta)) = (&mut self.active, self.queue.get(index)) else { return };
        active.offset = end_offset;
        active.clean = false;
        self.prev_seq = meta.end.get() - 1;
        self.cursor = index + 1;
    }

    fn synced(&mut self) {
        self.last_sync = self.now.instant;
        if let Some(active) = &mut self.active {
            active.clean = true;
            if active.named {
                self.now_durable();
            }
        }
    }

    fn named(&mut self) {
        if let Some(active) = &mut self.active {
            active.named = true;
            self.now_durable();
        }
    }

    fn now_durable(&mut self) {
        let Some(active) = &mut self.active else { return };
        active.durable_offset = active.offset;
        let end = self.cursor.checked_sub(1).and_then(|last| self.queue.get(last)).map_or(self.written, |b| b.end);
        self.durable = DurableEnd { end, segment: Some(active.id), offset: active.offset };
        self.durable_prev_seq = self.prev_seq;
        self.publish = true;
        self.trouble.over();
    }

    /// The segment was left, in good order or not.
    fn closed(&mut self) {
        if let Some(Poisoned { id, durable_offset, .. }) = self.trouble.poisoned.take() {
            if durable_offset > 0 {
                self.predecessor = Some(Predecessor { id, end_offset: durable_offset });
            }
            self.prev_seq = self.durable_prev_seq;
            return;
        }
        let Some(active) = self.active.take() else { return };
        self.predecessor = Some(Predecessor { id: active.id, end_offset: active.offset });
        self.ask.rotate = self.ask.rotate && !self.queue.is_empty();
    }

    /// Whether an error means "not now" rather than "broken".
    fn is_refusal(error: &DiskError) -> bool {
        matches!(error.class(), ErrorClass::RetryLater | ErrorClass::NoSpace | ErrorClass::ReadOnly)
    }
}

#[cfg(test)]
mod tests;
