//! The driver of the commit machine: it holds the bytes and the file, does each step, and tells the world. One thread at
//! a time, the one that holds the gate. It decides nothing about files; `machine.rs` does.
//!
//! ```text
//!   gate ─► Committer::run ─► machine.next ─► do it on the disk ─► machine.reply ─► … ─► leave the gate ─► look again
//! ```
//! Invariants: a panic on the way fails the batches in flight, poisons the file, and gives the gate back; whoever leaves
//! the gate looks for waiters afterwards (`gate.rs`).

use std::collections::VecDeque;
use std::io::IoSlice;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Waker;

use disk::{DiskError, ErrorClass, File, Held, OpenMode};
use wal_format::{
    BATCH_HEADER_BYTES, BatchFlags, BatchHeader, Now, PADDING_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader,
    SegmentId, Seq, batch_checksum,
};

use crate::batch::Batch;
use crate::machine::{Ask, Machine, Reply, RoundEnd, Step, Write};
use crate::shared::Shared;
use crate::sync::{lock, yield_now};
use crate::tags::TagSet;
use crate::word::Word;
use crate::{CommitError, segment_path};

mod publish;
mod read_back;

/// From this many bytes on a batch is padded to the block, so that the next one rewrites no acknowledged bytes.
pub(crate) const PADDED_FROM_BYTES: u64 = 256 << 10;
/// Turns given to other threads while a batch gathers what the last round's waiters append next.
const GATHER_YIELDS_MAX: u32 = 64;
/// Turns after which nothing more is expected.
const GATHER_YIELDS_IDLE: u32 = 8;
static ZEROS: [u8; PADDING_BYTES as usize] = [0; PADDING_BYTES as usize];

/// What the holder of the gate works with.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(crate) machine: Machine,
    /// The machine's queue, with the bytes.
    in_flight: VecDeque<Batch>,
    file: Option<Held>,
    path: PathBuf,
    /// Words of batches that are written and not durable.
    unsynced: VecDeque<(Seq, Arc<Word>)>,
    unsynced_prune_at: usize,
    /// Tags of batches that are written and not durable.
    unsynced_tags: VecDeque<(Seq, TagSet)>,
    gave_up: Option<CommitError>,
    /// Whether appends are refused at the moment.
    paused: bool,
    /// Tickets that waited for the last round.
    waiters: usize,
    spare: Vec<Batch>,
    spare_words: Vec<Arc<Word>>,
    wakers: Vec<Waker>,
    prefix: Vec<u8>,
    slices: Vec<IoSlice<'static>>,
}

impl Shared {
    /// Runs rounds until nobody is left behind. The caller holds the gate; it is given back.
    pub(crate) fn run_rounds(&self, now: Now, ask: Ask) -> RoundEnd {
        let mut ask = ask;
        loop {
            let (end, pending) = {
                let mut committer = lock(&self.committer);
                let ran = catch_unwind(AssertUnwindSafe(|| committer.run(self, now, ask)));
                match ran {
                    Ok(end) => {
                        let pending = committer.words_in_flight();
                        (end, pending)
                    }
                    Err(panic) => {
                        committer.abandon(self);
                        drop(committer);
                        self.gate.leave();
                        self.look_again(&[]);
                        resume_unwind(panic);
                    }
                }
            };
            self.gate.leave();
            self.look_again(&pending);
            // A waiter may have asked for a sync after this round decided that none was needed.
            let again = matches!(end, RoundEnd::Clean { dirty: true }) && self.ends.durable_is_wanted();
            if !again || !self.gate.try_enter() {
                return end;
            }
            ask = Ask::default();
        }
    }

    /// After leaving the gate: somebody who registered meanwhile must not be left asleep.
    pub(crate) fn look_again(&self, in_flight: &[Arc<Word>]) {
        if let Some(word) = in_flight.iter().find(|word| word.has_sleepers()) {
            word.kick_one();
            return;
        }
        let word = lock(&self.tail).words().find(|word| word.has_sleepers()).cloned();
        if let Some(word) = word {
            word.kick_one();
        }
    }
}

