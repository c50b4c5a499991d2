//! Records to a file, each exactly once however the program ends.
//!
//! The note saved with the cursor says which file, and how long it was when everything below the cursor was in it:
//! ```text
//!   run:    write at the end ──> ack with note (file, length) ──> cursor and note saved in one step
//!   kill:   the file is longer than the saved note says
//!   start:  cut back to the note ──> what was cut is delivered again
//! ```
//! The first note of a file is saved before its first byte is written: a kill in between leaves no doubt whose bytes it holds.
//!
//! Limits: output renamed or removed by somebody else while pq runs is followed by a new file, whose first bytes may be there twice if
//! pq is killed before its note is saved. After a power cut the output may be shorter than the note says, unless `sync = "each-turn"`.
//!
//! Descriptors: the file is open only while a delivery is written, so any number of file sinks live under any budget.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pq::{Delivery, FdBudget, SendOutcome, Sink};
use tokio::task::spawn_blocking;

use crate::config::{FileSync, Format};
use crate::format::encode;
use crate::run::report::Reporter;
use crate::source::place::FileId;

/// Which file, and its length when all that was acknowledged stood in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    id: FileId,
    length: u64,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 {:x} {:x} {:x} {}", self.id.dev, self.id.inode, self.id.born, self.length)
    }
}

impl Extent {
    /// Which file it is.
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// From a note; `None` if it is not one, or of a later version.
    fn parse(note: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(note).ok()?.split(' ');
        let mut next = |radix| u64::from_str_radix(words.next()?, radix).ok();
        if next(10)? != 1 {
            return None;
        }
        let id = FileId { dev: next(16)?, inode: next(16)?, born: next(16)? };
        let length = next(10)?;
        words.next().is_none().then_some(Self { id, length })
    }
}

/// How the queue was left by its last owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastStop {
    /// In order: notes are up to date, and what stands behind them is somebody else's.
    Clean,
    /// Killed: what stands behind a note is delivered again.
    Unclean,
}

/// A file made ready: where writing goes on, and what a person should know.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) extent: Extent,
    pub(crate) notice: Option<String>,
}

/// Makes the output ready: creates it and its folders if need be, cuts off what will be delivered again.
///
/// # Errors
/// The file cannot be created, opened or cut.
pub(crate) fn claim(path: &Path, note: &[u8], last_stop: LastStop, sync: FileSync) -> io::Result<Claimed> {
    let file = open_output(path, sync)?;
    let meta = file.metadata()?;
    let found = Extent { id: FileId::of(&meta), length: meta.len() };
    let shown = path.display();
    let Some(noted) = Extent::parse(note) else { return Ok(Claimed { extent: found, notice: None }) };
    if !noted.id.is_same(&found.id) {
        let notice = format!("{shown}: another file than the one written last; going on at its end");
        return Ok(Claimed { extent: found, notice: (found.length > 0).then_some(notice) });
    }
    if found.length > noted.length && last_stop == LastStop::Unclean {
        file.set_len(noted.length)?;
        return Ok(Claimed { extent: Extent { length: noted.length, ..found }, notice: None });
    }
    let notice = match found.length.cmp(&noted.length) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => Some(format!(
            "{shown}: {} bytes that were delivered are missing at its end",
            noted.length - found.length
        )),
        std::cmp::Ordering::Greater => {
            Some(format!("{shown}: {} bytes were added by somebody else; kept", found.length - noted.length))
        }
    };
    Ok(Claimed { extent: found, notice })
}

fn open_output(path: &Path, sync: FileSync) -> io::Result<File> {
    // Asked first: a pipe that nobody reads would block the open. What cannot be cut back to a length gets records twice or never.
    let other = fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
    if other {
        let reason = "is a device, pipe or socket, and a file sink needs a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    if sync == FileSync::EachTurn {
        // Without its entry in the folder a synced file can be gone after a power cut.
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(file)
}

/// Writes to one file.
#[derive(Debug)]
pub(crate) struct FileSink {
    pub(crate) path: PathBuf,
    /// Where writing goes on: what [`claim`] said.
    pub(crate) extent: Extent,
    pub(crate) stream: String,
    pub(crate) format: Format,
    pub(crate) sync: FileSync,
    pub(crate) fds: Arc<FdBudget>,
    pub(crate) reporter: Arc<Reporter>,
}

impl Sink for FileSink {
    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        let bytes = encode(self.format, &self.stream, delivery);
        let (path, extent, sync, fds) = (self.path.clone(), self.extent, self.sync, Arc::clone(&self.fds));
        let written = spawn_blocking(move || write(&path, extent, sync, &fds, &bytes)).await;
        match written {
            Ok(Ok((extent, notice))) => {
                self.extent = extent;
                if let Some(notice) = notice {
                    self.reporter.notice(notice);
                }
                SendOutcome::Delivered { note: Some(extent.to_string().into_bytes()) }
            }
            Ok(Err(error)) => SendOutcome::retry(format!("{}: {error}", self.path.display())),
            Err(error) => SendOutcome::retry(format!("{}: {error}", self.path.display())),
        }
    }
}

/// Writes at the end of the file; after an error the file is as long as before.
fn write(
    path: &Path,
    expected: Extent,
    sync: FileSync,
    fds: &Arc<FdBudget>,
    bytes: &[u8],
) -> io::Result<(Extent, Option<String>)> {
    let _permit = fds.acquire(NonZeroUsize::MIN);
    let file = open_output(path, sync)?;
    let meta = file.metadata()?;
    let found = Extent { id: FileId::of(&meta), length: meta.len() };
    let notice = (found != expected).then(|| {
        let what = if found.id == expected.id { "its length was changed" } else { "it was replaced" };
        format!("{}: {what} by somebody else; going on at its end", path.display())
    });
    let written = file.write_all_at(bytes, found.length).and_then(|()| match sync {
        FileSync::Never => Ok(()),
        FileSync::EachTurn => file.sync_data(),
    });
    if let Err(error) = written {
        // Half a delivery must not stay: it is delivered again, whole. Cutting also makes the next write use fresh blocks, which a
        // failed sync of these does not spoil.
        file.set_len(found.length)?;
        return Err(error);
    }
    Ok((Extent { length: found.length + bytes.len() as u64, ..found }, notice))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
