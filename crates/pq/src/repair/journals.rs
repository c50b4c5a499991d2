//! The queue's own files: catalog and cursors. What is sound in a damaged generation is the state; a new generation holds it whole, and
//! the damaged file goes to quarantine.
//!
//! Invariant: a damaged file has a durable name in quarantine before anything removes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{ErrorClass, SyncSite};
use offsets::Offsets;
use offsets::journal::{FileOutcome, JournalReport};
use wal_format::QueueId;
use wal_store::quarantine::{self, QuarantineName, QuarantineReason};

use crate::catalog::Catalog;

use super::{Repair, RepairError, RepairStep};

/// Syncs of directories in which a repair replaced or removed a name.
pub(super) const REPAIR_DIR: SyncSite = SyncSite::new("repair.dir");

impl Repair<'_> {
    pub(super) fn catalog(&mut self, queue: QueueId) -> Result<Catalog, RepairError> {
        let (seen, found) = Catalog::look(&self.disk, queue)?;
        self.report.catalog_missing = found.generation.is_none();
        let damaged = self.journal(&found, "streams")?;
        if !self.does() {
            return Ok(seen);
        }
        let (mut catalog, _) = Catalog::open(Arc::clone(&self.disk), queue)?;
        if !damaged.is_empty() {
            catalog.compact()?;
            self.remove_kept(&damaged)?;
        }
        Ok(catalog)
    }

    pub(super) fn cursors(&mut self, queue: QueueId) -> Result<Offsets, RepairError> {
        let (seen, found) = Offsets::read_only(Arc::clone(&self.disk), queue)?;
        let damaged = self.journal(&found.journal, "cursors")?;
        if !self.does() {
            return Ok(seen);
        }
        let (mut offsets, _) = Offsets::open(Arc::clone(&self.disk), queue)?;
        if !damaged.is_empty() {
            offsets.compact()?;
            self.remove_kept(&damaged)?;
        }
        Ok(offsets)
    }

    /// The damaged files of a journal, each with a step; kept in quarantine already, if things are done.
    fn journal(&mut self, found: &JournalReport, what: &str) -> Result<Vec<PathBuf>, RepairError> {
        let mut damaged = Vec::new();
        for file in &found.files {
            let current = file.generation.is_some() && file.generation == found.generation;
            let is_damaged = match file.outcome {
                FileOutcome::Salvaged | FileOutcome::Damaged => true,
                FileOutcome::Current => found.mended_count + found.lost_count > 0,
                FileOutcome::Foreign | FileOutcome::Misnamed | FileOutcome::Stray => {
                    self.report.strays.push(file.to_string());
                    false
                }
                _ => false,
            };
            if !is_damaged {
                continue;
            }
            let mut step = RepairStep::of(&file.path);
            if file.outcome != FileOutcome::Current {
                step.found.push(file.outcome.to_string());
            }
            if current {
                let (mended, lost) = (found.mended_count, found.lost_count);
                step.found
                    .push(format!("{mended} entries have a flipped bit and can be mended, {lost} are lost"));
                step.action = format!("write what is sound of the {what} as a new generation");
                step.bytes = file.bytes;
            } else {
                step.action = "nothing of it can be read: take it away".to_owned();
            }
            step.kept = Some(self.keep(&file.path)?);
            self.report.steps.push(step);
            damaged.push(file.path.clone());
        }
        Ok(damaged)
    }

    /// Gives a file of the queue's own a name in quarantine, if things are done; says which.
    pub(super) fn keep(&self, path: &Path) -> Result<String, RepairError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = QuarantineName::file(&name, QuarantineReason::Mended);
        if !self.does() {
            return Ok(name.first_path().display().to_string());
        }
        let kept = quarantine::link(&*self.disk, path, &name)?;
        quarantine::sync(&*self.disk)?;
        Ok(kept.display().to_string())
    }

    /// Removes damaged files that a new generation did not take away; they are in quarantine.
    fn remove_kept(&self, damaged: &[PathBuf]) -> Result<(), RepairError> {
        for path in damaged {
            match self.disk.remove_file(path) {
                Err(error) if error.class() != ErrorClass::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(self.disk.sync_dir(Path::new(""), REPAIR_DIR)?)
    }
}
