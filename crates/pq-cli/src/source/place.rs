//! A place in a file: which file, how far it was read. It rides as a tag in the batch whose records were read up to it.
//!
//! A file is known by device, inode and time of birth, not by its name, so it is found again after a rename. The first bytes are
//! remembered with their hash: a file that was truncated and written anew, or an inode used again, is not taken for the old file.
//!
//! ```text
//!   "1 <dev hex> <inode hex> <born hex> <offset> <head length> <head hash hex>"
//! ```

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::UNIX_EPOCH;

/// Bytes at the beginning of a file that are remembered.
pub(crate) const HEAD_BYTES_MAX: u64 = 1024;
/// What the producers of our tags are called, before their number.
const PRODUCER: &str = "file/";

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) dev: u64,
    pub(crate) inode: u64,
    /// Nanoseconds since 1970; 0 where the file system does not say.
    pub(crate) born: u64,
}

/// The first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub(crate) length: u64,
    pub(crate) hash: u64,
}

/// How far a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: FileId,
    pub(crate) offset: u64,
    pub(crate) head: Head,
}

/// A number under which one file's place is kept; taken over by another file when this one is gone, so that places do not pile up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

impl FileId {
    pub(crate) fn of(meta: &Metadata) -> Self {
        let born = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let born = born.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        Self { dev: meta.dev(), inode: meta.ino(), born }
    }

    /// The same file, though its device may have got another number when the machine was started again.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.inode == other.inode && self.born == other.born && (self.dev == other.dev || self.born != 0)
    }
}

impl Head {
    /// The first `length` bytes of a file, or fewer if it has not so many.
    pub(crate) fn read(file: &File, length: u64) -> io::Result<Self> {
        let mut bytes = [0; HEAD_BYTES_MAX as usize];
        let wanted = usize::try_from(length.min(HEAD_BYTES_MAX)).unwrap_or(0);
        let mut got = 0;
        while got < wanted {
            match file.read_at(&mut bytes[got..wanted], got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { length: got as u64, hash: fnv(&bytes[..got]) })
    }

    /// The first bytes of a file whose beginning is at hand.
    pub(crate) fn of(beginning: &[u8], length: u64) -> Self {
        let length = usize::try_from(length.min(HEAD_BYTES_MAX)).unwrap_or(0).min(beginning.len());
        Self { length: length as u64, hash: fnv(&beginning[..length]) }
    }

    /// Whether the file still begins with these bytes.
    pub(crate) fn is_at(&self, file: &File) -> io::Result<bool> {
        Ok(self.length == 0 || Self::read(file, self.length)? == *self)
    }
}

/// FNV-1a: tells different beginnings apart, and is the same in every version of this program.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Slot {
    /// The producer's name in a tag.
    pub(crate) fn producer(self) -> String {
        format!("{PRODUCER}{}", self.0)
    }

    /// From a tag's producer; `None` if the tag is not ours.
    pub(crate) fn parse(producer: &[u8]) -> Option<Self> {
        std::str::from_utf8(producer).ok()?.strip_prefix(PRODUCER)?.parse().ok().map(Self)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, offset, head } = self;
        write!(f, "1 {:x} {:x} {:x} {offset} {} {:x}", id.dev, id.inode, id.born, head.length, head.hash)
    }
}

impl Place {
    /// From a tag's value; `None` if it is not one, or of a later version.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(value).ok()?.split(' ');
        let mut next = |radix| u64::from_str_radix(words.next()?, radix).ok();
        if next(10)? != 1 {
            return None;
        }
        let id = FileId { dev: next(16)?, inode: next(16)?, born: next(16)? };
        let offset = next(10)?;
        let head = Head { length: next(10)?, hash: next(16)? };
        words.next().is_none().then_some(Self { id, offset, head })
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
