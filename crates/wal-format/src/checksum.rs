//! Seeded CRC-32C.
use crate::{Seq, StreamIdentity};

/// The checksum of a batch's frames, fed piece by piece.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u32);

/// Starts the checksum over the frames of the batch whose first record is `first_seq`.
#[must_use]
pub fn batch_checksum(_identity: &StreamIdentity, _first_seq: Seq) -> Checksum {
    todo!()
}

impl Checksum {
    /// Takes the next bytes in.
    pub fn update(&mut self, _bytes: &[u8]) {
        todo!()
    }

    /// The value to store.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}
