//! Reading and writing fields one after the other, without an index in sight.
//!
//! Both cursors are total: [`Fields`] yields zeros behind the end of its bytes and [`Layout`] drops what does not fit.
//! Neither happens: every structure has a fixed length that its callers check once, and tests compare with golden bytes.

/// Takes little-endian fields from the front of some bytes.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(crate) fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.take())
    }
}

/// Puts fields at the front of a zeroed array.
pub(crate) struct Layout<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Layout<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], at: 0 }
    }

    pub(crate) fn put(mut self, field: &[u8]) -> Self {
        let end = self.at.saturating_add(field.len());
        debug_assert!(end <= N, "a field outside its structure");
        if let Some(place) = self.bytes.get_mut(self.at..end) {
            place.copy_from_slice(field);
        }
        self.at = end;
        self
    }

    /// Closes the structure with the checksum `of` everything before its last four bytes.
    pub(crate) fn seal(mut self, of: impl FnOnce(&[u8]) -> u32) -> [u8; N] {
        if let Some((covered, place)) = self.bytes.split_last_chunk_mut::<4>() {
            *place = of(covered).to_le_bytes();
        }
        self.bytes
    }

    /// The bytes without a checksum.
    pub(crate) const fn into_bytes(self) -> [u8; N] {
        self.bytes
    }
}

/// Whether the last four bytes are the checksum `of` everything before them.
pub(crate) fn is_sealed(bytes: &[u8], of: impl FnOnce(&[u8]) -> u32) -> bool {
    bytes.split_last_chunk::<4>().is_some_and(|(covered, stored)| of(covered) == u32::from_le_bytes(*stored))
}

/// The bytes without the zeros at their end. Compares blocks, so that long runs of zeros cost little.
pub fn without_zeros(bytes: &[u8]) -> &[u8] {
    const BLOCK: usize = 64;
    let mut rest = bytes;
    while let Some((front, last)) = rest.split_last_chunk::<BLOCK>() {
        if *last != [0; BLOCK] {
            break;
        }
        rest = front;
    }
    let end = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    rest.get(..end).unwrap_or_default()
}

/// Inverts bit `bit` (counted from bit 0 of byte 0); bits outside change nothing.
pub(crate) fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Runs through the one-bit neighbours of `bytes` until `accept` takes one.
pub(crate) fn one_bit_neighbour<const N: usize, T>(
    bytes: &[u8; N],
    mut accept: impl FnMut(&[u8; N]) -> Option<T>,
) -> Option<T> {
    let mut near = *bytes;
    for bit in 0..N * 8 {
        flip(&mut near, bit);
        if let Some(found) = accept(&near) {
            return Some(found);
        }
        flip(&mut near, bit);
    }
    None
}
