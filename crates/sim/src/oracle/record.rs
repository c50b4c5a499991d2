//! One record as its client knows it.

/// What was put in: enough to make the bytes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// Different for every record of a run.
    pub id: u64,
    /// How many bytes.
    pub bytes: u32,
}

impl Payload {
    /// Its bytes: the id first, as far as it fits, then a pattern that depends on it.
    pub fn write(self, buffer: &mut Vec<u8>) {
        buffer.clear();
        let mut state = self.id;
        while buffer.len() < self.bytes as usize {
            buffer.extend_from_slice(&state.to_le_bytes());
            state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(self.id);
        }
        buffer.truncate(self.bytes as usize);
    }
}

/// What a ticket told, beyond that the record was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It survives a kill.
    Written,
    /// It survives a power cut.
    Durable,
    /// It was given up and cannot come back.
    NotWritten,
    /// It was given up and may come back after a crash.
    Indeterminate,
}

/// What is known of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Accepted, nothing more.
    Pending,
    /// Told written.
    Written,
    /// Told durable, or shown where only durable records are: it must be there for ever.
    Durable,
    /// Given up; it may be there after a crash.
    Maybe,
    /// Given up; it must never be shown.
    Never,
    /// A gap was shown in its place: it must never be shown.
    Gone,
    /// Damage cost it: a gap is shown in its place, and never the record.
    Lost,
}

/// A record at its seq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) payload: Payload,
    pub(super) fate: Fate,
    /// Somebody was given it.
    pub(super) shown: bool,
    /// First and end seq of what was appended with it, all or nothing.
    pub(super) group: (u64, u64),
}
