//! What a disk keeps: blocks that were flushed, writes that were not, and what it was told to do wrong.
//!
//! It is a model without I/O: no file system, no threads, no clock.
//!
//! ```text
//!   write ──> pending (in order) + overlay (what reads see) ──flush──> durable
//!                 └── cut: of each pending write, sector by sector, what survives goes to durable; the rest is gone
//! ```
//! Invariants: a read sees the newest write that was answered `Ok`; only `flush` and `cut` change what is durable; a write that
//! failed changed nothing; after a cut everything fails until the power is back.

use std::collections::HashMap;

use crate::faults::{Answer, Faults, On};

/// The unit in which writes survive a cut or do not.
pub(crate) const SECTOR_BYTES: usize = 512;
/// The unit of storage.
pub(crate) const BLOCK_BYTES: usize = 4096;

const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

type Block = Box<[u8; BLOCK_BYTES]>;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The device failed.
    Broken,
    /// A thin disk has no block left.
    Full,
}

/// Which pending writes survive a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survival {
    /// None: the cruellest cache.
    Nothing,
    /// All: a kill of the whole machine that the disk outlives.
    Everything,
    /// The first so many, in the order they came.
    Prefix,
    /// Any subset of the writes.
    Writes,
    /// Any subset of the sectors.
    Sectors,
}

/// What a cut did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Sectors that were written and not flushed.
    pub(crate) pending_sectors: usize,
    /// Of these, the ones that survived.
    pub(crate) survived_sectors: usize,
}

/// What was asked of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) failed: u64,
}

struct Write {
    offset: u64,
    bytes: Vec<u8>,
}

/// The disk.
pub(crate) struct Medium {
    bytes_len: u64,
    durable: HashMap<u64, Block>,
    overlay: HashMap<u64, Block>,
    pending: Vec<Write>,
    faults: Faults,
    counts: Counts,
    is_off: bool,
}

impl Medium {
    /// A disk of that many bytes, all zero.
    pub(crate) fn new(bytes_len: u64) -> Self {
        Self {
            bytes_len,
            durable: HashMap::new(),
            overlay: HashMap::new(),
            pending: Vec::new(),
            faults: Faults::default(),
            counts: Counts::default(),
            is_off: false,
        }
    }

    /// Bytes of the whole disk.
    pub(crate) fn len(&self) -> u64 {
        self.bytes_len
    }

    /// What was asked so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// What is wrong with it.
    pub(crate) fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Puts a block, or the part of it that there is, where it is durable at once: the content the disk starts with.
    pub(crate) fn load(&mut self, index: u64, bytes: &[u8]) {
        if bytes != &ZEROS[..bytes.len()] {
            let block = self.durable.entry(index).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            block[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Reads as many bytes as there are from `offset` on, `size` at most.
    ///
    /// # Errors
    /// The power is off.
    pub(crate) fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>, Refusal> {
        if self.is_off {
            return Err(Refusal::Broken);
        }
        let end = offset.saturating_add(size as u64).min(self.bytes_len);
        let mut read = vec![0; usize::try_from(end.saturating_sub(offset)).unwrap_or(0)];
        for piece in pieces(offset, read.len()) {
            let block = self.overlay.get(&piece.index).or_else(|| self.durable.get(&piece.index));
            if let Some(block) = block {
                read[piece.outer()].copy_from_slice(&block[piece.inner()]);
            }
        }
        Ok(read)
    }

    /// Takes a write into the cache.
    ///
    /// # Errors
    /// Nothing of it was taken.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.counts.writes += 1;
        let end = offset.saturating_add(bytes.len() as u64);
        if self.is_off || end > self.bytes_len || self.faults.ask(On::Write, offset..end) == Answer::Fail {
            self.counts.failed += 1;
            return Err(Refusal::Broken);
        }
        let is_new = |index: &u64| !self.overlay.contains_key(index) && !self.durable.contains_key(index);
        let new_blocks = pieces(offset, bytes.len()).map(|piece| piece.index).filter(is_new).count();
        if !self.faults.take_room(new_blocks as u64) {
            self.counts.failed += 1;
            return Err(Refusal::Full);
        }
        for piece in pieces(offset, bytes.len()) {
            let durable = &self.durable;
            let begun = || durable.get(&piece.index).cloned().unwrap_or_else(|| Box::new([0; BLOCK_BYTES]));
            let block = self.overlay.entry(piece.index).or_insert_with(begun);
            block[piece.inner()].copy_from_slice(&bytes[piece.outer()]);
        }
        self.pending.push(Write { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    /// Makes every write that was answered durable.
    ///
    /// # Errors
    /// Nothing became durable by it; the writes are still pending.
    pub(crate) fn flush(&mut self) -> Result<(), Refusal> {
        self.counts.flushes += 1;
        if self.is_off || self.faults.ask(On::Flush, 0..0) == Answer::Fail {
            self.counts.failed += 1;
            return Err(Refusal::Broken);
        }
        self.durable.extend(self.overlay.drain());
        self.pending.clear();
        Ok(())
    }

    /// Cuts the power. `random` gives a number below its argument.
    pub(crate) fn cut(&mut self, survival: Survival, random: &mut dyn FnMut(u64) -> u64) -> Cut {
        self.is_off = true;
        self.overlay.clear();
        let pending = std::mem::take(&mut self.pending);
        let kept_writes = random(pending.len() as u64 + 1);
        let mut cut = Cut { pending_sectors: 0, survived_sectors: 0 };
        for (number, write) in (0..).zip(&pending) {
            let whole = match survival {
                Survival::Nothing => Some(false),
                Survival::Everything => Some(true),
                Survival::Prefix => Some(number < kept_writes),
                Survival::Writes => Some(random(2) == 0),
                Survival::Sectors => None,
            };
            for (sector, bytes) in (0..).zip(write.bytes.chunks(SECTOR_BYTES)) {
                cut.pending_sectors += 1;
                if whole.unwrap_or_else(|| random(2) == 0) {
                    cut.survived_sectors += 1;
                    self.persist(write.offset + sector * SECTOR_BYTES as u64, bytes);
                }
            }
        }
        cut
    }

    /// The power is back; faults of the past are mended.
    pub(crate) fn power_on(&mut self) {
        self.is_off = false;
        self.faults = Faults::default();
    }

    fn persist(&mut self, offset: u64, bytes: &[u8]) {
        for piece in pieces(offset, bytes.len()) {
            let block = self.durable.entry(piece.index).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            block[piece.inner()].copy_from_slice(&bytes[piece.outer()]);
        }
    }
}

/// The part of a range of bytes that lies in one block.
struct Piece {
    index: u64,
    in_block: usize,
    in_range: usize,
    len: usize,
}

impl Piece {
    fn inner(&self) -> std::ops::Range<usize> {
        self.in_block..self.in_block + self.len
    }

    fn outer(&self) -> std::ops::Range<usize> {
        self.in_range..self.in_range + self.len
    }
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let block_bytes = BLOCK_BYTES as u64;
    let mut in_range = 0;
    std::iter::from_fn(move || {
        let at = offset + in_range as u64;
        let in_block = usize::try_from(at % block_bytes).unwrap_or(0);
        let piece_len = (BLOCK_BYTES - in_block).min(len - in_range);
        let piece = Piece { index: at / block_bytes, in_block, in_range, len: piece_len };
        in_range += piece_len;
        (piece_len > 0).then_some(piece)
    })
}

#[cfg(test)]
#[path = "medium_tests.rs"]
mod tests;
