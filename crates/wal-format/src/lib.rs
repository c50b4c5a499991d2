//! The bytes of a pq queue.
#![no_std]

extern crate alloc;

mod batch;
mod checksum;
mod error;
mod frame;
mod fuzz;
mod ids;
mod journal;
mod scan;
mod segment;
mod time;

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
pub use scan::{
    BatchView, Frames, Salvage, Salvaged, find_batch, read_batch, salvage, verified_frames, verify_batch,
};
pub use segment::{Predecessor, SEGMENT_HEADER_BYTES, SegmentHeader};
pub use time::{Instant, Now, WallTime};
