//! What a queue keeps beside its records, as data: losses that are remembered, files in quarantine.

use disk::Disk;
use serde::Serialize;
use wal_store::quarantine::{self, Quarantined};

use crate::Loss;
use crate::catalog::Catalog;

use super::InspectError;

/// A range of lost seqs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LossInfo {
    /// The first lost seq.
    pub from: u64,
    /// The seq behind the last lost one.
    pub to: u64,
    /// Why, in a word or two.
    pub reason: String,
    /// When it was found, in nanoseconds since 1970; `None` if that was not written down.
    pub found_at: Option<u64>,
}

impl LossInfo {
    pub(super) fn of(loss: &Loss) -> Self {
        Self {
            from: loss.from.get(),
            to: loss.to.get(),
            reason: loss.reason.to_string(),
            found_at: loss.found_at.map(wal_format::WallTime::nanos),
        }
    }
}

/// Everything in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QuarantineReport {
    /// By name.
    pub files: Vec<QuarantineInfo>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes that come back if they are removed: those of files that have no other name.
    pub own_bytes: u64,
}

/// A file in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QuarantineInfo {
    /// Its name in the directory `quarantine`; lossy where it is not UTF-8.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its bytes also stand where they were: removing it gives nothing back.
    pub shared: bool,
    /// The stream it belongs to, by name; `None` if it is none's, or one's that is gone.
    pub stream: Option<String>,
    /// That stream's id.
    pub stream_id: Option<u64>,
    /// The segment it was.
    pub segment: Option<u64>,
    /// Why it is here, in words.
    pub why: String,
}

pub(super) fn quarantine(disk: &dyn Disk, catalog: &Catalog) -> Result<QuarantineReport, InspectError> {
    let files: Vec<_> = quarantine::list(disk)?.iter().map(|file| info(catalog, file)).collect();
    let bytes = files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    let own = files.iter().filter(|file| !file.shared).map(|file| file.bytes);
    Ok(QuarantineReport { bytes, own_bytes: own.fold(0, u64::saturating_add), files })
}

fn info(catalog: &Catalog, file: &Quarantined) -> QuarantineInfo {
    let stream = file.segment.map(|(stream, _)| stream);
    let entry = stream.and_then(|id| catalog.entries().find(|entry| entry.id == id));
    QuarantineInfo {
        name: file.name.to_string_lossy().into_owned(),
        bytes: file.bytes,
        shared: file.other_links_count > 0,
        stream: entry.map(|entry| entry.name.clone()),
        stream_id: stream.map(wal_format::StreamId::get),
        segment: file.segment.map(|(_, segment)| segment.get()),
        why: file.why.map_or_else(|| "its name does not say".to_owned(), |why| why.to_string()),
    }
}
