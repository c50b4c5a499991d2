//! Gates: calls that stop until a test lets them go on, so that no test needs a sleep.

use std::sync::Arc;

use crate::world::Machine;

/// A closed gate. Dropping it opens it.
#[derive(Debug)]
#[must_use = "a gate opens when dropped"]
pub struct Gate {
    pub(crate) machine: Arc<Machine>,
    pub(crate) id: u64,
}

impl Gate {
    /// Waits until `n` calls, in all, have arrived at this gate.
    pub fn wait_arrived(&self, n: usize) {
        let mut world = self.machine.lock();
        while world.gates.get(&self.id).is_some_and(|gate| gate.arrived_count < n) {
            world = self.machine.wait(world);
        }
    }

    /// How many calls have arrived so far.
    #[must_use]
    pub fn arrived_count(&self) -> usize {
        self.machine.lock().gates.get(&self.id).map_or(0, |gate| gate.arrived_count)
    }

    /// Lets `n` calls through, waiting ones first; the gate stays closed for the others.
    pub fn let_through(&self, n: usize) {
        if let Some(gate) = self.machine.lock().gates.get_mut(&self.id) {
            gate.passes += n;
        }
        self.machine.notify();
    }

    /// Opens the gate.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.machine.lock().gates.remove(&self.id);
        self.machine.notify();
    }
}
