//! Looking at a stream's files without changing them.

use crate::{Evidence, StoreContext};

/// What a read-only scan found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScanReport {}

/// Why a scan failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
}

/// Classifies and counts, and changes nothing.
///
/// # Errors
/// The scan could not read everything.
pub fn scan_read_only(ctx: &StoreContext, evidence: &Evidence) -> Result<ScanReport, ScanError> {
    let _ = (ctx, evidence);
    todo!()
}
