//! A simulated disk, a core on it, clients that hold handles, time, and the oracle that watches.
//!
//! ```text
//!   Operation ──> World::step ──> Core (single-threaded) ──> SimDisk
//!                     │ what came back                          │ halted? the process is dead: crash, recover, look
//!                     └──────────────> Oracle <─────────────────┘
//! ```
//!
//! Invariants: nothing but the operations and the setup's seed decides what happens; what a call answers after the machine stopped in
//! it is told to nobody; an error on a disk that nothing was done to is a violation.

mod admin;
mod branch;
mod damage;
mod execute;
mod heard;
mod limits;
mod power;
mod readers;
mod repair;
mod settle;
mod view;
mod writers;

pub use branch::Remains;
pub(crate) use execute::KEPT_UP_ROUNDS;
pub use heard::{ClientError, Heard, Retry};

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use pq::core::{Core, CoreConsumer, CoreStream};
use pq::{Delivery, Instant, Now, WallTime};
use sim_disk::{Fault, SimDisk};
use wal_store::{ReadBuffers, Ticket};

use crate::operation::{Crash, Operation, ReaderIndex, StreamIndex};
use crate::oracle::Oracle;
use crate::random::mix;
use crate::setup::Setup;
use crate::violation::{Checked, Violation};

/// What was counted over all lives of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times the power went.
    pub power_cuts: u64,
    /// Times the process was killed.
    pub kills: u64,
    /// Recoveries that ran to their end.
    pub recoveries: u64,
    /// Recoveries that were stopped.
    pub stopped_recoveries: u64,
    /// Records accepted.
    pub records: u64,
    /// Records and gaps delivered.
    pub delivered: u64,
    /// Seqs delivered as a gap.
    pub gap_seqs: u64,
    /// Calls of the disk.
    pub calls: u64,
}

impl Counts {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.power_cuts += other.power_cuts;
        self.kills += other.kills;
        self.recoveries += other.recoveries;
        self.stopped_recoveries += other.stopped_recoveries;
        self.records += other.records;
        self.delivered += other.delivered;
        self.gap_seqs += other.gap_seqs;
        self.calls += other.calls;
    }
}

/// A ticket that has not told everything yet.
#[derive(Debug)]
struct Held {
    ticket: Ticket,
    is_written: bool,
    charge_most: u64,
}

/// One stream's handles.
#[derive(Debug, Default)]
struct Slot {
    stream: Option<CoreStream>,
    tickets: Vec<Held>,
    readers: Vec<Reader>,
    refusals: limits::Refusals,
    waiting: Option<limits::Waiting>,
}

/// One consumer's handles.
#[derive(Debug, Default)]
struct Reader {
    taken: Option<CoreConsumer>,
    /// Which reading is on: one more with each seek.
    reading: u64,
    /// The last ones, with the reading each belongs to.
    deliveries: VecDeque<(Delivery, u64)>,
    passed: limits::Passed,
}

/// Whether anything was done to the disk that may make calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    /// No call may fail.
    Sound,
    /// Some may, or what failed is not yet over.
    Troubled,
}

/// See the module.
pub struct World {
    setup: Setup,
    disk: SimDisk,
    core: Option<Core>,
    now: Now,
    life: u64,
    slots: Vec<Slot>,
    oracle: Oracle,
    /// What follows when the machine stops.
    crash: Option<Crash>,
    health: Health,
    is_limited: bool,
    /// The last error of a troubled disk, for people.
    last_trouble: RefCell<String>,
    buffers: ReadBuffers,
    scratch: Vec<u8>,
    payloads_count: u64,
    counts: Counts,
    step: u64,
    trace: u64,
    /// A fault that goes on over an end, and the calls there were when it was planned.
    planned: Option<(Fault, u64)>,
    /// Errors clients were told.
    told: RefCell<Vec<Heard>>,
    mending: damage::Mending,
    known: limits::Known,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("setup", &self.setup).field("step", &self.step).finish_non_exhaustive()
    }
}

/// Two deliveries are remembered, so that an old one can be acknowledged again.
const DELIVERIES_MAX: usize = 3;

impl World {
    /// A new queue on an empty disk, every stream and consumer created.
    ///
    /// # Errors
    /// Even that went wrong.
    pub fn new(setup: Setup) -> Checked<Self> {
        let mut world = Self::bare(setup)?;
        for stream in 0..world.slots.len() {
            world.create_stream(stream)?;
            for reader in 0..world.readers_count() {
                world.create_reader(stream, reader)?;
            }
        }
        Ok(world)
    }

    /// A new queue on an empty disk.
    ///
    /// # Errors
    /// Even that went wrong.
    pub fn bare(setup: Setup) -> Checked<Self> {
        let mut world = Self::unopened(setup);
        world.begin()?;
        Ok(world)
    }

