//! A disk in memory with a power switch and fault plans, for tests.

use disk::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// A simulated disk, seen by one process; clones are the same process.
#[derive(Clone, Debug)]
pub struct SimDisk;

/// Which of the unsynced things survive a power cut.
#[derive(Clone, Debug)]
pub enum Survival {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// A subset by a seed.
    Seed(u64),
    /// The first `n`, in the order they were made.
    Prefix(usize),
    /// All but the one at this index.
    AllBut(usize),
    /// The ones whose bit is set; missing bits are lost.
    Mask(Vec<bool>),
}

/// What a fault waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// Any call.
    Any,
    /// A call of this kind.
    Op(Op),
    /// A sync at this site.
    Site(SyncSite),
}

/// One planned fault.
#[derive(Clone, Debug)]
pub struct Fault;
#[expect(clippy::todo, missing_docs, unused_variables, reason = "stub")]
impl Fault {
    /// The k-th matching call from now (from 1) fails once with this errno.
    pub fn once(on: On, k: u64, errno: i32) -> Self {
        todo!()
    }
    /// From the k-th matching call on, each fails.
    pub fn forever(on: On, k: u64, errno: i32) -> Self {
        todo!()
    }
}

/// A closed gate: syncs stop at it until it is released or dropped.
#[derive(Debug)]
pub struct Gate;
#[expect(clippy::todo, missing_docs, reason = "stub")]
impl Gate {
    /// Blocks until at least n syncs stand at the gate.
    pub fn wait_arrived(&self, n: usize) {
        todo!("{n}")
    }
    pub fn release(self) {
        todo!()
    }
}

/// A copy of the whole state.
#[derive(Clone, Debug)]
pub struct Snapshot;

#[expect(clippy::todo, missing_docs, unused_variables, reason = "stub")]
impl SimDisk {
    pub fn new() -> Self {
        todo!()
    }
    /// The power goes: returns the disk as the next process finds it. Handles of the old one fail from now on.
    pub fn power_cut(&self, survival: &Survival) -> SimDisk {
        todo!()
    }
    /// SIGKILL: the cache survives.
    pub fn kill(&self) -> SimDisk {
        todo!()
    }
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
    pub fn from_snapshot(snapshot: &Snapshot) -> SimDisk {
        todo!()
    }
    pub fn plan(&self, fault: Fault) {
        todo!()
    }
    pub fn clear_faults(&self) {
        todo!()
    }
    /// Syncs at this site return Ok and do nothing, from now on.
    pub fn ignore_site(&self, site: SyncSite) {
        todo!()
    }
    pub fn hold(&self, on: On) -> Gate {
        todo!()
    }
    pub fn count(&self, op: Op) -> u64 {
        todo!()
    }
    pub fn count_at(&self, site: SyncSite) -> u64 {
        todo!()
    }
    pub fn call_count(&self) -> u64 {
        todo!()
    }
    pub fn trace_hash(&self) -> u64 {
        todo!()
    }
    pub fn open_files(&self) -> usize {
        todo!()
    }
    pub fn open_files_peak(&self) -> usize {
        todo!()
    }
    /// Flips one bit, in the cache and on the medium.
    pub fn corrupt(&self, path: &Path, offset: u64, bit: u8) {
        todo!()
    }
    /// The whole content as a process sees it.
    pub fn read(&self, path: &Path) -> Vec<u8> {
        todo!()
    }
}
#[expect(clippy::todo, unused_variables, reason = "stub")]
impl Disk for SimDisk {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError> {
        todo!()
    }
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError> {
        todo!()
    }
    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError> {
        todo!()
    }
    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError> {
        todo!()
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        todo!()
    }
    fn space(&self) -> Result<Space, DiskError> {
        todo!()
    }
    fn stat(&self, path: &Path) -> Result<FileStat, DiskError> {
        todo!()
    }
    fn file_system(&self) -> Result<FileSystem, DiskError> {
        todo!()
    }
}
