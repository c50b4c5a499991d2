//! The journal envelope: what catalog, cursors and `queue.meta` have in common on disk.
//!
//! ```text
//! | file header, 64 bytes: magic version flags kind queue generation crc | entry | entry | …  tail
//!                                     entry = | length version kind zero number body crc head crc | body |
//! ```
//!
//! The bodies are opaque here; their owners version them by [`EntryTag`]. Numbers count from 1 without holes, and checksums
//! are seeded with queue, generation, kind and number, so entries of another file never decode.
//! Invariant: a scan is total, yields every number at most once, ascending, and says where it stopped and what is missing.

use crate::{
    DecodeError, QueueId,
    checksum::{crc, locate_flip},
    layout::{Fields, Layout, is_sealed, one_bit_neighbour, without_zeros},
};
use alloc::vec::Vec;

/// The length of a journal file's header, in bytes.
pub const JOURNAL_HEADER_BYTES: usize = 64;
/// The length of a journal entry's head, in bytes.
pub const ENTRY_HEAD_BYTES: usize = 24;
/// The most bytes an entry's body may have: 64 MiB.
pub const ENTRY_BODY_BYTES_MAX: usize = 1 << 26;

const MAGIC: [u8; 8] = *b"PQJNL\r\n\x1a";
const VERSION: u16 = 1;
const INCOMPATIBLE_FLAGS: u16 = 0x00ff;
/// How often a scan may look at each byte of the journal on average while it searches: damage never needs more than once, heads
/// nested by hand could ask for their square.
const EFFORT: usize = 4;

/// Whose journal a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JournalKind(u8);

impl JournalKind {
    /// `queue.meta`.
    pub const QUEUE: Self = Self(1);
    /// `catalog-<generation>`.
    pub const CATALOG: Self = Self(2);
    /// `cursors-<generation>`.
    pub const CURSORS: Self = Self(3);

