//! What the tests of this crate share: one identity, a small writer, and the forger's tools.

use crate::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, FrameKind, Incarnation, Marks, QueueId, Seq, StreamId,
    StreamIdentity, Tag, WallTime, batch_checksum,
    checksum::{StreamSeed, crc, unwind},
    encode_frame,
};

pub(crate) const IDENTITY: StreamIdentity = StreamIdentity {
    queue: QueueId::new(0x5151),
    stream: StreamId::new(9),
    incarnation: Incarnation::new(0x1234_5678_9abc_def0_0fed_cba9_8765_4321),
};

/// One thing to write into a batch.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Record(Vec<u8>, u8),
    Meta(Vec<u8>, Vec<u8>),
}

pub(crate) fn record(payload: &[u8]) -> Write {
    Write::Record(payload.to_vec(), 0)
}

pub(crate) fn frames_of(identity: &StreamIdentity, first: Seq, writes: &[Write]) -> (Vec<u8>, u32) {
    let (mut frames, mut next, mut count) = (Vec::new(), first, 0);
    for write in writes {
        match write {
            Write::Record(payload, marks) => {
                let marks = Marks::new(*marks).expect("four bits");
                encode_frame(&mut frames, identity, next, FrameKind::Record, marks, &[payload]);
                next = next.checked_next().expect("room for a seq");
                count += 1;
            }
            Write::Meta(producer, value) => {
                Tag::new(producer, value).expect("a short tag").encode(&mut frames, identity, next);
            }
        }
    }
    (frames, count)
}

/// A batch as an honest writer writes it: its header and all its bytes.
pub(crate) fn batch_of(identity: &StreamIdentity, first: Seq, writes: &[Write]) -> (BatchHeader, Vec<u8>) {
    let (frames, count) = frames_of(identity, first, writes);
    let mut sum = batch_checksum(identity, first);
    sum.update(&frames);
    let header = BatchHeader {
        flags: BatchFlags::NONE,
        codec: 0,
        stream: identity.stream,
        first_seq: first,
        prev_seq: first.get() - 1,
        durable_seq: first.get(),
        append_time: WallTime::from_nanos(1_700_000_000_000_000_000),
        count,
        frames_bytes: u32::try_from(frames.len()).expect("a small batch"),
        batch_crc: sum.get(),
    };
    let mut bytes = header.encode(identity).to_vec();
    bytes.extend_from_slice(&frames);
    (header, bytes)
}

/// Overwrites bytes of a batch header and makes its checksum right again.
pub(crate) fn forge_header(bytes: &[u8], identity: &StreamIdentity, at: usize, field: &[u8]) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    forged[at..at + field.len()].copy_from_slice(field);
    let seq = u64::from_le_bytes(forged[16..24].try_into().expect("eight bytes"));
    let sum = crc(seed(identity, Seq::new(seq)), &forged[..BATCH_HEADER_BYTES - 4]);
    forged[BATCH_HEADER_BYTES - 4..BATCH_HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    forged
}

/// Makes the batch checksum, and then the header's, right for whatever the frames are now.
pub(crate) fn forge_sums(bytes: &[u8], identity: &StreamIdentity) -> Vec<u8> {
    let seq = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
    let sum = crc(seed(identity, Seq::new(seq)), &bytes[BATCH_HEADER_BYTES..]);
    forge_header(bytes, identity, 56, &sum.to_le_bytes())
}

pub(crate) fn seed(identity: &StreamIdentity, seq: Seq) -> u32 {
    StreamSeed::of(identity.incarnation).at(seq)
}

/// Four bytes that lead from `seed` to the checksum `sum`.
pub(crate) fn forge_payload(seed: u32, sum: u32) -> [u8; 4] {
    (unwind(sum, &[0; 4]) ^ seed).to_le_bytes()
}