    /// An empty disk, and nobody who opened it.
    fn unopened(setup: Setup) -> Self {
        let disk = SimDisk::new();
        disk.set_seed(mix(setup.seed).max(1));
        let names = setup.streams.iter().enumerate().map(|(n, s)| (stream_name(n), s.read_level));
        let oracle = Oracle::new(names);
        let readers = usize::from(setup.pulls_count) + 1;
        let slot = |_| Slot { readers: (0..readers).map(|_| Reader::default()).collect(), ..Slot::default() };
        let slots = (0..setup.streams.len()).map(slot).collect();
        let wall = WallTime::from_unix(Duration::from_secs(1 << 30));
        let known = limits::Known::of(&setup);
        Self {
            setup,
            disk,
            core: None,
            now: Now { instant: Instant::ZERO, wall },
            life: 0,
            slots,
            oracle,
            crash: None,
            health: Health::Sound,
            is_limited: false,
            last_trouble: RefCell::default(),
            buffers: ReadBuffers::default(),
            scratch: Vec::new(),
            payloads_count: 0,
            counts: Counts::default(),
            step: 0,
            trace: 0,
            planned: None,
            told: RefCell::default(),
            mending: damage::Mending::default(),
            known,
        }
    }

    /// Does one thing, and checks all that came back. After a violation the world is of no more use.
    ///
    /// # Errors
    /// The promise that was broken, with the step.
    pub fn step(&mut self, operation: &Operation) -> Checked {
        self.step += 1;
        self.pass(Duration::from_micros(20));
        let step = self.step;
        let seed = self.setup.seed;
        self.execute(operation).and_then(|()| self.after_call()).map_err(|violation| Violation {
            step,
            seed,
            ..violation
        })
    }

    /// The disk, to plan what this module has no operation for.
    #[must_use]
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// What clients know.
    #[must_use]
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { calls: self.disk.call_count(), ..self.counts }
    }

    /// A hash over every call of the disk and everything clients were told: equal for equal runs.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        mix(self.trace ^ self.disk.trace_hash())
    }

    /// From here on calls may fail, without that being a violation: to be said by whoever plans faults on [`World::disk`].
    pub fn expect_trouble(&mut self) {
        self.health = Health::Troubled;
        self.known.trouble();
    }

    /// After every operation: the process may be dead; else tickets are looked at.
    fn after_call(&mut self) -> Checked {
        if self.is_dead() {
            let crash = self.crash.take().unwrap_or_else(Crash::plain);
            return self.end(crash);
        }
        self.look_at_tickets()
    }

    /// Whether the machine stopped: from then on nobody sees what calls answer.
    fn is_dead(&self) -> bool {
        self.disk.is_halted()
    }

    fn slot(&self, stream: usize) -> &Slot {
        &self.slots[stream]
    }

    fn at(&self, stream: StreamIndex) -> usize {
        usize::from(stream.0) % self.slots.len().max(1)
    }

    fn readers_count(&self) -> usize {
        usize::from(self.setup.pulls_count) + 1
    }

    fn reader(&self, reader: ReaderIndex) -> usize {
        usize::from(reader.0) % self.readers_count()
    }

    fn pull(&self, reader: ReaderIndex) -> usize {
        usize::from(reader.0) % usize::from(self.setup.pulls_count.max(1))
    }

    fn is_sink(&self, reader: usize) -> bool {
        reader + 1 == self.readers_count()
    }

    fn pass(&mut self, by: Duration) {
        self.known.pass(by);
        self.now.instant = self.now.instant.saturating_add(by);
        self.now.wall = WallTime::from_unix(self.now.wall.since_unix().saturating_add(by));
    }

    fn jump(&mut self, hours: i16) {
        let by = Duration::from_secs(3600).saturating_mul(u32::from(hours.unsigned_abs()));
        let since = self.now.wall.since_unix();
        let since = if hours < 0 { since.saturating_sub(by) } else { since.saturating_add(by) };
        self.now.wall = WallTime::from_unix(since);
    }

    /// Adds to the hash of what clients were told.
    fn note(&mut self, value: u64) {
        self.trace = mix(self.trace ^ value);
    }

    /// Plans a fault by the count of all calls, those of the next process too, until the disk is healed.
    pub fn plan(&mut self, fault: Fault) {
        self.expect_trouble();
        self.disk.plan(fault.clone());
        self.planned = Some((fault, self.disk.call_count()));
    }

    /// What errors clients were told since the last call.
    #[must_use]
    pub fn take_told(&self) -> Vec<Heard> {
        self.told.take()
    }

    /// Where a stream's durable records end; `None`: it is not there.
    #[must_use]
    pub fn durable_end(&self, stream: usize) -> Option<u64> {
        let handle = self.slots.get(stream)?.stream.as_ref()?;
        Some(handle.log().ends().durable.get())
    }
}

/// The name of a run's stream.
fn stream_name(stream: usize) -> String {
    format!("s{stream}")
}

/// The name of a stream's consumer.
fn reader_name(reader: usize) -> String {
    format!("c{reader}")
}
