//! Names of a journal's files: `<prefix>-<generation as 16 lower-case hex digits>`, nothing else.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Number of a journal file; it only grows, and a number is never used twice while any file of it may be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// The path of a generation.
pub(super) fn path_of(dir: &Path, prefix: &str, generation: Generation) -> PathBuf {
    dir.join(format!("{prefix}-{:016x}", generation.0))
}

/// What a name in the journal's directory is to this journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    /// One of its generations.
    Generation(Generation),
    /// It begins like one but is none (`.tmp`, `.bak`, upper case, ...): listed, never touched.
    Stray,
    /// Somebody else's.
    Other,
}

/// Reads a name.
pub(super) fn classify(prefix: &str, name: &OsStr) -> NameKind {
    let bytes = name.as_encoded_bytes();
    let Some(rest) = bytes.strip_prefix(prefix.as_bytes()).and_then(|rest| rest.strip_prefix(b"-")) else {
        return NameKind::Other;
    };
    let canonical = rest.len() == 16 && rest.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let number = std::str::from_utf8(rest).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match number {
        // The last number has no successor, and zero is never written: neither can be ours.
        Some(number) if canonical && number != 0 && number != u64::MAX => {
            NameKind::Generation(Generation(number))
        }
        _ => NameKind::Stray,
    }
}
