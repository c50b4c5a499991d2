//! What opening a journal found: a line a file.

use std::fmt;
use std::path::PathBuf;

use super::names::Generation;

/// What one file of a journal turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileOutcome {
    /// The highest valid generation: the state was read from it.
    Current,
    /// The state was read from it though its snapshot is damaged, because no other generation is valid.
    Salvaged,
    /// Valid, and superseded by a higher generation.
    Older,
    /// Zero bytes long: created, never written.
    Empty,
    /// All zeros: prepared for the next generation, never written.
    Prepared,
    /// Its first write is not whole: a crash came in between.
    Incomplete,
    /// Its header or its snapshot is damaged.
    Damaged,
    /// Sound, and of another queue or another kind of journal.
    Foreign,
    /// Sound, and its header names another generation than its name does.
    Misnamed,
    /// Written by a later version of this program.
    Version {
        /// The version it names.
        found: u16,
    },
    /// It could not be read; a higher generation was.
    Unreadable,
    /// Its name begins like a generation's and is none.
    Stray,
}

impl FileOutcome {
    /// Whether the file has no use any more once another generation is current.
    pub(super) const fn is_leftover(self) -> bool {
        matches!(self, Self::Older | Self::Empty | Self::Prepared | Self::Incomplete)
    }
}

impl fmt::Display for FileOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("current"),
            Self::Salvaged => f.write_str("damaged, what is sound was read"),
            Self::Older => f.write_str("superseded"),
            Self::Empty => f.write_str("empty"),
            Self::Prepared => f.write_str("prepared, never written"),
            Self::Incomplete => f.write_str("left incomplete by a crash"),
            Self::Damaged => f.write_str("damaged"),
            Self::Foreign => f.write_str("of another queue"),
            Self::Misnamed => f.write_str("names another generation than its name"),
            Self::Version { found } => write!(f, "of format version {found}, newer than this program"),
            Self::Unreadable => f.write_str("unreadable"),
            Self::Stray => f.write_str("not a generation's name"),
        }
    }
}

/// What was done with a file at open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Removal {
    /// It stays where it is.
    Kept,
    /// It was a leftover and is removed.
    Removed,
    /// It is a leftover and could not be removed now; a later compaction tries again.
    Failed,
}

/// One file of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReport {
    /// Its path.
    pub path: PathBuf,
    /// Its generation by its name; `None` for a stray name.
    pub generation: Option<Generation>,
    /// Its length, in bytes.
    pub bytes: u64,
    /// What it turned out to be.
    pub outcome: FileOutcome,
    /// What was done with it.
    pub removal: Removal,
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.outcome)?;
        match self.removal {
            Removal::Kept => Ok(()),
            Removal::Removed => f.write_str(", removed"),
            Removal::Failed => f.write_str(", could not be removed"),
        }
    }
}

/// What opening a journal found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalReport {
    /// The generation the state was read from, if any.
    pub generation: Option<Generation>,
    /// One line a file, highest generation first, then stray names.
    pub files: Vec<FileReport>,
    /// Sound entries of that generation.
    pub entry_count: u64,
    /// Entries in which one flipped bit was mended (the file's header counts as one).
    pub mended_count: u64,
    /// Entries proven to have been durable that are damaged beyond mending.
    pub lost_count: u64,
    /// Bytes of a torn write at the end, which never counted.
    pub torn_bytes: u64,
}

impl JournalReport {
    /// Whether anything was damaged, mended or not. A torn end and leftovers of a crash are no damage.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.mended_count != 0
            || self.lost_count != 0
            || self
                .files
                .iter()
                .any(|file| matches!(file.outcome, FileOutcome::Salvaged | FileOutcome::Damaged))
    }
}
