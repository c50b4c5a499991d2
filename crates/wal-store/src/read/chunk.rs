//! What a read returns: runs of records and gaps, in the order of their seqs.
//!
//! A run is one piece of memory with whole batches in it, exactly as they came from the file; records borrow from it.
//! Records outside the seqs that were asked for are in the memory and are passed over.
//!
//! ```text
//!   bytes  | header | frame frame frame | header | frame frame | header | …
//!   spans            <----- span ------>          <--- span -->
//!   seqs        (below first)  first ····························· end
//! ```
//!
//! Invariants: items are dense and ascending: each begins where the one before ended, and `next` is the end of the
//! last; every record in a run was verified by its batch's checksum or its own.

use bytes::Bytes;
use wal_format::{BatchHeader, FrameKind, Frames, Marks, Seq, WallTime, verified_frames};

use super::Position;

/// What a read returned, in order.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Runs of records, and gaps.
    pub items: Vec<Item>,
    /// The seq to read next; the `seq` of the request if there was nothing.
    pub next: Seq,
    /// Where it will stand.
    pub next_hint: Option<Position>,
}

impl Chunk {
    /// Nothing, and go on at `next`.
    pub(crate) fn empty(next: Seq, next_hint: Option<Position>) -> Self {
        Self { items: Vec::new(), next, next_hint }
    }

    /// Whether there is neither a record nor a gap.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The records of all runs, in order.
    pub fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        self.items.iter().filter_map(Item::run).flat_map(Run::records)
    }

    /// The gaps, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.items.iter().filter_map(Item::gap)
    }

    /// How many records [`Chunk::records`] yields.
    pub fn record_count(&self) -> u64 {
        self.items.iter().filter_map(Item::run).map(Run::record_count).sum()
    }
}

/// One part of a chunk.
#[derive(Debug, Clone)]
pub enum Item {
    /// Records, dense.
    Records(Run),
    /// Seqs that will never come.
    Gap(Gap),
}

impl Item {
    /// The run, if it is one.
    pub fn run(&self) -> Option<&Run> {
        if let Self::Records(run) = self { Some(run) } else { None }
    }

    /// The gap, if it is one.
    pub fn gap(&self) -> Option<Gap> {
        if let Self::Gap(gap) = self { Some(*gap) } else { None }
    }
}

/// Seqs `[from, to)` that will never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gap {
    /// First missing.
    pub from: Seq,
    /// The seq after the last missing.
    pub to: Seq,
    /// Why.
    pub reason: GapReason,
}

impl Gap {
    /// How many seqs.
    pub fn count(&self) -> u64 {
        self.from.distance_to(self.to)
    }
}

/// Why seqs are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// Never stored: the writer skipped them after a failure, or they were not durable at a crash.
    NotDurable,
    /// Damaged or missing: they were durable once.
    Lost,
    /// Their segments were retired: they lie below the floor.
    Retired,
    /// Dropped to stay under a byte limit.
    Trimmed,
    /// Dropped because they were older than the age limit.
    Expired,
}

impl std::fmt::Display for GapReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotDurable => "not durable",
            Self::Lost => "lost",
            Self::Retired => "retired",
            Self::Trimmed => "trimmed",
            Self::Expired => "expired",
        })
    }
}

/// A batch inside a run's bytes: the header as it is or was mended, and where its frames lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) header: BatchHeader,
    /// Offset of the first frame in the run's bytes.
    pub(crate) start: usize,
}

impl Span {
    pub(crate) fn end(&self) -> usize {
        self.start.saturating_add(self.header.frames_bytes as usize)
    }
}

/// A dense run of records in one piece of memory. Clones share it.
#[derive(Debug, Clone)]
pub struct Run {
    bytes: Bytes,
    spans: Vec<Span>,
    first: Seq,
    end: Seq,
}

impl Run {
    /// Spans must be dense, verified, lie inside `bytes` and cover `[first, end)`.
    pub(crate) fn new(bytes: Bytes, spans: Vec<Span>, first: Seq, end: Seq) -> Self {
        debug_assert!(first < end);
        debug_assert!(spans.iter().all(|s| s.end() <= bytes.len()));
        debug_assert!(spans.first().is_some_and(|s| s.header.first_seq <= first));
        debug_assert!(spans.last().is_some_and(|s| s.header.end_seq() >= end));
        Self { bytes, spans, first, end }
    }

    /// The first seq.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// The seq after the last.
    pub fn end(&self) -> Seq {
        self.end
    }

    /// How many records.
    pub fn record_count(&self) -> u64 {
        self.first.distance_to(self.end)
    }

    /// The memory behind the run: headers, frames, and records outside the run.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// First seq, end seq and append time of each batch, the first and last cut to what the run covers.
    pub fn batches(&self) -> impl Iterator<Item = (Seq, Seq, WallTime)> {
        self.spans.iter().map(|span| {
            let header = &span.header;
            (header.first_seq.max(self.first), header.end_seq().min(self.end), header.append_time)
        })
    }

    /// The records in order.
    pub fn records(&self) -> Records<'_> {
        Records { run: self, spans: self.spans.iter(), frames: None, appended_at: WallTime::EPOCH }
    }

    /// A record's payload as its own handle on the shared memory.
    ///
    /// # Panics
    /// If the record is not of this run.
    pub fn share(&self, record: &RecordRef<'_>) -> Bytes {
        self.bytes.slice_ref(record.payload)
    }
}

/// One record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its seq.
    pub seq: Seq,
    /// When its batch was begun.
    pub appended_at: WallTime,
    /// The caller's marks.
    pub marks: Marks,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Iterator of [`Run::records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    run: &'a Run,
    spans: std::slice::Iter<'a, Span>,
    frames: Option<Frames<'a>>,
    appended_at: WallTime,
}

impl<'a> Iterator for Records<'a> {
    type Item = RecordRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<RecordRef<'a>> {
        loop {
            if let Some(frames) = &mut self.frames {
                for frame in frames {
                    let Some(seq) = frame.seq.filter(|_| frame.kind == FrameKind::Record) else { continue };
                    if seq >= self.run.end {
                        self.spans = [].iter();
                        break;
                    }
                    if seq >= self.run.first {
                        let appended_at = self.appended_at;
                        return Some(RecordRef {
                            seq,
                            appended_at,
                            marks: frame.marks,
                            payload: frame.payload,
                        });
                    }
                }
            }
            let span = self.spans.next()?;
            let frames = self.run.bytes.get(span.start..span.end())?;
            self.appended_at = span.header.append_time;
            self.frames = Some(verified_frames(&span.header, frames));
        }
    }
}
