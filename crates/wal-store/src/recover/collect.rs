//! Collecting: the directory, the heads of all files, and the batches of those whose end nothing names.
//!
//! After an unclean stop the medium is read, not the cache: a page that a failed sync left in the cache may be on no
//! medium. So the directory is synced before it is listed, and each file that no valid header vouches for is synced, its
//! cached pages dropped, and only then read. A file that a successor names was synced before that successor was written.
//!
//! Invariant: nothing here changes a file or a name.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;

use disk::{Advice, DiskError, EntryKind, ErrorClass, File, OpenMode, SyncSite};
use wal_format::{FRAME_HEAD_BYTES, FRAMES_BYTES_MAX, SEGMENT_HEADER_BYTES, SegmentId, Seq};

use super::chain::{Link, Role, chain, reach};
use super::facts::{Found, Head, RunFact, look, merge_tags};
use super::sweep::{Reach, ScanFailure, Window, scan};
use super::{Evidence, RecoverError, RecoveryReport, floor_segment, known};
use crate::classify::{FileTags, Known, Piece, Row, Verdict, end_before, whole_above};
use crate::segments::{segment_id, segment_path};
use crate::{OwnedTag, Settings, StoreContext};

/// Syncs of a segment file before it is read.
pub(crate) const FILE_SITE: SyncSite = SyncSite::new("recover.file");
/// Syncs of the stream's directory before it is listed.
pub(crate) const LIST_SITE: SyncSite = SyncSite::new("recover.list");

/// Most names of strays that are reported.
const STRAYS_MAX: usize = 100;

/// Whether the cache may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Only the medium, unless the clean-stop record still counts. Syncs.
    Medium,
    /// What the system shows, as other readers see it. Changes nothing, not even what is cached.
    Cache,
}

/// Everything that was found out before deciding.
#[derive(Debug)]
pub(crate) struct Collected {
    /// Every file that bears a segment's name, ascending.
    pub(crate) links: Vec<Link>,
    /// The files the table is applied to, with what is in them.
    pub(crate) pieces: Vec<Piece>,
    /// The highest id this stream can have reached.
    pub(crate) reach: SegmentId,
    /// What can be reported so far.
    pub(crate) report: RecoveryReport,
}

impl Collected {
    pub(crate) fn link(&self, id: SegmentId) -> Option<&Link> {
        let found = self.links.binary_search_by_key(&id, Link::id).ok()?;
        self.links.get(found)
    }

    pub(crate) fn len_of(&self, id: SegmentId) -> u64 {
        self.link(id).map_or(0, |link| link.found.len)
    }

    /// The most records that may have been written and not synced: by bytes, all of them empty.
    pub(crate) fn unsynced_records_max(&self) -> u64 {
        let newest = self.links.iter().rev().filter_map(|link| link.found.head.header());
        let bound = newest.map(|header| header.unsynced_bytes_max).next().unwrap_or(0);
        let largest = self.links.iter().map(|link| link.found.len).max().unwrap_or(0);
        bound.saturating_add(largest) / FRAME_HEAD_BYTES as u64
    }
}

/// Reads what [`classify`](crate::classify::classify) needs.
pub(crate) fn collect(
    ctx: &StoreContext,
    evidence: &Evidence,
    trust: Trust,
) -> Result<Collected, RecoverError> {
    let mut report = RecoveryReport::default();
    if trust == Trust::Medium {
        // After a kill the cache may show names, and miss unlinks, that the medium does not have.
        ctx.disk.sync_dir(&ctx.dir, LIST_SITE)?;
    }
    let ids = list(ctx, &mut report)?;
    report.file_count = ids.len();
    report.clean = evidence.clean.is_some() && evidence.clean == ids.last().copied();
    let floor_segment = floor_segment(evidence);
    let mut found = heads(ctx, &ids, floor_segment, trust, &mut report)?;
    found.reverse();
    let reach = reach(floor_segment, &found);
    report.beyond = beyond(ctx, reach, &found)?;
    found.retain(|found| !report.beyond.contains(&found.id));
    let links = chain(floor_segment, reach, &found);
    for link in &links {
        let id = link.id();
        match (link.role, link.found.head) {
            (Role::Retired, _) => report.rows.push((Row::R0, id)),
            (Role::Void, _) => report.rows.push((Row::R0b, id)),
            (Role::Rival, _) => report.rows.push((Row::R9, id)),
            (_, Head::Newer(source)) => {
                let path = segment_path(&ctx.dir, id);
                return Err(RecoverError::NewerFormat { path, offset: 0, source });
            }
            (_, Head::Mended(_)) => report.mended.push(id),
            _ => {}
        }
    }
    let pieces = pieces(ctx, evidence, &links, &mut report)?;
    Ok(Collected { links, pieces, reach, report })
}

