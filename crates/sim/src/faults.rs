//! Every call of every scenario, failing in every way, once and from then on.
//!
//! ```text
//!   before (sound) ─> during: call k fails ─> heal ─> everything accepted is delivered, without a restart ─> close ─> open: the same
//! ```
//!
//! What must hold: nothing panics or hangs; whoever is told of an error is told the one the disk gave, by its class, with the advice
//! that `answers` argues for; what was accepted and not given up is delivered by the same process once the fault ends; and what there
//! is room for is stored, also if there is never room for all that waits (`parts`).

mod answers;
mod parts;
mod scenarios;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pq::core::{Core, Seed};
use pq::{Now, Options};
use sim_disk::{Fault, On, SimDisk, errno};

pub use parts::run_parts;
pub use scenarios::{Scenario, scenarios};

use crate::operation::Operation;
use crate::violation::{Checked, Kind, Violation, ensure};
use crate::world::{Heard, Retry, World};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// With this error.
    Errno(i32, &'static str),
    /// It transfers one byte first, and the rest at once.
    Short,
}

/// For how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// One call.
    Once,
    /// That call and all that follow, until it is healed.
    FromThenOn,
}

/// Every failure that is tried.
const FAILURES: [Failure; 9] = [
    Failure::Errno(errno::EIO, "EIO"),
    Failure::Errno(errno::ENOSPC, "ENOSPC"),
    Failure::Errno(errno::EDQUOT, "EDQUOT"),
    Failure::Errno(errno::EROFS, "EROFS"),
    Failure::Errno(errno::EMFILE, "EMFILE"),
    Failure::Errno(errno::ENFILE, "ENFILE"),
    Failure::Errno(errno::EINTR, "EINTR"),
    Failure::Errno(errno::EACCES, "EACCES"),
    Failure::Short,
];

/// One failing call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Which call of the scenario, from 1.
    pub call: u64,
    /// How it fails.
    pub failure: Failure,
    /// For how long.
    pub lasting: Lasting,
}

impl Case {
    /// Every case of a scenario of so many calls, in order.
    pub fn all(calls: u64) -> impl Iterator<Item = Self> {
        let of_call = |call| {
            FAILURES.into_iter().flat_map(move |failure| {
                [Lasting::Once, Lasting::FromThenOn].map(|lasting| Self { call, failure, lasting })
            })
        };
        (1..=calls).flat_map(of_call)
    }

    fn fault(self) -> Fault {
        let fault = match self.failure {
            Failure::Errno(errno, _) => Fault::once(On::Any, self.call, errno),
            Failure::Short => Fault::short(On::Any, self.call, 1),
        };
        if self.lasting == Lasting::FromThenOn { fault.lasting() } else { fault }
    }

    fn check_told(self, told: &[Heard]) -> Checked {
        let strange = told.iter().find_map(|heard| Some((heard, answers::strange(self.failure, heard)?)));
        ensure(strange.is_none(), Kind::Unexpected, || {
            strange.map_or_else(String::new, |(heard, why)| format!("a client was told {heard}; {why}"))
        })
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failure = match self.failure {
            Failure::Errno(_, name) => name,
            Failure::Short => "a short transfer",
        };
        let lasting = match self.lasting {
            Lasting::Once => "once",
            Lasting::FromThenOn => "from then on",
        };
        write!(f, "call {}, {failure} {lasting}", self.call)
    }
}

/// What a client was told, without its words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// What was called.
    pub verb: &'static str,
    /// How the disk failed.
    pub failure: String,
    /// What it advises.
    pub retry: Option<Retry>,
}

impl Answer {
    fn of(case: Case, heard: &Heard) -> Self {
        let failure = match case.failure {
            Failure::Errno(_, name) => name.to_owned(),
            Failure::Short => "short".to_owned(),
        };
        Self { verb: heard.verb, failure, retry: heard.retry }
    }
}

