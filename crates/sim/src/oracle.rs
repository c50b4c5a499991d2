//! The oracle: what clients saw, and what that allows to happen next. It looks into no file and asks the queue nothing.
//!
//! ```text
//!   accepted, tickets, deliveries, acks, saves ──> Book of each stream ──> may this be delivered? recovered? forgotten?
//! ```
//!
//! What a call would have answered is unknown if the machine stopped in it: then both answers are possible, and the next thing seen
//! decides which it was.
//!
//! Invariants: a record that was told durable, or shown by a stream that shows what is durable only, is expected for ever (or until
//! every consumer is past it); what was shown as gone is expected to stay gone.

mod book;
mod cursor;
mod record;
mod recovered;

pub use book::{Book, Cost, Origin};
pub use cursor::{Cursor, Presence};
pub use record::{Fate, Payload, Told};
pub use recovered::{ConsumerView, Stopped, StreamView, View};

use pq::{Incarnation, ReadLevel};

use crate::violation::{Checked, Kind, Violation};

/// What is known of one name.
#[derive(Debug, Clone)]
struct Shelf {
    name: String,
    level: ReadLevel,
    presence: Presence,
    /// The life it has or may have.
    book: Option<Book>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    shelves: Vec<Shelf>,
}

impl Oracle {
    /// One that knows of these names, and that none of them is there.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = (String, ReadLevel)>) -> Self {
        let shelf = |(name, level)| Shelf { name, level, presence: Presence::Absent, book: None };
        Self { shelves: names.into_iter().map(shelf).collect() }
    }

    /// What is known of a stream's present life.
    #[must_use]
    pub fn book(&self, stream: usize) -> Option<&Book> {
        self.shelves.get(stream)?.book.as_ref()
    }

    /// The same, to tell it what was seen.
    pub fn book_mut(&mut self, stream: usize) -> Option<&mut Book> {
        self.shelves.get_mut(stream)?.book.as_mut()
    }

    /// Whether a stream is there, as far as anybody knows.
    #[must_use]
    pub fn presence(&self, stream: usize) -> Presence {
        self.shelves.get(stream).map_or(Presence::Absent, |shelf| shelf.presence)
    }

    /// A stream is about to be created or deleted.
    pub fn attempt(&mut self, stream: usize) {
        if let Some(shelf) = self.shelves.get_mut(stream) {
            shelf.presence = Presence::Unknown;
        }
    }

    /// A stream was opened or created and is of this life.
    ///
    /// # Errors
    /// A life that ended, or another one in place of one that did not.
    pub fn opened(&mut self, stream: usize, incarnation: Incarnation) -> Checked {
        let Some(shelf) = self.shelves.get_mut(stream) else { return Ok(()) };
        match (&shelf.book, shelf.presence) {
            (Some(book), _) if book.incarnation() == incarnation => {}
            (Some(_), Presence::Present) => {
                let what = format!("stream {:?} is another one than before", shelf.name);
                return Err(Violation::new(Kind::Lost, what));
            }
            _ => shelf.book = Some(Book::new(&shelf.name, incarnation, shelf.level)),
        }
        shelf.presence = Presence::Present;
        Ok(())
    }

    /// A stream was deleted for certain.
    pub fn deleted(&mut self, stream: usize) {
        if let Some(shelf) = self.shelves.get_mut(stream) {
            shelf.presence = Presence::Absent;
            shelf.book = None;
        }
    }

    /// A deletion failed, and the stream is still there; a crash may yet show it deleted.
    pub fn maybe_deleted(&mut self, stream: usize) {
        self.attempt(stream);
    }

    /// A report names these seqs as newly found lost.
    ///
    /// # Errors
    /// They are not lost, or were told before.
    pub fn told_lost(&mut self, stream: &str, seqs: std::ops::Range<u64>) -> Checked {
        let shelf = self.shelves.iter_mut().find(|shelf| shelf.name == stream);
        match shelf.and_then(|shelf| shelf.book.as_mut()) {
            Some(book) => book.told_lost(seqs),
            None => Err(Violation::new(Kind::FalseAlarm, format!("{seqs:?} of {stream:?} are told lost"))),
        }
    }

    /// Whether a stream lost something for good.
    #[must_use]
    pub fn has_lost(&self, stream: &str) -> bool {
        let shelf = self.shelves.iter().find(|shelf| shelf.name == stream);
        shelf.and_then(|shelf| shelf.book.as_ref()).is_some_and(Book::has_lost)
    }

    /// A repair went through everything: all that is lost is remembered from here on.
    pub fn mended(&mut self) {
        self.shelves.iter_mut().filter_map(|shelf| shelf.book.as_mut()).for_each(Book::mended);
    }

    /// Cursors are about to be saved: floors may rise from here on.
    pub fn saving(&mut self) {
        self.shelves.iter_mut().filter_map(|shelf| shelf.book.as_mut()).for_each(Book::saving);
    }

    /// The queue was opened again: what may be there, is.
    ///
    /// # Errors
    /// What is missing, or came back.
    pub fn reopened(&mut self, stopped: Stopped, view: &View) -> Checked {
        for shelf in &mut self.shelves {
            shelf.reopened(stopped, view)?;
        }
        for stream in &view.streams {
            if !self.shelves.iter().any(|shelf| shelf.name == stream.name) {
                let what = format!("a stream {:?} came from nowhere", stream.name);
                return Err(Violation::new(Kind::Resurrected, what));
            }
        }
        Ok(())
    }
}

impl Shelf {
    fn reopened(&mut self, stopped: Stopped, view: &View) -> Checked {
        let found = view.streams.iter().find(|stream| stream.name == self.name);
        let known = self.book.as_ref().map(Book::incarnation);
        match (self.presence, found) {
            (Presence::Present, None) => {
                return Err(Violation::new(Kind::Lost, format!("stream {:?} is gone", self.name)));
            }
            (Presence::Absent, Some(_)) => {
                return Err(Violation::new(Kind::Resurrected, format!("stream {:?} is back", self.name)));
            }
            (_, None) => {
                self.presence = Presence::Absent;
                self.book = None;
                return Ok(());
            }
            (Presence::Present, Some(found)) if known != Some(found.incarnation) => {
                let what = format!("stream {:?} is another one than before", self.name);
                return Err(Violation::new(Kind::Lost, what));
            }
            (_, Some(found)) if known != Some(found.incarnation) => {
                self.book = Some(Book::new(&self.name, found.incarnation, self.level));
            }
            _ => {}
        }
        self.presence = Presence::Present;
        match (&mut self.book, found) {
            (Some(book), Some(found)) => book.reopened(stopped, found),
            _ => Ok(()),
        }
    }
}
