//! One file, twice: as the process sees it (cache) and as the platter has it (medium).
//!
//! ```text
//!   write ──> cache + dirty sectors ──sync──> medium
//!                    │  └─ sync fails ──> clean, but not on the medium: "lost"; re-writing it there does not help
//!                    └─ power cut ──> any subset of the dirty sectors, any of the unsynced lengths
//! ```
//!
//! Invariants: a sector that is neither dirty nor lost is the same in both; a *stuck* sector never reaches the medium
//! again until the file was cut below it (what ext4 does after a failed write-back of fresh space).

use std::collections::{BTreeMap, BTreeSet};

use crate::pages::{PAGE_BYTES, Pages, SECTOR_BYTES};

/// The point in the life of the disk at which something was changed.
pub(crate) type Order = u64;

#[derive(Clone, Debug, Default)]
pub(crate) struct FileNode {
    pub(crate) cache: Pages,
    pub(crate) cache_len: u64,
    pub(crate) medium: Pages,
    pub(crate) medium_len: u64,
    /// Lengths set since the last sync, oldest first.
    pub(crate) lengths: Vec<(Order, u64)>,
    /// Sectors written since they were last synced, with the time of their last write.
    pub(crate) dirty: BTreeMap<u64, Order>,
    /// Clean sectors whose bytes the medium lacks.
    pub(crate) lost: BTreeSet<u64>,
    /// Sectors that writing again does not bring to the medium.
    pub(crate) stuck: BTreeSet<u64>,
    /// Pages in the page cache.
    pub(crate) resident: BTreeSet<u64>,
    /// Names in directories, as the process sees them.
    pub(crate) link_count: u64,
    pub(crate) handle_count: u64,
}

/// What one sync covers: the state at the time of the call.
#[derive(Debug)]
pub(crate) struct SyncSet {
    order: Order,
    len: u64,
    bytes: Pages,
    sectors: Vec<u64>,
}

