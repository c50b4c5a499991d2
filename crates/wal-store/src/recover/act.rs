//! What a recovery does to the disk, once everything is decided: link into quarantine, unlink, sync the directory.
//!
//! Invariants: a link into quarantine is durable before the name it saves is unlinked; unlinks go in ascending order and
//! stop at the first failure; doing it again does nothing new.

use disk::{DiskError, ErrorClass, SyncSite};
use wal_format::SegmentId;

use super::RecoveryReport;
use super::chain::Role;
use super::collect::Collected;
use crate::StoreContext;
use crate::classify::Verdict;
use crate::quarantine::{self, QuarantineName, QuarantineReason};
use crate::segments::segment_path;

/// Syncs of the stream's directory after unlinking.
const UNLINK_SITE: SyncSite = SyncSite::new("recover.unlink");

pub(super) fn act(
    ctx: &StoreContext,
    collected: &Collected,
    verdict: &Verdict,
    report: &mut RecoveryReport,
) -> Result<(), DiskError> {
    let rivals = collected.links.iter().filter(|link| link.role == Role::Rival).map(|link| link.id());
    let mut keep: Vec<SegmentId> = verdict.quarantine.iter().copied().chain(rivals).collect();
    keep.extend(verdict.void.iter().copied().filter(|id| may_fill_a_gap(collected, verdict, *id)));
    keep.sort_unstable();
    for id in &keep {
        let why = if verdict.quarantine.contains(id) {
            QuarantineReason::Damaged
        } else {
            QuarantineReason::Stranger
        };
        let name = QuarantineName::segment(ctx.identity.stream, *id, why);
        report.quarantined.push(quarantine::link(&*ctx.disk, &segment_path(&ctx.dir, *id), &name)?);
    }
    if !keep.is_empty() {
        quarantine::sync(&*ctx.disk)?;
    }

    let gone = |role| matches!(role, Role::Retired | Role::Void | Role::Rival);
    let mut unlink: Vec<SegmentId> =
        collected.links.iter().filter(|l| gone(l.role)).map(|l| l.id()).collect();
    unlink.extend(&verdict.void);
    unlink.sort_unstable();
    for id in &unlink {
        let path = segment_path(&ctx.dir, *id);
        ctx.files.remove(&path);
        match ctx.disk.remove_file(&path) {
            Err(error) if error.class() != ErrorClass::NotFound => return Err(error),
            _ => report.unlinked.push(*id),
        }
    }
    if !unlink.is_empty() {
        ctx.disk.sync_dir(&ctx.dir, UNLINK_SITE)?;
    }
    Ok(())
}

/// A void file with batches whose seqs are missing elsewhere was not made void by a crash: somebody renamed it.
fn may_fill_a_gap(collected: &Collected, verdict: &Verdict, id: SegmentId) -> bool {
    let runs =
        collected.pieces.iter().filter(|piece| piece.link.id() == id).flat_map(|piece| piece.runs.iter());
    let mut runs = runs.flatten().filter(|run| run.is_sound());
    runs.any(|run| verdict.gaps.iter().any(|gap| run.first < gap.to && gap.from < run.end_seq))
}
