//! What a recovery does to the disk, once everything is decided: link into quarantine, unlink, sync the directory.
//!
//! Invariants: a link into quarantine is durable before the name it saves is unlinked; unlinks go in ascending order and
//! stop at the first failure; doing it again does nothing new.

use std::path::{Path, PathBuf};

use disk::{DiskError, ErrorClass, SyncSite};
use wal_format::SegmentId;

use super::RecoveryReport;
use super::chain::Role;
use super::collect::Collected;
use crate::StoreContext;
use crate::classify::Verdict;
use crate::segments::segment_path;

/// Where damaged files are kept until the user removes them, relative to the disk's root.
pub const QUARANTINE_DIR: &str = "quarantine";

/// Syncs of the quarantine directory, and of the root when it was created.
const QUARANTINE_SITE: SyncSite = SyncSite::new("recover.quarantine");
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
    quarantine(ctx, &keep, report)?;

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

/// The name a file of this stream bears in quarantine.
fn quarantine_path(ctx: &StoreContext, id: SegmentId) -> PathBuf {
    let name = format!("{:016x}-{:016x}.seg", ctx.identity.stream.get(), id.get());
    Path::new(QUARANTINE_DIR).join(name)
}

fn quarantine(ctx: &StoreContext, ids: &[SegmentId], report: &mut RecoveryReport) -> Result<(), DiskError> {
    if ids.is_empty() {
        return Ok(());
    }
    let dir = Path::new(QUARANTINE_DIR);
    match ctx.disk.create_dir(dir) {
        Ok(()) => ctx.disk.sync_dir(Path::new(""), QUARANTINE_SITE)?,
        Err(error) if error.class() == ErrorClass::Exists => {}
        Err(error) => return Err(error),
    }
    for id in ids {
        let path = quarantine_path(ctx, *id);
        match ctx.disk.link(&segment_path(&ctx.dir, *id), &path) {
            // Linked by an earlier recovery.
            Err(error) if error.class() == ErrorClass::Exists => {}
            linked => linked?,
        }
        report.quarantined.push(path);
    }
    ctx.disk.sync_dir(dir, QUARANTINE_SITE)
}