/// Files whose ids this stream cannot have reached and that hold nothing of it: somebody else's, whatever their names.
fn beyond(ctx: &StoreContext, reach: SegmentId, found: &[Found]) -> Result<Vec<SegmentId>, RecoverError> {
    let mut ids = Vec::new();
    for found in found.iter().filter(|found| found.id > reach && found.head == Head::Absent) {
        let link = Link { found: *found, role: Role::HeadlessTail, named_end: None };
        if scan_file(ctx, &link, Reach::to(found.len))?.is_empty() {
            ids.push(found.id);
        }
    }
    Ok(ids)
}

/// The ids of the directory's segment files, ascending.
fn list(ctx: &StoreContext, report: &mut RecoveryReport) -> Result<Vec<SegmentId>, DiskError> {
    let mut ids = Vec::new();
    let mut strays: Vec<OsString> = Vec::new();
    ctx.disk.list(&ctx.dir, &mut |entry| {
        match segment_id(entry.name) {
            Some(id) if entry.kind == EntryKind::File => ids.push(id),
            _ if strays.len() < STRAYS_MAX => strays.push(entry.name.to_owned()),
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    ids.sort_unstable();
    strays.sort_unstable();
    report.strays = strays.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    Ok(ids)
}

/// Looks at each file's head, newest first, so that a header vouches for the file it names.
fn heads(
    ctx: &StoreContext,
    ids: &[SegmentId],
    floor_segment: SegmentId,
    trust: Trust,
    report: &mut RecoveryReport,
) -> Result<Vec<Found>, RecoverError> {
    let mut found = Vec::with_capacity(ids.len());
    let mut named = None;
    for id in ids.iter().rev().copied() {
        if id < floor_segment {
            // R0 asks for nothing but the name.
            found.push(Found { id, len: 0, head: Head::Absent, first_batch: None });
            continue;
        }
        let path = segment_path(&ctx.dir, id);
        let from_medium = trust == Trust::Medium && !report.clean && named != Some(id);
        let seen = with_file(ctx, &path, |file| {
            if from_medium {
                report.cache_kept |= drop_cache(file)?;
            }
            look(file, &ctx.identity, id)
        })?;
        let Some(seen) = seen else { continue };
        if let Some(header) = seen.head.header() {
            named = header.predecessor.map(|predecessor| predecessor.id);
        }
        found.push(seen);
    }
    Ok(found)
}

/// Syncs a file and drops its pages from the cache; `true` if the disk cannot drop them.
fn drop_cache(file: &dyn File) -> Result<bool, DiskError> {
    file.sync_data(FILE_SITE)?;
    match file.advise(Advice::DropCache, 0..file.len()?) {
        Ok(()) => Ok(false),
        Err(error) if error.class() == ErrorClass::Unsupported => Ok(true),
        Err(error) => Err(error),
    }
}

/// Runs `read` on an open file. `None` if the file is not there: a live owner may have retired it.
pub(crate) fn with_file<T, E: From<DiskError>>(
    ctx: &StoreContext,
    path: &Path,
    read: impl FnOnce(&dyn File) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let held = match ctx.files.open(&*ctx.disk, path, OpenMode::Read) {
        Ok(held) => held,
        Err(error) if error.class() == ErrorClass::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let value = read(held.file())?;
    ctx.files.check_in(path, held);
    Ok(Some(value))
}

/// Scans what has to be scanned, newest first: a file's reach ends where the next newer one begins.
fn pieces(
    ctx: &StoreContext,
    evidence: &Evidence,
    links: &[Link],
    report: &mut RecoveryReport,
) -> Result<Vec<Piece>, RecoverError> {
    let known = known(evidence);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut linked_above = false;
    for link in links.iter().rev() {
        if matches!(link.role, Role::Retired | Role::Void | Role::Rival) {
            continue;
        }
        let is_linked = link.role == Role::Linked;
        let named = link.named_end.filter(|_| is_linked);
        // A successor whose first batch is torn does not say which seqs its writer left out: then this one is read.
        let says_skips = pieces.last().is_none_or(|next| next.link.found.first_batch.is_some());
        let runs = if says_skips && named.is_some_and(|end| end <= link.found.len) {
            None
        } else {
            let next = pieces.last().filter(|_| linked_above);
            let seq_end =
                if link.named_end.is_some() { None } else { next.and_then(|next| end_before(known, next)) };
            // No header names where this one ends, but what the writer of a newer file left out is dead in here, if that file is kept.
            let left_out = whole_above(pieces.iter().filter(|_| !linked_above), known.floor);
            let splits: Vec<Seq> = left_out.filter(|run| run.skipped).map(RunFact::missing_end).collect();
            let end = link.named_end.unwrap_or(u64::MAX).min(link.found.len);
            report.scanned_count += 1;
            let window = window(known, link, links);
            Some(scan_file(ctx, link, Reach { end, seq_end, splits: &splits, window: Some(window) })?)
        };
        linked_above |= is_linked;
        pieces.push(Piece { link: *link, runs });
    }
    pieces.reverse();
    Ok(pieces)
}

/// W for this file: by its header, else by the newest that says it, else by the default setting.
fn window(known: Known, link: &Link, links: &[Link]) -> Window {
    let header = link.found.head.header();
    let newest = || links.iter().rev().find_map(|link| link.found.head.header());
    let unsynced = header.or_else(newest).map(|header| header.unsynced_bytes_max);
    let unsynced = unsynced.unwrap_or_else(|| Settings::default().unsynced_bytes_max);
    Window {
        bytes: unsynced.saturating_add(u64::from(FRAMES_BYTES_MAX)),
        first_seq: header.map_or(known.floor, |header| header.first_seq),
        durable_end: known.durable_end,
    }
}

pub(crate) fn scan_file(
    ctx: &StoreContext,
    link: &Link,
    reach: Reach<'_>,
) -> Result<Vec<RunFact>, RecoverError> {
    let path = segment_path(&ctx.dir, link.id());
    let runs = with_file(ctx, &path, |file| scan(file, &ctx.identity, SEGMENT_HEADER_BYTES as u64, reach));
    match runs {
        Ok(runs) => Ok(runs.unwrap_or_default()),
        Err(ScanFailure::Disk(source)) => Err(source.into()),
        Err(ScanFailure::Newer(offset, source)) => Err(RecoverError::NewerFormat { path, offset, source }),
    }
}

/// The last tag of every producer: those of the floor, then those from the newest segment on that repeats them all.
pub(crate) fn tags(
    ctx: &StoreContext,
    evidence: &Evidence,
    collected: &Collected,
    verdict: &Verdict,
) -> Result<Vec<OwnedTag>, RecoverError> {
    let mut newer: Vec<FileTags> = Vec::new();
    for piece in collected.pieces.iter().rev() {
        let id = piece.link.id();
        let mut of = FileTags::of(id);
        if piece.runs.is_some() {
            of = verdict.tags.iter().find(|tags| tags.id == id).cloned().unwrap_or(of);
        } else {
            let end = piece.link.named_end.unwrap_or(0).min(piece.link.found.len);
            let runs = scan_file(ctx, &piece.link, Reach::to(end))?;
            runs.iter().filter(|run| run.is_sound()).for_each(|run| of.add(run, &piece.link));
        }
        let is_complete = of.is_complete;
        newer.push(of);
        if is_complete {
            break;
        }
    }
    let mut tags = evidence.floor_tags.clone();
    newer.into_iter().rev().for_each(|of| merge_tags(&mut tags, of.tags));
    Ok(tags)
}
