//! Limits: a full stream under each policy, a full queue, records that grow too old, a cap that is lowered.
//!
//! ```text
//!   prepare: two segments, rotated, and a cap near what they take ─> act: what meets it, what the consumers do, what goes on
//! ```
//!
//! Each of them is tried alone as well (`tests/limits.rs`): that the limit is met, and what it costs then.

use pq::OnFull;

use super::{A, B, Before, Scenario, append, one_stream, reader};
use crate::operation::{Bound, Load, Operation, StreamIndex, TurnEnd};
use crate::setup::{Setup, kinds_of_streams};

/// Bytes that are left where a record fits into no new segment any more, and little is left for who drops the oldest.
const NEARLY_FULL: i32 = 2000;

fn of(name: &'static str, prepare: Vec<Operation>, act: Vec<Operation>) -> Scenario {
    Scenario { name, setup: one_stream(0), before: Before::Everything, prepare, act }
}

fn bound(on_full: OnFull, more: i32) -> Operation {
    Operation::Bound(Bound::Stream(A, on_full, more))
}

fn waiting(stream: StreamIndex) -> Operation {
    Operation::AppendWaiting(stream, Load { count: 1, bytes: 200 })
}

/// A segment of its own.
fn segment(stream: StreamIndex) -> Vec<Operation> {
    vec![append(stream, 2, 300), Operation::CommitDurable(stream), Operation::Rotate(stream)]
}

/// Two of them; nobody read anything.
fn stored() -> Vec<Operation> {
    [segment(A), segment(A)].concat()
}

/// The stream's consumers take and acknowledge everything, but for so many of the newest records.
fn read(stream: StreamIndex, back: u8) -> Vec<Operation> {
    vec![
        Operation::Read(reader(stream, 0), 60_000),
        Operation::Ack(reader(stream, 0), back),
        Operation::Turn(TurnEnd::Taken),
    ]
}

/// Something is appended to a full stream; its consumers come; then there is space.
fn full(on_full: OnFull) -> (Vec<Operation>, Vec<Operation>) {
    let tried = vec![waiting(A), append(A, 1, 200)];
    let drained =
        [read(A, 0), vec![Operation::Tick, append(A, 1, 200), Operation::CommitDurable(A)]].concat();
    ([stored(), vec![bound(on_full, NEARLY_FULL)]].concat(), [tried, drained].concat())
}

fn two_streams() -> Setup {
    let usual = kinds_of_streams().into_iter().next().unwrap_or_default();
    let mut setup = Setup { streams: vec![usual.clone(), usual], pulls_count: 1, ..Setup::usual(77) };
    setup.options.reserve_bytes = 0;
    setup
}

/// All of them.
pub(super) fn limits() -> Vec<Scenario> {
    [full_streams(), full_queues(), lowered(), old_records()].concat()
}

fn full_streams() -> Vec<Scenario> {
    let full_of = |name, on_full| {
        let (prepare, act) = full(on_full);
        of(name, prepare, act)
    };
    let written = [append(A, 1, 200), Operation::CommitDurable(A)];
    vec![
        full_of("full: an append waits", OnFull::Block),
        full_of("full: an append is refused", OnFull::Reject),
        full_of("full: the newest are dropped", OnFull::DropNewest),
        of(
            "full: the oldest are dropped",
            [stored(), vec![bound(OnFull::DropOldest, 10_500)]].concat(),
            [written.to_vec(), vec![Operation::Tick], read(A, 0), vec![Operation::Tick]].concat(),
        ),
        // What is in the way is still being written.
        Scenario {
            setup: one_stream(6),
            ..of(
                "full to the byte: acknowledged, and on again",
                vec![append(A, 4, 800), Operation::CommitDurable(A), bound(OnFull::Block, 0)],
                [
                    vec![waiting(A)],
                    read(A, 1),
                    vec![
                        Operation::Tick,
                        Operation::Read(reader(A, 0), 60_000),
                        Operation::Ack(reader(A, 0), 0),
                    ],
                    vec![Operation::Tick, Operation::CommitDurable(A)],
                ]
                .concat(),
            )
        },
    ]
}

fn full_queues() -> Vec<Scenario> {
    let both = || [segment(A), segment(B)].concat();
    let queue =
        |name, prepare: Vec<Operation>, act| Scenario { setup: two_streams(), ..of(name, prepare, act) };
    let bound = |more| vec![Operation::Bound(Bound::Queue(more)), Operation::Close];
    vec![
        queue(
            "a full queue: one stream waits for another",
            [both(), bound(NEARLY_FULL)].concat(),
            [vec![waiting(A)], read(B, 0), vec![Operation::Turn(TurnEnd::Taken), Operation::Tick]]
                .concat()
                .into_iter()
                .chain([Operation::CommitDurable(A)])
                .collect(),
        ),
        queue(
            "a lowered cap of a queue, and it is opened",
            [both(), vec![Operation::Bound(Bound::Queue(-3000))]].concat(),
            vec![Operation::Close],
        ),
    ]
}

fn lowered() -> Vec<Scenario> {
    let three = || [stored(), segment(A)].concat();
    vec![
        of(
            "a lowered cap, and the queue is opened",
            [three(), vec![bound(OnFull::Block, 9000)]].concat(),
            vec![bound(OnFull::Block, -2000), append(A, 1, 200), Operation::Close],
        ),
        of(
            "a lowered cap drops the oldest",
            [three(), vec![bound(OnFull::DropOldest, 30_000)]].concat(),
            [vec![bound(OnFull::DropOldest, -2000), Operation::Tick], read(A, 0), vec![Operation::Tick]]
                .concat(),
        ),
    ]
}

/// The older segment is too old, the younger is not.
fn old_records() -> Vec<Scenario> {
    vec![of(
        "records that are too old",
        [
            vec![Operation::Bound(Bound::Age(A, 1600))],
            segment(A),
            vec![Operation::Tick, Operation::Pass(1_000_000)],
            segment(A),
            vec![Operation::Tick],
        ]
        .concat(),
        [vec![Operation::Pass(650_000), Operation::Tick], read(A, 0), vec![Operation::Tick]].concat(),
    )]
}
