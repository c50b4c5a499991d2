//! What can go wrong, one enum a verb; each variant is something a caller can act on.

use std::path::PathBuf;

use disk::DiskError;
use offsets::journal::JournalError;
use thiserror::Error;

use crate::{NameError, Seq};

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
#[non_exhaustive]
pub struct OptionsError {
    /// The field's name, as it stands in the settings.
    pub field: &'static str,
    /// Why it is refused, with the numbers.
    pub reason: String,
}

/// A queue could not be opened. Nothing was changed that the next open cannot go on from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another `Queue` of this one, owns the directory.
    #[error("the queue is in use: {source}")]
    InUse {
        /// What is known about the owner.
        source: DiskError,
    },
    /// A setting cannot be.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The directory, or a file of the queue's own, could not be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog could not be read or written.
    #[error("catalog: {0}")]
    Catalog(#[from] JournalError),
    /// The cursors could not be read.
    #[error("cursors: {0}")]
    Cursors(#[from] offsets::OpenError),
    /// The cursors could not be written.
    #[error("cursors: {0}")]
    Save(#[from] offsets::SaveError),
    /// There is no queue here.
    #[error("there is no queue here: no {} was found", crate::meta::META)]
    NotAQueue,
    /// Parts of a queue are here, but nothing that tells which.
    #[error(
        "{} and every journal are missing or damaged; restore one of them from a copy",
        crate::meta::META
    )]
    Lost,
    /// A later version wrote this.
    #[error("{}: written by a later version of this program; open it with that", path.display())]
    Version {
        /// The file.
        path: PathBuf,
    },
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
}

impl OpenError {
    /// The disk's error, if it is one: which path, and what kind of answer it wants.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskError> {
        let journal = match self {
            Self::InUse { source } | Self::Disk(source) => return Some(source),
            Self::Catalog(error)
            | Self::Cursors(offsets::OpenError::Journal(error))
            | Self::Save(offsets::SaveError::Journal(error)) => error,
            _ => return None,
        };
        journal.disk()
    }

    /// Whether the same call may succeed later without anybody changing anything by hand.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InUse { .. } | Self::Thread(_) => true,
            Self::Disk(error) => error.is_retryable(),
            Self::Catalog(error) => error.is_retryable(),
            Self::Cursors(error) => error.is_retryable(),
            Self::Save(error) => error.is_retryable(),
            _ => false,
        }
    }
}

/// A stream or consumer could not be opened, created, moved or removed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A setting cannot be.
    #[error(transparent)]
    Settings(#[from] OptionsError),
    /// There is no stream of that name.
    #[error("there is no stream {name:?}")]
    NotFound {
        /// The name.
        name: String,
    },
    /// There is no consumer of that name.
    #[error("stream {stream:?} has no consumer {consumer:?}")]
    NoConsumer {
        /// The stream.
        stream: String,
        /// The consumer.
        consumer: String,
    },
    /// The consumer is open elsewhere in this process.
    #[error("consumer {consumer:?} of stream {stream:?} is in use")]
    InUse {
        /// The stream.
        stream: String,
        /// The consumer.
        consumer: String,
    },
    /// A start beyond the end of what is durable.
    #[error("seq {seq} is beyond the end, {end}")]
    BeyondEnd {
        /// The seq asked for.
        seq: Seq,
        /// The end.
        end: Seq,
    },
    /// The stream was deleted.
    #[error("stream {name:?} was deleted")]
    Deleted {
        /// The name.
        name: String,
    },
    /// The stream's files could not be recovered; the others work.
    #[error("stream {name:?} is paused: {reason}")]
    Paused {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The directory of the stream could not be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog could not be written.
    #[error("catalog: {0}")]
    Catalog(#[from] JournalError),
    /// The cursors could not be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The queue is closed.
    #[error("the queue is closed")]
    Closed,
}

impl StreamError {
    pub(crate) fn cursors(error: &offsets::SaveError) -> Self {
        Self::Save(SaveError::of(error))
    }

    /// Whether the same call may succeed later without anybody changing anything by hand.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InUse { .. } | Self::Paused { .. } => true,
            Self::Disk(error) => error.is_retryable(),
            Self::Catalog(error) => error.is_retryable(),
            Self::Save(error) => error.is_retryable(),
            _ => false,
        }
    }
}