    /// Any other kind; 0 is never valid on disk.
    #[must_use]
    pub const fn new(kind: u8) -> Self {
        Self(kind)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// What a journal file says about itself first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JournalHeader {
    /// Whose journal.
    pub kind: JournalKind,
    /// The queue it belongs to.
    pub queue: QueueId,
    /// The generation; the highest valid one wins.
    pub generation: u64,
}

impl JournalHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; JOURNAL_HEADER_BYTES] {
        debug_assert!(self.kind.0 != 0, "kind 0 is never valid on disk");
        Layout::new()
            .put(&MAGIC)
            .put(&VERSION.to_le_bytes())
            .put(&[0; 2])
            .put(&[self.kind.0, 0, 0, 0])
            .put(&self.queue.get().to_le_bytes())
            .put(&self.generation.to_le_bytes())
            .seal(|covered| crc(0, covered))
    }

    /// Reads the header at the front of `bytes`.
    ///
    /// # Errors
    /// `NeedMore` below 64 bytes; `Zeros`, `BadMagic`, `BadHeader` if this is no header (try [`repair`](Self::repair) on the
    /// last two); `Version`, `Incompatible` if a newer program wrote it; `Malformed`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = bytes
            .first_chunk::<JOURNAL_HEADER_BYTES>()
            .ok_or(DecodeError::NeedMore { bytes: JOURNAL_HEADER_BYTES })?;
        if !block.starts_with(&MAGIC) {
            let blank = block.iter().all(|byte| *byte == 0);
            return Err(if blank { DecodeError::Zeros } else { DecodeError::BadMagic });
        }
        if !is_sealed(block, |covered| crc(0, covered)) {
            return Err(DecodeError::BadHeader);
        }
        let mut fields = Fields::of(block);
        let _magic: [u8; 8] = fields.take();
        let (version, flags) = (fields.u16(), fields.u16());
        if version != VERSION {
            return Err(DecodeError::Version { found: version, known: VERSION });
        }
        if flags & INCOMPATIBLE_FLAGS != 0 {
            return Err(DecodeError::Incompatible { flags: flags & INCOMPATIBLE_FLAGS });
        }
        let kind = JournalKind(fields.u8());
        let zero: [u8; 3] = fields.take();
        if kind.0 == 0 || zero != [0; 3] {
            return Err(DecodeError::Malformed);
        }
        Ok(Self { kind, queue: QueueId::new(fields.u128()), generation: fields.u64() })
    }

    /// Reads a header of which one bit is wrong; `None` if no one-bit neighbour is a header.
    #[must_use]
    pub fn repair(bytes: &[u8]) -> Option<Self> {
        let block = bytes.first_chunk::<JOURNAL_HEADER_BYTES>()?;
        one_bit_neighbour(block, |near| Self::decode(near).ok())
    }

    /// Appends one entry to `out`. Numbers count from 1 in each file, without holes; kind 0 is not allowed.
    ///
    /// # Panics
    /// If the body is longer than [`ENTRY_BODY_BYTES_MAX`].
    pub fn encode_entry(&self, out: &mut Vec<u8>, number: u64, tag: EntryTag, body: &[u8]) {
        let length = body.len();
        assert!(
            length <= ENTRY_BODY_BYTES_MAX,
            "a body of {length} bytes: the limit is {ENTRY_BODY_BYTES_MAX}"
        );
        debug_assert!(number != 0 && tag.kind != 0, "entry {number} of kind {}: neither may be 0", tag.kind);
        let seed = self.seed(number);
        let head: [u8; ENTRY_HEAD_BYTES] = Layout::new()
            .put(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes())
            .put(&[tag.version, tag.kind, 0, 0])
            .put(&number.to_le_bytes())
            .put(&crc(seed, body).to_le_bytes())
            .seal(|covered| crc(seed, covered));
        out.extend_from_slice(&head);
        out.extend_from_slice(body);
    }

    /// Reads the entries of the journal; `entries` are the bytes behind the file header.
    #[must_use]
    pub const fn scan<'a>(&self, entries: &'a [u8]) -> JournalScan<'a> {
        let effort = entries.len().saturating_mul(EFFORT);
        JournalScan { header: *self, next: 1, rest: entries, offset: 0, effort }
    }

    /// Reads the entry at the front of `bytes`, which should bear this number; nothing is mended.
    ///
    /// # Errors
    /// `NeedMore` if it is longer than `bytes`; `Zeros`; `BadHeader` if its head is not sound; `Malformed`; `Mismatch` if
    /// its head is sound and its body is not: torn, or damaged.
    pub fn entry_at<'a>(&self, bytes: &'a [u8], number: u64) -> Result<Entry<'a>, DecodeError> {
        let (head, rest) = bytes
            .split_first_chunk::<ENTRY_HEAD_BYTES>()
            .ok_or(DecodeError::NeedMore { bytes: ENTRY_HEAD_BYTES })?;
        let seed = self.seed(number);
        if !is_sealed(head, |covered| crc(seed, covered)) {
            let blank = head.iter().all(|byte| *byte == 0);
            return Err(if blank { DecodeError::Zeros } else { DecodeError::BadHeader });
        }
        let mut fields = Fields::of(head);
        let length = fields.u32() as usize;
        let tag = EntryTag { version: fields.u8(), kind: fields.u8() };
        let (zero, claimed, body_crc) = (fields.u16(), fields.u64(), fields.u32());
        if length > ENTRY_BODY_BYTES_MAX || zero != 0 || tag.kind == 0 || claimed != number || number == 0 {
            return Err(DecodeError::Malformed);
        }
        let body = rest.get(..length).ok_or(DecodeError::NeedMore { bytes: ENTRY_HEAD_BYTES + length })?;
        if crc(seed, body) != body_crc {
            return Err(DecodeError::Mismatch);
        }
        Ok(Entry { number, tag, body })
    }

    /// Which one bit of the body of the entry at the front of `bytes` is flipped, counted from bit 0 of the body's first byte: its
    /// head is sound and one bit explains why its body is not. `None` if none does, or nothing is wrong.
    #[must_use]
    pub fn flipped_bit(&self, bytes: &[u8], number: u64) -> Option<usize> {
        if self.entry_at(bytes, number) != Err(DecodeError::Mismatch) {
            return None;
        }
        let (head, rest) = bytes.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
        let mut fields = Fields::of(head);
        let body = rest.get(..fields.u32() as usize)?;
        let stored = head.get(16..).map(|at| Fields::of(at).u32())?;
        locate_flip(stored, crc(self.seed(number), body), body.len()).filter(|bit| *bit < body.len() * 8)
    }

    fn seed(&self, number: u64) -> u32 {
        let seed: [u8; 40] = Layout::new()
            .put(&self.queue.get().to_le_bytes())
            .put(&self.generation.to_le_bytes())
            .put(&u64::from(self.kind.0).to_le_bytes())
            .put(&number.to_le_bytes())
            .into_bytes();
        crc(0, &seed)
    }
}

