//! The end of a life and the start of the next: power cuts, kills, recoveries that are stopped, and what must hold afterwards.
//!
//! ```text
//!   crash ──> medium as it survived ──┬─> recover, stopped in the middle, crash ─> … ─> recover ──> the same view
//!                                     └─> a copy: recover in one go ─────────────────────────────> ───┘
//! ```

use pq::core::{Core, Seed};
use pq::{Instant, OpenError};
use sim_disk::{Fault, On, SimDisk, Snapshot, Survival};

use super::view::{Seen, look};
use super::{Health, World, stream_name};
use crate::operation::{Crash, How, Interrupt};
use crate::oracle::{Stopped, View};
use crate::random::mix;
use crate::violation::{Checked, Kind, Violation, ensure};

/// One recovery in so many is done again on a copy, to see that it comes to the same.
const AGAIN_ONE_IN: u64 = 8;

impl Crash {
    /// A power cut that keeps nothing.
    #[must_use]
    pub fn plain() -> Self {
        Self { how: How::PowerCut(Survival::Nothing), in_recovery: Vec::new() }
    }
}

impl Health {
    /// What such a stop is on a disk in this health.
    pub(super) fn after(self, stopped: Stopped) -> Stopped {
        if self == Self::Sound { stopped } else { Stopped::Failing }
    }
}

impl World {
    /// Opens the new queue.
    pub(super) fn begin(&mut self) -> Checked {
        self.ignore_sites();
        self.life += 1;
        self.core = Some(self.open(&self.disk, self.life).map_err(|error| stuck("a new queue", &error))?);
        Ok(())
    }

    pub(super) fn ignore_sites(&self) {
        self.setup.ignored_sites.iter().for_each(|site| self.disk.ignore_site(*site));
    }

    pub(super) fn open(&self, disk: &SimDisk, life: u64) -> Result<Core, OpenError> {
        let now = pq::Now { instant: Instant::ZERO, ..self.now };
        Core::open(
            self.wrapped(disk),
            self.setup.options.clone(),
            Seed::Fixed(mix(self.setup.seed ^ mix(life))),
            now,
        )
    }

    /// The process is gone, with all its handles, and wrote nothing more.
    pub(super) fn drop_handles(&mut self) {
        for slot in &mut self.slots {
            slot.stream = None;
            slot.tickets.clear();
            slot.refusals = super::limits::Refusals::default();
            slot.waiting = None;
            for reader in &mut slot.readers {
                reader.taken = None;
                reader.deliveries.clear();
                reader.reading = 0;
                reader.passed = super::limits::Passed::default();
            }
        }
        if let Some(core) = self.core.take() {
            core.abandon();
        }
    }

    /// Leaves everything as it is.
    pub fn discard(mut self) {
        self.drop_handles();
    }

    pub(super) fn stop(&mut self, how: &How) -> Stopped {
        match how {
            How::Kill => {
                self.counts.kills += 1;
                self.disk = self.disk.kill();
                self.health.after(Stopped::Killed)
            }
            How::PowerCut(survival) => {
                self.counts.power_cuts += 1;
                self.disk = self.disk.power_cut(survival);
                self.health.after(Stopped::PowerCut)
            }
        }
    }

    /// The end, and the next start.
    pub(super) fn end(&mut self, crash: Crash) -> Checked {
        self.crash = None;
        self.drop_handles();
        let mut stopped = self.stop(&crash.how);
        let is_limited = self.is_limited;
        self.health = if is_limited { Health::Troubled } else { Health::Sound };
        let is_settled = matches!(crash.how, How::PowerCut(_)) && !is_limited;
        let reference = (is_settled && !crash.in_recovery.is_empty()).then(|| self.disk.snapshot());
        for interrupt in &crash.in_recovery {
            stopped = stopped.max(self.stopped_recovery(interrupt));
        }
        let view = self.recover(stopped)?;
        match (reference, view) {
            (Some(snapshot), Some(view)) => self.check_copy(&snapshot, &view, "in one go"),
            _ => Ok(()),
        }
    }

    fn stopped_recovery(&mut self, interrupt: &Interrupt) -> Stopped {
        self.disk.plan(Fault::halt(On::Any, interrupt.call, interrupt.moment));
        self.counts.stopped_recoveries += 1;
        if let Ok(core) = self.open(&self.disk, self.life + 1) {
            core.abandon();
        }
        self.stop(&interrupt.how)
    }

