//! What a client, the machine or the world may do next. Plain values: a run is a list of them, whoever made the list.
//!
//! Invariant: every operation may follow every other; what makes no sense now (a read of a stream that is not there) does nothing.

mod bound;
mod repair;

pub use bound::Bound;
pub use repair::{Damage, Hurt, Repair, Then};

use sim_disk::{Fault, Moment, On, Survival, errno};

use disk::Op;

use crate::random::Draw;

/// Which stream of the run, from 0; taken modulo their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamIndex(pub u8);

/// Which consumer of a stream, from 0; taken modulo their number. The last is a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderIndex(pub u8);

/// One consumer of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose {
    /// The stream.
    pub stream: StreamIndex,
    /// The consumer.
    pub reader: ReaderIndex,
}

/// How much is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Records, at least 1.
    pub count: u8,
    /// Payload bytes of each, about.
    pub bytes: u16,
}

/// How the process ends without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// SIGKILL: the page cache stays.
    Kill,
    /// The power goes.
    PowerCut(Survival),
}

/// A stop in the middle of a call, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Which call of the disk from now, counted from 1.
    pub call: u64,
    /// Where in the call.
    pub moment: Moment,
    /// What it was.
    pub how: How,
}

/// An end, and the starts after it: each interrupt stops one more recovery; the last start is left in peace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// The end.
    pub how: How,
    /// Recoveries that are stopped.
    pub in_recovery: Vec<Interrupt>,
}

/// What runs out, until the disk is healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Space: this many bytes beyond what is used now.
    Space(u32),
    /// Descriptors: this many may be open.
    OpenFiles(u8),
    /// Nothing may be written.
    ReadOnly,
}

/// How a sink ends its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// Everything taken and acknowledged.
    Taken,
    /// Failed: to be tried again with back-off.
    Failed,
    /// The sink panicked: the turn is dropped.
    Dropped,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Records, one append each.
    Append(StreamIndex, Load),
    /// Records in one all-or-nothing append, with a producer's tag.
    AppendBatch(StreamIndex, Load),
    /// A record, appended as a future does: at a limit it waits if the policy says so.
    AppendWaiting(StreamIndex, Load),
    /// A limit is set. Not drawn: random runs have none.
    Bound(Bound),
    /// Commit, syncing as the settings say.
    Commit(StreamIndex),
    /// Make everything durable.
    CommitDurable(StreamIndex),
    /// Wait for the newest ticket to be durable.
    Wait(StreamIndex),
    /// Begin a new segment.
    Rotate(StreamIndex),
    /// Pull deliveries of about so many bytes.
    Read(Whose, u16),
    /// Acknowledge what was read, but for so many of the newest records.
    Ack(Whose, u8),
    /// A client that keeps up: appends, commits, reads, acknowledges, a few times in a row; then cursors are saved.
    KeepUp(Whose, Load),
    /// Acknowledge an old delivery once more.
    AckAgain(Whose),
    /// A sink's turn.
    Turn(TurnEnd),
    /// Move a cursor to this share (of 255) of the stream.
    Seek(Whose, u8),
    /// Give a consumer back and take it again.
    Retake(Whose),
    /// Forget a consumer.
    RemoveReader(Whose),
    /// Create a consumer that is not there.
    CreateReader(Whose),
    /// Create a stream that is not there.
    CreateStream(StreamIndex),
    /// Delete a stream.
    DeleteStream(StreamIndex),
    /// Save cursors and retire.
    Tick,
    /// Do what is due.
    Timers,
    /// Time passes, in microseconds.
    Pass(u32),
    /// The wall clock jumps, in hours; back or ahead.
    WallJump(i16),
    /// The kernel writes some of the unsynced back by itself.
    WriteBack(Survival),
    /// A fault is planned.
    Fault(Fault),
    /// Something runs out.
    Limit(Limit),
    /// Faults and limits end.
    Heal,
    /// A stop in order, and a start.
    Close,
    /// A stop in order, damage, a repair, and a start.
    Repair(Repair),
    /// The end comes now.
    Crash(Crash),
    /// The end comes in the middle of a call.
    CrashAt {
        /// Which call of the disk from now, counted from 1.
        call: u64,
        /// Where in the call.
        moment: Moment,
        /// What follows.
        crash: Crash,
    },
}

/// Calls a stop is drawn from: about as many as two operations and a save make.
const CALLS_NEAR: u64 = 24;
/// Calls of a recovery, about.
const CALLS_OF_RECOVERY: u64 = 90;

impl Operation {
    /// Any operation, with a share that keeps a run going.
    pub fn draw(from: &mut impl Draw) -> Self {
        match from.below(100) {
            0..=20 => Self::draw_append(from),
            21..=34 => Self::draw_commit(from),
            35 | 36 => {
                let load = Load { count: small(from, 2) + 1, bytes: wide(from, 300) };
                Self::KeepUp(Whose::draw(from), load)
            }
            37..=64 => Self::draw_read(from),
            65..=76 => Self::draw_time(from),
            77..=82 => Self::draw_admin(from),
            83..=87 => Self::draw_fault(from),
            88 => Self::Close,
            89 => Self::Repair(Repair::draw(from)),
            90..=93 => Self::Crash(Crash::draw(from)),
            _ => {
                let call = from.between(1, CALLS_NEAR);
                Self::CrashAt { call, moment: moment(from), crash: Crash::draw(from) }
            }
        }
    }

