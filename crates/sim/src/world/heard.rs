//! What clients are told of errors, as they could act on it: the class of what the disk said, and whether to try again. Not what it means;
//! the checks judge that.

use std::error::Error;
use std::fmt::Display;

use disk::{DiskError, ErrorClass};
use pq::{AppendError, CloseError, CommitError, OpenError, ReadError, SaveError, StreamError};

use super::{Health, World};
use crate::violation::{Checked, Kind, Violation};

/// Whether an error says that the same call may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Retry {
    /// It may.
    Yes,
    /// It will not.
    No,
}

/// An error that a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The call, in words.
    pub verb: &'static str,
    /// What the disk said, if the error carries that.
    pub class: Option<ErrorClass>,
    /// What it advises; `None`: nothing, it follows from another one.
    pub retry: Option<Retry>,
    /// Its text, with its sources.
    pub text: String,
}

impl Heard {
    /// An error of a call.
    pub fn of(verb: &'static str, error: &impl ClientError) -> Self {
        Self { verb, class: error.class(), retry: error.retry(), text: error.text() }
    }
}

impl Display for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({:?}, retry {:?})", self.verb, self.text, self.class, self.retry)
    }
}

impl World {
    /// An error that may be there only if something was done to the disk.
    pub(super) fn expect(&self, verb: &'static str, error: &impl ClientError) -> Checked {
        let heard = Heard::of(verb, error);
        let text = heard.to_string();
        self.told.borrow_mut().push(heard);
        if self.health == Health::Troubled || self.is_dead() {
            self.last_trouble.replace(text);
            return Ok(());
        }
        Err(Violation::new(Kind::Unexpected, format!("on a sound disk: {text}")))
    }

    /// The same for what is seen, where no call returned an error.
    pub(super) fn expect_seen(&self, verb: &'static str, what: String) -> Checked {
        self.expect(verb, &Seen(what))
    }
}

/// An error of the product's interface.
pub trait ClientError {
    /// What the disk said, if it is in there.
    fn class(&self) -> Option<ErrorClass>;
    /// Whether to try again.
    fn retry(&self) -> Option<Retry>;
    /// All of its text.
    fn text(&self) -> String;
}

/// What is seen, and no error that was returned.
#[derive(Debug)]
struct Seen(String);

impl ClientError for Seen {
    fn class(&self) -> Option<ErrorClass> {
        None
    }

    fn retry(&self) -> Option<Retry> {
        None
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// It advises nothing: the queue is down.
impl ClientError for CloseError {
    fn class(&self) -> Option<ErrorClass> {
        class_of(self)
    }

    fn retry(&self) -> Option<Retry> {
        None
    }

    fn text(&self) -> String {
        text_of(self)
    }
}

macro_rules! client_errors {
    ($($error:ty),*) => {$(
        impl ClientError for $error {
            fn class(&self) -> Option<ErrorClass> {
                class_of(self)
            }

            fn retry(&self) -> Option<Retry> {
                Some(if self.is_retryable() { Retry::Yes } else { Retry::No })
            }

            fn text(&self) -> String {
                text_of(self)
            }
        }
    )*};
}

client_errors!(AppendError, CommitError, OpenError, SaveError, StreamError, ReadError);

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let source =
        |error: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> { (*error).source() };
    std::iter::successors(Some(error), source)
}

fn class_of(error: &(dyn Error + 'static)) -> Option<ErrorClass> {
    chain(error).find_map(|error| error.downcast_ref::<DiskError>()).map(DiskError::class)
}

fn text_of(error: &(dyn Error + 'static)) -> String {
    chain(error).fold(String::new(), |text, error| match error.to_string() {
        next if text.contains(&next) => text,
        next if text.is_empty() => next,
        next => format!("{text}: {next}"),
    })
}
