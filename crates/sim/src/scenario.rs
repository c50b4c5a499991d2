//! The canonical scenarios: what a queue does, one thing at a time, small enough that every call of it can be stopped.

mod limits;

use disk::{Op, SyncSite};
use sim_disk::{Fault, On, errno};

use crate::operation::{
    Crash, Damage, Hurt, Limit, Load, Operation, ReaderIndex, Repair, StreamIndex, Then, TurnEnd, Whose,
};
use crate::setup::{Setup, kinds_of_streams};
use crate::violation::Checked;
use crate::world::World;

/// What is there before anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// An empty disk.
    Nothing,
    /// A queue without a stream.
    Queue,
    /// A queue with its streams and consumers.
    Everything,
}

/// One thing a queue does.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// In a few words.
    pub name: &'static str,
    /// Streams and consumers.
    pub setup: Setup,
    /// What is there.
    pub before: Before,
    /// What is done before the calls are counted, on a sound disk.
    pub prepare: Vec<Operation>,
    /// What is stopped at each of its calls. Empty: the next recovery alone is.
    pub act: Vec<Operation>,
}

impl Scenario {
    /// Does all of it, undisturbed.
    ///
    /// # Errors
    /// A promise was broken.
    pub fn play(&self) -> Checked<World> {
        let mut world = match self.before {
            Before::Everything => World::new(self.setup.clone()),
            Before::Nothing | Before::Queue => World::bare(self.setup.clone()),
        }?;
        self.prepare.iter().chain(&self.act).try_for_each(|operation| world.step(operation))?;
        Ok(world)
    }
}

const A: StreamIndex = StreamIndex(0);
const B: StreamIndex = StreamIndex(1);
const C: StreamIndex = StreamIndex(2);

const fn reader(stream: StreamIndex, reader: u8) -> Whose {
    Whose { stream, reader: ReaderIndex(reader) }
}

const fn append(stream: StreamIndex, count: u8, bytes: u16) -> Operation {
    Operation::Append(stream, Load { count, bytes })
}

/// Records made durable, read and acknowledged by the first consumer and the sink.
fn delivered(stream: StreamIndex) -> Vec<Operation> {
    vec![
        append(stream, 2, 200),
        Operation::CommitDurable(stream),
        Operation::Read(reader(stream, 0), 4000),
        Operation::Ack(reader(stream, 0), 0),
        Operation::Turn(TurnEnd::Taken),
    ]
}

/// A rotated segment, delivered; and one more that is open.
fn retirable(stream: StreamIndex) -> Vec<Operation> {
    let mut operations = delivered(stream);
    operations.push(Operation::Rotate(stream));
    operations.extend(delivered(stream));
    operations
}

fn one_stream(kind: usize) -> Setup {
    let streams = kinds_of_streams().into_iter().skip(kind).take(1).collect();
    Setup { streams, pulls_count: 1, ..Setup::usual(kind as u64 + 1) }
}

fn three_streams() -> Setup {
    Setup { pulls_count: 1, ..Setup::usual(99) }
}

fn of(name: &'static str, prepare: Vec<Operation>, act: Vec<Operation>) -> Scenario {
    Scenario { name, setup: one_stream(0), before: Before::Everything, prepare, act }
}

/// All of them.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = begin_and_end();
    all.extend(writes());
    all.extend(reads());
    all.extend(failures());
    all.extend(refusals());
    all.extend(repairs());
    all.extend(limits::limits());
    all
}

fn begin_and_end() -> Vec<Scenario> {
    let queue = |name, act| Scenario { before: Before::Queue, ..of(name, Vec::new(), act) };
    let stream = Operation::CreateStream(A);
    vec![
        Scenario { before: Before::Nothing, ..of("create a queue", Vec::new(), Vec::new()) },
        queue("create a stream", vec![stream.clone()]),
        Scenario {
            before: Before::Queue,
            ..of("create a consumer", vec![stream], vec![Operation::CreateReader(reader(A, 0))])
        },
        of("delete a stream", delivered(A), vec![Operation::DeleteStream(A)]),
        of(
            "delete a stream and create it again",
            retirable(A),
            vec![
                Operation::DeleteStream(A),
                Operation::CreateStream(A),
                append(A, 1, 100),
                Operation::CommitDurable(A),
            ],
        ),
        of("remove a consumer", delivered(A), vec![Operation::RemoveReader(reader(A, 0))]),
        of("close", [delivered(A), vec![append(A, 2, 100)]].concat(), vec![Operation::Close]),
        of("open after a close", [delivered(A), vec![Operation::Close]].concat(), Vec::new()),
        of(
            "open after a kill",
            [retirable(A), vec![append(A, 2, 700), Operation::Tick]].concat(),
            Vec::new(),
        ),
        of(
            "the first append after a recovery",
            [delivered(A), vec![append(A, 1, 600), Operation::Crash(Crash::plain())]].concat(),
            vec![append(A, 2, 300), Operation::CommitDurable(A)],
        ),
    ]
}

