//! Buffers used again: the chunks that open batches are encoded into. Shared by all logs of a queue.
//!
//! Two sizes: a small one for the first chunk of a batch, so that thousands of trickling streams cost little memory,
//! and a large one for all others. What the pool holds is bounded; beyond that chunks are freed.

use crate::sync::{Mutex, lock};

/// Bytes of the first chunk of a batch.
pub(crate) const SMALL_CHUNK_BYTES: usize = 4 << 10;
/// Bytes of every other chunk.
pub(crate) const LARGE_CHUNK_BYTES: usize = 64 << 10;
const SMALL_COUNT_MAX: usize = 1024;

/// Which size of chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkSize {
    Small,
    Large,
}

/// Idle chunks, empty, of their full capacity.
#[derive(Debug)]
pub(crate) struct ChunkPool {
    idle: Mutex<Idle>,
    large_count_max: usize,
}

#[derive(Debug, Default)]
struct Idle {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    allocated: u64,
}

impl ChunkPool {
    /// A pool that keeps at most `bytes_max` in idle large chunks.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { idle: Mutex::default(), large_count_max: bytes_max / LARGE_CHUNK_BYTES }
    }

    /// An empty chunk.
    pub(crate) fn take(&self, size: ChunkSize) -> Vec<u8> {
        let capacity = match size {
            ChunkSize::Small => SMALL_CHUNK_BYTES,
            ChunkSize::Large => LARGE_CHUNK_BYTES,
        };
        {
            let mut idle = lock(&self.idle);
            let taken = match size {
                ChunkSize::Small => idle.small.pop(),
                ChunkSize::Large => idle.large.pop(),
            };
            match taken {
                Some(chunk) => return chunk,
                None => idle.allocated += 1,
            }
        }
        Vec::with_capacity(capacity)
    }

    /// Takes chunks back; those of other capacities are freed.
    pub(crate) fn give(&self, chunks: &mut Vec<Vec<u8>>) {
        let mut idle = lock(&self.idle);
        for mut chunk in chunks.drain(..) {
            chunk.clear();
            if chunk.capacity() == LARGE_CHUNK_BYTES && idle.large.len() < self.large_count_max {
                idle.large.push(chunk);
            } else if chunk.capacity() == SMALL_CHUNK_BYTES && idle.small.len() < SMALL_COUNT_MAX {
                idle.small.push(chunk);
            }
        }
    }

    /// Chunks allocated because none was idle.
    pub(crate) fn allocated(&self) -> u64 {
        lock(&self.idle).allocated
    }
}
