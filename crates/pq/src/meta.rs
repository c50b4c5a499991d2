//! `queue.meta`: the queue's id, in the header of the journal envelope. Written once, when the queue is created.
//!
//! ```text
//!   queue.meta.new  created, written, synced ──rename──> queue.meta ──directory sync──> a queue
//! ```
//!
//! If it is gone or damaged while a journal is there, the id is taken from that journal's header and the file is written again: one
//! lost file costs nothing.

use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use disk::{Disk, DiskError, EntryKind, ErrorClass, OpenMode, SyncSite};
use wal_format::{DecodeError, JOURNAL_HEADER_BYTES, JournalHeader, JournalKind, QueueId};

/// The file.
pub(crate) const META: &str = "queue.meta";
/// The file while it is written.
const META_NEW: &str = "queue.meta.new";
const META_WRITE: SyncSite = SyncSite::new("meta.write");
const META_DIR: SyncSite = SyncSite::new("meta.dir");

/// What the directory says about the queue's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// `queue.meta` is sound.
    Id(QueueId),
    /// `queue.meta` is gone or damaged; its one-bit neighbour or a journal names the id.
    Rebuilt(QueueId),
    /// Nothing of a queue is here.
    Nothing,
    /// Things of a queue are here, but nothing that names its id.
    Lost,
    /// Written by a later version.
    Version(PathBuf),
}

/// Looks, and changes nothing.
///
/// # Errors
/// The disk.
pub(crate) fn find(disk: &dyn Disk) -> Result<Found, DiskError> {
    match header_of(disk, Path::new(META), JournalKind::QUEUE)? {
        Header::Of(header) => return Ok(Found::Id(header.queue)),
        Header::Mended(header) => return Ok(Found::Rebuilt(header.queue)),
        Header::Version => return Ok(Found::Version(META.into())),
        Header::None | Header::Bad => {}
    }
    let mut names = Vec::new();
    let mut streams = false;
    disk.list(Path::new(""), &mut |entry| {
        let name = entry.name.to_string_lossy();
        streams |= name == "streams" && entry.kind == EntryKind::Dir;
        if entry.kind == EntryKind::File {
            names.push(name.into_owned());
        }
        ControlFlow::Continue(())
    })?;
    names.sort_unstable();
    let mut journals = false;
    for name in names.iter().rev() {
        let kind = match name {
            n if n.starts_with("catalog-") => JournalKind::CATALOG,
            n if n.starts_with("cursors-") => JournalKind::CURSORS,
            _ => continue,
        };
        journals = true;
        if let Header::Of(header) | Header::Mended(header) = header_of(disk, Path::new(name), kind)? {
            return Ok(Found::Rebuilt(header.queue));
        }
    }
    Ok(if journals || streams { Found::Lost } else { Found::Nothing })
}

enum Header {
    Of(JournalHeader),
    /// One bit of it is wrong.
    Mended(JournalHeader),
    None,
    Bad,
    Version,
}

fn header_of(disk: &dyn Disk, path: &Path, kind: JournalKind) -> Result<Header, DiskError> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(e) if matches!(e.class(), ErrorClass::NotFound | ErrorClass::WrongKind) => {
            return Ok(Header::None);
        }
        Err(e) => return Err(e),
    };
    let mut bytes = [0; JOURNAL_HEADER_BYTES];
    let read = file.read_at(&mut bytes, 0)?;
    let bytes = bytes.get(..read).unwrap_or_default();
    Ok(match JournalHeader::decode(bytes) {
        Ok(header) if header.kind == kind => Header::Of(header),
        Err(DecodeError::Version { .. } | DecodeError::Incompatible { .. }) => Header::Version,
        Err(_) => match JournalHeader::repair(bytes) {
            Some(header) if header.kind == kind => Header::Mended(header),
            _ => Header::Bad,
        },
        Ok(_) => Header::Bad,
    })
}

/// Makes `queue.meta` name this id, durably; a damaged one is replaced.
///
/// # Errors
/// The disk; the queue is not there then, or as it was.
pub(crate) fn write(disk: &dyn Disk, queue: QueueId) -> Result<(), DiskError> {
    for left in [META_NEW, META] {
        match disk.remove_file(Path::new(left)) {
            Err(e) if e.class() != ErrorClass::NotFound => return Err(e),
            _ => {}
        }
    }
    let header = JournalHeader { kind: JournalKind::QUEUE, queue, generation: 1 }.encode();
    let file = disk.create(Path::new(META_NEW))?;
    file.write_all_at(&[IoSlice::new(&header)], 0)?;
    file.sync_data(META_WRITE)?;
    drop(file);
    disk.rename(Path::new(META_NEW), Path::new(META))?;
    disk.sync_dir(Path::new(""), META_DIR)
}
