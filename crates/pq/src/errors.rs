//! What can go wrong, one enum a verb; each variant is something a caller can act on.

use std::path::PathBuf;

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
    #[error("{}: the queue is in use by another process or handle", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// A setting cannot be.
    #[error(transparent)]
    Options(#[from] OptionsError),
}

impl OpenError {
    /// Whether the same call may succeed later without anybody changing anything by hand.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::InUse { .. })
    }
}

/// A stream or consumer could not be opened, created, listed or removed.
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
    /// The consumer is open elsewhere in this process.
    #[error("consumer {consumer:?} of stream {stream:?} is in use")]
    InUse {
        /// The stream.
        stream: String,
        /// The consumer.
        consumer: String,
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
    /// The queue is closed.
    #[error("the queue is closed")]
    Closed,
}

/// A sink could not be attached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
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
    /// The consumer was removed.
    #[error("the consumer was removed")]
    Removed,
}

impl ReadError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::TimedOut)
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
    /// The queue was closed before.
    #[error("the queue is closed")]
    Closed,
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