impl Committer {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            machine,
            in_flight: VecDeque::new(),
            file: None,
            path: PathBuf::new(),
            unsynced: VecDeque::new(),
            unsynced_prune_at: publish::PRUNE_FROM,
            unsynced_tags: VecDeque::new(),
            gave_up: None,
            paused: false,
            waiters: 0,
            spare: Vec::new(),
            spare_words: Vec::new(),
            wakers: Vec::new(),
            prefix: Vec::new(),
            slices: Vec::new(),
        }
    }

    /// Drops what was taken and is not yet published. No round may follow.
    pub(crate) fn forget(&mut self) {
        self.in_flight.clear();
    }

    /// Whether batches were taken and are not yet published.
    pub(crate) fn is_midway(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// One round of the machine.
    fn run(&mut self, log: &Shared, now: Now, ask: Ask) -> RoundEnd {
        let release_file = ask.release_file || log.files_are_short();
        let ask = Ask { release_file, ..ask };
        self.gave_up = None;
        self.machine.begin(now, ask, log.space().held_back(now.instant));
        loop {
            let result = match self.machine.next() {
                Step::Done(end) => {
                    self.round_over(log, now, &end);
                    return end;
                }
                Step::Take => Ok(self.take(log, ask)),
                Step::Create { segment } => self.create(log, segment),
                Step::Open { segment } => self.open(log, segment),
                Step::Write(write) => self.write(log, now, &write),
                Step::SyncFile(site) => {
                    self.with_file(|file| file.sync_data(site)).inspect(|_| log.counts.syncs.add(1))
                }
                Step::SyncDir(site) => {
                    log.counts.dir_syncs.add(1);
                    log.ctx.disk.sync_dir(&log.ctx.dir, site).map(|()| Reply::Done)
                }
                Step::Publish(publish) => Ok(self.publish(log, &publish)),
                Step::Close { segment, closed, next } => Ok(self.close(log, segment, closed, next)),
                Step::ReadBack { from, to, first } => self.read_back(log, from, to, first),
                Step::GiveUp { error, segment } => Ok(self.give_up(log, error.as_ref(), segment)),
                Step::ProbeWrite => self.with_file(|file| file.write_all_at(&[IoSlice::new(&ZEROS)], 0)),
                Step::ProbeRemove { segment } => self.remove(log, segment),
            };
            self.machine.reply(result);
        }
    }

    /// Swaps what is open out from under the tail's lock.
    fn take(&mut self, log: &Shared, ask: Ask) -> Reply {
        self.gather(log);
        let known = self.in_flight.len();
        {
            let mut tail = lock(&log.tail);
            tail.give_back(&mut self.spare, &mut self.spare_words);
            tail.close_batch();
            self.in_flight.append(&mut tail.full);
        }
        for batch in self.in_flight.iter().skip(known) {
            self.machine.push(batch.meta());
        }
        let durable = ask.durable || log.ends.durable_is_wanted();
        Reply::Taken { ask: Ask { durable, ..ask } }
    }

    /// Those who were woken by the last round are about to append again: one batch for all of them.
    fn gather(&self, log: &Shared) {
        if self.waiters < 2 {
            return;
        }
        let taken = self.in_flight.back().map_or(log.ends.get().written, |batch| batch.end);
        let (mut last, mut idle) = (0, 0);
        for _ in 0..GATHER_YIELDS_MAX {
            let waiting = taken.distance_to(log.ends.appended());
            idle = if waiting > last { 0 } else { idle + 1 };
            if waiting >= self.waiters as u64 || idle > GATHER_YIELDS_IDLE {
                return;
            }
            last = waiting;
            yield_now();
        }
    }

    fn create(&mut self, log: &Shared, segment: SegmentId) -> Result<Reply, DiskError> {
        self.path = segment_path(&log.ctx.dir, segment);
        let permit = log.writer_permit();
        let created = match log.ctx.disk.create(&self.path) {
            // Others in this process hold more descriptors than the budget knows of.
            Err(error) if error.class() == ErrorClass::RetryLater => {
                log.ctx.files.clear();
                log.ctx.disk.create(&self.path)
            }
            created => created,
        };
        self.file = Some(Held::new(created?, permit, OpenMode::ReadWrite));
        log.counts.segments_created.add(1);
        Ok(Reply::Done)
    }

    fn open(&mut self, log: &Shared, segment: SegmentId) -> Result<Reply, DiskError> {
        self.path = segment_path(&log.ctx.dir, segment);
        self.file = Some(log.ctx.files.open(&*log.ctx.disk, &self.path, OpenMode::ReadWrite)?);
        Ok(Reply::Done)
    }

    fn with_file(&self, call: impl FnOnce(&dyn File) -> Result<(), DiskError>) -> Result<Reply, DiskError> {
        // The machine asks for a file to be created or opened before it asks for anything done to it.
        self.file.as_ref().map_or(Ok(()), |held| call(held.file())).map(|()| Reply::Done)
    }

    /// Header, frames and padding in one vectored write; the segment's header rides along with its first batch.
    fn write(&mut self, log: &Shared, now: Now, write: &Write) -> Result<Reply, DiskError> {
        let identity = &log.ctx.identity;
        let (Some(batch), Some(held)) = (self.in_flight.get_mut(write.index), &self.file) else {
            unreachable!("the machine's queue is the driver's, and its file is open");
        };
        batch.touched = true;
        self.prefix.clear();
        let header = write.header.map(|predecessor| {
            lock(&log.tags).encode(&mut self.prefix, identity, batch.first);
            let (segment, first_seq) = (write.segment, batch.first);
            let unsynced_bytes_max = log.settings.unsynced_bytes_max;
            let created_at = now.wall;
            SegmentHeader {
                identity: *identity,
                segment,
                first_seq,
                created_at,
                unsynced_bytes_max,
                predecessor,
            }
            .encode()
        });
        let start = if header.is_some() { SEGMENT_HEADER_BYTES as u64 } else { write.offset };
        let batch_header = seal(log, batch, &self.prefix, start, write);
        let end_offset = batch_header.end_offset(start);
        let padding = end_offset - start - batch_header.bytes();
        let encoded = batch_header.encode(identity);
        let mut slices = reuse(std::mem::take(&mut self.slices));
        slices.extend(header.as_ref().map(|header| IoSlice::new(header)));
        slices.push(IoSlice::new(&encoded));
        slices.push(IoSlice::new(&self.prefix));
        slices.extend(batch.chunks.iter().map(|chunk| IoSlice::new(chunk)));
        slices.push(IoSlice::new(ZEROS.get(..usize::try_from(padding).unwrap_or(0)).unwrap_or(&[])));
        // Before it is: whatever becomes of the write, the file may have grown so far.
        log.meter.grew(write.segment, end_offset, log.space());
        let written = held.write_all_at(&slices, write.offset);
        self.slices = reuse(slices);
        log.counts.writes.add(1);
        log.counts.written_bytes.add(end_offset - write.offset);
        if written.is_ok() {
            log.meter.settle(std::mem::take(&mut batch.charge), log.space());
        }
        written.map(|()| Reply::Written { end_offset })
    }

    /// A file that turned out to hold nothing; leaving it does no harm, so failing to remove it is no failure.
    fn remove(&mut self, log: &Shared, segment: SegmentId) -> Result<Reply, DiskError> {
        self.file = None;
        let path = segment_path(&log.ctx.dir, segment);
        log.ctx.files.remove(&path);
        log.ctx.disk.remove_file(&path).map(|()| Reply::Done)
    }
}

