//! Finding where a seq stands in a segment: by a hint that is checked, or by hopping from header to header.
//!
//! ```text
//!   | header | batch 1-40 | batch 41-90 | batch 91-… |      wanted: 77
//!              └── hop ──> └── here: 41 <= 77 < 91
//! ```
//!
//! Invariant: where it stops, no batch in front holds the seq; what stands there is the reader's to verify.

use disk::DiskError;
use wal_format::{BATCH_HEADER_BYTES, BatchHeader, SEGMENT_HEADER_BYTES};

use super::fill::Reading;
use super::{Position, header_at};

/// How much is read at a time while headers are searched, in bytes.
const SEARCH_BYTES: usize = 64 << 10;
/// As [`SEARCH_BYTES`], after a batch longer than that.
const HOP_BYTES: usize = 4 << 10;

impl Reading<'_> {
    /// Moves `offset` to a batch at or in front of `seq`: for now the hint's, or where hopping over headers from the
    /// first batch on ends. Whether it is the hint's.
    pub(super) fn start(&mut self, hint: Option<Position>) -> Result<bool, DiskError> {
        if let Some(hint) = hint
            && hint.segment == self.segment.id
            && hint.offset >= self.offset
            && hint.offset < self.segment.end_offset
        {
            self.offset = hint.offset;
            return Ok(true);
        }
        self.search().map(|()| false)
    }

    /// Whether a header that is not beyond `seq` stands at the hint; else searches as if there had been no hint.
    pub(super) fn check_hint(&mut self, bytes: &[u8]) -> Result<bool, DiskError> {
        let header = BatchHeader::decode(bytes, &self.identity);
        if header.is_ok_and(|header| header.first_seq <= self.seq) {
            return Ok(true);
        }
        self.offset = SEGMENT_HEADER_BYTES as u64;
        self.search().map(|()| false)
    }

    /// Hops from the first batch on, as long as it is in front of the one that holds `seq`.
    fn search(&mut self) -> Result<(), DiskError> {
        if self.seq <= self.segment.first_seq {
            return Ok(());
        }
        let mut window = vec![0; SEARCH_BYTES];
        let mut size = SEARCH_BYTES;
        let mut expected = self.segment.first_seq;
        loop {
            let base = self.offset;
            let Some(buffer) = window.get_mut(..size) else { return Ok(()) };
            let got = self.file.read_at(buffer, base)?;
            let bytes = buffer.get(..got).unwrap_or_default();
            loop {
                let at = usize::try_from(self.offset - base).unwrap_or(usize::MAX);
                let rest = bytes.get(at..).unwrap_or_default();
                if rest.len() < BATCH_HEADER_BYTES && self.offset > base {
                    // Long batches: the bytes between two headers need not be read.
                    size = if at > got { HOP_BYTES } else { SEARCH_BYTES };
                    break;
                }
                let header = header_at(&self.identity, rest);
                // Old bytes of the file are below what is expected; whoever reads on sorts them out.
                let passed = |h: &BatchHeader| h.first_seq >= expected && h.end_seq() <= self.seq;
                let Some(header) = header.filter(passed) else { return Ok(()) };
                expected = header.end_seq();
                let next = header.end_offset(self.offset);
                if next >= self.segment.end_offset {
                    return Ok(());
                }
                self.offset = next;
            }
        }
    }
}
