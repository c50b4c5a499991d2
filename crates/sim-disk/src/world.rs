//! The machine: the tree, the plans, the counters, and the door every call goes through.
//!
//! ```text
//!   call ──> enter: alive? count, trace ──> gates (wait) ──> plans (fault?) ──> the tree
//! ```
//!
//! Invariants: one mutex guards it all; only a gate waits, on `changed`, with the mutex released; a process that was
//! killed, or whose machine lost its power, gets EIO from every call, also from one that waited at a gate.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};

use disk::{DiskError, Op, SyncSite};

use crate::errno::{EDQUOT, EINTR, EIO, ENOSPC, EROFS};
use crate::fault::{Call, Effect, Fault, Moment, On};
use crate::file_node::Order;
use crate::power::mix;
use crate::tree::{Errno, Ino, Tree};

/// Which process; a new one after each kill and power cut.
pub(crate) type Process = u64;

#[derive(Debug)]
pub(crate) struct Machine {
    world: Mutex<World>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) tree: Tree,
    pub(crate) order: Order,
    pub(crate) process: Process,
    pub(crate) is_halted: bool,
    pub(crate) faults: Vec<Fault>,
    pub(crate) ignored: BTreeSet<SyncSite>,
    pub(crate) gates: BTreeMap<u64, GateState>,
    pub(crate) next_gate: u64,
    pub(crate) locks: BTreeMap<Ino, Process>,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    /// Decides which sectors reach the medium when a sync fails.
    pub(crate) seed: u64,
}

#[derive(Debug)]
pub(crate) struct GateState {
    pub(crate) on: On,
    pub(crate) arrived_count: usize,
    /// Calls that may still pass while the gate is closed.
    pub(crate) passes: usize,
}

/// What runs out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) quota_bytes: Option<u64>,
    pub(crate) file_bytes_max: Option<u64>,
    pub(crate) open_files: Option<usize>,
    pub(crate) is_read_only: bool,
}

impl Limits {
    /// The bytes that may be taken, and what is said when there are none.
    pub(crate) fn space(&self) -> Option<(u64, Errno)> {
        let capacity = self.capacity_bytes.map(|bytes| (bytes, ENOSPC));
        let quota = self.quota_bytes.map(|bytes| (bytes, EDQUOT));
        capacity.into_iter().chain(quota).min_by_key(|(bytes, _)| *bytes)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) by_op: BTreeMap<Op, u64>,
    pub(crate) by_site: BTreeMap<SyncSite, u64>,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) open_files: usize,
    pub(crate) open_files_peak: usize,
    pub(crate) call_count: u64,
    pub(crate) trace_hash: u64,
}

/// A call that was let in, and what it meets.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    pub(crate) world: MutexGuard<'a, World>,
    pub(crate) effect: Option<Effect>,
}

impl Machine {
    pub(crate) fn new(tree: Tree, order: Order) -> Self {
        let world = World {
            tree,
            order,
            process: 1,
            is_halted: false,
            faults: Vec::new(),
            ignored: BTreeSet::new(),
            gates: BTreeMap::new(),
            next_gate: 0,
            locks: BTreeMap::new(),
            limits: Limits::default(),
            counters: Counters::default(),
            seed: 0,
        };
        Self { world: Mutex::new(world), changed: Condvar::new() }
    }

