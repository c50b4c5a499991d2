//! What policies dropped, and how old streams are: lists that stay short. No I/O.
//!
//! ```text
//!   ranges   [10, 50) trimmed | [50, 80) expired | [80, 90) trimmed      forgotten below the least cursor
//!   marks    end 40 at 1 h | end 95 at 2 h                               forgotten below the floor
//! ```
//!
//! Invariants: ranges ascend and are apart or differ in reason; marks ascend in both. Shortening a list never makes a
//! seq seem dropped that was not, nor a record older than it is.

use wal_format::Seq;

use crate::entry::{AgeMark, FloorReason, Trim};

/// Most ranges kept for a stream; beyond that the two oldest become one, and count as trimmed.
const RANGES_MAX: usize = 1024;
/// Most marks kept for a stream; beyond that one goes, and what it spoke of seems younger.
const MARKS_MAX: usize = 64;

/// Adds a range behind the others; what they cover already is left out.
pub(crate) fn add_range(ranges: &mut Vec<Trim>, range: Trim) {
    let from = ranges.last().map_or(range.from, |last| last.to.max(range.from));
    if from >= range.to {
        return;
    }
    match ranges.last_mut() {
        Some(last) if last.to == from && last.reason == range.reason => last.to = range.to,
        _ => ranges.push(Trim { from, ..range }),
    }
    if ranges.len() > RANGES_MAX {
        let oldest = ranges.remove(0);
        if let Some(second) = ranges.first_mut() {
            *second = Trim { from: oldest.from, to: second.to, reason: FloorReason::Trimmed };
        }
    }
}

/// Forgets what every consumer stands behind; everything if there is none.
pub(crate) fn forget_ranges(ranges: &mut Vec<Trim>, least: Option<Seq>) {
    ranges.retain(|range| least.is_some_and(|least| range.to > least));
}

/// Adds a mark behind the others.
pub(crate) fn add_mark(marks: &mut Vec<AgeMark>, mark: AgeMark, floor: Option<Seq>) {
    if marks.last().is_none_or(|last| last.end < mark.end && last.at <= mark.at) {
        marks.push(mark);
    }
    marks.retain(|mark| floor.is_none_or(|floor| mark.end > floor));
    if marks.len() > MARKS_MAX {
        marks.remove(1);
    }
}
