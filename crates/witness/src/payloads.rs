//! Payloads no two of which are alike, and numbers that follow from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes payloads: each begins with who made it and a number of its own.
pub(crate) struct Payloads {
    life: String,
    next: AtomicU64,
}

impl Payloads {
    /// For one life of the witness; its name must not come again in the same queue.
    pub(crate) fn new(life: &str) -> Self {
        Self { life: life.to_owned(), next: AtomicU64::new(0) }
    }

    /// A payload of about that many bytes, never shorter than its name.
    pub(crate) fn make(&self, stream: &str, bytes: usize) -> Vec<u8> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut payload = format!("{} {stream} {number} ", self.life).into_bytes();
        let mut numbers = Numbers::new(number);
        while payload.len() < bytes {
            payload.extend_from_slice(&numbers.next().to_le_bytes());
        }
        payload
    }
}

/// xorshift64* (Vigna, 2016).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 up to but not `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }
}
