//! The journal envelope.
use crate::{DecodeError, QueueId};
use alloc::vec::Vec;

/// The length of a journal file's header, in bytes.
pub const JOURNAL_HEADER_BYTES: usize = 64;
/// The length of a journal entry's head, in bytes.
pub const ENTRY_HEAD_BYTES: usize = 24;
/// The most bytes an entry's body may have.
pub const ENTRY_BODY_BYTES_MAX: usize = 1 << 26;

/// Whose journal a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JournalKind(u8);

impl JournalKind {
    /// `queue.meta`.
    pub const QUEUE: Self = Self(1);
    /// `catalog-<generation>`.
    pub const CATALOG: Self = Self(2);
    /// `cursors-<generation>`.
    pub const CURSORS: Self = Self(3);

    /// Any other kind; 0 is never valid on disk.
    #[must_use]
    pub const fn new(kind: u8) -> Self {
        Self(kind)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// What a journal file says about itself first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JournalHeader {
    /// Whose journal.
    pub kind: JournalKind,
    /// The queue it belongs to.
    pub queue: QueueId,
    /// The generation; the highest valid one wins.
    pub generation: u64,
}

impl JournalHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; JOURNAL_HEADER_BYTES] {
        todo!()
    }

    /// Reads a header back.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(_bytes: &[u8]) -> Result<Self, DecodeError> {
        todo!()
    }

    /// Appends one entry to `out`. Numbers count from 1 in each file, without holes.
    ///
    /// # Panics
    /// If the body is longer than [`ENTRY_BODY_BYTES_MAX`].
    pub fn encode_entry(&self, _out: &mut Vec<u8>, _number: u64, _tag: EntryTag, _body: &[u8]) {
        todo!()
    }

    /// Reads the entries of the journal; `entries` are the bytes behind the file header.
    #[must_use]
    pub fn scan<'a>(&self, _entries: &'a [u8]) -> JournalScan<'a> {
        todo!()
    }
}

/// What the owner says about an entry's body, opaque to the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryTag {
    /// The version of the body's encoding.
    pub version: u8,
    /// What the body is.
    pub kind: u8,
}

/// One entry, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry<'a> {
    /// Its number in the file, from 1.
    pub number: u64,
    /// The owner's version and kind.
    pub tag: EntryTag,
    /// The body.
    pub body: &'a [u8],
}

/// What a scan of a journal finds, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JournalItem<'a> {
    /// A sound entry.
    Entry(Entry<'a>),
    /// Entries `[from, to)` are damaged, and a sound entry follows behind them.
    Damaged {
        /// The first damaged number.
        from: u64,
        /// The number of the sound entry that follows.
        to: u64,
    },
    /// The last item, if sound entries do not reach the end of the file: bytes from here on are a torn tail or zeros.
    Tail {
        /// Where the tail starts, in bytes behind the file header.
        offset: usize,
    },
}

/// Iterator of [`JournalHeader::scan`].
#[derive(Clone, Debug)]
pub struct JournalScan<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for JournalScan<'a> {
    type Item = JournalItem<'a>;
    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.rest;
        todo!()
    }
}
