//! The model: what anybody may know of a queue without looking at it. Of each stream whether it is there, and between which two seqs its
//! durable end lies; of each consumer between which two its cursor does.
//!
//! ```text
//!            low ────────── durable end ────────── high
//!   append    ·                                    + records         accepted, at most
//!   commit   + what was surely accepted             ·                all of it durable, on a sound disk
//!   crash     ·                                     ·                low stays: nothing durable is lost
//! ```
//!
//! It shares nothing with the oracle: the oracle follows answers, the model foresees them. While a fault is planned it foresees less.

use pq::ReadLevel;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use crate::operation::{Load, Operation, StreamIndex};
use crate::random::Bytes;
use crate::setup::Setup;
use crate::world::KEPT_UP_ROUNDS;

/// Bytes an operation is drawn from.
const DRAW_BYTES: usize = 24;
/// Bytes of a frame around a payload, generously.
const FRAME_BYTES: u64 = 64;

/// What is known of one stream.
#[derive(Debug, Clone)]
pub struct StreamModel {
    /// Whether it is there; `None`: a call failed, or may have.
    pub there: Option<bool>,
    /// Its durable end is not below.
    pub low: u64,
    /// Its durable end is not above; `None`: its seqs jump.
    pub high: Option<u64>,
    /// Surely accepted, not yet surely durable.
    pending: u64,
    /// Room its records may hold, in bytes.
    buffered_bytes: u64,
}

/// What is known of a queue.
#[derive(Debug, Clone)]
pub struct Reference {
    /// What the run starts from.
    pub setup_seed: u64,
    /// Its streams.
    pub streams: Vec<StreamModel>,
    /// Bytes of frames that surely have room, whatever else is buffered.
    room_bytes: u64,
    /// Nothing was planned against the disk since it was opened.
    is_calm: bool,
    /// Something runs out, until the disk is healed.
    is_limited: bool,
}

impl StreamModel {
    fn created() -> Self {
        Self { there: Some(true), low: 1, high: Some(1), pending: 0, buffered_bytes: 0 }
    }

    fn may_grow(&mut self, count: u64) {
        self.high = self.high.and_then(|high| high.checked_add(count));
    }
}

impl Reference {
    fn new(setup_seed: u64) -> Self {
        let setup = Setup::drawn(setup_seed);
        let streams = setup.streams.iter().map(|_| StreamModel::created()).collect();
        let room_bytes = setup.options.buffer_bytes_max / 3 * 2;
        Self { setup_seed, streams, room_bytes, is_calm: true, is_limited: false }
    }

    fn stream(&mut self, index: StreamIndex) -> Option<&mut StreamModel> {
        let index = usize::from(index.0) % self.streams.len().max(1);
        self.streams.get_mut(index)
    }

    fn append(&mut self, stream: StreamIndex, load: Load, is_sure: bool) {
        // A payload is at most twice as long as asked for.
        let bytes = u64::from(load.count) * (2 * u64::from(load.bytes) + FRAME_BYTES);
        let buffered: u64 = self.streams.iter().map(|stream| stream.buffered_bytes).sum();
        let (fits, is_calm) = (buffered + bytes <= self.room_bytes, self.is_calm);
        let Some(stream) = self.stream(stream) else { return };
        stream.buffered_bytes += bytes;
        stream.may_grow(u64::from(load.count));
        if is_sure && is_calm && fits && stream.there == Some(true) {
            stream.pending += u64::from(load.count);
        }
    }

    fn committed(&mut self, stream: StreamIndex) {
        let is_calm = self.is_calm;
        let Some(stream) = self.stream(stream) else { return };
        if is_calm && stream.there == Some(true) {
            stream.low += std::mem::take(&mut stream.pending);
            stream.buffered_bytes = 0;
        }
    }

    /// The process may end: a stream that shows what is only written then leaves seqs out.
    fn may_end(&mut self) {
        let settings = Setup::drawn(self.setup_seed).streams;
        for (stream, settings) in self.streams.iter_mut().zip(settings) {
            if settings.read_level == ReadLevel::Written {
                stream.high = None;
            }
        }
    }

    /// The process ended; what was not durable may be gone.
    fn ended(&mut self) {
        self.may_end();
        for stream in &mut self.streams {
            (stream.pending, stream.buffered_bytes) = (0, 0);
        }
        self.is_calm = !self.is_limited;
    }

    fn closed(&mut self) {
        if self.is_calm {
            for index in 0..self.streams.len() {
                self.committed(StreamIndex(u8::try_from(index).unwrap_or(0)));
            }
        }
        self.ended();
    }
}

impl ReferenceStateMachine for Reference {
    type State = Self;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Self> {
        (0_u64..1 << 32).prop_map(Self::new).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Operation> {
        let bytes = proptest::collection::vec(any::<u8>(), DRAW_BYTES);
        bytes.prop_map(|bytes| Operation::draw(&mut Bytes::new(&bytes))).boxed()
    }

    fn apply(mut state: Self, transition: &Operation) -> Self {
        match transition {
            Operation::Append(stream, load) => state.append(*stream, *load, true),
            Operation::KeepUp(whose, load) => {
                (0..KEPT_UP_ROUNDS).for_each(|_| state.append(whose.stream, *load, true));
            }
            // Some streams take no batch of that many records.
            Operation::AppendBatch(stream, load) => state.append(*stream, *load, false),
            Operation::CommitDurable(stream) | Operation::Rotate(stream) | Operation::Wait(stream) => {
                state.committed(*stream)
            }
            Operation::CreateStream(stream) => {
                let is_calm = state.is_calm;
                if let Some(stream) = state.stream(*stream) {
                    match stream.there {
                        Some(true) => {}
                        Some(false) if is_calm => *stream = StreamModel::created(),
                        _ => *stream = StreamModel { there: None, low: 1, ..stream.clone() },
                    }
                }
            }
            Operation::DeleteStream(stream) => {
                let is_calm = state.is_calm;
                if let Some(stream) = state.stream(*stream) {
                    stream.there = if is_calm { Some(false) } else { None };
                    (stream.low, stream.pending) = (1, 0);
                }
            }
            Operation::Fault(_) => state.is_calm = false,
            Operation::CrashAt { .. } => {
                state.is_calm = false;
                state.may_end();
            }
            Operation::Limit(_) => (state.is_calm, state.is_limited) = (false, true),
            Operation::Heal => state.is_limited = false,
            Operation::Close | Operation::Repair(_) => state.closed(),
            Operation::Crash(_) => state.ended(),
            _ => {}
        }
        state
    }
}
