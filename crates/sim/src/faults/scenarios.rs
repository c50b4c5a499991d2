//! What goes on while a call fails: each thing the queue does, by itself, on a queue that has something to do it with.

use pq::OnFull;
use sim_disk::Survival;

use crate::operation::{Bound, Crash, How, Load, Operation, ReaderIndex, StreamIndex, TurnEnd, Whose};
use crate::setup::{Setup, kinds_of_streams};

/// See the module.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name, in reports.
    pub name: &'static str,
    /// Which kinds of streams there are.
    pub kinds: &'static [usize],
    /// What is done on a sound disk.
    pub before: Vec<Operation>,
    /// What is done while a call fails.
    pub during: Vec<Operation>,
}

impl Scenario {
    /// What it starts from.
    pub(super) fn setup(&self) -> Setup {
        let kinds = kinds_of_streams();
        let streams = self.kinds.iter().filter_map(|kind| kinds.get(*kind)).cloned().collect();
        Setup { streams, pulls_count: 2, ..Setup::usual(7) }
    }
}

const S0: StreamIndex = StreamIndex(0);
const S1: StreamIndex = StreamIndex(1);

fn whose(reader: u8) -> Whose {
    Whose { stream: S0, reader: ReaderIndex(reader) }
}

fn append(stream: StreamIndex, count: u8, bytes: u16) -> Operation {
    Operation::Append(stream, Load { count, bytes })
}

/// So many segments of a few records, all of them read and acknowledged by both consumers and the sink.
fn read_segments(count: usize) -> Vec<Operation> {
    let mut all: Vec<_> = (0..count).flat_map(|_| [append(S0, 2, 200), Operation::Rotate(S0)]).collect();
    all.extend(read_all());
    all
}

/// Everything is read and acknowledged.
fn read_all() -> Vec<Operation> {
    let pull = |reader| {
        (0..6).flat_map(move |_| [Operation::Read(whose(reader), 60_000), Operation::Ack(whose(reader), 0)])
    };
    let turns = (0..12).map(|_| Operation::Turn(TurnEnd::Taken));
    pull(0).chain(pull(1)).chain(turns).collect()
}

/// A save of one moved cursor, so many times.
fn saves(count: usize) -> Vec<Operation> {
    (0..count)
        .flat_map(|_| {
            [
                append(S0, 1, 1),
                Operation::CommitDurable(S0),
                Operation::Read(whose(0), 100),
                Operation::Ack(whose(0), 0),
                Operation::Tick,
            ]
        })
        .collect()
}

fn crash(how: How) -> Operation {
    Operation::Crash(Crash { how, in_recovery: Vec::new() })
}

/// What a crash leaves: a torn tail, cursors not saved, segments to be unlinked again.
fn unsaved() -> Vec<Operation> {
    let mut before = read_segments(3);
    before.extend([
        Operation::Tick,
        append(S0, 3, 400),
        Operation::CommitDurable(S0),
        Operation::Read(whose(0), 60_000),
        Operation::Ack(whose(0), 0),
        append(S1, 2, 100),
        Operation::Commit(S1),
        append(S0, 2, 900),
    ]);
    before
}

/// All of them.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let scenario = |name, kinds, before, during| Scenario { name, kinds, before, during };
    writing()
        .into_iter()
        .chain(reading())
        .chain(limits())
        .chain([
            scenario(
                "power cut, recovery",
                &[0, 1],
                unsaved(),
                vec![crash(How::PowerCut(Survival::Seed(3)))],
            ),
            scenario(
                "power cut that takes all, recovery",
                &[0, 4],
                unsaved(),
                vec![crash(How::PowerCut(Survival::Nothing))],
            ),
            scenario("kill, recovery", &[0, 1], unsaved(), vec![crash(How::Kill)]),
            scenario("stop in order, start", &[0, 1], unsaved(), vec![Operation::Close]),
            scenario("stop of an idle queue", &[0], Vec::new(), vec![Operation::Close]),
        ])
        .collect()
}

fn writing() -> Vec<Scenario> {
    let scenario = |name, kinds, before, during| Scenario { name, kinds, before, during };
    let lazy = |stream| {
        vec![
            append(stream, 2, 300),
            Operation::Commit(stream),
            append(stream, 2, 300),
            Operation::Commit(stream),
        ]
    };
    vec![
        scenario("first append", &[0], Vec::new(), vec![append(S0, 1, 100), Operation::CommitDurable(S0)]),
        scenario(
            "group commit",
            &[0],
            vec![append(S0, 1, 100), Operation::CommitDurable(S0)],
            vec![
                append(S0, 5, 500),
                Operation::AppendBatch(S0, Load { count: 6, bytes: 200 }),
                append(S0, 5, 700),
                Operation::Wait(S0),
            ],
        ),
        scenario(
            "rotation",
            &[0],
            vec![append(S0, 2, 100), Operation::CommitDurable(S0)],
            vec![append(S0, 1, 100), Operation::Rotate(S0), append(S0, 1, 100), Operation::Rotate(S0)],
        ),
        scenario("rotation by size", &[6], Vec::new(), vec![append(S0, 12, 900), Operation::Wait(S0)]),
        scenario("syncs seldom", &[4], lazy(S0), [lazy(S0), vec![Operation::CommitDurable(S0)]].concat()),
        scenario(
            "shows what is written",
            &[1],
            lazy(S0),
            [lazy(S0), read_all(), vec![Operation::Tick]].concat(),
        ),
        scenario(
            "syncs at times",
            &[2],
            lazy(S0),
            [lazy(S0), vec![Operation::Pass(30_000), Operation::Timers, append(S0, 1, 9), Operation::Timers]]
                .concat(),
        ),
        scenario(
            "timers alone",
            &[3],
            Vec::new(),
            vec![append(S0, 4, 50), Operation::Pass(9_000), Operation::Timers],
        ),
        scenario(
            "two streams",
            &[0, 5],
            vec![append(S0, 1, 10), append(S1, 1, 10)],
            vec![Operation::CommitDurable(S0), Operation::Rotate(S1), append(S1, 2, 10), Operation::Wait(S1)],
        ),
    ]
}