/// The batch's header, its checksum computed over all frames.
fn seal(log: &Shared, batch: &Batch, prefix: &[u8], start: u64, write: &Write) -> BatchHeader {
    let identity = &log.ctx.identity;
    let mut checksum = batch_checksum(identity, batch.first);
    checksum.update(prefix);
    batch.chunks.iter().for_each(|chunk| checksum.update(chunk));
    let frames_bytes = (prefix.len() + batch.frames_bytes) as u64;
    let bytes = BATCH_HEADER_BYTES as u64 + frames_bytes;
    let mut flags = BatchFlags::NONE;
    if batch.first.get() != write.prev_seq + 1 {
        flags = flags | BatchFlags::SKIPPED;
    }
    let padded_end = (start + bytes).next_multiple_of(PADDING_BYTES);
    // A batch that just fits must not be pushed over the limit by its padding; the next one starts a new file anyway.
    if bytes >= PADDED_FROM_BYTES && padded_end <= log.settings.segment_bytes_max.max(start + bytes) {
        flags = flags | BatchFlags::PADDED;
    }
    BatchHeader {
        flags,
        codec: 0,
        stream: identity.stream,
        first_seq: batch.first,
        prev_seq: write.prev_seq,
        durable_seq: write.durable.get(),
        append_time: batch.opened.wall,
        // The settings bound both far below 32 bits.
        count: u32::try_from(batch.count()).unwrap_or(u32::MAX),
        frames_bytes: u32::try_from(frames_bytes).unwrap_or(u32::MAX),
        batch_crc: checksum.get(),
    }
}

/// Empties a vector of slices and gives its allocation another lifetime (the collect is in place).
fn reuse<'a>(mut slices: Vec<IoSlice<'_>>) -> Vec<IoSlice<'a>> {
    slices.clear();
    slices.into_iter().map(|_| IoSlice::new(&[])).collect()
}

impl Shared {
    /// Whether so many files are open that idle ones are better left to the cache.
    pub(crate) fn files_are_short(&self) -> bool {
        let budget = self.ctx.files.budget();
        budget.used() * 2 > budget.limit().total
    }

    /// A permit for the segment to be created; from what is reserved for writers if the common share is used up.
    fn writer_permit(&self) -> disk::Permit {
        let budget = self.ctx.files.budget();
        budget.try_acquire(NonZeroUsize::MIN).unwrap_or_else(|| budget.acquire_reserved(NonZeroUsize::MIN))
    }
}
