//! Room: how much memory all streams of a queue may hold in records that are not yet written.

/// A byte budget shared by the logs of a queue.
#[derive(Debug)]
pub struct Room {
    limit: usize,
}

impl Room {
    /// Room for `limit` bytes of frames.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes held now.
    pub fn used(&self) -> usize {
        todo!()
    }
}
