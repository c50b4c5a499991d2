//! What a queue takes on the disk besides the segments of the streams that run: journals with the space they took ahead, the reserve,
//! quarantine, and the files of streams that could not be recovered.
//!
//! Looked up only where there is a limit it counts against: at open, whenever a journal begins a new file or other streams are paused, and
//! while the queue is full (somebody may have emptied quarantine).

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use disk::{DirEntry, Disk, DiskError, EntryKind, ErrorClass};
use offsets::journal::Generation;
use wal_format::StreamId;
use wal_store::{quarantine_bytes, segment_id};

use crate::clock::locked;
use crate::meta::META;

use super::layout::stream_dir;
use super::reserve::RESERVE;
use super::{Core, Ledger};

/// Whose files there were when it was looked up last; `None`: not all of them could be.
#[derive(Debug, Default)]
pub(super) struct Usage(Mutex<Option<Owners>>);

#[derive(Debug, PartialEq, Eq)]
struct Owners {
    offsets: Option<Generation>,
    catalog: Option<Generation>,
    paused: Vec<StreamId>,
}

impl Core {
    /// Looks up what counts besides the segments, if it may have changed.
    pub(super) fn count_other(&self, ledger: &Ledger) {
        let space = self.room.space();
        if self.options.bytes_max.is_none() {
            return;
        }
        let owners = Owners {
            offsets: ledger.offsets.generation(),
            catalog: ledger.catalog.generation(),
            paused: self.streams().paused.values().map(|paused| paused.id).collect(),
        };
        let mut known = locked(&self.usage.0);
        if known.as_ref() == Some(&owners) && !space.is_short() {
            return;
        }
        // What cannot be looked up now is looked up with the next tick.
        let Ok(mut bytes) = other_bytes(&*self.disk) else { return };
        let mut is_all = true;
        for stream in &owners.paused {
            match segment_bytes(&*self.disk, *stream) {
                Ok(more) => bytes = bytes.saturating_add(more),
                Err(_) => is_all = false,
            }
        }
        space.set_other(bytes);
        *known = is_all.then_some(owners);
    }
}

/// Bytes of a stream's segments, whatever is in them.
fn segment_bytes(disk: &dyn Disk, stream: StreamId) -> Result<u64, DiskError> {
    match files_bytes(disk, &stream_dir(stream), &|name| segment_id(name.as_ref()).is_some()) {
        Err(error) if error.class() == ErrorClass::NotFound => Ok(0),
        counted => counted,
    }
}

/// Bytes of the queue's own files beside the streams, and of those in quarantine. What else lies there is not the queue's.
pub(crate) fn other_bytes(disk: &dyn Disk) -> Result<u64, DiskError> {
    let own = |name: &str| {
        [META, RESERVE].contains(&name)
            || ["catalog-", "cursors-"].iter().any(|prefix| name.starts_with(prefix))
    };
    Ok(files_bytes(disk, Path::new(""), &own)?.saturating_add(quarantine_bytes(disk)?))
}

fn files_bytes(disk: &dyn Disk, dir: &Path, counts: &dyn Fn(&str) -> bool) -> Result<u64, DiskError> {
    let mut paths = Vec::new();
    disk.list(dir, &mut |entry: DirEntry<'_>| {
        if entry.kind == EntryKind::File && entry.name.to_str().is_some_and(counts) {
            paths.push(dir.join(entry.name));
        }
        ControlFlow::Continue(())
    })?;
    let mut bytes: u64 = 0;
    for path in &paths {
        match disk.stat(path) {
            Ok(stat) => bytes = bytes.saturating_add(stat.len),
            // Gone between the two calls.
            Err(error) if error.class() == ErrorClass::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
