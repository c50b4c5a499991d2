//! What is written down: one line a fact, in a file that does not lie on the disk under test.
//!
//! | line | says |
//! |---|---|
//! | `put S H` | a record with this hash is about to be appended to stream S |
//! | `ack S SEQ H` | the queue said: durable, at this seq |
//! | `refused S H`, `unsure S H` | the queue said: not written; may or may not be stored |
//! | `got S SEQ H`, `gotgap S FROM TO WHY` | a consumer got it |
//! | `done S TO`, `saved S TO` | the consumer is about to acknowledge up to there; the queue said: that cursor is durable |
//! | `open CLEAN CREATED`, `note …` | what opening found |
//! | `stream S FIRST END`, `paused S …`, `cursor S SEQ` | a stream, and its consumer's cursor |
//! | `record S SEQ H`, `gap S FROM TO WHY` | everything kept, as somebody sees it who only looks |
//! | `deliver S SEQ H`, `delivergap S FROM TO WHY` | everything from the cursor on, as the consumer gets it |
//! | `reported` | the lines since `open` or `report` are complete |
//!
//! The line stands in the file before whoever wrote it goes on: a kill loses none.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

/// Where it is written. Cheap to clone; lines of several threads do not mix.
#[derive(Clone)]
pub(crate) struct Testimony(Arc<Mutex<File>>);

impl Testimony {
    /// Goes on behind what is there.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(Arc::new(Mutex::new(file.with_context(|| format!("cannot open {}", path.display()))?))))
    }

    /// Writes one or several lines, each with its line feed, in one call.
    ///
    /// # Errors
    /// They are not written: whoever testifies must not go on.
    pub(crate) fn write(&self, lines: &str) -> Result<()> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(lines.as_bytes()).context("the testimony cannot be written")
    }
}

/// A record's hash: FNV-1a, 64 bits, of its payload.
pub(crate) fn hash(payload: &[u8]) -> u64 {
    payload.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Lines of one kind about the records of a stream.
pub(crate) fn lines(word: &str, stream: &str, hashes: &[u64]) -> String {
    hashes.iter().fold(String::new(), |mut text, hash| {
        let _ = writeln!(text, "{word} {stream} {hash:016x}");
        text
    })
}

/// Lines of one kind about records with their seqs.
pub(crate) fn numbered(word: &str, stream: &str, records: impl Iterator<Item = (u64, u64)>) -> String {
    records.fold(String::new(), |mut text, (seq, hash)| {
        let _ = writeln!(text, "{word} {stream} {seq} {hash:016x}");
        text
    })
}
