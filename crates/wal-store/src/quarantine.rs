//! Quarantine: a second name for a file that is not read as it is, until the user removes it.
//!
//! It is links and nothing else: a file's bytes stay where they are, and no file of ours ever leaves this directory again.
//!
//! ```text
//!   streams/0…07/0…02.seg ──link──> quarantine/0000000000000007-0000000000000002.damaged.seg
//!   cursors-0…09          ──link──> quarantine/cursors-0000000000000009.damaged
//!                                   quarantine/…-0000000000000002.damaged.2.seg     the name was taken by another file
//! ```
//!
//! Invariants: no name stands for two files; a file linked again under its name is linked once; a link is durable before
//! whoever asked for it removes or replaces the name it saves.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use disk::{Disk, DiskError, EntryKind, ErrorClass, SyncSite};
use wal_format::{SegmentId, StreamId};

use crate::segments::segment_id;

/// Where files are kept until the user removes them, relative to the disk's root.
pub const QUARANTINE_DIR: &str = "quarantine";

/// Syncs of the quarantine directory, and of the root when it was created.
const QUARANTINE_SITE: SyncSite = SyncSite::new("recover.quarantine");

/// Most files of one name, one behind the other; nobody gets here but by damaging one file again and again.
const COPIES_MAX: u32 = 10_000;

/// Why a file is in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuarantineReason {
    /// It is damaged and something is missing that stood in it; what can be read of it is read where it is.
    Damaged,
    /// It bears a segment's name and is another segment's, another stream's, or was renamed.
    Stranger,
    /// The original of a file that was mended.
    Mended,
}

impl QuarantineReason {
    const ALL: [Self; 3] = [Self::Damaged, Self::Stranger, Self::Mended];

    /// The word in the file's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Stranger => "stranger",
            Self::Mended => "mended",
        }
    }
}

impl std::fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Damaged => "damaged, and something is missing that stood in it",
            Self::Stranger => "bore the name of a segment it is not",
            Self::Mended => "the original of a file that was mended",
        })
    }
}

/// What a name in quarantine says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineName {
    /// `<stream>-<segment>`, or the name the file had.
    stem: String,
    /// `.seg` for a segment.
    suffix: &'static str,
    why: QuarantineReason,
}

impl QuarantineName {
    /// For a segment.
    pub fn segment(stream: StreamId, segment: SegmentId, why: QuarantineReason) -> Self {
        Self { stem: format!("{:016x}-{:016x}", stream.get(), segment.get()), suffix: ".seg", why }
    }

    /// For a file of the queue's own.
    pub fn file(name: &str, why: QuarantineReason) -> Self {
        Self { stem: name.to_owned(), suffix: "", why }
    }

    /// The path of the first file of this name.
    pub fn first_path(&self) -> PathBuf {
        self.path(1)
    }

    /// The path of the `copy`-th file, from 1.
    fn path(&self, copy: u32) -> PathBuf {
        let (stem, word, suffix) = (&self.stem, self.why.word(), self.suffix);
        let name = if copy == 1 {
            format!("{stem}.{word}{suffix}")
        } else {
            format!("{stem}.{word}.{copy}{suffix}")
        };
        Path::new(QUARANTINE_DIR).join(name)
    }
}

/// A file in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Its bare name.
    pub name: OsString,
    /// Its length in bytes.
    pub bytes: u64,
    /// Other names its bytes have: none means that removing it gives its bytes back.
    pub other_links_count: u64,
    /// Stream and segment, if it is a segment.
    pub segment: Option<(StreamId, SegmentId)>,
    /// Why it is here; `None`: its name does not say.
    pub why: Option<QuarantineReason>,
}

/// Gives a file a name in quarantine and says which; once the same file has one, that one. Durable after [`sync`].
///
/// # Errors
/// The disk; the file has no new name then.
pub fn link(disk: &dyn Disk, from: &Path, name: &QuarantineName) -> Result<PathBuf, DiskError> {
    match disk.create_dir(Path::new(QUARANTINE_DIR)) {
        Err(error) if error.class() != ErrorClass::Exists => return Err(error),
        _ => {}
    }
    let file = disk.stat(from)?.id;
    let mut copy = 1;
    loop {
        let path = name.path(copy);
        match disk.link(from, &path) {
            Ok(()) => return Ok(path),
            // By an earlier recovery; or it is another file, whose name it stays.
            Err(error) if error.class() == ErrorClass::Exists => {
                if disk.stat(&path)?.id == file {
                    return Ok(path);
                }
                copy += 1;
                if copy > COPIES_MAX {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Makes the links so far durable, and the directory they stand in.
///
/// # Errors
/// The disk; links may be gone after a power cut.
pub fn sync(disk: &dyn Disk) -> Result<(), DiskError> {
    disk.sync_dir(Path::new(""), QUARANTINE_SITE)?;
    disk.sync_dir(Path::new(QUARANTINE_DIR), QUARANTINE_SITE)
}

/// What is in quarantine, in the order of names; a file that goes meanwhile is passed over.
///
/// # Errors
/// The disk.
pub fn list(disk: &dyn Disk) -> Result<Vec<Quarantined>, DiskError> {
    let mut names = Vec::new();
    let listed = disk.list(Path::new(QUARANTINE_DIR), &mut |entry| {
        if entry.kind == EntryKind::File {
            names.push(entry.name.to_owned());
        }
        ControlFlow::Continue(())
    });
    match listed {
        Err(error) if error.class() == ErrorClass::NotFound => return Ok(Vec::new()),
        listed => listed?,
    }
    names.sort_unstable();
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        match disk.stat(&Path::new(QUARANTINE_DIR).join(&name)) {
            Ok(stat) => {
                let (segment, why) = (segment_of(&name), reason_of(&name));
                let other_links_count = stat.link_count.saturating_sub(1);
                files.push(Quarantined { name, bytes: stat.len, other_links_count, segment, why });
            }
            Err(error) if error.class() == ErrorClass::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// Bytes that only quarantine holds on the disk. A file that also stands among its stream's segments is not counted: those
/// bytes are the segment's.
///
/// # Errors
/// The disk.
pub fn quarantine_bytes(disk: &dyn Disk) -> Result<u64, DiskError> {
    let alone = |file: &Quarantined| if file.other_links_count == 0 { file.bytes } else { 0 };
    Ok(list(disk)?.iter().map(alone).fold(0, u64::saturating_add))
}

/// `<stream>-<segment>.…`
fn segment_of(name: &OsStr) -> Option<(StreamId, SegmentId)> {
    let name = name.to_str().filter(|name| name.ends_with(".seg"))?;
    let (stream, rest) = name.split_once('-')?;
    let (segment, _) = rest.split_once('.')?;
    // The same digits as in the name of a segment.
    let digits = |text: &str| segment_id(OsStr::new(&format!("{text}.seg"))).map(SegmentId::get);
    Some((StreamId::new(digits(stream)?), SegmentId::new(digits(segment)?)))
}

fn reason_of(name: &OsStr) -> Option<QuarantineReason> {
    let name = name.to_str()?;
    let mut words = name.split('.').skip(1);
    words.find_map(|word| QuarantineReason::ALL.into_iter().find(|why| why.word() == word))
}

#[cfg(test)]
#[path = "quarantine_tests.rs"]
mod tests;
