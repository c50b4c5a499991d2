//! [`JournalError`].

use std::path::PathBuf;

use disk::DiskError;

/// Why a journal could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The disk refused. After a failed save the bytes may or may not be found after a crash, until the next save
    /// succeeds.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// No generation this version can read is there, and one of a later version is. Nothing was changed.
    #[error("{}: format version {version} is newer than this program; open it with a newer one", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it names.
        version: u16,
    },
    /// [`append`](crate::journal::Journal::append) cannot go on in this file: use
    /// [`compact`](crate::journal::Journal::compact) or [`save`](crate::journal::Journal::save). Nothing was written.
    #[error("journal {prefix}: a new generation with a full snapshot is needed first")]
    NeedsSnapshot {
        /// The journal's prefix.
        prefix: String,
    },
    /// A body, or all of them with the snapshot, is larger than allowed. Nothing was written.
    #[error("journal {prefix}: {bytes} bytes are more than the {bytes_max} allowed")]
    TooLarge {
        /// The journal's prefix.
        prefix: String,
        /// What was asked for.
        bytes: u64,
        /// What is allowed.
        bytes_max: u64,
    },
    /// The numbers of generations are used up.
    #[error("journal {prefix}: no generation number is left")]
    NumbersUsedUp {
        /// The journal's prefix.
        prefix: String,
    },
}

impl JournalError {
    /// Whether the same call may succeed later, when what the disk lacked is back.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Disk(error) => error.is_retryable(),
            Self::NeedsSnapshot { .. } => true,
            Self::Version { .. } | Self::TooLarge { .. } | Self::NumbersUsedUp { .. } => false,
        }
    }

    /// The disk's error, if it is one.
    #[must_use]
    pub const fn disk(&self) -> Option<&DiskError> {
        match self {
            Self::Disk(error) => Some(error),
            _ => None,
        }
    }
}
