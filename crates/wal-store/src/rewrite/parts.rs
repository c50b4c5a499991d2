//! What is left of a damaged batch, as batches again: the records that verify, under headers that describe just them.
//!
//! ```text
//!   batch 5-9 │ 5  6  ~~  8  9 │   ──>   batch 5-6 │ batch 8-9      7 is lost
//! ```
//!
//! Invariants: no record is invented and none that verifies is left out; what was skipped in front of the batch stays skipped;
//! tags stay in front of the record they stood in front of, as far as that record is there.

use wal_format::{
    BatchFlags, BatchHeader, FrameKind, Marks, Salvaged, Seq, StreamIdentity, Tag, batch_checksum,
    encode_frame, salvage,
};

use crate::OwnedTag;

/// A batch to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) header: BatchHeader,
    pub(super) frames: Vec<u8>,
}

/// Takes apart a batch whose frames do not match its (sound or mended) header. `frames` may be cut short.
///
/// If nothing is lost the one part is the batch as it once was, byte for byte.
pub(super) fn parts(identity: &StreamIdentity, header: &BatchHeader, frames: &[u8]) -> Vec<Part> {
    let mut builder = Builder {
        identity,
        header,
        parts: Vec::new(),
        open: None,
        metas: Vec::new(),
        next: header.first_seq,
    };
    for item in salvage(identity, header, frames) {
        match item {
            Salvaged::Lost { to, .. } => {
                builder.close();
                builder.next = to;
            }
            Salvaged::LostMeta { .. } => {}
            Salvaged::Frame(frame) => match (frame.kind, frame.seq) {
                (FrameKind::Record, Some(seq)) => builder.record(seq, frame.marks, frame.payload),
                _ => builder.metas.push(frame.payload.to_vec()),
            },
        }
    }
    builder.close();
    if let [part] = &mut builder.parts[..]
        && part.header.batch_crc == header.batch_crc
        && (part.header.count, part.header.frames_bytes) == (header.count, header.frames_bytes)
    {
        part.header = *header;
    }
    builder.parts
}

/// The same batch behind these tags; `None` if there are none.
pub(super) fn tagged(
    identity: &StreamIdentity,
    tags: &[OwnedTag],
    header: &BatchHeader,
    frames: &[u8],
) -> Option<Part> {
    if tags.is_empty() {
        return None;
    }
    let mut part = Part { header: *header, frames: Vec::new() };
    for tag in tags {
        // They were read from a batch, so they are none too long.
        let Ok(tag) = Tag::new(&tag.producer, &tag.value) else { continue };
        tag.encode(&mut part.frames, identity, header.first_seq);
    }
    part.frames.extend_from_slice(frames);
    part.seal(identity);
    Some(part)
}

impl Part {
    /// The header says how many bytes of frames there are, and their checksum.
    fn seal(&mut self, identity: &StreamIdentity) {
        self.header.frames_bytes = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let mut checksum = batch_checksum(identity, self.header.first_seq);
        checksum.update(&self.frames);
        self.header.batch_crc = checksum.get();
    }
}

struct Builder<'a> {
    identity: &'a StreamIdentity,
    /// The batch's.
    header: &'a BatchHeader,
    parts: Vec<Part>,
    open: Option<Part>,
    /// Tags that stand in front of whatever comes next.
    metas: Vec<Vec<u8>>,
    /// The seq expected next.
    next: Seq,
}

impl Builder<'_> {
    fn record(&mut self, seq: Seq, marks: Marks, payload: &[u8]) {
        let mut part = self.open.take().unwrap_or_else(|| self.begin(seq));
        self.metas_into(&mut part.frames, seq);
        encode_frame(&mut part.frames, self.identity, seq, FrameKind::Record, marks, &[payload]);
        part.header.count += 1;
        self.next = seq.saturating_add(1);
        self.open = Some(part);
    }

    fn begin(&self, first_seq: Seq) -> Part {
        let is_first = self.parts.is_empty();
        let skipped = is_first && self.header.flags.contains(BatchFlags::SKIPPED);
        let header = BatchHeader {
            flags: if skipped { BatchFlags::SKIPPED } else { BatchFlags::NONE },
            first_seq,
            prev_seq: if is_first { self.header.prev_seq } else { first_seq.get() - 1 },
            count: 0,
            frames_bytes: 0,
            batch_crc: 0,
            ..*self.header
        };
        Part { header, frames: Vec::new() }
    }

    /// A tag's seed is the seq of the next record of its batch, or the seq behind the last one.
    fn metas_into(&mut self, frames: &mut Vec<u8>, seq: Seq) {
        for meta in self.metas.drain(..) {
            encode_frame(frames, self.identity, seq, FrameKind::Meta, Marks::NONE, &[&meta]);
        }
    }

    fn close(&mut self) {
        let Some(mut part) = self.open.take() else { return };
        self.metas_into(&mut part.frames, self.next);
        part.seal(self.identity);
        self.parts.push(part);
    }
}
