//! The bodies of the cursor journal as bytes: one kind byte, then items of that kind until the body ends.
//!
//! ```text
//!   kind u8 | item | item | ...       an item is a wire struct in bincode 2 "standard" (little-endian varints)
//! ```
//!
//! | kind | items | |
//! |---:|---|---|
//! | 1 | consumers | whole entries: created, or of a snapshot |
//! | 2 | cursors | consumer, cursor, hint, acked ranges, note if it changed |
//! | 3 | floors | stream, seq, segment, reason (1 delivered, 2 trimmed, 3 expired); forgets the floor's tags |
//! | 4 | tags | stream, producer, value, seq: one more tag of the stream's floor |
//! | 5 | durable ends | stream, end, segment, offset |
//! | 6, 7 | removed consumers, forgotten streams | ids |
//! | 8 | next consumer | the least id that may be given out |
//! | 9 | clean stop | how many ends follow; with fewer of them there is no clean stop |
//! | 10 | ends of the clean stop | as kind 5 |
//! | 11 | clean stop void | no items |
//! | 12 | trims | stream, from, to, reason as in kind 3, seqs ever trimmed, seqs ever expired; one more range of the stream, none if from = to |
//! | 13 | age marks | stream, end, open time: everything below the end was durable then |
//! | 14 | open time | for how long the queue was open, over all runs, in nanoseconds |
//!
//! The wire structs are kept apart from the public types, in [`wire`](crate::wire). Every item says an absolute
//! value, so that losing one entry to damage costs that move and nothing behind it. Decoding is total: bounded,
//! never a panic. A kind nobody knows is a later version's, and refused.

use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use serde::{Deserialize, Serialize};
use wal_format::{ConsumerId, SegmentId, Seq, StreamId};

use crate::entry::{
    AgeMark, ConsumerEntry, CursorMove, DurableEnd, Floor, FloorReason, OpenTime, OwnedTag, Trim, Trims,
};
use crate::journal::Bodies;
use crate::wire::{
    ConsumerWire, CursorWire, FloorWire, MarkWire, TagWire, TrimWire, acked_to_wire, consumer_from_wire,
    cursor_from_wire, end_from_wire, end_to_wire, hint_to_wire, reason_from_wire, reason_to_wire,
};

/// A body is closed and a new one begun at this length, so that mending one flipped bit stays quick.
const BODY_BYTES_SOFT: usize = 4 << 10;
/// Nothing larger is decoded, whatever a length says.
const DECODE_BYTES_MAX: usize = 128 << 10;

const CONFIG: Configuration<LittleEndian, Varint, Limit<DECODE_BYTES_MAX>> =
    config::standard().with_limit::<DECODE_BYTES_MAX>();

/// What a body's items are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Consumers = 1,
    Cursors = 2,
    Floors = 3,
    Tags = 4,
    Ends = 5,
    Removed = 6,
    Forgotten = 7,
    NextConsumer = 8,
    CleanStop = 9,
    CleanStopEnds = 10,
    CleanStopVoid = 11,
    Trims = 12,
    Marks = 13,
    OpenTime = 14,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Consumers,
        Self::Cursors,
        Self::Floors,
        Self::Tags,
        Self::Ends,
        Self::Removed,
        Self::Forgotten,
        Self::NextConsumer,
        Self::CleanStop,
        Self::CleanStopEnds,
        Self::CleanStopVoid,
        Self::Trims,
        Self::Marks,
        Self::OpenTime,
    ];
}

/// One decoded item.
#[derive(Debug)]
pub(crate) enum Change {
    /// A consumer with its whole entry.
    Consumer(ConsumerEntry),
    /// A consumer's new place.
    Cursor(CursorMove),
    /// A floor without its tags, which follow.
    Floor(StreamId, Floor),
    /// One more tag of a floor.
    Tag(StreamId, OwnedTag),
    /// A durable end.
    End(StreamId, DurableEnd),
    /// A consumer is no more.
    Removed(ConsumerId),
    /// A stream is no more.
    Forgotten(StreamId),
    /// The least id the next consumer may get.
    NextConsumer(u64),
    /// A clean stop with this many ends, which follow.
    CleanStop(u64),
    /// One more end of the clean stop.
    CleanStopEnd(StreamId, DurableEnd),
    /// No clean stop any more.
    CleanStopVoid,
    /// One more range of a stream that policies dropped, with the totals.
    Trim(StreamId, Trims),
    /// One more mark of a stream's age.
    Mark(StreamId, AgeMark),
    /// For how long the queue was open.
    OpenTime(OpenTime),
}

