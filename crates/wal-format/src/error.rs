//! What decoding may find instead of the thing it looked for: one small `Copy` error for every structure.

use core::fmt;

/// Why bytes are not (yet) the structure asked for. Only [`DecodeError::NeedMore`] may change when more bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not all here yet: at least `bytes` bytes, counted from the start of the structure, are needed. Never an error by itself.
    NeedMore {
        /// The least length that may decode, in bytes from the start of the structure.
        bytes: usize,
    },
    /// Nothing but zeros: never written, or lost.
    Zeros,
    /// No magic number of ours: filler, foreign or damaged bytes.
    BadMagic,
    /// The header's checksum is wrong: damaged, or of another stream or incarnation.
    BadHeader,
    /// The header is sound, and of another stream.
    Foreign,
    /// The header is sound, and of a version this program cannot read.
    Version {
        /// The version found.
        found: u16,
        /// The newest version this program reads.
        known: u16,
    },
    /// The header is sound, and bears flags this program must know to read on, and does not.
    Incompatible {
        /// The unknown flags.
        flags: u16,
    },
    /// The header is sound, and its codec unknown.
    Codec {
        /// The codec found.
        found: u8,
    },
    /// The checksum is right and the fields contradict each other: nobody honest wrote this.
    Malformed,
    /// The header is sound, and the bytes behind it do not match its checksum: torn or damaged. See [`salvage`](crate::salvage).
    Mismatch,
}

impl DecodeError {
    /// Whether the same place may decode later, when more bytes are there.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::NeedMore { .. })
    }

    /// Whether the bytes come from a newer program: the stream must be refused, not repaired.
    #[must_use]
    pub const fn is_newer_format(self) -> bool {
        matches!(self, Self::Version { .. } | Self::Incompatible { .. } | Self::Codec { .. })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NeedMore { bytes } => write!(f, "not all here yet: at least {bytes} bytes are needed"),
            Self::Zeros => f.write_str("nothing but zeros"),
            Self::BadMagic => f.write_str("no magic number of ours"),
            Self::BadHeader => f.write_str("the header's checksum is wrong"),
            Self::Foreign => f.write_str("the bytes belong to another stream"),
            Self::Version { found, known } => {
                write!(f, "format version {found} is newer than the newest this program reads, {known}")
            }
            Self::Incompatible { flags } => {
                write!(f, "unknown incompatible flags {flags:#06x}: written by a newer program")
            }
            Self::Codec { found } => write!(f, "unknown codec {found}: written by a newer program"),
            Self::Malformed => f.write_str("the checksum is right, but the fields contradict each other"),
            Self::Mismatch => f.write_str("the content does not match its checksum"),
        }
    }
}

impl core::error::Error for DecodeError {}
