//! The items of a body as they stand on the disk. These structs are the format: they never change; what is new gets a
//! new kind and a new struct. Golden files hold them.

use serde::{Deserialize, Serialize};
use wal_format::{ConsumerId, Incarnation, SegmentId, Seq, StreamId, WallTime};

use crate::change::Change;
use crate::entry::{AckedRange, ConsumerEntry, CursorMove, Direction, DurableEnd, FloorReason, Position};

#[derive(Serialize, Deserialize)]
pub(crate) struct HintWire {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ConsumerWire<'a> {
    pub(crate) consumer: u64,
    pub(crate) stream: u64,
    pub(crate) incarnation: u128,
    pub(crate) name: &'a str,
    pub(crate) created_at: u64,
    pub(crate) cursor: u64,
    pub(crate) hint: Option<HintWire>,
    pub(crate) acked: Vec<(u64, u64)>,
    pub(crate) note: &'a [u8],
}

#[derive(Serialize, Deserialize)]
pub(crate) struct CursorWire<'a> {
    pub(crate) consumer: u64,
    pub(crate) cursor: u64,
    pub(crate) hint: Option<HintWire>,
    pub(crate) acked: Vec<(u64, u64)>,
    pub(crate) note: Option<&'a [u8]>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct FloorWire {
    pub(crate) stream: u64,
    pub(crate) seq: u64,
    pub(crate) segment: u64,
    pub(crate) reason: u8,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct TagWire<'a> {
    pub(crate) stream: u64,
    pub(crate) producer: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) at: u64,
}

/// `from == to`: the totals alone.
#[derive(Serialize, Deserialize)]
pub(crate) struct TrimWire {
    pub(crate) stream: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) reason: u8,
    pub(crate) trimmed_count: u64,
    pub(crate) expired_count: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct MarkWire {
    pub(crate) stream: u64,
    pub(crate) end: u64,
    pub(crate) at: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct EndWire {
    pub(crate) stream: u64,
    pub(crate) end: u64,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

pub(crate) const fn hint_to_wire(hint: Position) -> HintWire {
    HintWire { segment: hint.segment.get(), offset: hint.offset }
}

pub(crate) fn hint_from_wire(hint: HintWire) -> Position {
    Position { segment: SegmentId::new(hint.segment), offset: hint.offset }
}

pub(crate) fn acked_to_wire(acked: &[AckedRange]) -> Vec<(u64, u64)> {
    acked.iter().map(|range| (range.from.get(), range.to.get())).collect()
}

pub(crate) fn acked_from_wire(acked: Vec<(u64, u64)>) -> Vec<AckedRange> {
    acked.into_iter().map(|(from, to)| AckedRange { from: Seq::new(from), to: Seq::new(to) }).collect()
}

pub(crate) fn consumer_from_wire(wire: ConsumerWire<'_>) -> Option<ConsumerEntry> {
    Some(ConsumerEntry {
        stream: StreamId::new(wire.stream),
        incarnation: Incarnation::new(wire.incarnation),
        consumer: ConsumerId::new(wire.consumer),
        name: wire.name.to_owned(),
        created_at: WallTime::from_nanos(wire.created_at),
        cursor: Seq::new(wire.cursor),
        hint: wire.hint.map(hint_from_wire),
        acked_above: acked_from_wire(wire.acked),
        note: wire.note.to_vec(),
    })
}

pub(crate) fn cursor_from_wire(wire: CursorWire<'_>) -> Option<CursorMove> {
    Some(CursorMove {
        consumer: ConsumerId::new(wire.consumer),
        cursor: Seq::new(wire.cursor),
        hint: wire.hint.map(hint_from_wire),
        acked_above: acked_from_wire(wire.acked),
        note: wire.note.map(<[u8]>::to_vec),
        direction: Direction::Seek,
    })
}

pub(crate) const fn reason_to_wire(reason: FloorReason) -> u8 {
    match reason {
        FloorReason::Delivered => 1,
        FloorReason::Trimmed => 2,
        FloorReason::Expired => 3,
    }
}

pub(crate) const fn reason_from_wire(reason: u8) -> Option<FloorReason> {
    Some(match reason {
        1 => FloorReason::Delivered,
        2 => FloorReason::Trimmed,
        3 => FloorReason::Expired,
        _ => return None,
    })
}

pub(crate) const fn end_to_wire(stream: StreamId, end: DurableEnd) -> EndWire {
    EndWire { stream: stream.get(), end: end.end.get(), segment: end.segment.get(), offset: end.offset }
}

pub(crate) fn end_from_wire(wire: &EndWire, change: impl FnOnce(StreamId, DurableEnd) -> Change) -> Change {
    let end =
        DurableEnd { end: Seq::new(wire.end), segment: SegmentId::new(wire.segment), offset: wire.offset };
    change(StreamId::new(wire.stream), end)
}