    fn draw_append(from: &mut impl Draw) -> Self {
        let stream = StreamIndex(small(from, 3));
        match from.below(4) {
            0 => {
                let load = Load { count: small(from, 8) + 1, bytes: wide(from, 300) };
                Self::AppendBatch(stream, load)
            }
            1 => Self::Append(stream, Load { count: 1, bytes: wide(from, 1024) }),
            _ => Self::Append(stream, Load { count: small(from, 5) + 1, bytes: wide(from, 600) }),
        }
    }

    fn draw_commit(from: &mut impl Draw) -> Self {
        let stream = StreamIndex(small(from, 3));
        match from.below(8) {
            0..=2 => Self::Commit(stream),
            3 | 4 => Self::CommitDurable(stream),
            5 | 6 => Self::Wait(stream),
            _ => Self::Rotate(stream),
        }
    }

    fn draw_read(from: &mut impl Draw) -> Self {
        let whose = Whose::draw(from);
        match from.below(28) {
            0..=11 => Self::Read(whose, wide(from, 4000)),
            12..=20 => Self::Ack(whose, small(from, 4)),
            21 => Self::AckAgain(whose),
            22 => Self::Seek(whose, small(from, 255)),
            23 => Self::Retake(whose),
            _ => Self::Turn(from.pick(TurnEnd::Taken, &[TurnEnd::Taken, TurnEnd::Failed, TurnEnd::Dropped])),
        }
    }

    fn draw_time(from: &mut impl Draw) -> Self {
        match from.below(12) {
            0..=3 => Self::Tick,
            4..=7 => Self::Timers,
            8 | 9 => Self::Pass(u32::try_from(from.below(60_000)).unwrap_or(0)),
            10 => Self::Pass(u32::try_from(from.below(5_000_000)).unwrap_or(0)),
            _ => match from.below(3) {
                0 => Self::WallJump(i16::try_from(from.below(20_000)).unwrap_or(0) - 10_000),
                _ => Self::WriteBack(survival(from)),
            },
        }
    }

    fn draw_admin(from: &mut impl Draw) -> Self {
        let whose = Whose::draw(from);
        match from.below(8) {
            0 => Self::DeleteStream(whose.stream),
            1 | 2 => Self::CreateStream(whose.stream),
            3 | 4 => Self::RemoveReader(whose),
            _ => Self::CreateReader(whose),
        }
    }

    fn draw_fault(from: &mut impl Draw) -> Self {
        match from.below(8) {
            0 | 1 => Self::Heal,
            2 => Self::Limit(match from.below(3) {
                0 => Limit::ReadOnly,
                1 => Limit::OpenFiles(small(from, 12)),
                _ => Limit::Space(u32::try_from(from.below(40_000)).unwrap_or(0)),
            }),
            _ => Self::Fault(fault(from)),
        }
    }
}

impl Whose {
    fn draw(from: &mut impl Draw) -> Self {
        Self { stream: StreamIndex(small(from, 3)), reader: ReaderIndex(small(from, 3)) }
    }
}

impl Crash {
    /// A power cut more often than a kill; one recovery in four is stopped, one in sixteen twice.
    pub fn draw(from: &mut impl Draw) -> Self {
        let how = How::draw(from);
        let mut in_recovery = Vec::new();
        while in_recovery.len() < 3 && from.one_in(4) {
            let call = from.between(1, CALLS_OF_RECOVERY);
            in_recovery.push(Interrupt { call, moment: moment(from), how: How::draw(from) });
        }
        Self { how, in_recovery }
    }
}

impl How {
    fn draw(from: &mut impl Draw) -> Self {
        if from.one_in(6) { Self::Kill } else { Self::PowerCut(survival(from)) }
    }
}

/// What of the unsynced survives.
fn survival(from: &mut impl Draw) -> Survival {
    match from.below(10) {
        0 => Survival::Nothing,
        1 => Survival::Everything,
        2 => Survival::Prefix(index(from)),
        3 => Survival::AllBut(index(from)),
        4 => Survival::Only(index(from)),
        _ => Survival::Seed(from.below(1 << 32)),
    }
}

fn index(from: &mut impl Draw) -> usize {
    usize::from(small(from, 24))
}

fn moment(from: &mut impl Draw) -> Moment {
    from.pick(Moment::Before, &[Moment::Middle, Moment::After])
}

/// A failing call: a sync as real kernels fail it, more often than anything else.
fn fault(from: &mut impl Draw) -> Fault {
    let on = match from.below(8) {
        0..=2 => On::Op(Op::SyncData),
        3 => On::Op(Op::SyncDir),
        4 => On::Op(Op::Write),
        5 => On::Op(Op::Create),
        6 => On::Op(from.pick(Op::Read, &[Op::Open, Op::RemoveFile, Op::Len, Op::List, Op::Allocate])),
        _ => On::Any,
    };
    let call = from.between(1, 12);
    let errno = match from.below(8) {
        0..=3 => errno::EIO,
        4 => errno::ENOSPC,
        5 => errno::EMFILE,
        6 => errno::EROFS,
        _ => from.pick(errno::EINTR, &[errno::EACCES, errno::EDQUOT]),
    };
    match from.below(8) {
        0 => Fault::short(On::Op(Op::Write), call, from.below(700)),
        1 => Fault::forever(on, call, errno),
        2 | 3 => Fault::times(on, call, from.between(2, 8), errno),
        4 => Fault::once(on, call, errno).after_bytes(from.below(6000)),
        _ => Fault::once(on, call, errno),
    }
}

fn small(from: &mut impl Draw, n: u64) -> u8 {
    u8::try_from(from.below(n)).unwrap_or(u8::MAX)
}

fn wide(from: &mut impl Draw, n: u64) -> u16 {
    u16::try_from(from.below(n)).unwrap_or(u16::MAX)
}
