//! How the program fails: a message that names the file or field, what to do, and the exit code.
//!
//! Exit codes: 0 all is well; 1 it ran and something is wrong with the data; 2 it could not run.

use std::fmt;

/// It ran, and found or left something wrong.
pub(crate) const EXIT_WRONG: u8 = 1;
/// It could not run.
pub(crate) const EXIT_CANNOT: u8 = 2;

/// What went wrong, for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    code: u8,
}

impl Failure {
    /// It could not run.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, code: EXIT_CANNOT }
    }

    /// It ran, and found or left something wrong.
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, code: EXIT_WRONG }
    }

    /// What to do about it.
    #[must_use]
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
