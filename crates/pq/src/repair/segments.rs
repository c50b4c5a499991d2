//! One stream: what recovery does, losses written down, damaged segments written again.
//!
//! ```text
//!   recover ─> losses durable ─> durable end durable ─> copy durable, read back ─> original linked, durable ─> replace ─> directory
//! ```
//!
//! Losses first: a mended file shows a hole, and no longer why. Then the durable end: what is behind a hole is kept by the next open
//! because it is proven durable, and the damaged batch that proved it goes.

use std::path::Path;

use disk::ErrorClass;
use offsets::{DurableEnd, Offsets, Save, sites};
use wal_format::{QueueId, SegmentId, Seq};
use wal_store::quarantine::{self, QuarantineName, QuarantineReason};
use wal_store::{
    Finding, RecoveryReport, Rewrite, RewriteAccess, RewriteError, RewriteKind, Row, StoreContext,
    plan_rewrites, recover, segment_path,
};

use crate::catalog::{Catalog, Entry};
use crate::core::evidence_of;

use super::journals::REPAIR_DIR;
use super::report::NewLoss;
use super::{REPAIR_NEW, Repair, RepairError, RepairStep, remove_leftover};

/// Why a file that ends early is not written again.
const SHORT: &str = "nothing: what is left of it is sound; the next segment names its end";
/// Why a damaged file is not.
const LEFT: &str = "its last batch is lost, and it alone says that the seqs in front of it were never stored";
/// What is said of a stream whose directory is gone.
pub(crate) const MISSING_DIR: &str = "the stream's directory is missing";

impl Repair<'_> {
    pub(super) fn stream(
        &mut self,
        queue: QueueId,
        catalog: &mut Catalog,
        offsets: &mut Offsets,
        entry: &Entry,
    ) -> Result<(), RepairError> {
        let context = self.context(queue, entry);
        if matches!(self.disk.stat(&context.dir), Err(error) if error.class() == ErrorClass::NotFound) {
            // Created, and its directory not made yet; or gone with all that was in it: opening tells which.
            return self.missing_dir(catalog, offsets, entry, &context);
        }
        let clean = offsets.was_clean().and_then(|stop| {
            stop.ends.iter().find(|(stream, _)| *stream == entry.id).map(|(_, end)| end.segment)
        });
        let evidence = evidence_of(offsets, entry.id, clean);
        let (access, done) = if self.does() {
            (RewriteAccess::Owner, Some(recover(&context, &evidence)?.report))
        } else {
            (RewriteAccess::Look, None)
        };
        let plan = plan_rewrites(&context, &evidence, access, entry.settings.unsynced_bytes_max)?;
        self.strangers(entry, &context, done.as_ref().unwrap_or(&plan.classified));
        for gap in plan.gaps.iter().flat_map(|gap| entry.losses.news(gap)) {
            self.report.losses.push(NewLoss {
                stream: entry.name.clone(),
                from: gap.from.get(),
                to: gap.to.get(),
                reason: gap.reason.to_string(),
            });
        }
        if self.does() {
            catalog.add_losses(entry.id, &plan.gaps, self.options.now)?;
            if !plan.rewrites.is_empty() {
                save_end(offsets, entry, plan.durable_end)?;
            }
        }
        let untouched = |segment: &SegmentId, findings: &[Finding], why: &str| {
            let mut step = RepairStep::of(&segment_path(&context.dir, *segment));
            step.stream = Some(entry.name.clone());
            step.found = findings.iter().map(in_words).collect();
            let lost = findings.iter().flat_map(|finding| &finding.lost);
            step.lost = lost.map(|(from, to)| (from.get(), to.get())).collect();
            step.action = why.to_owned();
            step
        };
        self.report.steps.extend(plan.short.iter().map(|(id, found)| untouched(id, found, SHORT)));
        self.report.left.extend(plan.left.iter().map(|(id, found)| untouched(id, found, LEFT)));
        for rewrite in &plan.rewrites {
            let mut step = step_of(entry, &context, rewrite);
            let name = QuarantineName::segment(entry.id, rewrite.segment, QuarantineReason::Mended);
            step.kept = Some(if self.does() {
                self.rewrite(&context, rewrite, &name)?
            } else {
                name.first_path().display().to_string()
            });
            self.report.steps.push(step);
        }
        Ok(())
    }

    /// A stream without a directory: what is known to have been in it is lost.
    fn missing_dir(
        &mut self,
        catalog: &mut Catalog,
        offsets: &Offsets,
        entry: &Entry,
        context: &StoreContext,
    ) -> Result<(), RepairError> {
        let (from, to) = known_seqs(offsets, entry);
        if from >= to {
            return Ok(());
        }
        let gap = crate::Gap { from, to, reason: crate::GapReason::Lost };
        for news in entry.losses.news(&gap) {
            let (from, to, reason) = (news.from.get(), news.to.get(), news.reason.to_string());
            self.report.losses.push(NewLoss { stream: entry.name.clone(), from, to, reason });
        }
        let mut step = RepairStep::of(&context.dir);
        step.stream = Some(entry.name.clone());
        step.found.push(MISSING_DIR.to_owned());
        step.lost.push((from.get(), to.get()));
        step.action = "make it anew, empty".to_owned();
        self.report.steps.push(step);
        if self.does() {
            catalog.add_losses(entry.id, &[gap], self.options.now)?;
            crate::core::ensure_dir(&*self.disk, &context.dir, REPAIR_DIR)?;
        }
        Ok(())
    }

    /// Files under segments' names that are none of the stream's: recovery takes them away, linked into quarantine.
    fn strangers(&mut self, entry: &Entry, context: &StoreContext, recovered: &RecoveryReport) {
        for (_, id) in recovered.rows.iter().filter(|(row, _)| *row == Row::R9) {
            let mut step = RepairStep::of(&segment_path(&context.dir, *id));
            step.stream = Some(entry.name.clone());
            step.found.push("another segment, or another stream's, under this name".to_owned());
            step.action = "take it away".to_owned();
            let name = QuarantineName::segment(entry.id, *id, QuarantineReason::Stranger);
            step.kept = Some(name.first_path().display().to_string());
            self.report.steps.push(step);
        }
        let dir = &context.dir;
        let name = |id| segment_path(dir, id).display().to_string();
        self.report.strays.extend(recovered.beyond.iter().map(|id| name(*id)));
        self.report.strays.extend(recovered.strays.iter().map(|name| dir.join(name).display().to_string()));
    }

    /// Writes a copy, keeps the original, puts the copy in its place; says where the original is.
    fn rewrite(
        &self,
        context: &StoreContext,
        rewrite: &Rewrite,
        name: &QuarantineName,
    ) -> Result<String, RepairError> {
        let (copy, path) = (Path::new(REPAIR_NEW), segment_path(&context.dir, rewrite.segment));
        remove_leftover(&*self.disk)?;
        let file = self.disk.create(copy)?;
        if let Err(error) = rewrite.write(context, &*file) {
            drop(file);
            let _ = self.disk.remove_file(copy);
            return Err(match error {
                RewriteError::Disk(error) => RepairError::Disk(error),
                error => RepairError::Rewrite(error),
            });
        }
        drop(file);
        let kept = quarantine::link(&*self.disk, &path, name)?;
        // The copy's name, too, is durable with it.
        quarantine::sync(&*self.disk)?;
        context.files.remove(&path);
        self.disk.replace(copy, &path)?;
        self.disk.sync_dir(&context.dir, REPAIR_DIR)?;
        self.disk.sync_dir(Path::new(""), REPAIR_DIR)?;
        Ok(kept.display().to_string())
    }
}

