//! The plain reference loops: what the device and one core give when nobody manages anything.
//!
//! CRC-32C over the same bytes, the same bytes per sync, one write and one `fdatasync`, into a growing file. No recovery, no
//! rotation, no streams, no cursors: not a queue, but the line that a queue on the same machine is held against.
//!
//! ```text
//!   batch = 64 bytes (count, CRC over the frames) | frame | frame | …     frame = 16 bytes (length, CRC of the payload) | payload
//! ```

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use rustix::thread::futex;

/// Bytes in front of a batch's frames.
pub(crate) const BATCH_HEAD_BYTES: usize = 64;
/// Bytes in front of a payload.
pub(crate) const FRAME_HEAD_BYTES: usize = 16;
/// Bytes a reader asks for at once.
const FILL_BYTES: usize = 1 << 20;

/// Appends one framed payload.
pub(crate) fn push_frame(batch: &mut Vec<u8>, payload: &[u8]) {
    let crc = crc32c::crc32c(payload);
    let mut head = [0u8; FRAME_HEAD_BYTES];
    head[..4].copy_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    head[12..].copy_from_slice(&crc.to_le_bytes());
    batch.extend_from_slice(&head);
    batch.extend_from_slice(payload);
}

/// An empty batch: room for its head.
pub(crate) fn open_batch(batch: &mut Vec<u8>) {
    batch.clear();
    batch.resize(BATCH_HEAD_BYTES, 0);
}

/// Fills in the head: how many bytes, and their one checksum.
pub(crate) fn seal_batch(batch: &mut [u8]) {
    let (head, frames) = batch.split_at_mut(BATCH_HEAD_BYTES);
    let crc = crc32c::crc32c(frames);
    head[..8].copy_from_slice(&(frames.len() as u64).to_le_bytes());
    head[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// One growing file.
pub(crate) struct RawLog {
    file: File,
    end: u64,
}

impl RawLog {
    /// Creates the file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create_new(true).read(true).write(true).open(path);
        Ok(Self { file: file.with_context(|| format!("cannot create {}", path.display()))?, end: 0 })
    }

    /// One write at the end.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// One `fdatasync`.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.file.sync_data()?)
    }

    /// Bytes written so far.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// A reader of the same file.
    pub(crate) fn reader(&self) -> Result<RawReader> {
        Ok(RawReader { file: self.file.try_clone()?, at: 0, buffer: vec![0; FILL_BYTES] })
    }
}

/// Reads batches back: big reads into one buffer, one checksum a batch, every frame visited.
pub(crate) struct RawReader {
    file: File,
    at: u64,
    buffer: Vec<u8>,
}

impl RawReader {
    /// Reads up to `end`; returns the records and the sum of their payloads' first bytes.
    pub(crate) fn read_to(&mut self, end: u64) -> Result<(u64, u64)> {
        let (mut records, mut sum) = (0, 0);
        while self.at < end {
            let wanted = self.buffer.len().min(usize::try_from(end - self.at).unwrap_or(usize::MAX));
            let filled = self.file.read_at(&mut self.buffer[..wanted], self.at)?;
            ensure!(filled > 0, "the file ended before the batch did");
            let mut used = 0;
            while let Some((frames, next)) = batch_at(&self.buffer[..filled], used)? {
                for_each_payload(frames, |payload| {
                    records += 1;
                    sum += u64::from(payload.first().copied().unwrap_or(0));
                });
                used = next;
            }
            if used == 0 {
                let larger = self.buffer.len() * 2;
                self.buffer.resize(larger, 0);
            }
            self.at += used as u64;
        }
        Ok((records, sum))
    }
}

/// The verified frames of the batch at `at` and where the next one starts, if the whole batch is here.
fn batch_at(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>> {
    let Some(head) = bytes.get(at..at + BATCH_HEAD_BYTES) else { return Ok(None) };
    let length = usize::try_from(u64::from_le_bytes(head[..8].try_into()?))?;
    let start = at + BATCH_HEAD_BYTES;
    let Some(frames) = bytes.get(start..start + length) else { return Ok(None) };
    ensure!(crc32c::crc32c(frames).to_le_bytes() == head[8..12], "checksum");
    Ok(Some((frames, start + length)))
}

fn for_each_payload(mut frames: &[u8], mut visit: impl FnMut(&[u8])) {
    while let Some((head, rest)) = frames.split_first_chunk::<FRAME_HEAD_BYTES>() {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        visit(&rest[..length]);
        frames = &rest[length..];
    }
}

/// Group commit at its plainest: producers push under one lock, one thread writes and syncs what is there, one broadcast wakes.
pub(crate) struct RawGroup {
    open: Mutex<(Vec<u8>, u64)>,
    arrived: AtomicU32,
    durable: AtomicU64,
    rounds: AtomicU32,
    stop: AtomicBool,
}

impl RawGroup {
    /// Nothing appended yet.
    pub(crate) fn new() -> Self {
        let mut batch = Vec::new();
        open_batch(&mut batch);
        Self {
            open: Mutex::new((batch, 0)),
            arrived: AtomicU32::new(0),
            durable: AtomicU64::new(0),
            rounds: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Appends one payload and returns once it is durable.
    pub(crate) fn append_durable(&self, payload: &[u8]) {
        let number = {
            let mut open = self.open.lock().unwrap_or_else(|poison| poison.into_inner());
            push_frame(&mut open.0, payload);
            open.1 += 1;
            open.1
        };
        if self.arrived.swap(1, Ordering::AcqRel) == 0 {
            let _woken = futex::wake(&self.arrived, futex::Flags::PRIVATE, 1);
        }
        loop {
            let round = self.rounds.load(Ordering::Acquire);
            if self.durable.load(Ordering::Acquire) >= number {
                return;
            }
            let _changed = futex::wait(&self.rounds, futex::Flags::PRIVATE, round, None);
        }
    }

    /// The committing thread: returns the number of syncs once stopped and empty.
    pub(crate) fn commit_until_stopped(&self, log: &mut RawLog) -> Result<u64> {
        let mut batch = Vec::new();
        let mut syncs = 0;
        loop {
            open_batch(&mut batch);
            let last = {
                let mut open = self.open.lock().unwrap_or_else(|poison| poison.into_inner());
                std::mem::swap(&mut open.0, &mut batch);
                open.1
            };
            if batch.len() == BATCH_HEAD_BYTES {
                if self.stop.load(Ordering::Acquire) {
                    return Ok(syncs);
                }
                if self.arrived.swap(0, Ordering::AcqRel) == 0 {
                    let _changed = futex::wait(&self.arrived, futex::Flags::PRIVATE, 0, None);
                }
                continue;
            }
            seal_batch(&mut batch);
            log.write(&batch)?;
            log.sync()?;
            syncs += 1;
            self.durable.store(last, Ordering::Release);
            self.rounds.fetch_add(1, Ordering::AcqRel);
            let _woken = futex::wake(&self.rounds, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
    }

    /// Tells the committing thread to return once nothing is left.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.arrived.store(1, Ordering::Release);
        let _woken = futex::wake(&self.arrived, futex::Flags::PRIVATE, 1);
    }
}
