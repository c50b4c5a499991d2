//! [`Journal`]: saving, and replacing a generation by the next one.
//!
//! ```text
//!   save ── file sound, short enough ──► append: one write, one sync
//!     └──── else ──► new generation: write snapshot + changes, sync, sync directory
//!                        └─► remove older, make the next spare, sync directory      (errors here wait)
//! ```

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use disk::{Disk, DiskError, Op, SyncSite};
use wal_format::{ENTRY_HEAD_BYTES, JournalHeader, JournalKind, QueueId};

use super::bodies::Bodies;
use super::error::JournalError;
use super::generation::{
    Live, NotMade, Spare, capacity_of, encode, make, make_spare, remove_dead, too_large,
};
use super::names::Generation;
use super::open::{Access, FILE_BYTES_MAX, Place, find};
use super::report::JournalReport;
use super::scan::INDEX_BYTES;
use super::{JournalOptions, sites};

/// A failed attempt to make a spare is repeated after this many saves.
const SPARE_RETRY_SAVES: u32 = 64;

/// The one writer of a journal. It holds one open file; making a new generation takes one more for a moment.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
    place: Place,
    options: JournalOptions,
    /// The file saves go to; `None` at first, and after a failed write or sync.
    live: Option<Live>,
    spare: Option<Spare>,
    /// What goes once a new generation is durable; the generation the state was read from among it.
    older: Vec<Generation>,
    /// The highest number in use.
    top: u64,
    saves_without_spare: u32,
    buffer: Vec<u8>,
}

impl Journal {
    /// Opens the journal `<prefix>-*` in the disk's root with default limits, for writing; the caller holds the
    /// queue's lock. Returns the bodies of the highest valid generation in order.
    ///
    /// Nothing is written but that leftovers are removed: the first save makes a new generation.
    ///
    /// # Errors
    /// [`JournalError`]: what cannot be read now is not passed over. Damage is no error; it is in the report.
    pub fn open(
        disk: Arc<dyn Disk>,
        prefix: &str,
        kind: JournalKind,
        queue: QueueId,
    ) -> Result<(Self, Bodies, JournalReport), JournalError> {
        Self::open_with(disk, Path::new(""), prefix, kind, queue, JournalOptions::default())
    }

