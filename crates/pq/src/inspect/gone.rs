//! Which files a loss is about, where no damaged byte names one: segments that are gone, or of which nothing can be read.
//!
//! ```text
//!   kept:   3 [1, 40)                 7 [95, 120)        lost [40, 95): whatever stood between 3 and 7
//!   there:  3          5 (zeros)      7                  5: nothing of it can be read; 4 and 6: missing
//! ```
//! Invariant: a file is named only if it stands between the kept segments around the loss.

use std::ops::ControlFlow;
use std::path::Path;

use disk::ErrorClass;
use wal_format::SegmentId;
use wal_store::{ScanReport, segment_id, segment_path};

use crate::Gap;

use super::Inspection;

/// Most missing files that are named one by one for a loss; an id in between may also be one that was never used.
const NAMED_MAX: u64 = 8;

/// What is saved of where a stream's segments begin and end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saved {
    /// The oldest that must be there.
    pub(super) floor: Option<SegmentId>,
    /// The newest at the last save.
    pub(super) newest: Option<SegmentId>,
}

/// A line for each file that a lost range is about; none if findings account for all of it.
pub(super) fn segments_of(
    inspection: &Inspection,
    scan: &ScanReport,
    dir: &Path,
    gap: Gap,
    saved: Saved,
) -> Vec<String> {
    let told = scan.findings.iter().flat_map(|finding| &finding.lost);
    let told: u64 = told.map(|(from, to)| (*from).max(gap.from).distance_to((*to).min(gap.to))).sum();
    if told >= gap.count() {
        return Vec::new();
    }
    // A kept segment's seqs include those that are missing in front of it or behind it.
    let id_of = |segment: &wal_store::SegmentInfo| segment.id.get();
    let before = scan.segments.iter().rev().find(|segment| segment.first_seq < gap.from).map(id_of);
    let behind = scan.segments.iter().find(|segment| segment.end_seq > gap.to).map(id_of);
    let (from, to) = (gap.from, gap.to.get().saturating_sub(1));
    let what = if from.get() == to { format!("record {to}") } else { format!("records {from} to {to}") };
    let first = before.map_or_else(|| saved.floor.map_or(1, SegmentId::get), |id| id.saturating_add(1));
    let last = match behind {
        Some(id) => id.saturating_sub(1),
        None => newest(inspection, scan, dir).max(saved.newest).map_or(0, SegmentId::get),
    };
    if last < first {
        return vec![format!("{}: {what}: not in any segment", dir.display())];
    }
    let path = |id: u64| segment_path(dir, SegmentId::new(id)).display().to_string();
    if last - first >= NAMED_MAX {
        return vec![format!(
            "{} to {}: missing, or nothing of them can be read; {what} stood there",
            path(first),
            path(last)
        )];
    }
    let is_missing = |id: u64| {
        let stat = inspection.disk.stat(&segment_path(dir, SegmentId::new(id)));
        matches!(stat, Err(error) if error.class() == ErrorClass::NotFound)
    };
    let state = |id: u64| if is_missing(id) { "missing" } else { "nothing of it can be read" };
    let is_kept = |id: &u64| scan.segments.iter().any(|segment| segment.id.get() == *id);
    (first..=last)
        .filter(|id| !is_kept(id))
        .map(|id| format!("{}: {}; {what} stood there", path(id), state(id)))
        .collect()
}

/// The newest file that bears a name of the stream's segments.
fn newest(inspection: &Inspection, scan: &ScanReport, dir: &Path) -> Option<SegmentId> {
    let mut newest = None;
    // What cannot be listed now could be a moment ago: then the saved one has to do.
    let _ = inspection.disk.list(dir, &mut |entry| {
        newest = newest.max(segment_id(entry.name).filter(|id| !scan.classified.beyond.contains(id)));
        ControlFlow::Continue(())
    });
    newest
}
