//! What opening found.

use crate::journal::JournalReport;

/// What opening the cursors found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetsReport {
    /// The files, one line each.
    pub journal: JournalReport,
    /// Consumers found.
    pub consumer_count: usize,
    /// Bodies that could not be understood, or that named a consumer nobody knows (after damage only).
    pub ignored_count: u64,
}
