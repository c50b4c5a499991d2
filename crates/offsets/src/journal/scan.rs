//! Reading one journal file's bytes: classify, mend one flipped bit, keep whole writes. Pure, total.
//!
//! ```text
//!   w1e0 w1e1 w1e2* | w2e0* | w3e0 ~~~~ | w4e0*      * = last of its write
//!                             damage  ▲     proves that everything before it was durable
//! ```
//!
//! Invariants: a write without one of its entries counts only if an entry of a later write is sound (then its loss
//! is damage; what is left of it is kept); otherwise it is torn and none of it counts.

use wal_format::{
    DecodeError, ENTRY_HEAD_BYTES, Entry, JOURNAL_HEADER_BYTES, JournalHeader, JournalItem, without_zeros,
};

use super::bodies::Bodies;
use super::report::FileOutcome;

/// Version of this journal's entries.
pub(super) const ENTRY_VERSION: u8 = 1;
/// Tag kind: more entries of the same write follow.
pub(super) const KIND_MORE: u8 = 1;
/// Tag kind: the last entry of its write.
pub(super) const KIND_LAST: u8 = 2;
/// Bytes of the index at the start of each body.
pub(super) const INDEX_BYTES: usize = 4;

/// What the bytes of one file turned out to be.
#[derive(Debug)]
pub(super) struct Scan {
    /// `Current` if it may be it; the caller picks one.
    pub(super) outcome: FileOutcome,
    /// The bodies that count, in order.
    pub(super) bodies: Bodies,
    /// Sound entries, mended ones included.
    pub(super) entry_count: u64,
    /// Mended entries, and the header.
    pub(super) mended_count: u64,
    /// Durable entries that are lost.
    pub(super) lost_count: u64,
    /// Bytes at the end that are neither entries that count nor zeros.
    pub(super) torn_bytes: u64,
}

impl Scan {
    const fn of(outcome: FileOutcome) -> Self {
        Self { outcome, bodies: Bodies::new(), entry_count: 0, mended_count: 0, lost_count: 0, torn_bytes: 0 }
    }
}

/// Classifies and reads the bytes of the file that should be `expected`.
pub(super) fn scan(expected: &JournalHeader, bytes: &[u8]) -> Scan {
    if bytes.is_empty() {
        return Scan::of(FileOutcome::Empty);
    }
    let Some((head, rest)) = bytes.split_at_checked(JOURNAL_HEADER_BYTES) else {
        return Scan::of(if is_zero(bytes) { FileOutcome::Prepared } else { FileOutcome::Incomplete });
    };
    if is_zero(head) {
        // The header shares its sector with the first entries: without it the write that made the file never ended.
        return Scan::of(if is_zero(rest) { FileOutcome::Prepared } else { FileOutcome::Incomplete });
    }
    let mended = match JournalHeader::decode(head) {
        Ok(found) if found == *expected => 0,
        Ok(found) if found.queue == expected.queue && found.kind == expected.kind => {
            return Scan::of(FileOutcome::Misnamed);
        }
        Ok(_) => return Scan::of(FileOutcome::Foreign),
        Err(DecodeError::Version { found, .. }) => return Scan::of(FileOutcome::Version { found }),
        Err(DecodeError::Incompatible { flags }) => {
            return Scan::of(FileOutcome::Version { found: flags });
        }
        Err(_) if header_is_one_bit_off(expected, head) => 1,
        Err(_) if is_cut_short(expected, head) && is_zero(rest) => return Scan::of(FileOutcome::Incomplete),
        Err(_) => return Scan::of(FileOutcome::Damaged),
    };
    let mut writes = Writes::default();
    writes.read(expected, rest);
    writes.into_scan(mended, rest)
}

fn is_zero(bytes: &[u8]) -> bool {
    without_zeros(bytes).is_empty()
}

/// Every bit of the header is known, so its one-bit neighbours need no search.
fn header_is_one_bit_off(expected: &JournalHeader, head: &[u8]) -> bool {
    let sound = expected.encode();
    let differing: u32 = sound.iter().zip(head).map(|(a, b)| (a ^ b).count_ones()).sum();
    differing == 1
}

/// The front of the header and zeros: the write that makes the file failed in the middle of it.
fn is_cut_short(expected: &JournalHeader, head: &[u8]) -> bool {
    let sound = expected.encode();
    let there = sound.iter().zip(head).take_while(|(a, b)| a == b).count();
    is_zero(head.get(there..).unwrap_or_default())
}

/// Puts entries together to writes.
#[derive(Debug, Default)]
struct Writes {
    /// Bodies of the writes that count.
    counted: Bodies,
    /// Bodies of the write being read.
    open: Bodies,
    /// Number of the open write's first entry; 0 if no write is open.
    open_from: u64,
    /// Lost entries of the open write.
    open_lost: u64,
    /// Whether the open write's last entry was seen.
    open_ended: bool,
    /// Whether the write that begins with entry 1 is whole.
    snapshot_whole: bool,
    /// Whether any write after the first one began.
    proven: bool,
    version: Option<u8>,
    entry_count: u64,
    mended_count: u64,
    lost_count: u64,
    /// Number of the next entry.
    next_number: u64,
    /// Where the entries that were taken end, behind the file header.
    end: usize,
    /// Where the last write that counts ends.
    counted_end: usize,
}

