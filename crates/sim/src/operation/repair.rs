//! What somebody, or time, does to the files of a queue that is stopped, and how the repair that follows is stopped.

use super::{Interrupt, StreamIndex, moment, small, wide};
use crate::random::Draw;

/// Damage to one file of a queue that was closed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// To a segment of a stream, counted from the oldest and taken modulo their number.
    Segment(StreamIndex, u8, Hurt),
    /// One bit of a file of the queue's own, both taken modulo how many there are.
    Own {
        /// Which file, in the order of names; only those that hold something count.
        file: u8,
        /// Which bit.
        bit: u32,
    },
}

/// What is done to a segment's file. Numbers are taken modulo what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hurt {
    /// A bit of some record's payload flips.
    Payload(u16),
    /// Any bit flips.
    Bit(u32),
    /// A block of 512 bytes becomes zero.
    Block(u16),
    /// The file ends after so many bytes.
    Cut(u16),
}

/// Whether a repair that was stopped is begun again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is, until it is through; then the queue is opened.
    Resume,
    /// The queue is opened as the stop left it.
    Open,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// What is damaged: a file of the queue's own, or one segment of each of some streams. What makes it more is left out.
    pub damages: Vec<Damage>,
    /// Stops of the repair; the next one comes in what is begun again.
    pub interrupts: Vec<Interrupt>,
    /// What follows them.
    pub then: Then,
}

/// Calls of a repair, about.
const CALLS_OF_REPAIR: u64 = 120;

impl Repair {
    /// One in two is stopped.
    pub fn draw(from: &mut impl Draw) -> Self {
        let damages = if from.one_in(4) {
            vec![Damage::Own { file: small(from, 8), bit: u32::try_from(from.below(1 << 18)).unwrap_or(0) }]
        } else {
            let first = StreamIndex(small(from, 3));
            let more = (0..small(from, 3)).map(|n| StreamIndex(first.0 + n + 1));
            let streams: Vec<StreamIndex> = std::iter::once(first).chain(more).collect();
            streams.into_iter().map(|s| Damage::Segment(s, small(from, 4), Hurt::draw(from))).collect()
        };
        let mut interrupts = Vec::new();
        while interrupts.len() < 3 && from.one_in(2) {
            let call = from.between(1, CALLS_OF_REPAIR);
            interrupts.push(Interrupt { call, moment: moment(from), how: super::How::draw(from) });
        }
        let then = from.pick(Then::Resume, &[Then::Resume, Then::Open]);
        Self { damages, interrupts, then }
    }
}

impl Hurt {
    fn draw(from: &mut impl Draw) -> Self {
        match from.below(4) {
            0 => Self::Payload(wide(from, 1 << 10)),
            1 => Self::Bit(u32::try_from(from.below(1 << 17)).unwrap_or(0)),
            2 => Self::Block(wide(from, 64)),
            _ => Self::Cut(wide(from, 1 << 15)),
        }
    }
}
