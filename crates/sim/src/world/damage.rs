//! Damage to the files of a stopped queue, and what it costs: the rule says what it may, a copy that is opened and read to its end
//! says what it does.
//!
//! The rules are those of `pq-sim flip`: a bit of a payload costs that record, any other bit of a segment nothing; a cut the records
//! that do not end in front of it; a block of zeros at most what it overlaps, and a batch whose header it overlaps.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pq::core::{Core, CoreStream};
use pq::{GapReason, Item, Start};
use sim_disk::SimDisk;
use wal_format::{SEGMENT_HEADER_BYTES, StreamIdentity};
use wal_store::{ReadBuffers, segment_path};

use super::{World, stream_name};
use crate::flip::harm::Harm;
use crate::flip::map::{Part, SegmentMap};
use crate::operation::{Damage, Hurt, Then};
use crate::oracle::Cost;
use crate::violation::{Checked, Kind, Violation};

/// What was damaged, and whether it is mended.
#[derive(Debug, Clone, Default)]
pub(super) struct Mending {
    /// A repair was begun and is not through: what comes next.
    pub(super) then: Option<Then>,
    /// There is damage that no repair was through with.
    pub(super) is_hurt: bool,
    /// The damaged files, until the next open, with their bytes up to where they are used: what was written behind that was given
    /// up, and a failed sync may have left it in the cache alone (seed 85452).
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
}

/// A segment of a stream whose owner just closed it.
pub(super) struct OnDisk {
    stream: usize,
    identity: StreamIdentity,
    path: PathBuf,
    end_seq: u64,
    end_offset: u64,
}

/// A stream, its first seq and its end, and what of it reads as lost.
type Reading = (usize, (u64, u64), BTreeSet<u64>);

const BLOCK_BYTES: u64 = 512;

impl World {
    /// Where the streams' segments are, oldest first.
    pub(super) fn segments_on_disk(&self) -> Vec<OnDisk> {
        let mut all = Vec::new();
        for (stream, slot) in self.slots.iter().enumerate() {
            let Some(log) = slot.stream.as_ref().map(CoreStream::log) else { continue };
            let context = log.context();
            all.extend(log.segments().iter().map(|segment| OnDisk {
                stream,
                identity: context.identity,
                path: segment_path(&context.dir, segment.id),
                end_seq: segment.end_seq.get(),
                end_offset: segment.end_offset,
            }));
        }
        all
    }

    /// Damages the disk and tells the oracle what that costs.
    pub(super) fn damage(&mut self, damages: &[Damage], segments: &[OnDisk]) -> Checked {
        self.mending.files.clear();
        let mut costs: Vec<(usize, Cost)> = Vec::new();
        for damage in damages {
            match damage {
                Damage::Own { file, bit } if costs.is_empty() => {
                    self.damage_own(usize::from(*file), u64::from(*bit));
                    break;
                }
                Damage::Own { .. } => {}
                Damage::Segment(stream, segment, hurt) => {
                    let stream = self.at(*stream);
                    if costs.iter().all(|(of, _)| *of != stream) {
                        let cost = self.damage_segment(stream, usize::from(*segment), *hurt, segments);
                        costs.extend(cost.map(|cost| (stream, cost)));
                    }
                }
            }
        }
        if self.mending.files.is_empty() {
            return Ok(());
        }
        self.mending.is_hurt = true;
        for (stream, ends, lost) in self.read_copy()? {
            let cost = costs.iter().find(|(of, _)| *of == stream).map(|(_, cost)| cost.clone());
            let Some(book) = self.oracle.book_mut(stream) else { continue };
            book.damaged(ends, &lost, &cost.unwrap_or_default())?;
        }
        Ok(())
    }

