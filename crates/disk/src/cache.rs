//! Idle open files that may be closed at any time, so that a reader's next turn on the same file opens nothing.
//!
//! Only *clean* files belong here: nothing unsynced was written through them. One cache serves one [`Disk`]: its keys
//! are that disk's paths.
//!
//! ```text
//!   check_out / open ──> Held (file + permit) ──> check_in ──> idle, oldest first ──> evicted on shortage
//! ```
//!
//! Invariants: every idle file holds its permit; an idle file never makes anybody wait: whoever waits for a permit
//! closes idle files first, and whoever checks a file in while somebody waits closes it.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Weak};

use crate::budget::Evict;
use crate::sync::{self, Mutex};
use crate::{Disk, DiskError, ErrorClass, FdBudget, File, OpenMode, Permit};

/// Idle open files of one disk.
#[derive(Debug)]
pub struct FileCache {
    budget: Arc<FdBudget>,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    next_age: u64,
    by_age: BTreeMap<u64, Arc<Path>>,
    by_path: HashMap<Arc<Path>, Vec<(u64, Held)>>,
    evicted_count: u64,
}

/// An open file and its permit. Derefs to the file.
///
/// The descriptor counts as long as the permit lives: do not keep the file beyond it.
#[derive(Debug)]
pub struct Held {
    // Dropped in this order: closed before the permit is given back.
    file: Arc<dyn File>,
    _permit: Permit,
    mode: OpenMode,
}

impl Held {
    /// Joins a file and the permit under which it was opened.
    #[must_use]
    pub fn new(file: Arc<dyn File>, permit: Permit, mode: OpenMode) -> Self {
        Self { file, _permit: permit, mode }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &dyn File {
        &*self.file
    }
}

impl Deref for Held {
    type Target = dyn File;

    fn deref(&self) -> &Self::Target {
        &*self.file
    }
}

impl FileCache {
    /// A cache whose idle files hold permits of `budget` and are closed when the budget runs short.
    #[must_use]
    pub fn new(budget: Arc<FdBudget>) -> Arc<Self> {
        let cache = Arc::new(Self { budget, idle: Mutex::default() });
        let evictor: Arc<dyn Evict> = cache.clone();
        let weak: Weak<dyn Evict> = Arc::downgrade(&evictor);
        cache.budget.register(weak);
        cache
    }

    /// The budget behind it.
    #[must_use]
    pub fn budget(&self) -> &Arc<FdBudget> {
        &self.budget
    }

    /// An idle file of that path that was opened at least for `mode`, if there is one.
    #[must_use]
    pub fn check_out(&self, path: &Path, mode: OpenMode) -> Option<Held> {
        sync::lock(&self.idle).take(path, mode)
    }

    /// An idle file, or takes a permit (waiting if it must) and opens it.
    ///
    /// # Errors
    /// Those of [`Disk::open`]. If the process is out of descriptors, idle files are closed and it tries again.
    pub fn open(&self, disk: &dyn Disk, path: &Path, mode: OpenMode) -> Result<Held, DiskError> {
        if let Some(held) = self.check_out(path, mode) {
            return Ok(held);
        }
        let permit = self.budget.acquire(NonZeroUsize::MIN);
        loop {
            match disk.open(path, mode) {
                Ok(file) => return Ok(Held::new(file, permit, mode)),
                // Others in this process hold more descriptors than the budget knows of.
                Err(error) if error.class() == ErrorClass::RetryLater => {
                    self.evict_oldest().ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a clean file back; it is closed at once if somebody waits for a permit.
    pub fn check_in(&self, path: &Path, held: Held) {
        sync::lock(&self.idle).put(path, held);
        // In the cache first, waiters second: see `FdBudget::acquire`.
        while self.budget.waiting() > 0 && self.evict_oldest().is_some() {}
    }

    /// Closes the idle files of a path: before it is unlinked or renamed, or when it was found damaged.
    pub fn remove(&self, path: &Path) {
        let closed = sync::lock(&self.idle).remove(path);
        drop(closed);
    }

    /// Closes all idle files.
    pub fn clear(&self) {
        while self.evict_oldest().is_some() {}
    }

    /// How many files are idle.
    #[must_use]
    pub fn idle_count(&self) -> usize {
        sync::lock(&self.idle).by_age.len()
    }

    /// How many idle files were closed because of a shortage.
    #[must_use]
    pub fn evicted_count(&self) -> u64 {
        sync::lock(&self.idle).evicted_count
    }
}

impl Evict for FileCache {
    fn evict_oldest(&self) -> Option<()> {
        let evicted = sync::lock(&self.idle).pop_oldest();
        // Closed here, outside the lock.
        evicted.map(drop)
    }
}

impl Idle {
    fn put(&mut self, path: &Path, held: Held) {
        let age = self.next_age;
        self.next_age += 1;
        let key = match self.by_path.get_key_value(path) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(path),
        };
        self.by_age.insert(age, Arc::clone(&key));
        self.by_path.entry(key).or_default().push((age, held));
    }

    fn take(&mut self, path: &Path, mode: OpenMode) -> Option<Held> {
        let files = self.by_path.get_mut(path)?;
        let fits = |held: &Held| held.mode == OpenMode::ReadWrite || mode == OpenMode::Read;
        let index = files.iter().rposition(|(_, held)| fits(held))?;
        let (age, held) = files.remove(index);
        self.by_age.remove(&age);
        if files.is_empty() {
            self.by_path.remove(path);
        }
        Some(held)
    }

    fn pop_oldest(&mut self) -> Option<Held> {
        let (age, path) = self.by_age.pop_first()?;
        let files = self.by_path.get_mut(&path)?;
        let index = files.iter().position(|(of, _)| *of == age)?;
        let (_, held) = files.remove(index);
        if files.is_empty() {
            self.by_path.remove(&path);
        }
        self.evicted_count += 1;
        Some(held)
    }

    fn remove(&mut self, path: &Path) -> Vec<(u64, Held)> {
        let files = self.by_path.remove(path).unwrap_or_default();
        for (age, _) in &files {
            self.by_age.remove(age);
        }
        files
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