impl FileNode {
    pub(crate) fn read(&mut self, buf: &mut [u8], offset: u64) -> usize {
        let available = self.cache_len.saturating_sub(offset);
        let n = buf.len().min(usize::try_from(available).unwrap_or(usize::MAX));
        let Some(target) = buf.get_mut(..n).filter(|target| !target.is_empty()) else { return 0 };
        self.cache.read(offset, target);
        self.resident.extend(offset / PAGE_BYTES..(offset + n as u64).div_ceil(PAGE_BYTES));
        n
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64, order: Order) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len() as u64;
        self.cache.write(offset, bytes);
        for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            self.touch(sector, order);
        }
        self.resident.extend(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
        if end > self.cache_len {
            self.cache_len = end;
            self.lengths.push((order, end));
        }
    }

    pub(crate) fn set_len(&mut self, len: u64, order: Order) {
        if len < self.cache_len {
            self.cut(len, order);
        }
        if len != self.cache_len {
            self.cache_len = len;
            self.lengths.push((order, len));
        }
    }

    /// Space for the range, and at least its length.
    pub(crate) fn allocate(&mut self, start: u64, end: u64, order: Order) {
        for page in start / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            self.cache.reserve_page(page);
        }
        if end > self.cache_len {
            self.set_len(end, order);
        }
    }

    pub(crate) fn sync_set(&self, order: Order) -> SyncSet {
        let sectors: Vec<u64> = self.dirty.keys().copied().collect();
        let bytes = self.cache.some_pages(sectors.iter().map(|sector| sector * SECTOR_BYTES / PAGE_BYTES));
        SyncSet { order, len: self.cache_len, bytes, sectors }
    }

    /// What was written before the sync is durable now, but for stuck sectors, silently.
    pub(crate) fn synced(&mut self, set: &SyncSet) {
        for &sector in &set.sectors {
            self.reach_medium(sector, &set.bytes);
            self.clean(sector, set.order);
        }
        self.medium_len = set.len;
        self.lengths.retain(|(order, _)| *order > set.order);
    }

    /// The write-back failed: `survives` says which sectors made it; all are clean now, and nobody will hear of it
    /// again.
    pub(crate) fn sync_failed(&mut self, set: &SyncSet, mut survives: impl FnMut(u64) -> bool) {
        for &sector in &set.sectors {
            if survives(sector) {
                self.reach_medium(sector, &set.bytes);
            } else {
                self.lost.insert(sector);
                self.stuck.insert(sector);
            }
            self.clean(sector, set.order);
        }
    }

    /// Drops clean pages that lie wholly in the range, or behind it only the file's end.
    pub(crate) fn drop_cache(&mut self, start: u64, end: u64) {
        let last = if end >= self.cache_len { u64::MAX } else { end / PAGE_BYTES };
        let pages: Vec<u64> = self.resident.range(start.div_ceil(PAGE_BYTES)..last).copied().collect();
        for page in pages {
            let sectors = page * (PAGE_BYTES / SECTOR_BYTES)..(page + 1) * (PAGE_BYTES / SECTOR_BYTES);
            if self.dirty.range(sectors.clone()).next().is_some() {
                continue;
            }
            let lost: Vec<u64> = self.lost.range(sectors).copied().collect();
            for sector in lost {
                self.cache.copy_sector(&self.medium, sector);
                self.lost.remove(&sector);
            }
            self.resident.remove(&page);
        }
    }

    pub(crate) fn is_cached(&self, start: u64, end: u64) -> bool {
        let end = end.min(self.cache_len);
        start < end && self.resident.range(start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).next().is_some()
    }

    /// One unsynced sector reaches the medium now; it stays dirty.
    pub(crate) fn write_back(&mut self, sector: u64) {
        if !self.stuck.contains(&sector) {
            self.medium.copy_sector(&self.cache, sector);
        }
    }

    /// One unsynced length reaches the medium now, and with it all older ones.
    pub(crate) fn write_back_len(&mut self, order: Order, len: u64) {
        self.medium_len = len;
        self.lengths.retain(|(of, _)| *of > order);
    }

    /// The power is back: what the medium has is all there is.
    pub(crate) fn restart(&mut self) {
        self.medium.cut(self.medium_len);
        self.cache = self.medium.clone();
        self.cache_len = self.medium_len;
        self.lengths.clear();
        self.dirty.clear();
        self.lost.clear();
        self.stuck.clear();
        self.resident.clear();
        self.handle_count = 0;
    }

    /// Replaces all bytes, durably, as if they had always been so.
    pub(crate) fn replace(&mut self, bytes: &[u8]) {
        self.medium = Pages::default();
        self.medium.write(0, bytes);
        self.medium_len = bytes.len() as u64;
        let handle_count = self.handle_count;
        self.restart();
        self.handle_count = handle_count;
    }

    fn touch(&mut self, sector: u64, order: Order) {
        self.dirty.insert(sector, order);
        self.lost.remove(&sector);
    }

    fn reach_medium(&mut self, sector: u64, bytes: &Pages) {
        if !self.stuck.contains(&sector) {
            self.medium.copy_sector(bytes, sector);
        }
    }

    fn clean(&mut self, sector: u64, order: Order) {
        if self.dirty.get(&sector).is_some_and(|written| *written <= order) {
            self.dirty.remove(&sector);
            if self.stuck.contains(&sector) {
                self.lost.insert(sector);
            }
        }
    }

    fn cut(&mut self, len: u64, order: Order) {
        let first_free = len.div_ceil(SECTOR_BYTES);
        self.cache.cut(len);
        self.dirty.split_off(&first_free);
        self.lost.split_off(&first_free);
        self.stuck.split_off(&first_free);
        self.resident.split_off(&len.div_ceil(PAGE_BYTES));
        if !len.is_multiple_of(SECTOR_BYTES) {
            self.touch(len / SECTOR_BYTES, order);
        }
        // What the medium still has up there is zeros once this is synced.
        for page in self.medium.pages_from(len) {
            let sectors = page * (PAGE_BYTES / SECTOR_BYTES)..(page + 1) * (PAGE_BYTES / SECTOR_BYTES);
            for sector in sectors.filter(|sector| *sector >= first_free) {
                self.touch(sector, order);
            }
        }
    }
}
