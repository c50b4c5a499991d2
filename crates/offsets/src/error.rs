//! The errors of opening and of saving: each variant is something a caller can act on.

use std::path::PathBuf;

use wal_format::{ConsumerId, Seq, StreamId};

use crate::journal::JournalError;

/// Why the cursors could not be opened. Nothing on the disk was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The journal could not be listed or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The newest entry was written by a later version of this crate.
    #[error("{path}: holds an entry of kind {kind} this version does not know; open it with a newer version", path = .path.display())]
    UnknownKind {
        /// The journal file.
        path: PathBuf,
        /// The kind it names.
        kind: u8,
    },
}

impl OpenError {
    /// Whether trying again later, with nothing changed by the caller, may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_retryable(),
            Self::UnknownKind { .. } => false,
        }
    }
}

/// Why a save failed. Memory still holds the last durable state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The disk refused; the change may or may not be found after a crash, until the next save succeeds.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No such consumer. Nothing was written.
    #[error("no consumer with id {consumer}")]
    UnknownConsumer {
        /// The id asked for.
        consumer: ConsumerId,
    },
    /// A cursor would move back without a seek. Nothing was written.
    #[error("consumer {consumer}: its cursor {from} would move back to {to} without a seek")]
    CursorBack {
        /// Whose cursor.
        consumer: ConsumerId,
        /// Where it is.
        from: Seq,
        /// Where it was asked to go.
        to: Seq,
    },
    /// A floor would move back. Nothing was written.
    #[error("stream {stream}: its floor {from} would move back to {to}")]
    FloorBack {
        /// Whose floor.
        stream: StreamId,
        /// Where it is.
        from: Seq,
        /// Where it was asked to go.
        to: Seq,
    },
    /// The stream has a consumer of that name. Nothing was written.
    #[error("stream {stream} has a consumer named {name:?} already")]
    NameTaken {
        /// The stream.
        stream: StreamId,
        /// The name.
        name: String,
    },
    /// Something is empty or too long. Nothing was written.
    #[error("{what}: {got} is outside {min}..={max}")]
    OutOfRange {
        /// What it is.
        what: &'static str,
        /// What was given.
        got: usize,
        /// The least allowed.
        min: usize,
        /// The most allowed.
        max: usize,
    },
    /// What was acked above the cursor is not ascending, not apart, or not above it. Nothing was written.
    #[error("acked range {index} does not lie above the cursor and apart from the range before it")]
    AckedOrder {
        /// Which range.
        index: usize,
    },
    /// The ids of consumers are used up. Nothing was written.
    #[error("no consumer id is left")]
    IdsUsedUp,
    /// These offsets were opened for reading only.
    #[error("these offsets were opened for reading only")]
    ReadOnly,
}

impl SaveError {
    /// Whether the same save may succeed later, with nothing changed by the caller.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_retryable(),
            _ => false,
        }
    }
}
