//! Where things stand in the queue's directory, and what is done to directories: made durable, listed, removed.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use disk::{DirEntry, Disk, DiskError, EntryKind, ErrorClass, FileCache, SyncSite};
use wal_format::StreamId;
use wal_store::QUARANTINE_DIR;

use crate::{OpenError, OpenReport, StreamError, meta};

use super::Ledger;
use super::reserve::RESERVE;

/// The directory of all streams' directories.
pub(super) const STREAMS: &str = "streams";
/// The lock; that the file exists means nothing.
pub(super) const LOCK: &str = "LOCK";
/// Syncs of the directory of streams.
pub(super) const STREAMS_DIR: SyncSite = SyncSite::new("streams.dir");
/// Syncs of the queue's directory.
pub(super) const QUEUE_DIR: SyncSite = SyncSite::new("queue.dir");

/// Most names of strays that are kept: there may be any number of them.
const STRAYS_MAX: usize = 100;

/// What is in the directories and is not the queue's: listed, never adopted, never touched.
pub(super) fn strays(disk: &dyn Disk, ledger: &mut Ledger, report: &mut OpenReport) -> Result<(), OpenError> {
    let mut more_count: u64 = 0;
    let mut unknown = Vec::new();
    let mut stray = |name: String, report: &mut OpenReport| {
        if report.strays.len() < STRAYS_MAX {
            report.strays.push(name);
        } else {
            more_count += 1;
        }
    };
    let ours = |name: &str| {
        [LOCK, meta::META, STREAMS, QUARANTINE_DIR, RESERVE].contains(&name)
            || ["catalog-", "cursors-", "LOCK"].iter().any(|prefix| name.starts_with(prefix))
    };
    disk.list(Path::new(""), &mut |entry: DirEntry<'_>| {
        if !entry.name.to_str().is_some_and(ours) {
            stray(entry.name.to_string_lossy().into_owned(), report);
        }
        ControlFlow::Continue(())
    })?;
    disk.list(Path::new(STREAMS), &mut |entry: DirEntry<'_>| {
        let id = stream_id(entry.name);
        let known = entry.kind == EntryKind::Dir && id.is_some_and(|id| ledger.catalog.knows(id));
        if !known {
            unknown.extend(id);
            stray(format!("{STREAMS}/{}", entry.name.to_string_lossy()), report);
        }
        ControlFlow::Continue(())
    })?;
    if more_count > 0 {
        report.notes.push(format!("{more_count} more names are not the queue's"));
    }
    report.strays.sort_unstable();
    // Their entries are lost, perhaps: their ids are not given to others, who would find them in their place.
    ledger.catalog.spend(unknown.into_iter().chain(ledger.offsets.streams()));
    Ok(())
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

/// Makes sure that a directory exists, durably. One that is there already is durable: opening syncs its parent first, and one whose
/// sync fails is removed.
pub(super) fn ensure_dir(disk: &dyn Disk, dir: &Path, site: SyncSite) -> Result<(), DiskError> {
    match disk.create_dir(dir) {
        Err(error) if error.class() == ErrorClass::Exists => return Ok(()),
        Err(error) => return Err(error),
        Ok(()) => {}
    }
    disk.sync_dir(dir.parent().unwrap_or(Path::new("")), site).inspect_err(|_| {
        let _ = disk.remove_dir(dir);
    })
}
