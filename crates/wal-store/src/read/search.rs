//! Finding where a seq stands in a segment: by a hint that is checked, or by hopping from header to header.
//!
//! ```text
//!   | header | batch 1-40 | batch 41-90 | batch 91-… |      wanted: 77
//!              └── hop ──> └── here: 41 <= 77 < 91
//! ```
//!
//! Invariant: where it stops, no batch in front holds the seq; what stands there is the reader's to verify.

use disk::DiskError;
use wal_format::{BATCH_HEADER_BYTES, BatchHeader};

use super::Position;
use super::fill::Reading;

/// How much is read at a time while headers are searched, in bytes.
const SEARCH_BYTES: usize = 64 << 10;
/// As [`SEARCH_BYTES`], after a batch longer than that.
const HOP_BYTES: usize = 4 << 10;

impl Reading<'_> {
    /// Moves `offset` to a batch at or in front of `seq`: the hint's if a header that is not beyond `seq` decodes
    /// there, else by hopping over headers from the first batch on.
    pub(super) fn start(&mut self, hint: Option<Position>) -> Result<(), DiskError> {
        if let Some(hint) = hint
            && hint.segment == self.segment.id
            && hint.offset >= self.offset
            && hint.offset < self.segment.end_offset
        {
            let mut bytes = [0; BATCH_HEADER_BYTES];
            let got = self.file.read_at(&mut bytes, hint.offset)?;
            let header = BatchHeader::decode(bytes.get(..got).unwrap_or_default(), &self.identity);
            if header.is_ok_and(|header| header.first_seq <= self.seq) {
                self.offset = hint.offset;
                return Ok(());
            }
        }
        if self.seq > self.segment.first_seq { self.search() } else { Ok(()) }
    }

    fn search(&mut self) -> Result<(), DiskError> {
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
                let header = BatchHeader::decode(rest, &self.identity)
                    .ok()
                    .or_else(|| BatchHeader::repair(rest.get(..BATCH_HEADER_BYTES)?, &self.identity));
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