impl Writes {
    fn read(&mut self, header: &JournalHeader, bytes: &[u8]) {
        self.next_number = 1;
        for item in header.scan(bytes) {
            match item {
                JournalItem::Entry(entry) => {
                    // Where it ends is where its body ends; the scan may have stepped over filler to find it.
                    let body = offset_in(bytes, entry.body);
                    let stands = bytes.get(body - ENTRY_HEAD_BYTES..).unwrap_or_default();
                    // The scan mends a head by itself.
                    self.mended_count += u64::from(header.entry_at(stands, entry.number).is_err());
                    self.take(&entry, body + entry.body.len());
                }
                JournalItem::Damaged { from, to } => {
                    self.next_number = from;
                    while self.next_number < to && self.mend_next(header, bytes) {}
                    self.lose(to);
                }
                JournalItem::Tail { .. } => {
                    self.mend_next(header, bytes);
                }
            }
            if self.version.is_some() {
                return;
            }
        }
        self.close_whole();
    }

    /// Takes a sound entry that ends at `end`.
    fn take(&mut self, entry: &Entry<'_>, end: usize) {
        if entry.tag.version != ENTRY_VERSION {
            self.version = Some(entry.tag.version);
            return;
        }
        let Some((index, body)) = entry.body.split_first_chunk::<INDEX_BYTES>() else { return };
        let index = u64::from(u32::from_le_bytes(*index));
        if index >= entry.number {
            return;
        }
        let from = entry.number - index;
        if from != self.open_from {
            self.next_write(from, entry.number);
        }
        self.open.push(body);
        self.open_ended |= entry.tag.kind == KIND_LAST;
        self.entry_count += 1;
        self.next_number = entry.number.saturating_add(1);
        self.end = end;
        self.close_whole();
    }

    /// An entry of the write that began with entry `from` came, so all earlier writes were durable.
    fn next_write(&mut self, from: u64, number: u64) {
        self.close_whole();
        if self.open_from != 0 || !self.open.is_empty() {
            // Damaged, not torn: keep what is left of it.
            for body in self.open.iter() {
                self.counted.push(body);
            }
        }
        // Lost entries before `from` were of earlier writes, the others are of this one.
        let missing_here = (number - from).min(self.open_lost);
        self.lost_count += self.open_lost - missing_here;
        self.open_lost = missing_here;
        self.proven |= from > 1;
        self.open.clear();
        self.open_from = from;
        self.open_ended = false;
    }

    /// Entries from the next one to `to` (exclusive) cannot be mended.
    fn lose(&mut self, to: u64) {
        self.open_lost += to.saturating_sub(self.next_number);
        self.next_number = self.next_number.max(to);
    }

    /// Counts the open write if it is whole.
    fn close_whole(&mut self) {
        if self.open_from == 0 || !self.open_ended || self.open_lost != 0 {
            return;
        }
        for body in self.open.iter() {
            self.counted.push(body);
        }
        self.snapshot_whole |= self.open_from == 1;
        self.counted_end = self.end;
        self.open.clear();
        self.open_from = 0;
        self.open_ended = false;
    }

    /// Mends the entry that should stand where the last one ended, if one flipped bit of its body explains it.
    fn mend_next(&mut self, header: &JournalHeader, bytes: &[u8]) -> bool {
        let Some(rest) = bytes.get(self.end..) else { return false };
        let Some(length) = rest.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize) else {
            return false;
        };
        let Some(entry) = rest.get(..ENTRY_HEAD_BYTES.saturating_add(length)) else { return false };
        let Some(bit) = header.flipped_bit(entry, self.next_number) else { return false };
        let mut mended = entry.to_vec();
        flip(&mut mended, ENTRY_HEAD_BYTES * 8 + bit);
        let Ok(entry) = header.entry_at(&mended, self.next_number) else { return false };
        let number = self.next_number;
        self.take(&entry, self.end + ENTRY_HEAD_BYTES + entry.body.len());
        // One whose body makes no sense is not taken, mended or not.
        let is_taken = self.next_number > number;
        self.mended_count += u64::from(is_taken);
        is_taken
    }

    fn into_scan(self, mended: u64, rest: &[u8]) -> Scan {
        let outcome = match self.version {
            Some(version) => FileOutcome::Version { found: u16::from(version) },
            None if self.snapshot_whole => FileOutcome::Current,
            None if self.proven => FileOutcome::Damaged,
            None => FileOutcome::Incomplete,
        };
        let tail = rest.get(self.counted_end..).unwrap_or_default();
        let torn = without_zeros(tail).len();
        Scan {
            outcome,
            bodies: self.counted,
            entry_count: self.entry_count,
            mended_count: self.mended_count + mended,
            lost_count: self.lost_count,
            torn_bytes: torn as u64,
        }
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Where `part`, a slice of `whole`, begins in it.
fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
