//! What streams really take on the disk, and what that lets a limit drop: the rules of docs/durability.md, worked out from file lengths.

use std::collections::BTreeMap;
use std::path::Path;

use disk::Disk;
use pq::OnFull;
use wal_store::{SegmentState, segment_id};

use super::World;
use crate::oracle::Payload;

/// Most bytes of a new batch beside its frames: a segment's header and its own.
const OVERHEAD: u64 = 4096 + 64;
const FRAME_HEAD: u64 = 16;
/// A tag's frame, at most.
const TAG: u64 = 512;
/// What a queue's journals are given at least, whatever its limit.
const JOURNALS: u64 = 1 << 20;

/// What one stream takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    /// Bytes of each file, by its segment's id.
    files: BTreeMap<u64, u64>,
    /// Most bytes that what is accepted and not yet written may take.
    unwritten: u64,
}

impl Held {
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().sum()
    }

    pub(super) fn most(&self) -> u64 {
        self.bytes() + self.unwritten
    }
}

/// Most bytes that one append is charged.
pub(in crate::world) fn charge_most(payloads: &[Payload]) -> u64 {
    payloads.iter().map(|payload| FRAME_HEAD + u64::from(payload.bytes)).sum::<u64>() + OVERHEAD + TAG
}

/// From how many bytes on a stream that drops its oldest has little left.
fn low_from(limit: u64, segment_bytes_max: u64) -> u64 {
    let free = segment_bytes_max.min(limit / 4) + 2 * OVERHEAD;
    limit - free.min(limit / 2)
}

impl World {
    /// `None`: the stream is not there.
    pub(super) fn held(&self, stream: usize) -> Option<Held> {
        let handle = self.slot(stream).stream.as_ref()?;
        let dir = &handle.log().context().dir;
        let id = |path: &Path| Some(segment_id(path.file_name()?)?.get());
        let paths = self.disk.files().into_iter().filter(|path| path.parent() == Some(dir));
        let files = paths.filter_map(|path| Some((id(&path)?, self.disk.read(&path).len() as u64))).collect();
        let waits = self.slot(stream).tickets.iter().filter(|held| !held.is_written);
        Some(Held { files, unwritten: waits.map(|held| held.charge_most).sum() })
    }

    /// Most bytes the whole queue takes.
    pub(super) fn held_by_all(&self) -> u64 {
        let files: u64 = self.disk.files().iter().map(|path| self.disk.read(path).len() as u64).sum();
        let unwritten =
            (0..self.slots.len()).filter_map(|stream| self.held(stream)).map(|held| held.unwritten);
        files + unwritten.sum::<u64>()
    }

    /// Up to where the byte limits may have a stream dropped.
    pub(super) fn trim_to(&self, stream: usize) -> u64 {
        let (Some(held), Some(handle)) = (self.held(stream), self.slot(stream).stream.as_ref()) else {
            return 0;
        };
        let bounds = self.known.stream(stream);
        let drops = |limits: pq::Limits| limits.on_full == OnFull::DropOldest;
        if !drops(bounds.now) && !bounds.maybe.is_some_and(drops) {
            return 0;
        }
        let appended = handle.log().ends().appended.get();
        if !self.is_sound() {
            return appended;
        }
        let segment_bytes_max = handle.log().settings().segment_bytes_max;
        let needed = self.slot(stream).refusals.needed;
        let limits = [bounds.now.bytes_max, bounds.maybe.and_then(|limits| limits.bytes_max)];
        let own = limits.into_iter().flatten().map(|limit| (held.most(), limit));
        let excess =
            own.chain(self.known.queue.map(|limit| (self.held_by_all(), limit))).map(|(held, limit)| {
                let lacks = if needed > 0 { (held + needed).saturating_sub(limit) } else { 0 };
                held.saturating_sub(low_from(limit, segment_bytes_max)).max(lacks)
            });
        let excess = excess.max().unwrap_or(0);
        let (mut freed, mut end) = (0, 0);
        for segment in &handle.log().segments() {
            let is_open = segment.state == SegmentState::Open;
            // The one being written goes only if a record was refused and nothing else is left.
            if freed >= excess || (is_open && needed == 0) {
                break;
            }
            freed += held.files.get(&segment.id.get()).copied().unwrap_or(0);
            end = if is_open { appended } else { segment.end_seq.get() };
        }
        end
    }

    /// The queue's cap from the next open on; something in quarantine makes it one that a queue may have.
    pub(super) fn limit_queue(&mut self, more: i32) {
        let options = &self.setup.options;
        let least = options.stream.segment_bytes_max + options.reserve_bytes + JOURNALS;
        let wanted = self.held_by_all().saturating_add_signed(i64::from(more));
        if let Some(rest) = least.checked_sub(wanted).filter(|rest| *rest > 0) {
            let path = Path::new("quarantine/of-another-day.seg");
            let made = self.disk.create_dir(Path::new("quarantine")).and_then(|()| self.disk.create(path));
            let made = made.and_then(|file| file.set_len(rest)).is_ok();
            debug_assert!(made, "the disk is sound");
        }
        self.setup.options.bytes_max = Some(wanted.max(least));
    }
}