/// Writes changes as bodies of a journal.
#[derive(Debug)]
pub(crate) struct ChangeWriter<'a> {
    bodies: &'a mut Bodies,
    kind: Option<Kind>,
}

impl<'a> ChangeWriter<'a> {
    /// Appends to `bodies`; the last body is ended by [`finish`](Self::finish).
    pub(crate) const fn new(bodies: &'a mut Bodies) -> Self {
        Self { bodies, kind: None }
    }

    fn item(&mut self, kind: Kind, item: impl Serialize) {
        if self.kind != Some(kind) || self.bodies.tail_bytes() >= BODY_BYTES_SOFT {
            self.close();
            self.bodies.tail().push(kind as u8);
            self.kind = Some(kind);
        }
        bincode::serde::encode_into_std_write(item, self.bodies.tail(), CONFIG)
            .expect("encoding plain structs into memory cannot fail");
    }

    fn close(&mut self) {
        if self.kind.take().is_some() {
            self.bodies.finish();
        }
    }

    /// Ends the last body.
    pub(crate) fn finish(mut self) {
        self.close();
    }

    pub(crate) fn consumer(&mut self, entry: &ConsumerEntry) {
        let wire = ConsumerWire {
            consumer: entry.consumer.get(),
            stream: entry.stream.get(),
            incarnation: entry.incarnation.get(),
            name: &entry.name,
            created_at: entry.created_at.nanos(),
            cursor: entry.cursor.get(),
            hint: entry.hint.map(hint_to_wire),
            acked: acked_to_wire(&entry.acked_above),
            note: &entry.note,
        };
        self.item(Kind::Consumers, wire);
    }

    pub(crate) fn cursor(&mut self, to: &CursorMove) {
        let wire = CursorWire {
            consumer: to.consumer.get(),
            cursor: to.cursor.get(),
            hint: to.hint.map(hint_to_wire),
            acked: acked_to_wire(&to.acked_above),
            note: to.note.as_deref(),
        };
        self.item(Kind::Cursors, wire);
    }

    pub(crate) fn floor(&mut self, stream: StreamId, floor: &Floor) {
        let reason = reason_to_wire(floor.reason);
        let wire =
            FloorWire { stream: stream.get(), seq: floor.seq.get(), segment: floor.segment.get(), reason };
        self.item(Kind::Floors, wire);
        for tag in &floor.tags {
            let wire = TagWire {
                stream: stream.get(),
                producer: &tag.producer,
                value: &tag.value,
                at: tag.at.get(),
            };
            self.item(Kind::Tags, wire);
        }
    }

    /// A range, or the totals alone.
    pub(crate) fn trim(&mut self, stream: StreamId, trim: Option<&Trim>, all: &Trims) {
        let (from, to) = trim.map_or((0, 0), |trim| (trim.from.get(), trim.to.get()));
        let reason = reason_to_wire(trim.map_or(FloorReason::Trimmed, |trim| trim.reason));
        let (trimmed_count, expired_count) = (all.trimmed_count, all.expired_count);
        let wire = TrimWire { stream: stream.get(), from, to, reason, trimmed_count, expired_count };
        self.item(Kind::Trims, wire);
    }

    pub(crate) fn mark(&mut self, stream: StreamId, mark: AgeMark) {
        let wire = MarkWire { stream: stream.get(), end: mark.end.get(), at: mark.at.nanos() };
        self.item(Kind::Marks, wire);
    }

    pub(crate) fn open_time(&mut self, open_time: OpenTime) {
        self.item(Kind::OpenTime, open_time.nanos());
    }

    pub(crate) fn end(&mut self, stream: StreamId, end: DurableEnd) {
        self.item(Kind::Ends, end_to_wire(stream, end));
    }

    pub(crate) fn removed(&mut self, consumer: ConsumerId) {
        self.item(Kind::Removed, consumer.get());
    }

