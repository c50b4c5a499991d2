//! Producers' places: the last tag each producer wrote, carried from segment to segment.

use wal_format::Seq;

/// A producer's opaque place in its source, with the seq after which it stood in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTag {
    /// The producer's name.
    pub producer: Vec<u8>,
    /// Its place, as it gave it.
    pub value: Vec<u8>,
    /// First seq of the batch that carried it.
    pub at: Seq,
}