    /// After a close: the next process of the same boot opens, or the power goes first; a planned stop comes in that open.
    pub(super) fn reopen(&mut self, stopped: Stopped) -> Checked {
        self.drop_handles();
        let planned = self.crash.take().map(|crash| crash.in_recovery).unwrap_or_default();
        if mix(self.setup.seed ^ mix(self.step)).is_multiple_of(2) {
            self.stop(&How::PowerCut(Survival::Seed(mix(self.step))));
        } else {
            self.disk = self.disk.kill();
        }
        self.health = if self.is_limited { Health::Troubled } else { Health::Sound };
        // An open that was stopped has made the clean stop void, but everything is durable all the same.
        let stopped = if planned.is_empty() { stopped } else { stopped.max(Stopped::PowerCut) };
        for interrupt in &planned {
            self.stopped_recovery(interrupt);
        }
        self.recover(stopped).map(drop)
    }

    /// Opens what is left, and checks it; `None`: it took a healing, so that nothing can be said of other tries.
    pub(super) fn recover(&mut self, stopped: Stopped) -> Checked<Option<View>> {
        self.repair_due()?;
        self.life += 1;
        self.now.instant = Instant::ZERO;
        let mut was_healed = false;
        if let Some((fault, since)) = self.planned.clone() {
            self.expect_trouble();
            self.disk.plan(fault.seen(self.disk.call_count() - since));
        }
        let mut core = self.open(&self.disk, self.life);
        if let Err(error) = &core {
            self.expect("open", error)?;
            self.heal();
            was_healed = true;
            core = self.open(&self.disk, self.life);
        }
        let core = core.map_err(|error| stuck("opening", &error))?;
        // A try that failed, of all or of one stream, may have made a clean stop void.
        let was_paused = core.report().streams.iter().any(|stream| stream.paused.is_some());
        let after_try =
            |healed: bool| if healed || was_paused { stopped.max(Stopped::PowerCut) } else { stopped };
        self.counts.recoveries += 1;
        let mut seen = look(&core, self.now);
        if let Some((_, reason)) = seen.paused.first() {
            self.expect("a paused stream", reason)?;
            self.heal();
            was_healed = true;
            seen = look(&core, self.now);
            ensure(seen.paused.is_empty(), Kind::Stuck, || {
                format!("paused on a healed disk: {:?}", seen.paused)
            })?;
        }
        let Seen { view, handles, .. } = seen;
        if self.health == Health::Sound {
            self.check_report(core.report())?;
            self.check_originals()?;
        }
        ensure(stopped != Stopped::Clean || was_healed || core.report().clean, Kind::Lost, || {
            "a stop in order was forgotten".to_owned()
        })?;
        self.oracle.reopened(after_try(was_healed), &view)?;
        self.note_view(&view);
        self.core = Some(core);
        self.take_handles(handles)?;
        if self.health == Health::Sound && mix(self.setup.seed ^ mix(self.life)).is_multiple_of(AGAIN_ONE_IN)
        {
            self.check_copy(&self.disk.snapshot(), &view, "again")?;
        }
        Ok((!was_healed).then_some(view))
    }

    fn take_handles(&mut self, handles: Vec<(String, pq::core::CoreStream)>) -> Checked {
        for (name, handle) in handles {
            let Some(stream) = (0..self.slots.len()).find(|n| stream_name(*n) == name) else { continue };
            let known: Vec<String> = handle.consumers().iter().map(|c| c.name().to_owned()).collect();
            self.slots[stream].stream = Some(handle);
            for reader in 0..self.readers_count() {
                if known.contains(&super::reader_name(reader)) {
                    self.create_reader(stream, reader)?;
                }
            }
        }
        self.limits_found()
    }

    /// Recovering a copy, after one more power cut, must come to the same.
    fn check_copy(&self, snapshot: &Snapshot, expected: &View, how: &str) -> Checked {
        let survival = Survival::Seed(mix(self.setup.seed ^ self.life));
        let copy = SimDisk::from_snapshot(snapshot).power_cut(&survival);
        self.setup.ignored_sites.iter().for_each(|site| copy.ignore_site(*site));
        let core = self.open(&copy, self.life + 1).map_err(|error| stuck("opening a copy", &error))?;
        let Seen { view, handles, paused } = look(&core, self.now);
        drop(handles);
        core.abandon();
        ensure(paused.is_empty() && view == *expected, Kind::NotFixpoint, || {
            format!("recovered {how}: {view:?} {paused:?}, else {expected:?}")
        })
    }

    fn note_view(&mut self, view: &View) {
        for stream in &view.streams {
            self.note(stream.first ^ stream.durable.rotate_left(32));
            for consumer in &stream.consumers {
                self.note(consumer.cursor);
            }
        }
    }
}

fn stuck(what: &str, error: &dyn std::fmt::Display) -> Violation {
    Violation::new(Kind::Stuck, format!("{what} on a sound disk: {error}"))
}
