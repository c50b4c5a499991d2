//! The test's side of the machine: power, plans, gates, damage, counters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use disk::{Op, SyncSite};

use crate::SimDisk;
use crate::fault::{Fault, On};
use crate::gate::Gate;
use crate::pages::PAGE_BYTES;
use crate::power::{Survival, Unsynced, mix};
use crate::tree::{Ino, Node, Tree};
use crate::unsynced::{Ground, bytes_of};
use crate::world::{GateState, Limits, Machine, World};

/// A copy of everything the kernel and the medium hold; cheap, pages are shared.
#[derive(Clone, Debug)]
pub struct Snapshot {
    tree: Tree,
    order: u64,
    limits: Limits,
    seed: u64,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self { machine: Arc::new(Machine::new(Tree::new(), 0)), process: 1 }
    }

    /// The power goes, and comes back: what survives of the unsynced is what `survival` says; the cache is the medium.
    ///
    /// Returns the disk as the next process sees it. Every handle of the old one fails with EIO from now on, gates and
    /// plans are gone, limits stay. A halted machine is switched on again.
    #[must_use]
    pub fn power_cut(&self, survival: &Survival) -> SimDisk {
        let mut world = self.machine.lock();
        world.write_back(survival, Ground::Ignored);
        world.tree.restart();
        self.restarted(world)
    }

    /// SIGKILL: the process is gone, the cache survives, nothing was synced by that.
    ///
    /// Returns the disk as the next process of the same boot sees it; the old one's handles fail from now on.
    #[must_use]
    pub fn kill(&self) -> SimDisk {
        let mut world = self.machine.lock();
        for node in world.tree.nodes.values_mut() {
            if let Node::File(file) = node
                && file.handle_count > 0
            {
                Arc::make_mut(file).handle_count = 0;
            }
        }
        self.restarted(world)
    }

    fn restarted(&self, mut world: MutexGuard<'_, World>) -> SimDisk {
        let process = world.next_process();
        drop(world);
        self.machine.notify();
        Self { machine: Arc::clone(&self.machine), process }
    }

    /// What is not on the medium yet, oldest first.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Unsynced> {
        self.machine.lock().unsynced()
    }

    /// The kernel writes some of the unsynced back by itself, as it may at any time. It promises nothing to anybody.
    pub fn write_back(&self, survival: &Survival) {
        self.machine.lock().write_back(survival, Ground::Included);
    }

    /// A copy of the state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let world = self.machine.lock();
        Snapshot {
            tree: world.tree.clone(),
            order: world.order,
            limits: world.limits.clone(),
            seed: world.seed,
        }
    }

    /// A new machine in that state, with a new process on it: as after [`kill`](Self::kill).
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot) -> SimDisk {
        let machine = Machine::new(snapshot.tree.clone(), snapshot.order);
        {
            let mut world = machine.lock();
            world.limits = snapshot.limits.clone();
            world.seed = snapshot.seed;
        }
        Self { machine: Arc::new(machine), process: 1 }.kill()
    }

    /// Decides which sectors reach the medium when a sync fails; 0, the default, lets none.
    pub fn set_seed(&self, seed: u64) {
        self.machine.lock().seed = seed;
    }

    /// Adds a fault to the plan.
    pub fn plan(&self, fault: Fault) {
        self.machine.lock().faults.push(fault);
    }

    /// Forgets all planned faults.
    pub fn clear_faults(&self) {
        self.machine.lock().faults.clear();
    }

    /// Syncs at this site return `Ok` and do nothing: the code as if it had forgotten them.
    pub fn ignore_site(&self, site: SyncSite) {
        self.machine.lock().ignored.insert(site);
    }

    /// Writes that need space beyond this many bytes fail with ENOSPC; `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.machine.lock().limits.capacity_bytes = bytes;
    }

    /// The same with EDQUOT. Of both limits the lower one speaks.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.machine.lock().limits.quota_bytes = bytes;
    }

    /// Whatever would make a file longer than this many bytes fails with EFBIG, and changes nothing; `None`: no limit.
    pub fn set_file_bytes_max(&self, bytes: Option<u64>) {
        self.machine.lock().limits.file_bytes_max = bytes;
    }

    /// A hash over all names and bytes as a process sees them: equal for equal contents.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let world = self.machine.lock();
        let mut named: Vec<(PathBuf, Ino)> =
            world.paths().into_iter().map(|(ino, path)| (path, ino)).collect();
        named.sort_unstable();
        let mut hash = 0;
        for (path, ino) in named {
            path.as_os_str().as_encoded_bytes().iter().for_each(|byte| hash = mix(hash ^ u64::from(*byte)));
            let Ok(file) = world.tree.file(ino) else { continue };
            hash = mix(hash ^ file.cache_len);
            for word in bytes_of(&file.cache, file.cache_len).chunks(8) {
                hash = mix(hash ^ word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
            }
        }
        hash
    }

    /// Bytes in use, as a full disk counts them: whole pages.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.machine.lock().tree.page_count() * PAGE_BYTES
    }

    /// Opens beyond this many files fail with EMFILE; `None`: no limit.
    pub fn set_open_files_max(&self, count: Option<usize>) {
        self.machine.lock().limits.open_files = count;
    }

    /// Every change fails with EROFS, until [`remount_read_write`](Self::remount_read_write).
    pub fn remount_read_only(&self) {
        self.machine.lock().limits.is_read_only = true;
    }

    /// Ends [`remount_read_only`](Self::remount_read_only).
    pub fn remount_read_write(&self) {
        self.machine.lock().limits.is_read_only = false;
    }

    /// Closes a gate: matching calls stop before they do anything, until it is released or dropped.
    pub fn hold(&self, on: On) -> Gate {
        let mut world = self.machine.lock();
        let id = world.next_gate;
        world.next_gate += 1;
        world.gates.insert(id, GateState { on, arrived_count: 0, passes: 0 });
        drop(world);
        Gate { machine: Arc::clone(&self.machine), id }
    }

    /// Calls of a kind so far, over all processes of this machine.
    #[must_use]
    pub fn count(&self, op: Op) -> u64 {
        self.machine.lock().counters.by_op.get(&op).copied().unwrap_or(0)
    }

    /// Syncs at a site so far.
    #[must_use]
    pub fn count_at(&self, site: SyncSite) -> u64 {
        self.machine.lock().counters.by_site.get(&site).copied().unwrap_or(0)
    }

    /// All sites that synced so far, with their counts.
    #[must_use]
    pub fn sites(&self) -> BTreeMap<SyncSite, u64> {
        self.machine.lock().counters.by_site.clone()
    }

    /// All calls so far.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.machine.lock().counters.call_count
    }

    /// A hash over all calls so far, in order: equal for equal runs.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.machine.lock().counters.trace_hash
    }

    /// Bytes read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.machine.lock().counters.bytes_read
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.machine.lock().counters.bytes_written
    }

    /// Files open now.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.machine.lock().counters.open_files
    }

    /// The most files open at once so far.
    #[must_use]
    pub fn open_files_peak(&self) -> usize {
        self.machine.lock().counters.open_files_peak
    }

    /// Whether the machine stands still after a planned halt.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.machine.lock().is_halted
    }

    /// The bytes of a file as a process sees them; no call is counted.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        self.machine.lock().with_file(path.as_ref(), |file| bytes_of(&file.cache, file.cache_len))
    }

    /// The bytes of a file as the medium has them, whether or not its name is durable.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn read_medium(&self, path: impl AsRef<Path>) -> Vec<u8> {
        self.machine.lock().with_file(path.as_ref(), |file| bytes_of(&file.medium, file.medium_len))
    }

    /// Changes the bytes of a file behind everybody's back, durably; the closure may change the length.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn damage(&self, path: impl AsRef<Path>, change: impl FnOnce(&mut Vec<u8>)) {
        self.machine.lock().with_file(path.as_ref(), |file| {
            let mut bytes = bytes_of(&file.cache, file.cache_len);
            change(&mut bytes);
            file.replace(&bytes);
        });
    }

    /// Flips one bit (0 to 7) of the byte at `offset`, in the cache and on the medium.
    ///
    /// # Panics
    /// If there is no such file or byte.
    pub fn corrupt(&self, path: impl AsRef<Path>, offset: u64, bit: u32) {
        self.machine.lock().with_file(path.as_ref(), |file| {
            assert!(offset < file.cache_len.max(file.medium_len), "no byte {offset} to flip");
            assert!(bit < 8, "no bit {bit} in a byte");
            for pages in [&mut file.cache, &mut file.medium] {
                let mut byte = [0];
                pages.read(offset, &mut byte);
                byte[0] ^= 1 << bit;
                pages.write(offset, &byte);
            }
        });
    }

    /// All regular files, as a process sees them, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let world = self.machine.lock();
        let mut paths: Vec<PathBuf> = world
            .paths()
            .into_iter()
            .filter(|(ino, _)| world.tree.file(*ino).is_ok())
            .map(|(_, path)| path)
            .collect();
        paths.sort();
        paths
    }
}
