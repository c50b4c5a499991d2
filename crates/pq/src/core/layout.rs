//! Where things stand in the queue's directory, and what is done to directories: made durable, listed, removed.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use disk::{DirEntry, Disk, DiskError, EntryKind, ErrorClass, FileCache, SyncSite};
use wal_format::StreamId;
use wal_store::QUARANTINE_DIR;

use crate::catalog::Catalog;
use crate::repair::REPAIR_NEW;
use crate::{StreamError, meta};

use super::Ledger;
use super::reserve::RESERVE;

/// The directory of all streams' directories.
pub(crate) const STREAMS: &str = "streams";
/// The lock; that the file exists means nothing.
pub(crate) const LOCK: &str = "LOCK";
/// Syncs of the directory of streams.
pub(super) const STREAMS_DIR: SyncSite = SyncSite::new("streams.dir");
/// Syncs of the queue's directory.
pub(super) const QUEUE_DIR: SyncSite = SyncSite::new("queue.dir");

/// Most names of strays that are kept: there may be any number of them.
const STRAYS_MAX: usize = 100;

/// What is in the directories and is not the queue's.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    /// By path, in order; the first hundred that were met.
    pub(crate) names: Vec<String>,
    /// How many there are beside those.
    pub(crate) more_count: u64,
    /// Ids in `streams` that the catalog does not know, whatever bears them.
    pub(crate) ids: Vec<StreamId>,
    /// Those that directories bear.
    pub(crate) orphans: Vec<StreamId>,
}

impl Strays {
    fn add(&mut self, name: String) {
        if self.names.len() < STRAYS_MAX {
            self.names.push(name);
        } else {
            self.more_count += 1;
        }
    }

    /// That there are more than are listed, in words.
    pub(crate) fn more(&self) -> Option<String> {
        (self.more_count > 0).then(|| format!("{} more names are not the queue's", self.more_count))
    }
}

/// What is in the directories and is not the queue's: listed, never adopted, never touched.
pub(crate) fn strays(disk: &dyn Disk, catalog: &Catalog) -> Result<Strays, DiskError> {
    let mut found = Strays::default();
    let ours = |name: &str| {
        [LOCK, meta::META, STREAMS, QUARANTINE_DIR, RESERVE, REPAIR_NEW].contains(&name)
            || ["catalog-", "cursors-", "LOCK"].iter().any(|prefix| name.starts_with(prefix))
    };
    disk.list(Path::new(""), &mut |entry: DirEntry<'_>| {
        if !entry.name.to_str().is_some_and(ours) {
            found.add(entry.name.to_string_lossy().into_owned());
        }
        ControlFlow::Continue(())
    })?;
    let listed = disk.list(Path::new(STREAMS), &mut |entry: DirEntry<'_>| {
        let (id, is_dir) = (stream_id(entry.name), entry.kind == EntryKind::Dir);
        if !(is_dir && id.is_some_and(|id| catalog.knows(id))) {
            found.add(format!("{STREAMS}/{}", entry.name.to_string_lossy()));
            found.ids.extend(id);
            found.orphans.extend(id.filter(|_| is_dir));
        }
        ControlFlow::Continue(())
    });
    match listed {
        // Looked at before the first open made it.
        Err(error) if error.class() == ErrorClass::NotFound => {}
        listed => listed?,
    }
    found.names.sort_unstable();
    found.orphans.sort_unstable();
    Ok(found)
}

/// Unlinks what is left of a deleted stream, forgets its cursors, forgets it.
pub(super) fn finish_delete(
    disk: &dyn Disk,
    files: &FileCache,
    ledger: &mut Ledger,
    id: StreamId,
) -> Result<(), StreamError> {
    let dir = stream_dir(id);
    let mut names: Vec<PathBuf> = Vec::new();
    let listed = disk.list(&dir, &mut |entry: DirEntry<'_>| {
        names.push(dir.join(entry.name));
        ControlFlow::Continue(())
    });
    match listed {
        Err(error) if error.class() == ErrorClass::NotFound => {}
        Err(error) => return Err(error.into()),
        Ok(()) => {
            for path in &names {
                files.remove(path);
                disk.remove_file(path)?;
            }
            disk.remove_dir(&dir)?;
            disk.sync_dir(Path::new(STREAMS), STREAMS_DIR)?;
        }
    }
    ledger.offsets.forget_stream(id).map_err(|e| StreamError::cursors(&e))?;
    ledger.catalog.forget(id)?;
    Ok(())
}

/// A stream's directory. Made of its id alone: names never become paths.
pub(crate) fn stream_dir(id: StreamId) -> PathBuf {
    Path::new(STREAMS).join(format!("{:016x}", id.get()))
}

/// The id a directory's name stands for.
fn stream_id(name: &OsStr) -> Option<StreamId> {
    let name = name.to_str()?;
    let id = StreamId::new(u64::from_str_radix(name, 16).ok()?);
    (stream_dir(id).file_name() == Some(OsStr::new(name))).then_some(id)
}

/// Makes sure that a directory exists, durably. One that is there already is believed to be durable: opening syncs its parent first, and
/// one whose sync fails is removed. Where even that may have failed, the caller syncs the parent first.
pub(crate) fn ensure_dir(disk: &dyn Disk, dir: &Path, site: SyncSite) -> Result<(), DiskError> {
    match disk.create_dir(dir) {
        Err(error) if error.class() == ErrorClass::Exists => return Ok(()),
        Err(error) => return Err(error),
        Ok(()) => {}
    }
    disk.sync_dir(dir.parent().unwrap_or(Path::new("")), site).inspect_err(|_| {
        let _ = disk.remove_dir(dir);
    })
}
