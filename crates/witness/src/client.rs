//! What both the single steps and the random work do with a queue: append and say what became of it, take and acknowledge.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use pq::{
    AppendError, CommitError, Delivery, Item, Options, Queue, Record, Stream, StreamSettings, SyncSetting,
    Ticket,
};

use crate::payloads::Payloads;
use crate::testimony::{Testimony, hash, lines, numbered};

/// The consumer every stream has.
pub(crate) const CONSUMER: &str = "c";
/// A refusal is tried again after this long.
const PAUSE: Duration = Duration::from_millis(2);

/// A queue and what is said about it.
pub(crate) struct Client {
    pub(crate) queue: Queue,
    pub(crate) testimony: Testimony,
    pub(crate) payloads: Payloads,
    /// Nobody waits any longer.
    pub(crate) stop: AtomicBool,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Durable,
    /// Not known to be durable, for this reason.
    Not(String),
}

/// Files are small, so that much happens to them in a short life.
pub(crate) fn options() -> Options {
    Options {
        cursor_interval: Duration::from_millis(10),
        backoff_first: Duration::from_millis(5),
        ..Options::default()
    }
}

/// Settings follow from the stream's name: `lazy…` syncs at rotation only, `solo…` with each append, all others with each batch.
pub(crate) fn settings(stream: &str) -> StreamSettings {
    let sync = match stream {
        name if name.starts_with("lazy") => SyncSetting::OnRotate,
        name if name.starts_with("solo") => SyncSetting::EachAppend,
        _ => SyncSetting::EachBatch,
    };
    StreamSettings {
        sync,
        segment_bytes_max: if sync == SyncSetting::EachAppend { 24 << 10 } else { 96 << 10 },
        batch_bytes_max: 32 << 10,
        record_bytes_max: 16 << 10,
        unsynced_bytes_max: 128 << 10,
        commit_interval: Duration::from_millis(4),
        probe_after: Duration::from_millis(50),
        ..StreamSettings::default()
    }
}

impl Client {
    pub(crate) fn stream(&self, name: &str) -> Result<Stream> {
        Ok(self.queue.stream_with(name, settings(name))?)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes payloads, and says that they are about to be appended.
    pub(crate) fn put(&self, stream: &str, sizes: &[usize]) -> Result<(Vec<Vec<u8>>, Vec<u64>)> {
        let payloads: Vec<_> = sizes.iter().map(|bytes| self.payloads.make(stream, *bytes)).collect();
        let hashes: Vec<_> = payloads.iter().map(|payload| hash(payload)).collect();
        self.testimony.write(&lines("put", stream, &hashes))?;
        Ok((payloads, hashes))
    }

    /// Appends the records as one batch; a refusal that may pass is waited for.
    pub(crate) fn append(
        &self,
        stream: &Stream,
        payloads: &[Vec<u8>],
        until: Option<Instant>,
    ) -> Result<Ticket, AppendError> {
        let records: Vec<_> = payloads.iter().map(|payload| Record::new(payload)).collect();
        loop {
            match stream.append_batch_blocking(&records, None) {
                Err(error) if error.is_retryable() && !self.is_over(until) => sleep(PAUSE),
                taken => return taken,
            }
        }
    }

    /// Waits for a ticket, and says what became of its records.
    pub(crate) fn settle(
        &self,
        stream: &str,
        ticket: &Ticket,
        hashes: &[u64],
        until: Option<Instant>,
    ) -> Result<Fate> {
        loop {
            let error = match ticket.wait() {
                Ok(_) => {
                    let seqs = ticket.seqs();
                    let records = (seqs.start.get()..seqs.end.get()).zip(hashes.iter().copied());
                    self.testimony.write(&numbered("ack", stream, records))?;
                    return Ok(Fate::Durable);
                }
                Err(error) => error,
            };
            match error {
                CommitError::NotWritten { .. } => self.testimony.write(&lines("refused", stream, hashes))?,
                CommitError::Indeterminate { .. } => {
                    self.testimony.write(&lines("unsure", stream, hashes))?
                }
                _ if error.is_retryable() && !self.is_over(until) => {
                    sleep(PAUSE);
                    continue;
                }
                _ => {}
            }
            return Ok(Fate::Not(error.to_string()));
        }
    }

    fn is_over(&self, until: Option<Instant>) -> bool {
        self.is_stopped() || until.is_some_and(|until| Instant::now() >= until)
    }

    /// Says what a delivery holds, in words of this kind.
    pub(crate) fn say_delivery(&self, stream: &str, word: &str, delivery: &Delivery) -> Result<()> {
        let mut text = String::new();
        for item in delivery.items() {
            match item {
                Item::Record(record) => {
                    let hash = hash(record.payload);
                    let _ = writeln!(text, "{word} {stream} {} {hash:016x}", record.seq);
                }
                Item::Gap(gap) => {
                    let _ =
                        writeln!(text, "{} {stream} {} {} {}", gap_word(word), gap.from, gap.to, gap.reason);
                }
                _ => {}
            }
        }
        self.testimony.write(&text)
    }
}

fn gap_word(word: &str) -> &'static str {
    match word {
        "got" => "gotgap",
        "deliver" => "delivergap",
        _ => "gap",
    }
}
