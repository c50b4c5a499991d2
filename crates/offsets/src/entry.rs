//! What is remembered: consumers with their cursors, floors, durable ends, and the record of a clean stop.

use std::time::Duration;

use wal_format::{ConsumerId, Incarnation, SegmentId, Seq, StreamId, WallTime};

/// Where a seq's bytes stand. A hint: whoever uses it checks what it finds there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The segment file.
    pub segment: SegmentId,
    /// Byte offset of a batch in that file.
    pub offset: u64,
}

/// Seqs `from..to` (exclusive end) that were acked above the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AckedRange {
    /// First acked seq.
    pub from: Seq,
    /// One past the last acked seq.
    pub to: Seq,
}

/// A registered consumer and its durable place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerEntry {
    /// The stream it reads.
    pub stream: StreamId,
    /// The incarnation of that stream it was created for.
    pub incarnation: Incarnation,
    /// Its id, never used again.
    pub consumer: ConsumerId,
    /// Its name, unique in its stream; 1 to [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX) bytes.
    pub name: String,
    /// When it was created.
    pub created_at: WallTime,
    /// The seq of the next undelivered record.
    pub cursor: Seq,
    /// Where that seq stands, if known.
    pub hint: Option<Position>,
    /// What was acked above the cursor: ascending, apart from each other, at most
    /// [`ACKED_RANGES_MAX`](crate::ACKED_RANGES_MAX) ranges.
    pub acked_above: Vec<AckedRange>,
    /// A sink's own place, saved atomically with the cursor; at most
    /// [`NOTE_BYTES_MAX`](crate::NOTE_BYTES_MAX) bytes.
    pub note: Vec<u8>,
}

/// What [`Offsets::create_consumer`](crate::Offsets::create_consumer) needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConsumer {
    /// The stream it reads.
    pub stream: StreamId,
    /// The incarnation of that stream.
    pub incarnation: Incarnation,
    /// Its name, unique in its stream.
    pub name: String,
    /// Now.
    pub created_at: WallTime,
    /// Where it starts.
    pub cursor: Seq,
    /// Where that seq stands, if known.
    pub hint: Option<Position>,
}

/// Which way a cursor may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// Not back: a smaller cursor refuses the whole save.
    #[default]
    Forward,
    /// Anywhere: a seek.
    Seek,
}

/// A consumer's new place in a [`Save`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorMove {
    /// Whose cursor.
    pub consumer: ConsumerId,
    /// The seq of its next undelivered record.
    pub cursor: Seq,
    /// Where that seq stands, if known.
    pub hint: Option<Position>,
    /// Replaces what was acked above the cursor.
    pub acked_above: Vec<AckedRange>,
    /// Replaces the note; `None` leaves it as it is.
    pub note: Option<Vec<u8>>,
    /// Whether this is a seek.
    pub direction: Direction,
}

impl CursorMove {
    /// A forward move to `cursor`, nothing else known or changed.
    #[must_use]
    pub const fn forward(consumer: ConsumerId, cursor: Seq) -> Self {
        Self {
            consumer,
            cursor,
            hint: None,
            acked_above: Vec::new(),
            note: None,
            direction: Direction::Forward,
        }
    }

    /// A seek to `cursor`, either way.
    #[must_use]
    pub const fn seek(consumer: ConsumerId, cursor: Seq) -> Self {
        Self { consumer, cursor, hint: None, acked_above: Vec::new(), note: None, direction: Direction::Seek }
    }
}

/// Why what lies below a floor may be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloorReason {
    /// Every registered consumer had it.
    Delivered,
    /// A policy removed it to stay under a byte limit.
    Trimmed,
    /// A policy removed it because it was too old.
    Expired,
}

/// Seqs `from..to` (exclusive end) that a policy dropped before every consumer had them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trim {
    /// First seq dropped.
    pub from: Seq,
    /// One past the last.
    pub to: Seq,
    /// Which policy; not [`FloorReason::Delivered`].
    pub reason: FloorReason,
}

/// What policies dropped of a stream, over all its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trims {
    /// Ascending, apart; those that every consumer stands behind are forgotten.
    pub ranges: Vec<Trim>,
    /// Seqs ever dropped with [`FloorReason::Trimmed`].
    pub trimmed_count: u64,
    /// Seqs ever dropped with [`FloorReason::Expired`].
    pub expired_count: u64,
}

/// For how long the queue was open, over all its runs, in nanoseconds: an age that no clock can jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OpenTime(u64);

impl OpenTime {
    /// So many nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// So much later.
    #[must_use]
    pub fn saturating_add(self, more: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(more.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How much later than `earlier` it is.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Every record of a stream below `end` was durable at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgeMark {
    /// One past the last seq it speaks of.
    pub end: Seq,
    /// When.
    pub at: OpenTime,
}

/// The last tag of a producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTag {
    /// The producer's name.
    pub producer: Vec<u8>,
    /// What it said.
    pub value: Vec<u8>,
    /// First seq of the batch the tag rode in.
    pub at: Seq,
}

/// First seq and first segment of a stream that must still exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    /// First seq that must exist.
    pub seq: Seq,
    /// First segment that must exist.
    pub segment: SegmentId,
    /// Why the rest may be gone.
    pub reason: FloorReason,
    /// Last tags per producer of the stream as of this floor.
    pub tags: Vec<OwnedTag>,
}

/// How far a stream was durable, and where that end stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DurableEnd {
    /// One past the last durable seq.
    pub end: Seq,
    /// The segment that end stands in.
    pub segment: SegmentId,
    /// Byte offset of that end in the segment.
    pub offset: u64,
}

/// The record of a clean stop: every stream's durable end, nothing pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanStop {
    /// Every stream with its end, ascending by stream.
    pub ends: Vec<(StreamId, DurableEnd)>,
}

/// One save: all of it is made durable by one write and one sync, or none of it counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Save<'a> {
    /// Consumers that moved.
    pub cursors: &'a [CursorMove],
    /// Floors that rose.
    pub floors: &'a [(StreamId, Floor)],
    /// Durable ends that moved.
    pub durable_ends: &'a [(StreamId, DurableEnd)],
    /// What the floors drop that somebody did not have.
    pub trims: &'a [(StreamId, Trim)],
    /// How far streams are by now.
    pub marks: &'a [(StreamId, AgeMark)],
    /// Now.
    pub open_time: Option<OpenTime>,
}

impl Save<'_> {
    /// Whether there is nothing to save.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cursors.is_empty()
            && self.floors.is_empty()
            && self.durable_ends.is_empty()
            && self.trims.is_empty()
            && self.marks.is_empty()
            && self.open_time.is_none()
    }
}