fn reading() -> Vec<Scenario> {
    let scenario = |name, kinds, before, during| Scenario { name, kinds, before, during };
    let written =
        || vec![append(S0, 6, 300), Operation::Rotate(S0), append(S0, 6, 300), Operation::CommitDurable(S0)];
    vec![
        scenario("read, acknowledge, save", &[0], written(), [read_all(), vec![Operation::Tick]].concat()),
        scenario("retire", &[0], read_segments(4), vec![Operation::Tick, Operation::Tick]),
        scenario(
            "seek",
            &[0],
            [written(), read_all(), vec![Operation::Tick]].concat(),
            vec![Operation::Seek(whose(0), 90), Operation::Seek(whose(1), 200), Operation::Tick],
        ),
        scenario(
            "consumers removed and created",
            &[0],
            written(),
            vec![
                Operation::RemoveReader(whose(0)),
                Operation::CreateReader(whose(0)),
                Operation::RemoveReader(whose(2)),
                Operation::CreateReader(whose(2)),
                Operation::Tick,
            ],
        ),
        scenario(
            "stream deleted and created",
            &[0, 0],
            [written(), vec![Operation::Tick]].concat(),
            vec![
                Operation::DeleteStream(S0),
                Operation::CreateStream(S0),
                Operation::CreateReader(whose(0)),
                append(S0, 2, 100),
                Operation::CommitDurable(S0),
            ],
        ),
        scenario("journal compaction", &[0], saves(COMPACTION_SAVES), saves(4)),
        scenario(
            "journal compaction that is due",
            &[0],
            [saves(COMPACTION_SAVES), vec![Operation::DeleteStream(S0)]].concat(),
            vec![
                Operation::CreateStream(S0),
                Operation::CreateReader(whose(0)),
                Operation::CreateReader(whose(1)),
            ],
        ),
    ]
}

/// A limit is met, or set, while a call fails.
fn limits() -> Vec<Scenario> {
    let scenario = |name, kinds, before, during| Scenario { name, kinds, before, during };
    let segment =
        |stream| vec![append(stream, 2, 300), Operation::CommitDurable(stream), Operation::Rotate(stream)];
    let stored = || [segment(S0), segment(S0)].concat();
    let bound = |on_full, more| Operation::Bound(Bound::Stream(S0, on_full, more));
    let waiting = Operation::AppendWaiting(S0, Load { count: 1, bytes: 200 });
    let goes_on = [Operation::Tick, Operation::CommitDurable(S0)];
    vec![
        scenario(
            "a full stream drains",
            &[0],
            [stored(), vec![bound(OnFull::Block, 2000)]].concat(),
            [vec![waiting.clone()], read_all(), goes_on.to_vec()].concat(),
        ),
        scenario(
            "the oldest are dropped",
            &[0],
            [stored(), vec![bound(OnFull::DropOldest, 10_500)]].concat(),
            vec![
                append(S0, 1, 200),
                Operation::CommitDurable(S0),
                Operation::Tick,
                Operation::Read(whose(0), 60_000),
                Operation::Ack(whose(0), 0),
                Operation::Tick,
            ],
        ),
        scenario(
            "a lowered cap",
            &[0],
            [stored(), segment(S0)].concat(),
            vec![
                bound(OnFull::DropOldest, -2000),
                Operation::Tick,
                append(S0, 1, 200),
                Operation::CommitDurable(S0),
            ],
        ),
        scenario(
            "records grow too old",
            &[0],
            [vec![Operation::Bound(Bound::Age(S0, 1600))], segment(S0), vec![Operation::Tick]].concat(),
            vec![
                Operation::Pass(1_650_000),
                Operation::Tick,
                Operation::Read(whose(0), 60_000),
                Operation::Tick,
            ],
        ),
        scenario(
            "a full queue drains",
            &[0, 0],
            [stored(), segment(S1), vec![Operation::Bound(Bound::Queue(2000)), Operation::Close]].concat(),
            [vec![Operation::AppendWaiting(S1, Load { count: 1, bytes: 200 })], read_all(), goes_on.to_vec()]
                .concat(),
        ),
    ]
}

/// Saves after which the journal of cursors is about to be replaced.
const COMPACTION_SAVES: usize = 560;