    /// One bit of a file of the queue's own.
    fn damage_own(&mut self, file: usize, bit: u64) {
        let own = self.disk.files().into_iter().filter(|path| path.components().count() == 1);
        let held: Vec<(PathBuf, u64)> = own
            .map(|path| (path.clone(), self.disk.read(&path)))
            .filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0))
            .map(|(path, bytes)| (path, bytes.len() as u64))
            .collect();
        let Some((path, bytes)) = held.get(file % held.len().max(1)) else { return };
        Harm::Flip { bit: bit % (bytes * 8) }.apply(&self.disk, path);
        self.mending.files.push((path.clone(), self.disk.read(path)));
        if path.to_string_lossy().starts_with("cursors") {
            (0..self.slots.len()).for_each(|stream| {
                self.oracle.book_mut(stream).into_iter().for_each(crate::oracle::Book::cursors_damaged);
            });
        }
    }

    /// One segment; `None`: there is none that is sound and must still be there.
    fn damage_segment(
        &mut self,
        stream: usize,
        segment: usize,
        hurt: Hurt,
        segments: &[OnDisk],
    ) -> Option<Cost> {
        let floor = self.oracle.book(stream)?.floor_max();
        let of_stream: Vec<&OnDisk> = segments.iter().filter(|on_disk| on_disk.stream == stream).collect();
        let kept: Vec<&OnDisk> =
            of_stream.iter().copied().filter(|on_disk| on_disk.end_seq > floor).collect();
        let files = self.disk.files();
        let map = |on_disk: &&OnDisk| {
            let is_there = files.contains(&on_disk.path);
            let bytes = if is_there { self.disk.read(&on_disk.path) } else { Vec::new() };
            SegmentMap::read(&on_disk.identity, on_disk.path.clone(), &bytes, on_disk.end_offset)
        };
        // A second damage beside one that was not repaired may cost more than each alone.
        let maps: Vec<SegmentMap> = kept.iter().map(map).collect::<Option<_>>()?;
        let index = segment % maps.len().max(1);
        let map = maps.get(index)?;
        let harm = harm_of(map, hurt)?;
        // A header that is gone does not say any more where the segment in front ends: dead batches behind that may be read again,
        // also where that one holds nothing that counts (seeds 11029, 11624, 304973).
        let is_oldest = of_stream.first().is_some_and(|oldest| oldest.path == map.path);
        if !is_oldest && destroys_header(harm) {
            return None;
        }
        let before = self.disk.read(&map.path);
        harm.apply(&self.disk, &map.path);
        let mut after = self.disk.read(&map.path);
        if before == after {
            return None;
        }
        after.truncate(usize::try_from(kept[index].end_offset).unwrap_or(usize::MAX));
        self.mending.files.push((map.path.clone(), after));
        Some(cost_of(map, harm))
    }

    /// What a copy of this machine reads as lost: for each stream its first seq and its end, and the seqs.
    fn read_copy(&self) -> Checked<Vec<Reading>> {
        let stuck = |what: &str, error: &dyn std::fmt::Display| {
            Violation::new(Kind::Stuck, format!("{what} on a copy that was damaged: {error}"))
        };
        let copy = SimDisk::from_snapshot(&self.disk.snapshot());
        let core = self.open(&copy, self.life + 1).map_err(|error| stuck("opening", &error))?;
        let mut all = Vec::new();
        for name in core.names() {
            let Some(stream) = (0..self.slots.len()).find(|n| stream_name(*n) == name) else { continue };
            let handle =
                core.open_stream(&name, None, self.now).map_err(|error| stuck("a stream", &error))?;
            let lost = self.read_all(&core, &handle).map_err(|error| stuck("reading", &error))?;
            let ends = (handle.first().get(), handle.log().ends().durable.get());
            all.push((stream, ends, lost));
        }
        core.abandon();
        Ok(all)
    }

    fn read_all(&self, core: &Core, handle: &CoreStream) -> Result<BTreeSet<u64>, String> {
        let consumer = core
            .open_consumer(handle, "probe", Start::Oldest, self.now)
            .map_err(|error| error.to_string())?;
        let (mut lost, mut buffers) = (BTreeSet::new(), ReadBuffers::default());
        while let Some(delivery) = core
            .next(handle, &consumer, 1 << 16, &mut buffers, self.now)
            .map_err(|error| error.to_string())?
        {
            for item in delivery.items() {
                if let Item::Gap(gap) = item
                    && gap.reason == GapReason::Lost
                {
                    lost.extend(gap.from.get()..gap.to.get());
                }
            }
        }
        Ok(lost)
    }
}

fn destroys_header(harm: Harm) -> bool {
    match harm {
        Harm::Flip { .. } => false,
        Harm::Cut { len: at } | Harm::Zero { from: at, .. } => at < SEGMENT_HEADER_BYTES as u64,
    }
}

/// `None`: there is nothing to hurt that way.
fn harm_of(map: &SegmentMap, hurt: Hurt) -> Option<Harm> {
    let bytes = map.bytes.max(1);
    Some(match hurt {
        Hurt::Bit(bit) => {
            let bit = u64::from(bit) % (bytes * 8);
            if map.part(bit / 8) == Part::Dead {
                return None;
            }
            Harm::Flip { bit }
        }
        Hurt::Payload(number) => {
            let number = usize::from(number);
            let held: Vec<_> =
                map.frames.iter().filter(|f| map.part(f.end - 1) == Part::Payload(f.seq)).collect();
            let frame = held.get(number % held.len().max(1))?;
            Harm::Flip { bit: (frame.end - 1) * 8 + number as u64 % 8 }
        }
        Hurt::Block(number) => {
            let from = u64::from(number) % bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
            Harm::Zero { from, to: (from + BLOCK_BYTES).min(bytes) }
        }
        Hurt::Cut(len) => Harm::Cut { len: u64::from(len) % bytes },
    })
}

fn cost_of(map: &SegmentMap, harm: Harm) -> Cost {
    match harm {
        Harm::Flip { bit } => {
            let at = bit / 8;
            let seqs = match map.part(at) {
                Part::Payload(seq) => BTreeSet::from([seq]),
                _ => BTreeSet::new(),
            };
            Cost { seqs, is_exact: true, may_cost_tags: map.costs_tags(at, at + 1), unsaid: Vec::new() }
        }
        Harm::Cut { len } => Cost {
            seqs: map.costs(len, u64::MAX).into_iter().collect(),
            is_exact: true,
            may_cost_tags: map.costs_tags(len, u64::MAX),
            unsaid: map.unsays(len, u64::MAX),
        },
        Harm::Zero { from, to } => Cost {
            seqs: map.costs(from, to).into_iter().collect(),
            is_exact: false,
            may_cost_tags: map.costs_tags(from, to),
            unsaid: map.unsays(from, to),
        },
    }
}
