//! Every stop of a scenario: at every call, before, in and after it, with every survival that can be listed; then inside the recovery
//! once more, and twice more.
//!
//! ```text
//!   act, stopped in call k ──survivals──> medium ──recover──> checked against the oracle, settled            level 1
//!                                            └─ recover, stopped in call r ──survivals──> recover: the same  level 2
//!                                                                          └─ … once more: the same          level 3
//! ```
//!
//! Media that came out byte for byte the same are recovered once: the same bytes and the same knowledge cannot give something else.

use std::collections::HashSet;

use sim_disk::{Moment, SimDisk, Snapshot, Survival};

use crate::operation::How;
use crate::oracle::View;
use crate::random::{Draw, Random, mix};
use crate::scenario::{Before, Scenario};
use crate::violation::{Checked, Kind, Violation, ensure};
use crate::world::{Remains, World};

/// Scenarios of at most so many calls are stopped at every call of every recovery.
pub const SMALL_CALLS_MAX: u64 = 12;
const MOMENTS: [Moment; 3] = [Moment::Before, Moment::Middle, Moment::After];
/// Random subsets beside those that are listed.
const SUBSETS: u64 = 8;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls of what is done.
    pub calls: u64,
    /// Ends: a call, a moment, a survival.
    pub states: u64,
    /// Ends whose medium differed from all others of that call and moment.
    pub media: u64,
    /// Ends inside a recovery.
    pub second_states: u64,
    /// Ends inside a recovery behind such a one.
    pub third_states: u64,
}

impl Tally {
    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.states += other.states;
        self.media += other.media;
        self.second_states += other.second_states;
        self.third_states += other.third_states;
    }
}

/// How much of what cannot be listed is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Ends inside a recovery for each medium of a scenario of many calls.
    pub second: u64,
    /// Ends inside a second recovery for each medium.
    pub third: u64,
}

/// How many calls a scenario makes.
///
/// # Errors
/// It does not even go through on its own.
pub fn calls_of(scenario: &Scenario) -> Checked<u64> {
    let Some(mut world) = prepared(scenario)? else { return Ok(0) };
    let before = world.disk().call_count();
    let _ = world.run_until_dead(&scenario.act)?;
    let calls = world.disk().call_count() - before;
    world.discard();
    Ok(calls)
}

/// All ends of one call of a scenario; call 0 is the stop between two calls, before all of them.
///
/// # Errors
/// The promise that was broken, and by which end.
pub fn enumerate_call(scenario: &Scenario, call: u64, calls: u64, sampling: Sampling) -> Checked<Tally> {
    let mut tally = Tally { calls: u64::from(call > 0), ..Tally::default() };
    let moments: &[Moment] = if call == 0 { &[Moment::Before] } else { &MOMENTS };
    for moment in moments {
        let (remains, disk) = dead(scenario, call, *moment)?;
        let mut branches = Branches {
            remains,
            is_small: calls <= SMALL_CALLS_MAX,
            sampling,
            random: Random::new(mix(scenario.setup.seed ^ mix(call)) ^ *moment as u64),
            tally: Tally::default(),
        };
        branches.first(&disk).map_err(|violation| Violation {
            step: call,
            what: format!("{:?}, stopped {moment:?} call {call}: {}", scenario.name, violation.what),
            ..violation
        })?;
        tally.add(&branches.tally);
    }
    Ok(tally)
}

/// A queue as the scenario wants it; `None`: it wants none.
fn prepared(scenario: &Scenario) -> Checked<Option<World>> {
    let setup = scenario.setup.clone();
    let mut world = match scenario.before {
        Before::Nothing => return Ok(None),
        Before::Queue => World::bare(setup)?,
        Before::Everything => World::new(setup)?,
    };
    for operation in &scenario.prepare {
        world.step(operation)?;
    }
    Ok(Some(world))
}

/// The scenario stopped in a call.
fn dead(scenario: &Scenario, call: u64, moment: Moment) -> Checked<(Remains, SimDisk)> {
    let Some(mut world) = prepared(scenario)? else { return Ok(Remains::nothing(scenario.setup.clone())) };
    if call > 0 {
        world.disk().plan(sim_disk::Fault::halt(sim_disk::On::Any, call, moment));
        let is_dead = world.run_until_dead(&scenario.act)?;
        ensure(is_dead, Kind::Unexpected, || format!("call {call} is not made the second time"))?;
    }
    Ok(world.into_remains())
}

/// What was gone through for one medium.
#[derive(Default)]
struct Seen {
    /// States in which its recovery was stopped.
    stops: HashSet<u64>,
    /// Media these led to.
    media: HashSet<u64>,
}

/// What a process sees of a machine, and what of it a power cut may take.
fn state_hash(disk: &SimDisk) -> u64 {
    let mut hash = disk.content_hash();
    for unsynced in disk.unsynced() {
        unsynced.to_string().bytes().for_each(|byte| hash = mix(hash ^ u64::from(byte)));
    }
    hash
}

struct Branches {
    remains: Remains,
    is_small: bool,
    sampling: Sampling,
    random: Random,
    tally: Tally,
}