    pub(crate) fn forgotten(&mut self, stream: StreamId) {
        self.item(Kind::Forgotten, stream.get());
    }

    pub(crate) fn next_consumer(&mut self, id: u64) {
        self.item(Kind::NextConsumer, id);
    }

    pub(crate) fn clean_stop(&mut self, ends: &[(StreamId, DurableEnd)]) {
        self.item(Kind::CleanStop, ends.len() as u64);
        for &(stream, end) in ends {
            self.item(Kind::CleanStopEnds, end_to_wire(stream, end));
        }
    }

    pub(crate) fn clean_stop_void(&mut self) {
        self.item(Kind::CleanStopVoid, ());
        self.close();
    }
}

/// Why a body could not be read to its end; the items before it were given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// A later version's kind.
    UnknownKind(u8),
    /// Not what it says it is.
    Malformed,
}

/// Decodes a body, giving each item to `apply`.
pub(crate) fn decode(body: &[u8], mut apply: impl FnMut(Change)) -> Result<(), BodyError> {
    let Some((&first, mut rest)) = body.split_first() else { return Err(BodyError::Malformed) };
    let kind =
        Kind::ALL.into_iter().find(|&kind| kind as u8 == first).ok_or(BodyError::UnknownKind(first))?;
    if kind == Kind::CleanStopVoid {
        apply(Change::CleanStopVoid);
        return if rest.is_empty() { Ok(()) } else { Err(BodyError::Malformed) };
    }
    while !rest.is_empty() {
        apply(decode_item(kind, &mut rest).ok_or(BodyError::Malformed)?);
    }
    Ok(())
}

fn decode_item(kind: Kind, rest: &mut &[u8]) -> Option<Change> {
    Some(match kind {
        Kind::Consumers => Change::Consumer(consumer_from_wire(take(rest)?)?),
        Kind::Cursors => Change::Cursor(cursor_from_wire(take(rest)?)?),
        Kind::Floors => {
            let FloorWire { stream, seq, segment, reason } = take(rest)?;
            let reason = reason_from_wire(reason)?;
            let floor =
                Floor { seq: Seq::new(seq), segment: SegmentId::new(segment), reason, tags: Vec::new() };
            Change::Floor(StreamId::new(stream), floor)
        }
        Kind::Tags => {
            let TagWire { stream, producer, value, at } = take(rest)?;
            let tag = OwnedTag { producer: producer.to_vec(), value: value.to_vec(), at: Seq::new(at) };
            Change::Tag(StreamId::new(stream), tag)
        }
        Kind::Ends => end_from_wire(&take(rest)?, Change::End),
        Kind::Removed => Change::Removed(ConsumerId::new(take(rest)?)),
        Kind::Forgotten => Change::Forgotten(StreamId::new(take(rest)?)),
        Kind::NextConsumer => Change::NextConsumer(take(rest)?),
        Kind::CleanStop => Change::CleanStop(take(rest)?),
        Kind::CleanStopEnds => end_from_wire(&take(rest)?, Change::CleanStopEnd),
        Kind::CleanStopVoid => Change::CleanStopVoid,
        Kind::Trims => {
            let TrimWire { stream, from, to, reason, trimmed_count, expired_count } = take(rest)?;
            let reason = reason_from_wire(reason).filter(|reason| *reason != FloorReason::Delivered)?;
            let trim = Trim { from: Seq::new(from), to: Seq::new(to), reason };
            let ranges = if from < to { vec![trim] } else { Vec::new() };
            Change::Trim(StreamId::new(stream), Trims { ranges, trimmed_count, expired_count })
        }
        Kind::Marks => {
            let MarkWire { stream, end, at } = take(rest)?;
            let mark = AgeMark { end: Seq::new(end), at: OpenTime::from_nanos(at) };
            Change::Mark(StreamId::new(stream), mark)
        }
        Kind::OpenTime => Change::OpenTime(OpenTime::from_nanos(take(rest)?)),
    })
}

fn take<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Option<T> {
    let (value, used) = bincode::serde::borrow_decode_from_slice(rest, CONFIG).ok()?;
    // An item of no bytes would never end the loop that reads a body.
    if used == 0 {
        return None;
    }
    *rest = rest.get(used..)?;
    Some(value)
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
