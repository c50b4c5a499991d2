//! What is left of a run whose process is dead, and the many machines it may go on with: each survival of the unsynced, each stop of the
//! recovery is another branch, and clients know the same in all of them.

use pq::Now;
use sim_disk::{Fault, Moment, On, SimDisk};

use super::damage::Mending;
use super::limits::Known;
use super::{Health, World};
use crate::operation::{How, Operation, Then};
use crate::oracle::{Oracle, Stopped, View};
use crate::random::mix;
use crate::setup::Setup;
use crate::violation::{Checked, Violation};

/// See the module.
#[derive(Clone, Debug)]
pub struct Remains {
    setup: Setup,
    oracle: Oracle,
    now: Now,
    life: u64,
    payloads_count: u64,
    is_limited: bool,
    health: Health,
    mending: Mending,
    known: Known,
}

impl World {
    /// The streams as their clients see them, a line each, and the last error since this was asked.
    #[must_use]
    pub fn describe(&self) -> String {
        let lines = self.slots.iter().filter_map(|slot| slot.stream.as_ref()).map(super::view::describe);
        let mut text: String = lines.map(|line| format!("       {line}\n")).collect();
        let trouble = self.last_trouble.take();
        if !trouble.is_empty() {
            text += &format!("       answered {trouble}\n");
        }
        text
    }

    /// Does these until the machine stops in one of them; `false`: it did not. Nothing is recovered.
    ///
    /// # Errors
    /// A promise was broken before that.
    pub fn run_until_dead(&mut self, operations: &[Operation]) -> Checked<bool> {
        for operation in operations {
            self.step += 1;
            self.pass(std::time::Duration::from_micros(20));
            match operation {
                Operation::Close => self.close_only().map(drop)?,
                Operation::Repair(repair) => self.repair_until_dead(repair)?,
                // The planned stop stays: only the disk is healed.
                Operation::Heal => self.heal_limits(),
                operation => self.execute(operation)?,
            }
            if self.is_dead() {
                return Ok(true);
            }
            self.look_at_tickets()?;
        }
        Ok(false)
    }

    /// The process is gone; the disk is left to whoever has it.
    #[must_use]
    pub fn into_remains(mut self) -> (Remains, SimDisk) {
        self.drop_handles();
        let remains = Remains {
            setup: self.setup.clone(),
            oracle: self.oracle.clone(),
            now: self.now,
            life: self.life,
            payloads_count: self.payloads_count,
            is_limited: self.is_limited,
            health: self.health,
            mending: self.mending.clone(),
            known: self.known.clone(),
        };
        (remains, self.disk)
    }
}

impl Remains {
    /// Of nothing: the disk is empty and nobody knows anything.
    #[must_use]
    pub fn nothing(setup: Setup) -> (Self, SimDisk) {
        let world = World::unopened(setup);
        world.into_remains()
    }

    /// Opens the queue on this machine, and checks what a client sees; `None`: it took a healing.
    ///
    /// # Errors
    /// A promise was broken.
    pub fn recover(&self, disk: &SimDisk, how: &How) -> Checked<(World, Option<View>)> {
        let mut world = World::unopened(self.setup.clone());
        let stopped = if *how == How::Kill { Stopped::Killed } else { Stopped::PowerCut };
        world.disk = disk.clone();
        world.oracle = self.oracle.clone();
        world.now = self.now;
        world.life = self.life;
        world.payloads_count = self.payloads_count;
        world.is_limited = self.is_limited;
        world.health = if self.is_limited { Health::Troubled } else { Health::Sound };
        world.mending = self.mending.clone();
        world.known = self.known.clone();
        world.ignore_sites();
        match world.recover(self.health.after(stopped)) {
            Ok(view) => Ok((world, view)),
            Err(violation) => {
                world.discard();
                Err(Violation { seed: self.setup.seed, ..violation })
            }
        }
    }

    /// Opens the queue on this machine, which stops in the `call`-th call; `false`: opening was through before.
    #[must_use]
    pub fn recover_until(&self, disk: &SimDisk, call: u64, moment: Moment) -> bool {
        let world = World::unopened(self.setup.clone());
        disk.plan(Fault::halt(On::Any, call, moment));
        let is_repair_due = self.mending.then == Some(Then::Resume);
        if (!is_repair_due || world.apply_repair(disk).is_ok())
            && let Ok(core) = world.open(disk, mix(self.life + 1))
        {
            core.abandon();
        }
        disk.is_halted()
    }

    /// How many calls opening the queue on this machine makes.
    #[must_use]
    pub fn calls_of_recovery(&self, disk: &SimDisk) -> u64 {
        let before = disk.call_count();
        let _ = self.recover_until(disk, u64::MAX, Moment::Before);
        disk.call_count() - before
    }
}
