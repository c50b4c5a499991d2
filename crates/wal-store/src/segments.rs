//! A stream's segments: their names, and the list of those there are.

use std::path::{Path, PathBuf};

use wal_format::{SegmentId, Seq};

/// Whether a segment's end is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentState {
    /// Being written.
    Open,
    /// Its end is final.
    Rotated,
}

/// One segment as the list knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its id, which is its name.
    pub id: SegmentId,
    /// First seq it may hold.
    pub first_seq: Seq,
    /// The seq after the last it holds.
    pub end_seq: Seq,
    /// Where its last batch ends, in bytes.
    pub end_offset: u64,
    /// Whether its end is final.
    pub state: SegmentState,
}

/// The segments of a stream, ascending by id and by seq.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentList {
    segments: Vec<SegmentInfo>,
}

impl SegmentList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, SegmentInfo> {
        self.segments.iter()
    }

    /// The newest.
    pub fn last(&self) -> Option<&SegmentInfo> {
        self.segments.last()
    }

    /// The newest, to move its end.
    pub fn last_mut(&mut self) -> Option<&mut SegmentInfo> {
        self.segments.last_mut()
    }

    /// Adds the newest.
    pub fn push(&mut self, segment: SegmentInfo) {
        self.segments.push(segment);
    }

    /// Forgets one that turned out void, or was retired.
    pub fn remove(&mut self, id: SegmentId) {
        self.segments.retain(|s| s.id != id);
    }
}

/// The path of a segment's file, relative to the disk's root.
pub fn segment_path(dir: &Path, id: SegmentId) -> PathBuf {
    dir.join(format!("{:016x}.seg", id.get()))
}
