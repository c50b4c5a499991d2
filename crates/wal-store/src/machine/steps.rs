//! The commit machine's language: what it asks of its driver, and what the driver answers.

use std::time::Duration;

use disk::{DiskError, SyncSite};
use wal_format::{Instant, Predecessor, SegmentId, Seq};

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
    /// The disk failed; the next attempt is due then, after this wait.
    Backoff { error: DiskError, at: Instant, wait: Duration },
    /// Paused until the next probe.
    Paused(DiskError),
    /// Given up: the batches of the round failed.
    GaveUp(DiskError),
    /// No segment id is left.
    IdsUsedUp,
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
