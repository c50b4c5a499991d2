//! The slow path: what is left of a batch whose checksum does not match, and where the next batch begins.
//!
//! Nothing here trusts a byte that a checksum does not vouch for; what comes out is records as good as new, and exact
//! ranges of those that are not.

use disk::{DiskError, File};
use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, FrameKind, Salvaged, Seq, StreamIdentity, encode_frame,
    find_batch, salvage,
};

/// How much of a file is searched at a time, in bytes.
const WINDOW_BYTES: usize = 1 << 20;
/// What a hole in a file looks like.
static ZEROS: [u8; WINDOW_BYTES] = [0; WINDOW_BYTES];

/// A part of a mended batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Records that verify, encoded again, under a header that describes just them.
    Records { header: BatchHeader, frames: Vec<u8> },
    /// Records `[from, to)` are gone.
    Lost { from: Seq, to: Seq },
}

/// Takes apart a batch whose frames do not match its (sound or mended) header. `frames` may be cut short.
pub(crate) fn mend(identity: &StreamIdentity, header: &BatchHeader, frames: &[u8]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for salvaged in salvage(identity, header, frames) {
        match salvaged {
            Salvaged::Lost { from, to } => match parts.last_mut() {
                Some(Part::Lost { to: end, .. }) if *end == from => *end = to,
                _ => parts.push(Part::Lost { from, to }),
            },
            Salvaged::Frame(frame) => {
                let (Some(seq), FrameKind::Record) = (frame.seq, frame.kind) else { continue };
                if !matches!(parts.last(), Some(Part::Records { .. })) {
                    parts.push(Part::Records { header: part_header(header, seq), frames: Vec::new() });
                }
                if let Some(Part::Records { header, frames }) = parts.last_mut() {
                    encode_frame(frames, identity, seq, FrameKind::Record, frame.marks, &[frame.payload]);
                    header.count += 1;
                    header.frames_bytes = u32::try_from(frames.len()).unwrap_or(u32::MAX);
                }
            }
            Salvaged::LostMeta { .. } => {}
        }
    }
    parts
}

fn part_header(header: &BatchHeader, first_seq: Seq) -> BatchHeader {
    BatchHeader { flags: BatchFlags::NONE, first_seq, count: 0, frames_bytes: 0, ..*header }
}

/// The next place in `[from, end)` of the file where a batch header of ours decodes and is `wanted`.
pub(crate) fn find_next(
    file: &dyn File,
    identity: &StreamIdentity,
    from: u64,
    end: u64,
    wanted: &dyn Fn(&BatchHeader) -> bool,
) -> Result<Option<(u64, BatchHeader)>, DiskError> {
    let mut window =
        vec![0; WINDOW_BYTES.min(usize::try_from(end.saturating_sub(from)).unwrap_or(WINDOW_BYTES))];
    let mut base = from;
    while base < end {
        let room = usize::try_from(end - base).unwrap_or(usize::MAX).min(window.len());
        let Some(buffer) = window.get_mut(..room) else { break };
        let got = file.read_at(buffer, base)?;
        let bytes = buffer.get(..got).unwrap_or_default();
        // Holes are compared, not searched: a file may say that it is enormous.
        let mut at = if ZEROS.get(..got) == Some(bytes) { got } else { 0 };
        while let Some((found, header)) = find_batch(identity, bytes, at) {
            if wanted(&header) {
                return Ok(Some((base.saturating_add(found as u64), header)));
            }
            at = found.saturating_add(1);
        }
        // A header may straddle two windows.
        let step = got.saturating_sub(BATCH_HEADER_BYTES - 1);
        if got < room || step == 0 || base.saturating_add(got as u64) >= end {
            break;
        }
        base = base.saturating_add(step as u64);
    }
    Ok(None)
}
