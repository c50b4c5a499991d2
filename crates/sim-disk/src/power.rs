//! What a power cut may take, and who chooses.

use std::fmt;

use crate::file_node::Order;
use crate::tree::Ino;

/// One thing that is not on the medium yet, so that a power cut keeps it or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    pub(crate) what: What,
    pub(crate) text: String,
}

/// The same without words: what the machine works with. Ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loose {
    pub(crate) order: Order,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Name,
    Length { ino: Ino, len: u64 },
    Sector { ino: Ino, sector: u64 },
}

impl Unsynced {
    /// Whether it is a sector's bytes; else it is a file's length or a change of names.
    #[must_use]
    pub fn is_sector(&self) -> bool {
        matches!(self.what, What::Sector { .. })
    }

    /// Whether it is a change of names: a file created, linked, renamed or removed.
    #[must_use]
    pub fn is_name(&self) -> bool {
        self.what == What::Name
    }
}

impl fmt::Display for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Which unsynced things survive a power cut. Indexes are those of [`SimDisk::unsynced`], oldest first.
///
/// [`SimDisk::unsynced`]: crate::SimDisk::unsynced
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Survival {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// A subset by a seed; some seeds keep few, some half, some most.
    Seed(u64),
    /// The first `n`.
    Prefix(usize),
    /// Only the one at this index.
    Only(usize),
    /// All but the one at this index.
    AllBut(usize),
    /// The ones whose entry is true; missing entries are lost.
    Mask(Vec<bool>),
}

impl Survival {
    pub(crate) fn keeps(&self, index: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Seed(seed) => {
                let kept_of_8 = [0, 1, 4, 7, 8][(mix(*seed) % 5) as usize];
                mix(seed.wrapping_add(mix(index as u64 + 1))) % 8 < kept_of_8
            }
            Self::Prefix(n) => index < *n,
            Self::Only(kept) => index == *kept,
            Self::AllBut(lost) => index != *lost,
            Self::Mask(mask) => mask.get(index).copied().unwrap_or(false),
        }
    }
}

/// SplitMix64: one well-mixed number for each number.
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