/// Everything that may survive, as far as it can be listed, and some subsets; a kill among them.
fn ends(disk: &SimDisk, random: &mut Random, subsets: u64) -> Vec<How> {
    let count = disk.unsynced().len();
    let mut ends = vec![How::Kill, How::PowerCut(Survival::Nothing), How::PowerCut(Survival::Everything)];
    ends.extend((1..count).map(|n| How::PowerCut(Survival::Prefix(n))));
    ends.extend((0..count).map(|n| How::PowerCut(Survival::AllBut(n))));
    ends.extend((0..count).map(|n| How::PowerCut(Survival::Only(n))));
    if count > 1 {
        ends.extend((0..subsets).map(|_| How::PowerCut(Survival::Seed(random.next_number() >> 16))));
    }
    ends
}

fn after(snapshot: &Snapshot, how: &How) -> SimDisk {
    let disk = SimDisk::from_snapshot(snapshot);
    match how {
        How::Kill => disk,
        How::PowerCut(survival) => disk.power_cut(survival),
    }
}

impl Branches {
    fn first(&mut self, disk: &SimDisk) -> Checked {
        let snapshot = disk.snapshot();
        let mut seen = HashSet::new();
        for how in ends(disk, &mut self.random, SUBSETS) {
            self.tally.states += 1;
            let disk = after(&snapshot, &how);
            // A kill leaves unsynced things behind: equal names and bytes are not all of it.
            if how != How::Kill && !seen.insert(disk.content_hash()) {
                continue;
            }
            self.tally.media += 1;
            let medium = disk.snapshot();
            let told = |violation: Violation| Violation {
                what: format!("{how:?}: {}", violation.what),
                ..violation
            };
            let (mut world, view) = self.remains.recover(&disk, &how).map_err(told)?;
            let settled = world.settle();
            world.discard();
            settled.map_err(told)?;
            if let (Some(view), true) = (view, how != How::Kill) {
                self.second(&medium, &view).map_err(told)?;
            }
        }
        Ok(())
    }

    /// Ends inside the recovery of this medium, which gives this view when it is left in peace.
    fn second(&mut self, medium: &Snapshot, view: &View) -> Checked {
        let calls = self.remains.calls_of_recovery(&SimDisk::from_snapshot(medium));
        let mut seen = Seen::default();
        if self.is_small {
            for call in 1..=calls {
                for moment in MOMENTS {
                    self.second_at(medium, view, (call, moment), None, &mut seen)?;
                }
            }
        } else {
            for _ in 0..self.sampling.second {
                let at = (self.random.between(1, calls), moment(&mut self.random));
                let how = drawn(&mut self.random);
                self.second_at(medium, view, at, Some(how), &mut seen)?;
            }
        }
        for _ in 0..self.sampling.third {
            self.third(medium, view, calls)?;
        }
        Ok(())
    }

    /// One stop of the recovery, with all ends or with one.
    fn second_at(
        &mut self,
        medium: &Snapshot,
        view: &View,
        (call, moment): (u64, Moment),
        only: Option<How>,
        seen: &mut Seen,
    ) -> Checked {
        let disk = SimDisk::from_snapshot(medium);
        let _ = self.remains.recover_until(&disk, call, moment);
        if only.is_none() && !seen.stops.insert(state_hash(&disk)) {
            // The call changed nothing: the same ends were all gone through for the call before it.
            self.tally.second_states += 3 * disk.unsynced().len() as u64 + 3;
            return Ok(());
        }
        let ends = only.map_or_else(|| ends(&disk, &mut self.random, 2), |how| vec![how]);
        let snapshot = disk.snapshot();
        for how in ends {
            self.tally.second_states += 1;
            let disk = after(&snapshot, &how);
            if how != How::Kill && !seen.media.insert(disk.content_hash()) {
                continue;
            }
            self.same(&disk, view, || format!("recovery stopped {moment:?} call {call}, {how:?}"))?;
        }
        Ok(())
    }

    /// Two recoveries stopped, one behind the other.
    fn third(&mut self, medium: &Snapshot, view: &View, calls: u64) -> Checked {
        let mut disk = SimDisk::from_snapshot(medium);
        let mut told = Vec::new();
        for _ in 0..2 {
            let (call, moment) = (self.random.between(1, calls), moment(&mut self.random));
            let _ = self.remains.recover_until(&disk, call, moment);
            let how = drawn(&mut self.random);
            told.push(format!("recovery stopped {moment:?} call {call}, {how:?}"));
            disk = after(&disk.snapshot(), &how);
        }
        self.tally.third_states += 1;
        self.same(&disk, view, || told.join("; "))
    }

    fn same(&self, disk: &SimDisk, view: &View, when: impl Fn() -> String) -> Checked {
        let told =
            |violation: Violation| Violation { what: format!("{}: {}", when(), violation.what), ..violation };
        // The power went before the first recovery: a kill in it brings nothing back that was only written.
        let (world, again) = self.remains.recover(disk, &How::PowerCut(Survival::Nothing)).map_err(told)?;
        world.discard();
        ensure(again.as_ref().is_none_or(|again| again == view), Kind::NotFixpoint, || {
            format!("{}: recovered {again:?}, else {view:?}", when())
        })
    }
}

fn moment(random: &mut Random) -> Moment {
    random.pick(Moment::Before, &[Moment::Middle, Moment::After])
}

fn drawn(random: &mut Random) -> How {
    match random.below(8) {
        0 => How::Kill,
        1 => How::PowerCut(Survival::Nothing),
        2 => How::PowerCut(Survival::Everything),
        _ => How::PowerCut(Survival::Seed(random.next_number() >> 16)),
    }
}
