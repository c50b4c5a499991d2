//! A stream's segments: how their files are named, and the list of those there are.
//!
//! The list is a plain value; the log keeps it under a short lock and its readers, its retirement and its writer share
//! it. It does no I/O and knows no batch.
//!
//! ```text
//!   first_seq     end_seq = or <  first_seq
//!   |---- rotated ----|  (hole)   |---- rotated ----|---- open ···>
//! ```
//!
//! Invariants: ids ascend; first seqs ascend (an empty segment shares its first seq with the next one); a hole between
//! two segments holds seqs that will never be read, and the one who reads says why.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use wal_format::{SegmentId, Seq};

/// Hexadecimal digits of an id in a name.
const ID_DIGITS: usize = 16;
/// What follows the digits.
const SUFFIX: &str = ".seg";

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
    /// The seq after the last it holds (or lost); equal to `first_seq` if it holds none.
    pub end_seq: Seq,
    /// Where its last batch ends, in bytes from the start of the file.
    pub end_offset: u64,
    /// Whether its end is final.
    pub state: SegmentState,
}

/// The segments of a stream, ascending by id and by seq.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentList {
    segments: Vec<SegmentInfo>,
    /// Seqs below this were retired, by delivery or by policy: that they are not there is no loss. 0: none.
    retired_below: u64,
}

/// Where a seq stands among the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this one.
    In(SegmentInfo),
    /// In none, and none will ever hold it: the next seq there is stands in `next`.
    Hole {
        /// The segment behind the hole.
        next: SegmentInfo,
        /// Seqs below this were retired; the others of the hole are missing.
        retired_below: Seq,
    },
    /// Nothing at or behind it yet.
    End,
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The oldest.
    pub fn first(&self) -> Option<&SegmentInfo> {
        self.segments.first()
    }

    /// The newest.
    pub fn last(&self) -> Option<&SegmentInfo> {
        self.segments.last()
    }

    /// The newest, to move its end.
    pub(crate) fn last_mut(&mut self) -> Option<&mut SegmentInfo> {
        self.segments.last_mut()
    }

    /// The one of this id.
    pub fn get(&self, id: SegmentId) -> Option<&SegmentInfo> {
        let index = self.segments.binary_search_by_key(&id, |s| s.id).ok()?;
        self.segments.get(index)
    }

    /// Adds the newest.
    pub(crate) fn push(&mut self, segment: SegmentInfo) {
        debug_assert!(self.last().is_none_or(|s| s.id < segment.id && s.first_seq <= segment.first_seq));
        self.segments.push(segment);
    }

    /// Forgets one that turned out void, or was retired.
    pub(crate) fn remove(&mut self, id: SegmentId) {
        self.segments.retain(|s| s.id != id);
    }

    /// Takes the rotated segments below `below` off the front; their seqs count as retired from now on.
    pub(crate) fn take_below(&mut self, below: SegmentId) -> Vec<SegmentInfo> {
        let gone = |s: &SegmentInfo| s.id < below && s.state == SegmentState::Rotated;
        let count = self.segments.iter().take_while(|s| gone(s)).count();
        let taken: Vec<_> = self.segments.drain(..count).collect();
        if let Some(last) = taken.last() {
            // Not the next one's first seq: what its writer skipped, or somebody lost, in between was never retired.
            self.set_retired_below(last.end_seq);
        }
        taken
    }

    /// Puts back what [`SegmentList::take_below`] took, in front.
    pub(crate) fn put_back(&mut self, segments: &[SegmentInfo]) {
        self.segments.splice(..0, segments.iter().copied());
    }

    /// Seqs below this were retired: that they are not there is no loss.
    pub fn retired_below(&self) -> Seq {
        Seq::new(self.retired_below)
    }

    /// Remembers that seqs below `floor` are retired; never moves back.
    pub(crate) fn set_retired_below(&mut self, floor: Seq) {
        self.retired_below = self.retired_below.max(floor.get());
    }

    /// Where `seq` is to be looked for.
    pub(crate) fn locate(&self, seq: Seq) -> Place {
        let behind = self.segments.partition_point(|s| s.first_seq <= seq);
        let before = behind.checked_sub(1).and_then(|index| self.segments.get(index));
        match (before, self.segments.get(behind)) {
            (Some(s), _) if seq < s.end_seq => Place::In(*s),
            (_, Some(next)) => Place::Hole { next: *next, retired_below: self.retired_below() },
            (_, None) => Place::End,
        }
    }
}

impl<'a> IntoIterator for &'a SegmentList {
    type Item = &'a SegmentInfo;
    type IntoIter = std::slice::Iter<'a, SegmentInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<SegmentInfo> for SegmentList {
    fn from_iter<I: IntoIterator<Item = SegmentInfo>>(segments: I) -> Self {
        let mut list = Self::new();
        segments.into_iter().for_each(|segment| list.push(segment));
        list
    }
}

/// The path of a segment's file, relative to the disk's root.
pub fn segment_path(dir: &Path, id: SegmentId) -> PathBuf {
    dir.join(format!("{:016x}{SUFFIX}", id.get()))
}

/// The id a file's name stands for; `None` for every name this crate would not give: other lengths, capitals, signs,
/// id 0, bytes that are not UTF-8.
pub fn segment_id(name: &OsStr) -> Option<SegmentId> {
    let digits = name.to_str()?.strip_suffix(SUFFIX)?;
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != ID_DIGITS || !digits.bytes().all(plain) {
        return None;
    }
    let id = u64::from_str_radix(digits, 16).ok()?;
    (id != 0).then(|| SegmentId::new(id))
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
