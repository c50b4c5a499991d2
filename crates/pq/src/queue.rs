//! The queue: a directory of streams, with one owner.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    AttachError, Attached, CloseError, CloseReport, OpenError, OpenReport, Options, QueueId, QueueStats, Sink,
    SinkSettings, Stream, StreamError, StreamSettings,
};

/// An open queue. Cheap to clone; the last handle dropped without [`Queue::close`] stops it like a crash would, without loss of anything
/// durable.
#[derive(Debug, Clone)]
pub struct Queue {}

impl Queue {
    /// Opens the queue in `dir`, creates it if there is none, recovers what the last owner left.
    ///
    /// # Errors
    /// [`OpenError::InUse`] at once if somebody owns it. One damaged stream is no error: see [`Queue::recovery`].
    pub fn open(_dir: impl AsRef<Path>, _options: Options) -> Result<Self, OpenError> {
        todo!()
    }
    /// [`Queue::open`] on a disk of the caller's, a simulated one for example.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_on(_disk: Arc<dyn disk::Disk>, _options: Options) -> Result<Self, OpenError> {
        todo!()
    }
    /// What opening found.
    #[must_use]
    pub fn recovery(&self) -> &OpenReport {
        todo!()
    }
    /// The queue's id.
    #[must_use]
    pub fn id(&self) -> QueueId {
        todo!()
    }
    /// The stream of that name; created, durably, with the queue's settings if there is none.
    ///
    /// # Errors
    /// The name, the disk, or the stream is paused.
    pub fn stream(&self, _name: &str) -> Result<Stream, StreamError> {
        todo!()
    }
    /// The stream of that name with these settings, which are kept with it.
    ///
    /// # Errors
    /// As for `stream`, and a setting that cannot be.
    pub fn stream_with(&self, _name: &str, _settings: StreamSettings) -> Result<Stream, StreamError> {
        todo!()
    }
    /// Deletes a stream with its records and cursors. A stream of the same name is a new one.
    ///
    /// # Errors
    /// `NotFound`, or the disk; once the tombstone is durable the rest is done at the next open at the latest.
    pub fn delete_stream(&self, _name: &str) -> Result<(), StreamError> {
        todo!()
    }
    /// Names of all streams, in order.
    #[must_use]
    pub fn streams(&self) -> Vec<String> {
        todo!()
    }
    /// Attaches a sink to a stream as the consumer of that name; the reader pool drives it from now on.
    ///
    /// # Errors
    /// [`StreamError::InUse`] if the consumer is open.
    #[cfg(feature = "tokio")]
    pub fn attach(
        &self,
        _stream: &Stream,
        _consumer: &str,
        _sink: impl Sink,
        _settings: SinkSettings,
    ) -> Result<Attached, AttachError> {
        todo!()
    }
    /// Counters and gauges of everything.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        todo!()
    }
    /// The descriptor budget; sinks take their sockets from it too.
    #[must_use]
    pub fn fds(&self) -> Arc<disk::FdBudget> {
        todo!()
    }
    /// Saves cursors now, and retires what they allow. Blocks.
    ///
    /// # Errors
    /// The disk refused; cursors stay acknowledged in memory.
    pub fn save_cursors(&self) -> Result<(), crate::SaveError> {
        todo!()
    }
    /// Commits what is open, parks readers after their current delivery, saves cursors, writes the clean-stop record. Blocks at most
    /// about `deadline`. Afterwards every call on any handle is refused.
    ///
    /// # Errors
    /// What was left undone; nothing durable is lost by it.
    pub fn close(&self, _deadline: Duration) -> Result<CloseReport, CloseError> {
        todo!()
    }
}