/// What was run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that failed in turn.
    pub calls: u64,
    /// Runs, one a case.
    pub cases: u64,
    /// Errors that clients were told.
    pub told: u64,
    /// The same by what was called, what the disk said, and what was advised.
    pub answers: BTreeMap<Answer, u64>,
    /// What went wrong, in words.
    pub found: Vec<String>,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.cases += other.cases;
        self.told += other.told;
        for (answer, count) in other.answers {
            *self.answers.entry(answer).or_default() += count;
        }
        self.found.extend(other.found);
    }

    fn case(&mut self, name: &str, case: Case, run: impl FnOnce() -> Checked<Vec<Heard>>) {
        self.cases += 1;
        let ran = catch_unwind(AssertUnwindSafe(run));
        let found = match ran {
            Ok(Ok(told)) => {
                self.told += told.len() as u64;
                for heard in &told {
                    *self.answers.entry(Answer::of(case, heard)).or_default() += 1;
                }
                return;
            }
            Ok(Err(violation)) => format!("{}, step {}: {}", violation.kind, violation.step, violation.what),
            Err(_) => "it panicked".to_owned(),
        };
        self.found.push(format!("{name}: {case}: {found}"));
    }
}

/// Runs every case of a scenario, and says before each which it is.
pub fn run_scenario(scenario: &Scenario, mut begins: impl FnMut(Case)) -> Tally {
    let mut tally = Tally::default();
    match calls_of(scenario) {
        Ok(calls) => tally.calls = calls,
        Err(violation) => tally.found.push(format!("{}, on a sound disk: {violation}", scenario.name)),
    }
    for case in Case::all(tally.calls) {
        begins(case);
        tally.case(scenario.name, case, || run_case(scenario, case));
    }
    tally
}

fn begin(scenario: &Scenario) -> Checked<World> {
    let mut world = World::new(scenario.setup())?;
    scenario.before.iter().try_for_each(|operation| world.step(operation))?;
    Ok(world)
}

/// How many calls the scenario makes on a sound disk.
fn calls_of(scenario: &Scenario) -> Checked<u64> {
    let mut world = begin(scenario)?;
    let before = world.counts().calls;
    scenario.during.iter().try_for_each(|operation| world.step(operation))?;
    let calls = world.counts().calls - before;
    world.settle()?;
    world.discard();
    Ok(calls)
}

/// One case; which errors clients were told.
///
/// # Errors
/// What must not be.
pub fn run_case(scenario: &Scenario, case: Case) -> Checked<Vec<Heard>> {
    let mut world = begin(scenario)?;
    world.plan(case.fault());
    scenario.during.iter().try_for_each(|operation| world.step(operation))?;
    let told = world.take_told();
    case.check_told(&told)?;
    world.step(&Operation::Heal)?;
    world.settle()?;
    world.step(&Operation::Close)?;
    world.settle()?;
    world.discard();
    Ok(told)
}

/// The queue itself is created while a call fails; afterwards it must be there, or be created by the next try.
#[must_use]
pub fn run_creation() -> Tally {
    let mut tally = Tally::default();
    let disk = SimDisk::new();
    match create(&disk) {
        Ok(()) => tally.calls = disk.call_count(),
        Err(error) => tally.found.push(format!("create, on a sound disk: {error}")),
    }
    for case in Case::all(tally.calls) {
        tally.case("create a queue", case, || {
            let disk = SimDisk::new();
            disk.plan(case.fault());
            let told: Vec<Heard> = create(&disk).err().into_iter().collect();
            case.check_told(&told)?;
            disk.clear_faults();
            let disk = disk.kill();
            create(&disk)
                .map_err(|error| Violation::new(Kind::Stuck, format!("on a healed disk: {error}")))?;
            Ok(told)
        });
    }
    tally
}

/// Opens, or creates, a queue with one stream, and stores a record.
fn create(disk: &SimDisk) -> Result<(), Heard> {
    let now = Now::default();
    let core = Core::open(Arc::new(disk.clone()), Options::default(), Seed::Fixed(1), now);
    let core = core.map_err(|error| Heard::of("open", &error))?;
    let stored = store(&core, now);
    core.abandon();
    stored
}

fn store(core: &Core, now: Now) -> Result<(), Heard> {
    let stream = core.open_stream("s", None, now).map_err(|error| Heard::of("create a stream", &error))?;
    stream.log().append(b"x".as_slice(), now).map_err(|error| Heard::of("append", &error))?;
    let committed = stream.log().commit(now, wal_store::Want::Durable);
    committed.map(drop).map_err(|error| Heard::of("commit", &error))
}
