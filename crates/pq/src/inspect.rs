//! Looking at a queue without owning it: beside a live owner, without its lock, changing nothing.

use std::path::Path;

use serde::Serialize;

use crate::{Delivery, Gap, OpenError, ReadError, Seq};

/// A queue, seen from outside.
#[derive(Debug)]
pub struct Inspection {}

/// A stream, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamInfo {
    /// Its name.
    pub name: String,
    /// Oldest kept seq.
    pub first: u64,
    /// End of what can be read.
    pub end: u64,
    /// What is proven durable.
    pub durable_end: u64,
    /// Segments that exist.
    pub segments: Vec<SegmentInfo>,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Its consumers.
    pub consumers: Vec<ConsumerInfo>,
}

/// A segment, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its id.
    pub id: u64,
    /// Its first seq.
    pub first: u64,
    /// Its end.
    pub end: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A consumer, seen from outside.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// Its saved cursor.
    pub cursor: u64,
    /// Records it did not acknowledge.
    pub lag_records: u64,
}

/// What a check of every byte found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// By stream.
    pub streams: Vec<StreamCheck>,
    /// What was noticed about metadata and cursors, in words.
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Whether anything is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        todo!()
    }
}

/// What a check of a stream found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamCheck {
    /// Its name.
    pub name: String,
    /// Records that are whole.
    pub records_count: u64,
    /// Batches that are whole.
    pub batches_count: u64,
    /// Bytes looked at.
    pub bytes: u64,
    /// Bytes behind the end that a crash left; no damage.
    pub torn_bytes: u64,
    /// Seqs that are lost, as (from, to, reason).
    pub lost: Vec<(u64, u64, String)>,
    /// Damage found, in words, with file and offset.
    pub damage: Vec<String>,
}

/// Reads a stream from outside, from a seq on, up to what was there at each call.
#[derive(Debug)]
pub struct InspectReader {}

impl InspectReader {
    /// The next records; `None` if there are no more for now.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn next(&mut self) -> Result<Option<Delivery>, ReadError> {
        todo!()
    }
}

impl Inspection {
    /// Looks at the queue in `dir`.
    ///
    /// # Errors
    /// There is no queue, or its metadata cannot be read.
    pub fn open(_dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        todo!()
    }
    /// Its streams, in the order of names.
    ///
    /// # Errors
    /// The directory could not be read.
    pub fn streams(&self) -> Result<Vec<StreamInfo>, ReadError> {
        todo!()
    }
    /// Reads a stream from a seq on (the oldest kept if that is above it).
    ///
    /// # Errors
    /// There is no such stream.
    pub fn read(&self, _stream: &str, _from: Seq) -> Result<InspectReader, ReadError> {
        todo!()
    }
    /// Checks every byte of every stream.
    ///
    /// # Errors
    /// The check could not run; damage is no error.
    pub fn verify(&self) -> Result<VerifyReport, ReadError> {
        todo!()
    }
    /// Known gaps of a stream.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn gaps(&self, _stream: &str) -> Result<Vec<Gap>, ReadError> {
        todo!()
    }
}
