//! The bytes of a pq queue: identities, checksums, segment and batch headers, frames, scanning, the journal envelope.
//!
//! This crate knows no files, no clock and no other crate of the queue. Encoding cannot fail; decoding is a total function
//! over `&[u8]` with one small error. The normative text is `docs/format.md`; `testdata/v1` holds golden bytes.
//!
//! ```text
//! segment file = segment header (4096) | batch | batch | …         ids.rs       who: Seq, StreamId, StreamIdentity …
//! batch        = batch header (64) | frame | frame | … | padding   checksum.rs  CRC-32C, seeded and backwards
//! frame        = head (16) | payload                               scan.rs      whole batches at memory speed
//! journal file = file header (64) | entry | entry | …              salvage.rs   what is left of a damaged one
//! ```
//!
//! Invariants: bytes of another stream or incarnation never decode as this one's; all-zero bytes are invalid everywhere; no
//! payload can pose as a frame; one flipped bit costs at most the record whose payload it hit.
//!
//! # Example
//!
//! Two records in a batch, written, read, and read again after a bit has flipped in the first payload:
//!
//! ```
//! use wal_format::*;
//!
//! let identity = StreamIdentity {
//!     queue: QueueId::new(1),
//!     stream: StreamId::new(7),
//!     incarnation: Incarnation::new(0xfeed),
//! };
//! let mut frames = Vec::new();
//! encode_frame(&mut frames, &identity, Seq::new(1), FrameKind::Record, Marks::NONE, &[b"hello, ", b"world"]);
//! encode_frame(&mut frames, &identity, Seq::new(2), FrameKind::Record, Marks::NONE, &[b"again"]);
//! let mut checksum = batch_checksum(&identity, Seq::FIRST);
//! checksum.update(&frames);
//! let header = BatchHeader {
//!     flags: BatchFlags::NONE,
//!     codec: 0,
//!     stream: identity.stream,
//!     first_seq: Seq::FIRST,
//!     prev_seq: 0,
//!     durable_seq: 1,
//!     append_time: WallTime::EPOCH,
//!     count: 2,
//!     frames_bytes: u32::try_from(frames.len())?,
//!     batch_crc: checksum.get(),
//! };
//! let mut file = header.encode(&identity).to_vec();
//! file.extend_from_slice(&frames);
//!
//! let batch = read_batch(&identity, &file)?;
//! let payloads: Vec<&[u8]> = batch.frames().map(|frame| frame.payload).collect();
//! assert_eq!(payloads, [&b"hello, world"[..], b"again"]);
//!
//! file[BATCH_HEADER_BYTES + FRAME_HEAD_BYTES] ^= 0x20;
//! assert_eq!(read_batch(&identity, &file).unwrap_err(), DecodeError::Mismatch);
//! let left: Vec<Salvaged<'_>> = salvage(&identity, &header, &file[BATCH_HEADER_BYTES..]).collect();
//! assert_eq!(left[0], Salvaged::Lost { from: Seq::new(1), to: Seq::new(2) });
//! assert!(matches!(left[1], Salvaged::Frame(frame) if frame.payload == b"again"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::unwrap_used)]

extern crate alloc;

mod batch;
mod checksum;
mod error;
mod frame;
mod fuzz;
mod ids;
mod journal;
mod layout;
mod salvage;
mod scan;
mod segment;
mod time;

#[cfg(test)]
mod testing;

pub use batch::{BATCH_HEADER_BYTES, BatchFlags, BatchHeader, FRAMES_BYTES_MAX, PADDING_BYTES};
pub use checksum::{Checksum, batch_checksum};
pub use error::DecodeError;
pub use frame::{
    FRAME_HEAD_BYTES, Frame, FrameKind, META_BYTES_MAX, Marks, PAYLOAD_BYTES_MAX, Tag, TagTooLong,
    encode_frame, frame_bytes, frame_head,
};
pub use fuzz::fuzz_record;
pub use ids::{ConsumerId, Incarnation, QueueId, SegmentId, Seq, StreamId, StreamIdentity};
pub use journal::{
    ENTRY_BODY_BYTES_MAX, ENTRY_HEAD_BYTES, Entry, EntryTag, JOURNAL_HEADER_BYTES, JournalHeader,
    JournalItem, JournalKind, JournalScan,
};
pub use layout::without_zeros;
pub use salvage::{Salvage, Salvaged, flipped_bit, salvage};
pub use scan::{BatchView, Frames, find_batch, read_batch, verified_frames, verify_batch};
pub use segment::{Predecessor, SEGMENT_HEADER_BYTES, SegmentHeader};
pub use time::{Instant, Now, WallTime};
