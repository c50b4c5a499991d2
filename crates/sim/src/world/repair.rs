//! A queue that is stopped in order, damaged and repaired: the repair, its stops, and what must hold of what it says it did.
//!
//! ```text
//!   close ─> damage (what it costs is known) ─> repair ──stopped──> power cut ─┬─> repair again ─> power cut ─> open
//!                                                  └─ through ─> power cut ────┴──────────────────────────────> open
//! ```
//!
//! Invariants: what could be read of the damaged queue can be read after any number of stops; a repair that said it is through leaves
//! nothing to do, whatever the power takes; the damaged bytes stay, at their place or in quarantine.

use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use pq::repair::{self, RepairError, RepairOptions, RepairReport, RepairStep};
use sim_disk::{Fault, On, SimDisk, Survival};
use wal_format::{SEGMENT_HEADER_BYTES, without_zeros};

use super::{Health, World};
use crate::operation::{How, Interrupt, Repair, Then};
use crate::oracle::Stopped;
use crate::random::mix;
use crate::violation::{Checked, Kind, Violation, ensure};

impl World {
    pub(super) fn wrapped(&self, disk: &SimDisk) -> Arc<dyn Disk> {
        match &self.setup.wrap {
            Some(wrap) => wrap(disk.clone()),
            None => Arc::new(disk.clone()),
        }
    }

    pub(super) fn apply_repair(&self, disk: &SimDisk) -> Result<RepairReport, RepairError> {
        repair::apply_on(self.wrapped(disk), &RepairOptions::at(self.now.wall))
    }

    /// A stop in order, damage, a repair that may be stopped, and the next start.
    pub(super) fn repair(&mut self, repair: &Repair) -> Checked {
        let Some(stopped) = self.close_only()? else { return Ok(()) };
        if stopped != Stopped::Clean || self.health != Health::Sound {
            return self.reopen(stopped);
        }
        let segments = self.segments_on_disk();
        self.drop_handles();
        self.crash = None;
        let number = mix(self.setup.seed ^ mix(self.step));
        let end = if number.is_multiple_of(2) { How::Kill } else { How::PowerCut(Survival::Seed(number)) };
        self.stop(&end);
        self.damage(&repair.damages, &segments)?;
        self.mending.then = Some(Then::Resume);
        for interrupt in &repair.interrupts {
            self.mending.then = Some(repair.then);
            if self.stopped_repair(interrupt)? {
                break;
            }
        }
        self.recover(Stopped::PowerCut).map(drop)
    }

    /// As [`World::repair`], in which the machine stops somewhere; the next start goes on as the repair says.
    pub(super) fn repair_until_dead(&mut self, repair: &Repair) -> Checked {
        let Some(Stopped::Clean) = self.close_only()? else { return Ok(()) };
        let segments = self.segments_on_disk();
        self.drop_handles();
        self.damage(&repair.damages, &segments)?;
        self.mending.then = Some(repair.then);
        let done = self.apply_repair(&self.disk);
        if self.is_dead() { Ok(()) } else { self.repaired(done) }
    }

    /// Whether the repair was through before it was stopped.
    fn stopped_repair(&mut self, interrupt: &Interrupt) -> Checked<bool> {
        self.disk.plan(Fault::halt(On::Any, interrupt.call, interrupt.moment));
        let done = self.apply_repair(&self.disk);
        let is_through = !self.is_dead();
        if is_through {
            self.repaired(done)?;
        }
        self.stop(&interrupt.how);
        if is_through {
            self.check_done()?;
        }
        Ok(is_through)
    }

    /// A repair that is due, in one go, and a power cut behind it.
    pub(super) fn repair_due(&mut self) -> Checked {
        if self.mending.then != Some(Then::Resume) {
            return Ok(());
        }
        let done = self.apply_repair(&self.disk);
        self.repaired(done)?;
        let number = mix(self.setup.seed ^ mix(self.life ^ 0x4e9a));
        let survival = if number.is_multiple_of(2) { Survival::Nothing } else { Survival::Seed(number) };
        self.stop(&How::PowerCut(survival));
        self.check_done()
    }

    /// A repair answered.
    fn repaired(&mut self, done: Result<RepairReport, RepairError>) -> Checked {
        let report = done.map_err(|error| {
            Violation::new(Kind::Stuck, format!("a repair on a disk that takes everything: {error}"))
        })?;
        ensure(report.applied && report.blocked.is_empty(), Kind::Stuck, || {
            format!("a repair was not done: {:?}", report.blocked)
        })?;
        ensure(report.strays.is_empty(), Kind::FalseAlarm, || format!("strays: {:?}", report.strays))?;
        for loss in &report.losses {
            self.oracle.told_lost(&loss.stream, loss.from..loss.to)?;
        }
        for step in &report.steps {
            self.note(step.bytes);
            self.check_kept(step)?;
        }
        self.oracle.mended();
        self.mending.then = None;
        self.mending.is_hurt = false;
        Ok(())
    }

    /// A file that a repair says it kept is there, as it was.
    fn check_kept(&self, step: &RepairStep) -> Checked {
        let Some(kept) = &step.kept else { return Ok(()) };
        let is_there = self.disk.files().iter().any(|path| path == Path::new(kept));
        ensure(is_there, Kind::Lost, || format!("{} is said to be kept as {kept}, and is not", step.path))?;
        let Some((_, bytes)) = self.mending.files.iter().find(|(path, _)| *path == Path::new(&step.path))
        else {
            return Ok(());
        };
        // A repair that was stopped behind the replacing kept them before, and this one keeps its copy (seed 2414).
        let files = self.disk.files();
        let mut held = files.iter().filter(|path| path.starts_with("quarantine"));
        ensure(held.any(|path| self.disk.read(path).starts_with(bytes)), Kind::Lost, || {
            format!("nothing in quarantine holds the bytes that {} had", step.path)
        })
    }

    /// What a repair said it did is done, whatever the power took: another one has nothing to write and nothing to tell.
    fn check_done(&self) -> Checked {
        let plan = repair::plan_on(self.wrapped(&self.disk), &RepairOptions::at(self.now.wall))
            .map_err(|error| Violation::new(Kind::Stuck, format!("a plan behind a repair: {error}")))?;
        let is_work = |step: &&RepairStep| step.bytes > 0 || step.kept.is_some();
        let work: Vec<&RepairStep> = plan.steps.iter().filter(is_work).collect();
        ensure(work.is_empty() && plan.losses.is_empty(), Kind::Lost, || {
            format!("a repair was done, and is to be done again: {work:?}, {:?}", plan.losses)
        })
    }

    /// The segments' damaged bytes are where they were, or in quarantine.
    pub(super) fn check_originals(&mut self) -> Checked {
        let files = std::mem::take(&mut self.mending.files);
        if files.is_empty() {
            return Ok(());
        }
        let all = self.disk.files();
        // What is cut within its header holds nothing of a user's.
        let held = |bytes: &[u8]| without_zeros(bytes).len() > SEGMENT_HEADER_BYTES;
        for (path, bytes) in files.iter().filter(|(path, b)| path.starts_with("streams") && held(b)) {
            let may_be = |at: &Path| at == path || at.starts_with("quarantine");
            // What no batch was ever written to is given back by the next owner.
            let is_same = |at: &Path| self.disk.read(at).starts_with(without_zeros(bytes));
            let is_kept = all.iter().any(|at| may_be(at) && is_same(at));
            ensure(is_kept, Kind::Lost, || {
                format!("the damaged {} is neither at its place nor in quarantine", path.display())
            })?;
        }
        Ok(())
    }
}