/// What the owner says about an entry's body, opaque to the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryTag {
    /// The version of the body's encoding.
    pub version: u8,
    /// What the body is; not 0.
    pub kind: u8,
}

/// One entry, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry<'a> {
    /// Its number in the file, from 1.
    pub number: u64,
    /// The owner's version and kind.
    pub tag: EntryTag,
    /// The body.
    pub body: &'a [u8],
}

/// What a scan of a journal finds, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JournalItem<'a> {
    /// A sound entry.
    Entry(Entry<'a>),
    /// Entries `[from, to)` are damaged, and a sound entry follows behind them.
    Damaged {
        /// The first damaged number.
        from: u64,
        /// The number of the sound entry that follows.
        to: u64,
    },
    /// The last item, if sound entries do not reach the end of the bytes: from here on they are a torn tail, or zeros.
    Tail {
        /// Where the tail starts, in bytes behind the file header.
        offset: usize,
    },
}

/// Iterator of [`JournalHeader::scan`].
#[derive(Clone, Debug)]
pub struct JournalScan<'a> {
    header: JournalHeader,
    next: u64,
    rest: &'a [u8],
    offset: usize,
    /// Body bytes the search may still look at.
    effort: usize,
}

impl<'a> JournalScan<'a> {
    /// What a head says, if it is sound: the tag, the length and the checksum of its body.
    fn sound_head(&self, head: &[u8; ENTRY_HEAD_BYTES], number: u64) -> Option<(EntryTag, usize, u32)> {
        let mut fields = Fields::of(head);
        let length = fields.u32() as usize;
        let tag = EntryTag { version: fields.u8(), kind: fields.u8() };
        let (zero, claimed, body_crc) = (fields.u16(), fields.u64(), fields.u32());
        if length > ENTRY_BODY_BYTES_MAX || zero != 0 || tag.kind == 0 || claimed != number || number == 0 {
            return None;
        }
        is_sealed(head, |covered| crc(self.header.seed(number), covered)).then_some((tag, length, body_crc))
    }

    /// The sound entry at the front of `bytes`, its head as it is.
    fn entry(&self, head: &[u8; ENTRY_HEAD_BYTES], rest: &'a [u8], number: u64) -> Option<Entry<'a>> {
        let (tag, length, body_crc) = self.sound_head(head, number)?;
        let body = rest.get(..length)?;
        (crc(self.header.seed(number), body) == body_crc).then_some(Entry { number, tag, body })
    }

    fn expected(&self) -> Option<Entry<'a>> {
        let (head, rest) = self.rest.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
        self.entry(head, rest, self.next)
            .or_else(|| one_bit_neighbour(head, |near| self.entry(near, rest, self.next)))
    }

    /// The next sound entry with a higher number than expected, as its number and distance.
    fn search(&mut self) -> Option<(u64, usize)> {
        // No entry begins in the zeros that were prepared behind the last one.
        let mut left = without_zeros(self.rest).len();
        let mut rest = self.rest;
        while left > 0 {
            left -= 1;
            let (head, body) = rest.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
            let number = head.get(8..).map_or(0, |at| Fields::of(at).u64());
            if number > self.next
                && let Some((_, length, _)) = self.sound_head(head, number)
                && length <= body.len()
                && let Some(left) = self.effort.checked_sub(length)
            {
                self.effort = left;
                if self.entry(head, body, number).is_some() {
                    return Some((number, self.rest.len() - rest.len()));
                }
            }
            (_, rest) = rest.split_first()?;
        }
        None
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.offset += bytes;
    }
}

impl<'a> Iterator for JournalScan<'a> {
    type Item = JournalItem<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some(entry) = self.expected() {
            self.next = self.next.saturating_add(1);
            self.advance(ENTRY_HEAD_BYTES + entry.body.len());
            return Some(JournalItem::Entry(entry));
        }
        if let Some((to, distance)) = self.search() {
            let from = self.next;
            self.next = to;
            self.advance(distance);
            return Some(JournalItem::Damaged { from, to });
        }
        self.rest = &[];
        Some(JournalItem::Tail { offset: self.offset })
    }
}

impl core::iter::FusedIterator for JournalScan<'_> {}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
