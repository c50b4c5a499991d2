//! What opening found and what closing did.

use wal_store::Recovery;

use crate::{Gap, Seq};

/// What opening a queue found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// The queue was created by this open.
    pub created: bool,
    /// The last owner stopped in order.
    pub clean: bool,
    /// One entry per stream.
    pub streams: Vec<StreamReport>,
    /// Things in the directory that are not the queue's, ignored: at most 100 names; a note tells how many more there are.
    pub strays: Vec<String>,
    /// What was noticed about metadata and cursors, in words.
    pub notes: Vec<String>,
}

/// What opening found of one stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamReport {
    /// The stream.
    pub name: String,
    /// Oldest kept seq.
    pub first: Seq,
    /// End of what is kept.
    pub end: Seq,
    /// Segments kept.
    pub segments_count: usize,
    /// Records found to be lost by this open, and not by one before.
    pub gaps: Vec<Gap>,
    /// Bytes of a torn tail that were cut.
    pub torn_bytes: u64,
    /// Why the stream is paused; `None`: it runs.
    pub paused: Option<String>,
    /// What was noticed, in words.
    pub notes: Vec<String>,
}

impl StreamReport {
    pub(crate) fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            first: Seq::FIRST,
            end: Seq::FIRST,
            segments_count: 0,
            gaps: Vec::new(),
            torn_bytes: 0,
            paused: None,
            notes: Vec::new(),
        }
    }

    pub(crate) fn fill(&mut self, recovery: &Recovery, new: &[Gap]) {
        let report = &recovery.report;
        self.first = recovery.segments.first().map_or(recovery.next_seq, |segment| segment.first_seq);
        self.end = recovery.next_seq;
        self.segments_count = recovery.segments.len();
        self.gaps = new.to_vec();
        self.torn_bytes = report.torn_bytes;
        let mut note = |text: String| self.notes.push(text);
        report.quarantined.iter().for_each(|path| note(format!("linked into {}", path.display())));
        report.mended.iter().for_each(|id| note(format!("the header of segment {id} had a flipped bit")));
        report.beyond.iter().for_each(|id| {
            note(format!("segment {id} is none of this stream's: its id is beyond reach, and nothing in it is ours; ignored"));
        });
        report.strays.iter().for_each(|name| note(format!("{name:?} is no segment, ignored")));
        if report.cache_kept {
            note("the disk cannot drop cached pages: what was read may be ahead of it".to_owned());
        }
    }
}

/// What closing a queue did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CloseReport {
    /// Records made durable by it.
    pub committed_count: u64,
    /// Cursors saved by it.
    pub cursors_saved_count: usize,
    /// The clean-stop record is durable.
    pub clean: bool,
}