    /// The state, for the test that holds the disk; no call is counted.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn wait<'a>(&self, world: MutexGuard<'a, World>) -> MutexGuard<'a, World> {
        self.changed.wait(world).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Lets a call of a process in: counted, past the gates, with what the plans have for it. A planned plain error
    /// of anything but a write or a sync is returned here.
    pub(crate) fn enter(&self, process: Process, call: Call<'_>) -> Result<Entered<'_>, DiskError> {
        let mut world = self.lock();
        world.check_alive(process, &call)?;
        world.count(&call);
        world = self.pass_gates(world, process, &call)?;
        let effect = world.meet(&call);
        let is_partial = matches!(call.op, Op::Write | Op::SyncData);
        match effect {
            Some(Effect::Error { errno, .. }) if !is_partial => Err(call.error(errno)),
            Some(Effect::Halt(moment)) => {
                world.is_halted = true;
                if moment == Moment::Before { Err(call.error(EIO)) } else { Ok(Entered { world, effect }) }
            }
            _ => Ok(Entered { world, effect }),
        }
    }

    fn pass_gates<'a>(
        &'a self,
        mut world: MutexGuard<'a, World>,
        process: Process,
        call: &Call<'_>,
    ) -> Result<MutexGuard<'a, World>, DiskError> {
        let mut arrived: BTreeSet<u64> = BTreeSet::new();
        loop {
            let closed = world.gates.iter_mut().find(|(_, gate)| gate.on.matches(call));
            let Some((&id, gate)) = closed else { return Ok(world) };
            if arrived.insert(id) {
                gate.arrived_count += 1;
                self.changed.notify_all();
            }
            if gate.passes > 0 {
                gate.passes -= 1;
                return Ok(world);
            }
            world = self.wait(world);
            world.check_alive(process, call)?;
        }
    }
}

impl World {
    pub(crate) fn next_order(&mut self) -> Order {
        self.order += 1;
        self.order
    }

    /// A new process on this machine: the old one's handles, locks, gates and plans are gone.
    pub(crate) fn next_process(&mut self) -> Process {
        self.process += 1;
        self.is_halted = false;
        self.locks.clear();
        self.gates.clear();
        self.faults.clear();
        self.counters.open_files = 0;
        self.process
    }

    pub(crate) fn check_writable(&self, call: &Call<'_>) -> Result<(), DiskError> {
        if self.limits.is_read_only { Err(call.error(EROFS)) } else { Ok(()) }
    }

    /// The error of whoever finds none.
    pub(crate) fn no_space(&self) -> Errno {
        self.limits.space().map_or(ENOSPC, |(_, errno)| errno)
    }

    /// Pages that may still be taken.
    pub(crate) fn free_pages(&self) -> u64 {
        match self.limits.space() {
            None => u64::MAX,
            Some((bytes, _)) => (bytes / crate::pages::PAGE_BYTES).saturating_sub(self.tree.page_count()),
        }
    }

    fn check_alive(&self, process: Process, call: &Call<'_>) -> Result<(), DiskError> {
        if process != self.process || self.is_halted {
            let gone = io::Error::other("the power is off, or this process was killed");
            return Err(DiskError::new(call.op, call.path, gone));
        }
        Ok(())
    }

    fn count(&mut self, call: &Call<'_>) {
        let counters = &mut self.counters;
        counters.call_count += 1;
        *counters.by_op.entry(call.op).or_default() += 1;
        if let Some(site) = call.site {
            *counters.by_site.entry(site).or_default() += 1;
        }
        self.trace(call.op as u64);
        for byte in call.path.as_os_str().as_encoded_bytes() {
            self.trace(u64::from(*byte));
        }
    }

    /// Adds a number to the hash of all that happened.
    pub(crate) fn trace(&mut self, value: u64) {
        self.counters.trace_hash = mix(self.counters.trace_hash ^ value);
    }

    fn meet(&mut self, call: &Call<'_>) -> Option<Effect> {
        let mut met = None;
        for fault in &mut self.faults {
            // All plans count, also those that come after the one that fires.
            let effect = fault.meet(call);
            // An interrupted call is repeated; the caller sees nothing of it.
            let effect = effect.filter(|effect| !matches!(effect, Effect::Error { errno: EINTR, .. }));
            met = met.or(effect);
        }
        met
    }
}

impl Call<'_> {
    pub(crate) fn error(&self, errno: Errno) -> DiskError {
        let error = DiskError::new(self.op, self.path, io::Error::from_raw_os_error(errno));
        match self.site {
            Some(site) => error.at_site(site),
            None => error,
        }
    }
}

impl Entered<'_> {
    /// Ends a call that did its work: after a planned halt the caller must not learn of it.
    pub(crate) fn done<T>(self, call: Call<'_>, value: T) -> Result<T, DiskError> {
        let effect = self.effect;
        // A lock that is the value unlocks as it is dropped, which enters the world again.
        drop(self);
        match effect {
            Some(Effect::Halt(_)) => Err(call.error(EIO)),
            _ => Ok(value),
        }
    }
}
