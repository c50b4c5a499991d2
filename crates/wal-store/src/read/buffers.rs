//! The memory a reader reads into, and how it comes back.
//!
//! A block is filled by one `pread`, becomes `Bytes` without a copy, and returns to the pool when its last holder drops
//! it. With [`ReadMethod::Map`] the final bytes of a rotated segment are mapped instead and never copied at all.
//!
//! ```text
//!   pool ──take──> block ──pread──> Bytes ──> runs, records ──last drop──> pool
//! ```
//!
//! Invariants: the pool keeps at most [`POOLED_COUNT_MAX`] blocks and [`POOLED_BYTES_MAX`] bytes; a block in the pool is
//! referred to by nobody.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use disk::{DiskError, File};
use wal_format::{SegmentId, StreamId};

use crate::sync::{Mutex, lock};

/// Most blocks kept for reuse.
const POOLED_COUNT_MAX: usize = 4;
/// Most bytes in blocks kept for reuse.
const POOLED_BYTES_MAX: usize = 32 << 20;

/// How the bytes of a segment reach the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMethod {
    /// By `pread` into reused memory.
    #[default]
    Read,
    /// Rotated segments are mapped where the disk can; the open one is read. A program that cuts a mapped file short
    /// kills this process: only for directories nobody else writes to.
    Map,
}

/// Buffers a reader keeps between reads. Not shared: each reader has its own.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    method: ReadMethod,
    pool: Arc<Pool>,
    mapped: Option<(StreamId, SegmentId, Bytes)>,
}

impl ReadBuffers {
    /// Buffers for one way of reading.
    pub fn new(method: ReadMethod) -> Self {
        Self { method, ..Self::default() }
    }

    /// Bytes of memory waiting for reuse.
    pub fn idle_bytes(&self) -> usize {
        lock(&self.pool.free).iter().map(Vec::len).sum()
    }

    /// The whole final segment as a map, if maps were asked for and the disk can.
    pub(super) fn map(
        &mut self,
        stream: StreamId,
        segment: SegmentId,
        file: &dyn File,
        end_offset: u64,
    ) -> Result<Option<Bytes>, DiskError> {
        if self.method == ReadMethod::Read {
            return Ok(None);
        }
        if let Some((known_stream, known_segment, bytes)) = &self.mapped
            && (*known_stream, *known_segment) == (stream, segment)
        {
            return Ok(Some(bytes.clone()));
        }
        let bytes = file.map(end_offset)?;
        self.mapped = bytes.clone().map(|bytes| (stream, segment, bytes));
        Ok(bytes)
    }

    /// A block with at least `bytes` bytes of room.
    pub(super) fn block(&self, bytes: usize) -> Block {
        let memory = lock(&self.pool.free).pop().unwrap_or_default();
        let mut block = Block { memory, filled: 0, pool: Arc::downgrade(&self.pool) };
        block.reserve(bytes);
        block
    }
}

#[derive(Debug, Default)]
struct Pool {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Pool {
    fn give_back(&self, memory: Vec<u8>) {
        let mut free = lock(&self.free);
        let held: usize = free.iter().map(Vec::len).sum();
        if free.len() < POOLED_COUNT_MAX && held.saturating_add(memory.len()) <= POOLED_BYTES_MAX {
            free.push(memory);
        }
    }
}

/// Memory being filled from a file.
#[derive(Debug)]
pub(super) struct Block {
    /// Its length is its room: bytes once zeroed are never zeroed again.
    memory: Vec<u8>,
    filled: usize,
    pool: Weak<Pool>,
}

impl Block {
    fn reserve(&mut self, bytes: usize) {
        if self.memory.len() < bytes {
            self.memory.resize(bytes, 0);
        }
    }

    /// Fills up to `bytes` bytes in all from the file, of which the block begins at `base`; fewer only if it ends.
    pub(super) fn fill(&mut self, file: &dyn File, base: u64, bytes: usize) -> Result<(), DiskError> {
        self.reserve(bytes);
        let filled = self.filled;
        if let Some(room) = self.memory.get_mut(filled..bytes)
            && !room.is_empty()
        {
            self.filled += file.read_at(room, base.saturating_add(filled as u64))?;
        }
        Ok(())
    }

    pub(super) fn filled(&self) -> &[u8] {
        self.memory.get(..self.filled).unwrap_or_default()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(std::mem::take(&mut self.memory));
        }
    }
}