    /// [`open`](Self::open) in a directory and with limits of your own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        disk: Arc<dyn Disk>,
        dir: &Path,
        prefix: &str,
        kind: JournalKind,
        queue: QueueId,
        options: JournalOptions,
    ) -> Result<(Self, Bodies, JournalReport), JournalError> {
        let file_bytes_max = options.file_bytes_max.min(FILE_BYTES_MAX);
        let options = JournalOptions { file_bytes_max, ..options };
        let place = place(dir, prefix, kind, queue);
        let found = find(&*disk, &place, Access::Own)?;
        let journal = Self {
            disk,
            place,
            options,
            live: None,
            spare: None,
            older: found.older,
            top: found.top,
            saves_without_spare: 0,
            buffer: Vec::new(),
        };
        Ok((journal, found.bodies, found.report))
    }

    /// Reads the journal beside a live owner, changing nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read_only(
        disk: &dyn Disk,
        prefix: &str,
        kind: JournalKind,
        queue: QueueId,
    ) -> Result<(Bodies, JournalReport), JournalError> {
        let place = place(Path::new(""), prefix, kind, queue);
        let found = find(disk, &place, Access::Look)?;
        Ok((found.bodies, found.report))
    }

    /// Whether [`append`](Self::append) would work: the file is sound and not too long.
    #[must_use]
    pub const fn can_append(&self) -> bool {
        self.live.is_some()
    }

    /// Whether the file is much longer than its snapshot.
    #[must_use]
    pub fn wants_compaction(&self) -> bool {
        self.live.as_ref().is_none_or(|live| live.end > live.compact_at)
    }

    /// Bytes in use of the file saves go to.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.end)
    }

    /// The generation saves go to, once there is one in this run.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.live.as_ref().map(|live| live.generation)
    }

    /// Makes `changes` durable, all or nothing: appended if possible; else, and when the file is much longer than its
    /// snapshot, in a new generation behind what `snapshot` writes, which is the state *before* the changes.
    ///
    /// The usual save is one write and one sync, and allocates nothing once the buffers have grown.
    ///
    /// # Errors
    /// [`JournalError`]. What was saved before is durable still; the changes may be found after a crash or not, until
    /// the next save succeeds, which makes a new generation. Whoever drops changes after an error must save before
    /// acting as if they never were.
    pub fn save(
        &mut self,
        changes: &Bodies,
        snapshot: impl FnOnce(&mut Bodies),
        site: SyncSite,
    ) -> Result<(), JournalError> {
        if changes.is_empty() && !self.wants_compaction() {
            return Ok(());
        }
        if !self.wants_compaction() {
            let result = self.append(changes, site);
            self.retry_spare();
            return result;
        }
        let mut all = Bodies::new();
        snapshot(&mut all);
        let snapshot_count = all.len();
        for body in changes.iter() {
            all.push(body);
        }
        match self.replace(&all, snapshot_count) {
            // The next generation could not even be begun; the present one is sound and may go on growing.
            Err(_) if self.can_append() && !changes.is_empty() => {
                if let Some(live) = &mut self.live {
                    live.compact_at = live.end + live.end / 4;
                }
                self.append(changes, site)
            }
            result => result,
        }
    }

    /// Appends bodies, all or nothing: one write, one sync.
    ///
    /// # Errors
    /// As [`save`](Self::save); [`JournalError::NeedsSnapshot`] before the first [`compact`](Self::compact) of this
    /// run and after a failed write or sync.
    pub fn append(&mut self, bodies: &Bodies, site: SyncSite) -> Result<(), JournalError> {
        if bodies.is_empty() {
            return Ok(());
        }
        let Some(mut live) = self.live.take() else {
            return Err(JournalError::NeedsSnapshot { prefix: self.place.prefix.clone() });
        };
        self.buffer.clear();
        let next = match encode(&live.header, live.next_number, bodies, &mut self.buffer, &self.place) {
            Ok(next) => next,
            Err(error) => {
                self.live = Some(live);
                return Err(error);
            }
        };
        let end = live.end + self.buffer.len() as u64;
        if end > self.options.file_bytes_max {
            self.live = Some(live);
            return Err(too_large(&self.place, end, self.options.file_bytes_max));
        }
        let written = live.file.write_all_at(&[IoSlice::new(&self.buffer)], live.end);
        if let Err(error) = written.and_then(|()| live.file.sync_data(site)) {
            // Poisoned: never written or synced again (I6), and kept until a new generation is durable.
            self.older.push(live.generation);
            return Err(error.into());
        }
        live.next_number = next;
        live.end = end;
        self.live = Some(live);
        Ok(())
    }

    /// Replaces the journal by a new generation that holds exactly `snapshot`.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn compact(&mut self, snapshot: &Bodies) -> Result<(), JournalError> {
        self.replace(snapshot, snapshot.len())
    }

    /// Writes a new generation, of which the first `snapshot_count` bodies are the snapshot.
    fn replace(&mut self, all: &Bodies, snapshot_count: usize) -> Result<(), JournalError> {
        let (generation, spare) = match self.spare.take() {
            Some(spare) => (spare.generation, Some(spare)),
            None => (self.next_generation()?, None),
        };
        let header = self.place.header(generation);
        let mut bytes = header.encode().to_vec();
        let encoded = encode(&header, 1, all, &mut bytes, &self.place);
        let next_number = match self.bounded(encoded, bytes.len()) {
            Ok(next_number) => next_number,
            Err(error) => {
                self.spare = spare;
                return Err(error);
            }
        };
        let end = bytes.len() as u64;
        let compact_at = self.compact_at(all, snapshot_count);
        let capacity = capacity_of(compact_at.max(end), self.options.file_bytes_max);
        let path = self.place.path(generation);
        match make(&*self.disk, &self.place.dir, &path, spare.is_some(), &bytes, capacity) {
            Ok(file) => {
                let before =
                    self.live.replace(Live { generation, header, file, next_number, end, compact_at });
                self.older.extend(before.map(|live| live.generation));
            }
            Err(NotMade::Begun(error)) => {
                // It might be found whole after a crash, so nothing may be appended to the older one any more.
                self.older.extend(self.live.take().map(|live| live.generation));
                self.discard(generation);
                return Err(error.into());
            }
            Err(NotMade::Untouched(error)) => {
                self.discard_unless_not_ours(generation, &error);
                return Err(error.into());
            }
        }
        self.clean_up(capacity);
        Ok(())
    }

    /// What is durable is durable: errors here wait for the next time.
    fn clean_up(&mut self, capacity: u64) {
        remove_dead(&*self.disk, &self.place, &mut self.older);
        self.try_spare(capacity);
        let _ = self.disk.sync_dir(&self.place.dir, sites::CLEANUP);
    }

    fn retry_spare(&mut self) {
        if self.spare.is_some() {
            return;
        }
        self.saves_without_spare += 1;
        if self.saves_without_spare < SPARE_RETRY_SAVES {
            return;
        }
        if let Some(capacity) = self.live.as_ref().map(|live| live.compact_at) {
            self.try_spare(capacity_of(capacity, self.options.file_bytes_max));
            let _ = self.disk.sync_dir(&self.place.dir, sites::CLEANUP);
        }
    }

    fn try_spare(&mut self, capacity: u64) {
        self.saves_without_spare = 0;
        let Ok(generation) = self.next_generation() else { return };
        match make_spare(&*self.disk, &self.place.path(generation), capacity) {
            Ok(()) => self.spare = Some(Spare { generation }),
            Err(error) => self.discard_unless_not_ours(generation, &error),
        }
    }

    /// A failed creation leaves nothing of ours; what bears the name then is somebody else's.
    fn discard_unless_not_ours(&mut self, generation: Generation, error: &DiskError) {
        if error.op() != Op::Create {
            self.discard(generation);
        }
    }

    /// Removes a file that never came to count, or remembers to.
    fn discard(&mut self, generation: Generation) {
        let mut dead = vec![generation];
        remove_dead(&*self.disk, &self.place, &mut dead);
        self.older.append(&mut dead);
    }

    /// A number no file bears.
    fn next_generation(&mut self) -> Result<Generation, JournalError> {
        let next = self.top.checked_add(1).filter(|&next| next != u64::MAX);
        self.top = next.ok_or_else(|| JournalError::NumbersUsedUp { prefix: self.place.prefix.clone() })?;
        Ok(Generation(self.top))
    }

    /// The length at which a generation with this snapshot is replaced.
    fn compact_at(&self, all: &Bodies, snapshot_count: usize) -> u64 {
        let entry_bytes = |body: &[u8]| (ENTRY_HEAD_BYTES + INDEX_BYTES + body.len()) as u64;
        let snapshot_bytes: u64 = all.iter().take(snapshot_count).map(entry_bytes).sum();
        let wanted = snapshot_bytes.saturating_mul(self.options.compact_ratio);
        wanted.max(self.options.compact_bytes_min).min(self.options.file_bytes_max / 4 * 3)
    }

    fn bounded(&self, encoded: Result<u64, JournalError>, bytes: usize) -> Result<u64, JournalError> {
        let (bytes, bytes_max) = (bytes as u64, self.options.file_bytes_max);
        match encoded {
            Ok(_) if bytes > bytes_max => Err(too_large(&self.place, bytes, bytes_max)),
            encoded => encoded,
        }
    }
}

fn place(dir: &Path, prefix: &str, kind: JournalKind, queue: QueueId) -> Place {
    let header = JournalHeader { kind, queue, generation: 0 };
    Place { dir: dir.to_owned(), prefix: prefix.to_owned(), header }
}
