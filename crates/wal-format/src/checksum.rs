//! CRC-32C, seeded, and run backwards.
//!
//! Every checksum of a batch starts from a seed made of the stream's incarnation and a seq (docs/format.md F-15), so equal
//! bytes of another stream, or at another seq, have another checksum:
//!
//! ```text
//! incarnation ─crc─► stream seed ─crc seq─► seed ─crc bytes─► checksum
//!                                 ◄────────────  unwind  ────────────
//! ```
//!
//! A CRC loses nothing for a known length: from the checksum and the bytes the seed can be computed, and from the seed the
//! seq. So a frame's head tells by itself which seq it was written for, and a search needs no guessing.

use crate::{Incarnation, Seq, StreamIdentity};

const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksum of a batch's frames, fed piece by piece.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u32);

/// Starts the checksum over the frames of the batch whose first record is `first_seq`.
#[must_use]
pub fn batch_checksum(identity: &StreamIdentity, first_seq: Seq) -> Checksum {
    Checksum(seed_at(identity, first_seq))
}

impl Checksum {
    /// Takes the next bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc(self.0, bytes);
    }

    /// The value to store.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// CRC-32C continued from `seed`.
#[inline]
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}

/// The seed at `seq`, at once: one call instead of two where nothing can be kept.
#[inline]
pub(crate) fn seed_at(identity: &StreamIdentity, seq: Seq) -> u32 {
    /// The checksum takes whole words only where they are aligned.
    #[repr(align(8))]
    struct Aligned([u8; 24]);

    let mut bytes = Aligned([0; 24]);
    let (incarnation, place) = bytes.0.split_at_mut(16);
    incarnation.copy_from_slice(&identity.incarnation.get().to_le_bytes());
    place.copy_from_slice(&seq.get().to_le_bytes());
    crc(0, &bytes.0)
}

/// The part of the seed that is the same for a whole stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSeed(u32);

impl StreamSeed {
    #[inline]
    pub(crate) fn of(incarnation: Incarnation) -> Self {
        Self(crc(0, &incarnation.get().to_le_bytes()))
    }

    /// The seed at `seq`.
    #[inline]
    pub(crate) fn at(self, seq: Seq) -> u32 {
        crc(self.0, &seq.get().to_le_bytes())
    }

    /// The seq in `[from, end]` whose seed makes `bytes` have the checksum `sum`; `end - from` is below 2³².
    pub(crate) fn seq_of(self, sum: u32, bytes: &[u8], from: Seq, end: Seq) -> Option<Seq> {
        let seed = unwind(sum, bytes);
        let solve = |high: u64| {
            let [.., a, b, c, d] = high.to_be_bytes();
            let behind_low = unwind(seed, &[d, c, b, a]);
            // Four bytes only enter a CRC by XOR into its state: taking out four zeros leaves the low word, XORed.
            let low = unwind(behind_low, &[0; 4]) ^ self.0;
            let seq = Seq::new(high << 32 | u64::from(low));
            (from <= seq && seq <= end).then_some(seq)
        };
        let (first, last) = (from.get() >> 32, end.get() >> 32);
        solve(first).or_else(|| if last == first { None } else { solve(last) })
    }
}

/// The seed from which `bytes` lead to `sum`.
pub(crate) fn unwind(sum: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().rev().fold(!sum, |state, byte| before_zero(state) ^ u32::from(*byte))
}

/// The state that a zero byte turned into `state`.
#[inline]
fn before_zero(state: u32) -> u32 {
    let [.., top] = state.to_le_bytes();
    state << 8 ^ BEFORE.get(usize::from(top)).copied().unwrap_or_default()
}

/// [`before_zero`] of each value of the top byte alone.
const BEFORE: [u32; 256] = before_table();

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn before_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut top = 0;
    while top < 256_u32 {
        let (mut state, mut bit) = (top << 24, 0);
        while bit < 8 {
            // Shifting right drops a one exactly if the polynomial was added, and its top bit shows that.
            state = if state >> 31 == 1 { (state ^ POLYNOMIAL) << 1 | 1 } else { state << 1 };
            bit += 1;
        }
        table[top as usize] = state;
        top += 1;
    }
    table
}

/// Which one bit of `covered_bytes` bytes, or of the checksum behind them, explains `stored ^ computed`; `None` if no one does.
///
/// Bits are counted from bit 0 of byte 0. The syndrome of a flipped bit is what the bit leaves in the CRC after all bytes
/// behind it; running it backwards over zeros, one byte at a time, meets the moment the bit came in.
pub(crate) fn locate_flip(stored: u32, computed: u32, covered_bytes: usize) -> Option<usize> {
    let syndrome = stored ^ computed;
    if syndrome.is_power_of_two() {
        return Some(covered_bytes * 8 + syndrome.trailing_zeros() as usize);
    }
    if syndrome == 0 {
        return None;
    }
    let mut difference = syndrome;
    for byte in (0..covered_bytes).rev() {
        difference = before_zero(difference);
        if difference < 256 && difference.is_power_of_two() {
            return Some(byte * 8 + difference.trailing_zeros() as usize);
        }
    }
    None
}

#[cfg(test)]
#[path = "checksum_tests.rs"]
mod tests;