/// A sink could not be attached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The runtime that drives sinks could not be started.
    #[error("the runtime of the sinks could not be started: {0}")]
    Runtime(std::io::Error),
    /// The stream or the consumer.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A setting cannot be.
    #[error(transparent)]
    Settings(#[from] OptionsError),
}

/// Nothing was delivered; the place in the stream is unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing to deliver came in the time given.
    #[error("nothing to deliver came in time")]
    TimedOut,
    /// The file could not be read.
    #[error(transparent)]
    Read(#[from] wal_store::ReadError),
    /// Nothing stands where something must; nothing is skipped.
    #[error("nothing stands at seq {at}, below the end {bound}")]
    NotThere {
        /// The seq.
        at: Seq,
        /// The end of what readers may see.
        bound: Seq,
    },
    /// The reader's thread is gone: the queue is going down.
    #[error("the queue is going down")]
    Down,
}

impl ReadError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut | Self::NotThere { .. } => true,
            Self::Read(error) => error.is_retryable(),
            Self::Down => false,
        }
    }
}

/// An acknowledgement that was not taken; the cursor is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AckError {
    /// The delivery is of another queue, stream, incarnation or consumer.
    #[error("the delivery belongs to another stream or consumer")]
    Foreign,
    /// The seq is beyond what was delivered.
    #[error("seq {to} was not delivered yet, the next to be delivered is {next}")]
    NotDelivered {
        /// The end that was to be acknowledged.
        to: Seq,
        /// The next seq to be delivered.
        next: Seq,
    },
    /// The note is longer than may be.
    #[error("a note has {bytes} bytes, at most {max} are possible")]
    NoteTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The consumer was removed or its stream deleted.
    #[error("the consumer was removed")]
    Removed,
    /// The queue is closed: no cursor is saved by this handle any more.
    #[error("the queue is closed")]
    Closed,
}

/// Cursors could not be saved. They stay acknowledged in memory and are saved with the next success.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The disk refused.
    #[error("cursors could not be saved: {reason}")]
    Disk {
        /// What it said.
        reason: String,
        /// Whether the next try may succeed by itself.
        retryable: bool,
    },
    /// The records below the cursor are not durable yet; it is saved once they are.
    #[error("records below seq {to} are not durable yet")]
    NotDurable {
        /// The cursor.
        to: Seq,
    },
    /// The queue was closed before, or the consumer removed.
    #[error("the queue is closed, or the consumer was removed")]
    Closed,
}

impl SaveError {
    pub(crate) fn of(error: &offsets::SaveError) -> Self {
        Self::Disk { reason: error.to_string(), retryable: error.is_retryable() }
    }

    /// Whether the next try may succeed by itself.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Disk { retryable: true, .. } | Self::NotDurable { .. })
    }
}

/// The queue was closed with something left undone.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum CloseError {
    /// Not everything was done in time; what was not durable may be lost, what was not saved is delivered again.
    #[error("the queue could not be closed in time: {left}")]
    Deadline {
        /// What was left.
        left: String,
    },
    /// The last commit or save failed. Nothing was retired because of it.
    #[error("the queue was closed, but {reason}")]
    Incomplete {
        /// What failed.
        reason: String,
    },
}

/// [`crate::Stream::append_durable`] failed, in one of its two halves.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AppendDurableError {
    /// The record was not taken.
    #[error(transparent)]
    Append(#[from] crate::AppendError),
    /// It was taken; what became of it is in the inner error.
    #[error(transparent)]
    Commit(#[from] crate::CommitError),
}
