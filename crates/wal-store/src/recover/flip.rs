//! Whether one flipped bit explains a wrong checksum.
//!
//! CRC-32C is linear: the difference between the stored and the computed value depends only on where bits differ. For a
//! single bit it is the register holding that bit alone, run over the rest of the message. So walking the register back
//! from the end of the message finds the bit, if there is one, in a step per bit and without touching the bytes.
//!
//! A power cut loses whole sectors. That one looks like a single flip by chance has probability of `8 × bytes / 2^32`;
//! [`FLIP_BYTES_MAX`] keeps that below 1 in 1,000.

use wal_format::{BatchHeader, StreamIdentity, batch_checksum};

/// Longer batches are not judged by their syndrome.
const FLIP_BYTES_MAX: usize = 512 << 10;
/// The reflected polynomial of CRC-32C.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Whether exactly one flipped bit in `frames` makes them match the header's checksum.
pub(crate) fn is_one_flip(identity: &StreamIdentity, header: &BatchHeader, frames: &[u8]) -> bool {
    let mut checksum = batch_checksum(identity, header.first_seq);
    checksum.update(frames);
    flipped_bit(checksum.get() ^ header.batch_crc, frames.len()).is_some()
}

/// Which bit of a message of `bytes` bytes, counted from its end, differs by this syndrome alone.
fn flipped_bit(syndrome: u32, bytes: usize) -> Option<usize> {
    if syndrome == 0 || bytes > FLIP_BYTES_MAX {
        return None;
    }
    let mut register: u32 = 1;
    (1..=bytes * 8).find(|_| {
        let carry = if register & 1 == 1 { POLYNOMIAL } else { 0 };
        register = (register >> 1) ^ carry;
        register == syndrome
    })
}

#[cfg(test)]
#[path = "flip_tests.rs"]
mod tests;
