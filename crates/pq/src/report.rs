//! What opening found and what closing did.

use crate::{Gap, Seq};

/// What opening a queue found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// The queue was created by this open.
    pub created: bool,
    /// The last owner stopped in order.
    pub clean: bool,
    /// One entry per stream.
    pub streams: Vec<StreamReport>,
    /// Things in the directory that are not the queue's, ignored.
    pub strays: Vec<String>,
    /// What was noticed about metadata and cursors, in words.
    pub notes: Vec<String>,
}

/// What opening found of one stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamReport {
    /// The stream.
    pub name: String,
    /// Oldest kept seq.
    pub first: Seq,
    /// End of what is kept.
    pub end: Seq,
    /// Segments kept.
    pub segments_count: usize,
    /// Records known to be lost.
    pub gaps: Vec<Gap>,
    /// Bytes of a torn tail that were cut.
    pub torn_bytes: u64,
    /// Why the stream is paused; `None`: it runs.
    pub paused: Option<String>,
    /// What was noticed, in words.
    pub notes: Vec<String>,
}

/// What closing a queue did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CloseReport {
    /// Records made durable by it.
    pub committed_count: u64,
    /// Cursors saved by it.
    pub cursors_saved_count: usize,
    /// The clean-stop record is durable.
    pub clean: bool,
}
