//! The other crates, each as its documentation says to use it when nothing may be lost.
//!
//! | crate | an append is safe when | said where |
//! |---|---|---|
//! | okaywal | `EntryWriter::commit` returned | "To fully flush all written bytes to disk and make the new entry resilient to a crash, the writer must be committed" |
//! | queue-file | `add` returned, `sync_writes` on | "Writes are synchronous by default; data will be written to disk before an operation returns" |
//! | walrus-rust | `append_for_topic` returned, `FsyncSchedule::SyncEach`, files by descriptor (the default) | "SyncEach: fsync after every single write", and "files are opened with the `O_SYNC` flag, making every write synchronous" |
//! | yaque | `try_send` returned | it promises safety from panics of the program, not from a power cut |

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Appender, Peer, Seen};

const TOPIC: &str = "compared";

/// The peer of that name.
pub(super) fn find(name: &str) -> Option<Peer> {
    let peer = match name {
        "okaywal" => Peer {
            setting: "EntryWriter::commit, which syncs",
            open: |dir| Ok(Box::new(Okay(open_okaywal(dir, Entries::default())?))),
            read: read_okaywal,
        },
        "queue-file" => Peer {
            setting: "set_sync_writes(true), the default",
            open: |dir| Ok(Box::new(open_queue_file(dir)?)),
            read: read_queue_file,
        },
        "walrus-rust" => Peer {
            setting: "FsyncSchedule::SyncEach (O_SYNC, and fsync after each), StrictlyAtOnce",
            open: |dir| Ok(Box::new(open_walrus(dir, walrus_rust::ReadConsistency::StrictlyAtOnce)?)),
            read: read_walrus,
        },
        "yaque" => Peer {
            setting: "none; it does not promise to survive a power cut",
            open: |dir| Ok(Box::new(open_yaque(dir)?)),
            read: read_yaque,
        },
        _ => return None,
    };
    Some(peer)
}

struct Okay(okaywal::WriteAheadLog);

impl Appender for Okay {
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        let mut entry = self.0.begin_entry()?;
        entry.write_chunk(payload)?;
        entry.commit()?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.shutdown()?;
        Ok(())
    }
}

/// An entry as it was read back, or why it could not be.
type Entry = Result<Vec<u8>, String>;

/// Takes each recovered entry; leaves everything in the log.
#[derive(Clone, Default)]
struct Entries(std::sync::Arc<std::sync::Mutex<Vec<Entry>>>);

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entries")
    }
}

impl Entries {
    fn push(&self, entry: Result<Vec<u8>, String>) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(entry);
    }
}

impl okaywal::LogManager for Entries {
    fn recover(&mut self, entry: &mut okaywal::Entry<'_>) -> std::io::Result<()> {
        match entry.read_all_chunks() {
            Ok(Some(chunks)) => chunks.into_iter().for_each(|chunk| self.push(Ok(chunk))),
            // An entry that was never committed.
            Ok(None) => {}
            Err(error) => self.push(Err(error.to_string())),
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _last: okaywal::EntryId,
        _entries: &mut okaywal::SegmentReader,
        _wal: &okaywal::WriteAheadLog,
    ) -> std::io::Result<()> {
        Ok(())
    }
}

fn open_okaywal(dir: &Path, entries: Entries) -> Result<okaywal::WriteAheadLog> {
    // A checkpoint would hand records over and drop them from the log: none comes.
    let configuration = okaywal::Configuration::default_for(dir).checkpoint_after_bytes(u64::MAX);
    Ok(configuration.open(entries)?)
}

fn read_okaywal(dir: &Path, seen: &mut Seen) -> Result<()> {
    let entries = Entries::default();
    let log = open_okaywal(dir, entries.clone())?;
    for entry in entries.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).drain(..) {
        match entry {
            Ok(payload) => seen.record(&payload),
            Err(error) => seen.damage(&error),
        }
    }
    log.shutdown()?;
    Ok(())
}

fn open_queue_file(dir: &Path) -> Result<queue_file::QueueFile> {
    std::fs::create_dir_all(dir)?;
    let mut queue = queue_file::QueueFile::open(dir.join("queue"))?;
    queue.set_sync_writes(true);
    Ok(queue)
}

impl Appender for queue_file::QueueFile {
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        Ok(self.add(payload)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn read_queue_file(dir: &Path, seen: &mut Seen) -> Result<()> {
    let mut queue = open_queue_file(dir)?;
    // Nobody cuts the power under a reader here: what it takes out need not be synced.
    queue.set_sync_writes(false);
    loop {
        match queue.peek() {
            Ok(Some(payload)) => seen.record(&payload),
            Ok(None) => return Ok(()),
            Err(error) => seen.damage(&error),
        }
        if let Err(error) = queue.remove() {
            seen.damage(&error);
            return Ok(());
        }
    }
}

fn open_walrus(dir: &Path, reads: walrus_rust::ReadConsistency) -> Result<walrus_rust::Walrus> {
    std::fs::create_dir_all(dir)?;
    // The documented way to say where its files go is an environment variable; the caller sets it, so here is only a check.
    let set = std::env::var_os("WALRUS_DATA_DIR").context("WALRUS_DATA_DIR is not set")?;
    anyhow::ensure!(Path::new(&set) == dir, "WALRUS_DATA_DIR is not the folder given");
    Ok(walrus_rust::Walrus::with_consistency_and_schedule(reads, walrus_rust::FsyncSchedule::SyncEach)?)
}

impl Appender for walrus_rust::Walrus {
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        Ok(self.append_for_topic(TOPIC, payload)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn read_walrus(dir: &Path, seen: &mut Seen) -> Result<()> {
    // How far a reader came is not what is compared.
    let log = open_walrus(dir, walrus_rust::ReadConsistency::AtLeastOnce { persist_every: 1_000_000 })?;
    loop {
        match log.read_next(TOPIC, true) {
            Ok(Some(entry)) => seen.record(&entry.data),
            Ok(None) => return Ok(()),
            Err(error) => {
                seen.damage(&error);
                return Ok(());
            }
        }
    }
}

fn open_yaque(dir: &Path) -> Result<yaque::Sender> {
    if dir.exists() {
        // What its documentation names for a queue whose process died.
        yaque::recovery::recover(dir)?;
    }
    Ok(yaque::Sender::open(dir)?)
}

impl Appender for yaque::Sender {
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.try_send(payload).map_err(|error| anyhow::anyhow!("{error}"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn read_yaque(dir: &Path, seen: &mut Seen) -> Result<()> {
    yaque::recovery::recover(dir)?;
    let mut receiver = yaque::Receiver::open(dir)?;
    loop {
        match receiver.try_recv() {
            Ok(guard) => {
                seen.record(&guard);
                guard.commit()?;
            }
            Err(yaque::TryRecvError::QueueEmpty) => return Ok(()),
            Err(error) => {
                seen.damage(&format!("{error:?}"));
                return Ok(());
            }
        }
    }
}