/// The seqs that a stream is known to have held, whatever is left of its files: from the floor to the highest that is saved as durable.
pub(crate) fn known_seqs(offsets: &Offsets, entry: &Entry) -> (Seq, Seq) {
    let evidence = evidence_of(offsets, entry.id, None);
    let from = evidence.floor.map_or(Seq::FIRST, |(seq, _)| seq);
    let to = evidence.durable_end.into_iter().chain(evidence.cursors_max).max().unwrap_or(from);
    (from, to)
}

fn save_end(
    offsets: &mut Offsets,
    entry: &Entry,
    end: Option<wal_store::DurableEnd>,
) -> Result<(), RepairError> {
    let Some(wal_store::DurableEnd { end, segment: Some(segment), offset }) = end else { return Ok(()) };
    // One that says as much already stands, and with it the record of a clean stop.
    if offsets.durable_end(entry.id).is_some_and(|known| known.end >= end) {
        return Ok(());
    }
    let ends = [(entry.id, DurableEnd { end, segment, offset })];
    offsets.save(&Save { durable_ends: &ends, ..Save::default() }, sites::SAVE)?;
    Ok(())
}

fn in_words(finding: &Finding) -> String {
    format!("at byte {}: {}", finding.offset, finding.kind)
}

fn step_of(entry: &Entry, context: &StoreContext, rewrite: &Rewrite) -> RepairStep {
    let mut step = RepairStep::of(&segment_path(&context.dir, rewrite.segment));
    step.stream = Some(entry.name.clone());
    step.found = rewrite.findings.iter().map(in_words).collect();
    step.bytes = rewrite.bytes_after;
    step.lost = rewrite.lost().into_iter().map(|(from, to)| (from.get(), to.get())).collect();
    step.action = match rewrite.kind {
        RewriteKind::Follow => {
            step.found
                .push("its header names where the segment in front of it ends, and that moves".to_owned());
            "write it again with that end in its header".to_owned()
        }
        RewriteKind::Cut => {
            step.found.push("dead bytes stand behind its end, which moves".to_owned());
            "write it again without them".to_owned()
        }
        _ => format!("write it again: all {} whole records, nothing else", rewrite.records_count),
    };
    step
}
