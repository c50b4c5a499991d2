//! Names of streams and consumers: any UTF-8 text of 1 to 255 bytes without control characters. Names live in journals only and never
//! become paths, so `..`, `/`, case and trailing dots are harmless; two names are the same only if their bytes are.

use thiserror::Error;

/// The longest name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 255;

/// A name that cannot be used for a stream or a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name has no characters.
    #[error("a name must not be empty")]
    Empty,
    /// The name is longer than [`NAME_BYTES_MAX`] bytes.
    #[error("a name has {bytes} bytes, at most {NAME_BYTES_MAX} are possible")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The name holds a control character, NUL for example.
    #[error("a name must not hold control characters, found {found:?} at byte {at}")]
    Control {
        /// The character.
        found: char,
        /// Its byte offset in the name.
        at: usize,
    },
}

/// Checks a name.
///
/// # Errors
/// Says what is wrong with it.
pub(crate) fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    match name.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, found)) => Err(NameError::Control { found, at }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