fn writes() -> Vec<Scenario> {
    let commit = Operation::CommitDurable;
    vec![
        of("the first append", Vec::new(), vec![append(A, 1, 200), commit(A)]),
        of("append behind others", delivered(A), vec![append(A, 1, 200), Operation::Wait(A)]),
        of("group commit", delivered(A), vec![append(A, 6, 500), commit(A)]),
        of(
            "all or nothing",
            delivered(A),
            vec![Operation::AppendBatch(A, Load { count: 7, bytes: 300 }), commit(A)],
        ),
        of(
            "rotate",
            delivered(A),
            vec![append(A, 1, 100), Operation::Rotate(A), append(A, 1, 100), commit(A)],
        ),
        of(
            "rotate by size",
            delivered(A),
            vec![append(A, 4, 1000), commit(A), append(A, 4, 1000), commit(A)],
        ),
        Scenario {
            setup: three_streams(),
            ..of(
                "several streams",
                [delivered(A), delivered(B)].concat(),
                vec![
                    append(A, 1, 100),
                    append(B, 1, 100),
                    append(C, 1, 100),
                    commit(A),
                    commit(B),
                    commit(C),
                ],
            )
        },
        Scenario {
            setup: one_stream(1),
            ..of(
                "a stream that shows what is written",
                delivered(A),
                vec![
                    append(A, 2, 300),
                    Operation::Commit(A),
                    Operation::Read(reader(A, 0), 4000),
                    Operation::Ack(reader(A, 0), 0),
                    Operation::Tick,
                ],
            )
        },
        Scenario {
            setup: one_stream(4),
            ..of(
                "a stream that syncs when asked",
                delivered(A),
                vec![append(A, 2, 300), Operation::Commit(A), commit(A)],
            )
        },
    ]
}

fn reads() -> Vec<Scenario> {
    let unsaved = || [delivered(A), vec![append(A, 2, 100), Operation::CommitDurable(A)]].concat();
    vec![
        of(
            "acknowledge and save",
            unsaved(),
            vec![Operation::Read(reader(A, 0), 4000), Operation::Ack(reader(A, 0), 1), Operation::Tick],
        ),
        of(
            "a new generation of cursors",
            [unsaved(), vec![Operation::Close]].concat(),
            vec![Operation::Read(reader(A, 0), 4000), Operation::Ack(reader(A, 0), 0), Operation::Tick],
        ),
        Scenario {
            setup: three_streams(),
            ..of(
                "several consumers saved at once",
                [delivered(A), delivered(B), delivered(C)].concat(),
                vec![Operation::Tick],
            )
        },
        of("a sink's turn", unsaved(), vec![Operation::Turn(TurnEnd::Taken), Operation::Tick]),
        of("seek", delivered(A), vec![Operation::Seek(reader(A, 0), 0), Operation::Seek(reader(A, 0), 200)]),
        of("retire", retirable(A), vec![Operation::Tick]),
        of(
            "remove the slowest consumer and retire",
            [retirable(A), vec![Operation::Seek(reader(A, 0), 0)]].concat(),
            vec![Operation::RemoveReader(reader(A, 0)), Operation::Tick],
        ),
    ]
}

fn failures() -> Vec<Scenario> {
    let commit = || Operation::CommitDurable(A);
    let sync_fails = |count| Operation::Fault(Fault::times(On::Op(Op::SyncData), 1, count, errno::EIO));
    let save = SyncSite::new("cursors.save");
    vec![
        of("a failed sync moves the batch", delivered(A), vec![sync_fails(1), append(A, 2, 300), commit()]),
        of(
            "a failed sync at rotation",
            delivered(A),
            vec![append(A, 1, 300), sync_fails(1), Operation::Rotate(A), commit()],
        ),
        of(
            "records given up, and on again",
            delivered(A),
            vec![
                sync_fails(4),
                append(A, 2, 300),
                commit(),
                Operation::Pass(1_000_000),
                commit(),
                Operation::Pass(1_000_000),
                commit(),
                Operation::Pass(1_000_000),
                commit(),
                append(A, 1, 100),
                commit(),
            ],
        ),
        of(
            "a failed save of cursors",
            delivered(A),
            vec![
                Operation::Fault(Fault::once(On::Site(save), 1, errno::EIO)),
                Operation::Tick,
                Operation::Tick,
            ],
        ),
    ]
}

fn refusals() -> Vec<Scenario> {
    let commit = || Operation::CommitDurable(A);
    vec![
        of(
            "a full disk, then space",
            delivered(A),
            vec![
                Operation::Limit(Limit::Space(0)),
                append(A, 2, 900),
                commit(),
                Operation::Heal,
                Operation::Pass(1_000_000),
                commit(),
            ],
        ),
        of(
            "a read-only disk, then not",
            delivered(A),
            vec![
                Operation::Limit(Limit::ReadOnly),
                append(A, 1, 100),
                commit(),
                Operation::Tick,
                Operation::Heal,
                Operation::Pass(1_000_000),
                commit(),
                Operation::Tick,
            ],
        ),
        of(
            "unlinking fails",
            retirable(A),
            vec![
                Operation::Fault(Fault::once(On::Op(Op::RemoveFile), 1, errno::EIO)),
                Operation::Tick,
                Operation::Tick,
            ],
        ),
    ]
}

/// A record in the middle of a rotated segment is hit; what follows the stop of its repair is the one or the other.
fn repairs() -> Vec<Scenario> {
    let hurt = Damage::Segment(A, 0, Hurt::Payload(1));
    let stored = || {
        let twice = [append(A, 3, 200), Operation::CommitDurable(A), Operation::Rotate(A)];
        [twice.to_vec(), twice.to_vec()].concat()
    };
    let repair = |then| vec![Operation::Repair(Repair { damages: vec![hurt], interrupts: Vec::new(), then })];
    vec![
        of("a repair, and the queue is opened", stored(), repair(Then::Open)),
        of("a repair, begun again", stored(), repair(Then::Resume)),
    ]
}
