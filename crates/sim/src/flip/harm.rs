//! One piece of damage to one file, and families of them that are numbered, so that they can be shared out among threads.

use std::fmt;
use std::path::Path;

use sim_disk::SimDisk;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// One bit is inverted, counted from bit 0 of byte 0.
    Flip { bit: u64 },
    /// The file ends here, in bytes.
    Cut { len: u64 },
    /// Bytes `[from, to)` become zero.
    Zero { from: u64, to: u64 },
}

impl Harm {
    /// Does it, in the cache and on the medium.
    pub(crate) fn apply(self, disk: &SimDisk, path: &Path) {
        match self {
            Self::Flip { bit } => disk.corrupt(path, bit / 8, u32::try_from(bit % 8).unwrap_or(0)),
            Self::Cut { len } => {
                disk.damage(path, |bytes| bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX)));
            }
            Self::Zero { from, to } => disk.damage(path, |bytes| {
                let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let range = at(from)..at(to);
                bytes[range].fill(0);
            }),
        }
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip { bit } => write!(f, "bit {} of byte {} flipped", bit % 8, bit / 8),
            Self::Cut { len } => write!(f, "cut to {len} bytes"),
            Self::Zero { from, to } => write!(f, "bytes {from}..{to} zeroed"),
        }
    }
}

/// A family of harms of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harms {
    /// Every bit of the first `bytes` bytes.
    Flips { bytes: u64 },
    /// Every length below `bytes`.
    Cuts { bytes: u64 },
    /// Every aligned block of this size.
    Blocks { bytes: u64, block: u64 },
}

impl Harms {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flips { .. } => "flips",
            Self::Cuts { .. } => "truncations",
            Self::Blocks { .. } => "zeroed blocks",
        }
    }

    pub(crate) const fn count(self) -> u64 {
        match self {
            Self::Flips { bytes } => bytes * 8,
            Self::Cuts { bytes } => bytes,
            Self::Blocks { bytes, block } => bytes.div_ceil(block),
        }
    }

    /// The harm with this number, from 0.
    pub(crate) const fn get(self, number: u64) -> Harm {
        match self {
            Self::Flips { .. } => Harm::Flip { bit: number },
            Self::Cuts { .. } => Harm::Cut { len: number },
            Self::Blocks { bytes, block } => {
                let (from, end) = (number * block, (number + 1) * block);
                Harm::Zero { from, to: if end < bytes { end } else { bytes } }
            }
        }
    }
}
