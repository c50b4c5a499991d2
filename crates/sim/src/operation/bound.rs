//! What a stream, or the queue, may hold from now on. Byte limits are told by how far they are from what is held: whoever writes a list of
//! operations need not know how long files are.

use pq::OnFull;

use super::StreamIndex;

/// A limit that a client sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A stream's files may take what they take now and so many bytes more (or less), at once and durably.
    Stream(StreamIndex, OnFull, i32),
    /// A stream's records go once they are so many milliseconds old, at once and durably.
    Age(StreamIndex, u32),
    /// From the next open on the queue may take what it takes now and so many bytes more (or less). Where that is less than any queue
    /// may be limited to, something in quarantine takes the rest.
    Queue(i32),
}
