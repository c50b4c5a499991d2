//! What a queue takes on the disk besides its streams' segments: journals with the space they took ahead, the reserve, quarantine.
//!
//! Looked up only where there is a limit it counts against: at open, whenever a journal begins a new file, and while the queue is full
//! (somebody may have emptied quarantine).

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use disk::{DirEntry, Disk, DiskError, EntryKind, ErrorClass};
use offsets::journal::Generation;
use wal_store::quarantine_bytes;

use crate::clock::locked;
use crate::meta::META;

use super::reserve::RESERVE;
use super::{Core, Ledger};

/// The journals' files when it was looked up last.
#[derive(Debug, Default)]
pub(super) struct Usage(Mutex<Option<Files>>);

type Files = (Option<Generation>, Option<Generation>);

impl Core {
    /// Looks up what counts besides the segments, if it may have changed.
    pub(super) fn count_other(&self, ledger: &Ledger) {
        let space = self.room.space();
        if self.options.bytes_max.is_none() {
            return;
        }
        let files = (ledger.offsets.generation(), ledger.catalog.generation());
        let mut known = locked(&self.usage.0);
        if *known == Some(files) && !space.is_short() {
            return;
        }
        // What cannot be looked up now is looked up with the next tick.
        if let Ok(bytes) = other_bytes(&*self.disk) {
            space.set_other(bytes);
            *known = Some(files);
        }
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
