//! Bytes to records and back: a record is the bytes between line feeds, and nothing is ever added, dropped or changed.
//!
//! ```text
//!   "a\r\n" "" "\n" "b"   ->   "a\r" | "" | "b" marked: no line feed
//! ```
//! A line longer than a record may be is split: every piece but the last is marked "no line feed", so that the pieces joined are the
//! line. Writing a record and, unless it is marked, a line feed gives back the input byte for byte.

use pq::{Marks, Record, RecordRef};

/// The bit that says: no line feed followed this record.
const NO_LINE_FEED_BIT: u8 = 1;

/// How long records and batches may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of a record; longer lines are split.
    pub(crate) record_bytes_max: usize,
    /// Records taken from a chunk at once.
    pub(crate) records_max: usize,
    /// Bytes of records with what each costs in a batch.
    pub(crate) batch_bytes_max: usize,
}

/// Bytes a record costs in a batch beside its payload.
pub(crate) const FRAME_BYTES: usize = 16;
/// Bytes a batch costs beside its records: its header, a tag, padding.
const BATCH_BYTES: usize = 512;

impl Limits {
    /// What a stream of these settings takes in one `append_batch`.
    pub(crate) fn of(settings: &pq::StreamSettings) -> Self {
        let batch_bytes_max = settings.batch_bytes_max.saturating_sub(BATCH_BYTES).max(FRAME_BYTES + 1);
        Self {
            record_bytes_max: settings.record_bytes_max.min(batch_bytes_max - FRAME_BYTES).max(1),
            records_max: usize::try_from(settings.batch_records_max).unwrap_or(usize::MAX).max(1),
            batch_bytes_max,
        }
    }
}

/// What becomes of bytes behind the last line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// They wait: more may come.
    Keep,
    /// They are a record: nothing more will come.
    Take,
}

/// Appends the chunk's records to `records`, as many as the limits allow; returns the bytes they take up.
pub(crate) fn split<'a>(chunk: &'a [u8], limits: Limits, rest: Rest, records: &mut Vec<Record<'a>>) -> usize {
    let mut taken = 0;
    let mut batch_bytes = 0;
    while let Some((piece, length)) = next_piece(&chunk[taken..], limits.record_bytes_max, rest) {
        batch_bytes += FRAME_BYTES + piece.len();
        if records.len() == limits.records_max || batch_bytes > limits.batch_bytes_max {
            break;
        }
        records.push(Record::new(piece).with_marks(marks(length > piece.len())));
        taken += length;
    }
    taken
}

/// The next record and the bytes it takes up, its line feed included.
fn next_piece(bytes: &[u8], record_bytes_max: usize, rest: Rest) -> Option<(&[u8], usize)> {
    let window = &bytes[..bytes.len().min(record_bytes_max.saturating_add(1))];
    if let Some(at) = find_line_feed(window) {
        return Some((&bytes[..at], at + 1));
    }
    if bytes.len() > record_bytes_max {
        return Some((&bytes[..record_bytes_max], record_bytes_max));
    }
    (rest == Rest::Take && !bytes.is_empty()).then_some((bytes, bytes.len()))
}

/// Eight bytes at a time: this is where a source spends its time.
fn find_line_feed(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in words.by_ref() {
        let word = u64::from_le_bytes(word.try_into().unwrap_or([0; 8])) ^ (LOW * u64::from(b'\n'));
        let zeros = word.wrapping_sub(LOW) & !word & HIGH;
        if zeros != 0 {
            return Some(at + (zeros.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    words.remainder().iter().position(|byte| *byte == b'\n').map(|rest| at + rest)
}

fn marks(line_feed: bool) -> Marks {
    let bits = if line_feed { 0 } else { NO_LINE_FEED_BIT };
    Marks::new(bits).unwrap_or(Marks::NONE)
}

/// Whether a line feed followed this record.
pub(crate) fn has_line_feed(record: &RecordRef<'_>) -> bool {
    record.marks.get() & NO_LINE_FEED_BIT == 0
}

/// Appends the record as it stood in its source.
pub(crate) fn join(record: &RecordRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(record.payload);
    if has_line_feed(record) {
        out.push(b'\n');
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
