//! Reading one file from a place on, to its end or for ever, across renames and truncation.
//!
//! ```text
//!            new bytes                    path is another file, or none
//!   ┌──────────────────┐      ┌──────────────────────────────────────────────┐
//!   └─> [ in place ] ──┴──────┴─> [ departed ] ── no new byte for GRACE ──> finished
//!          │  shorter than the place, or begins otherwise: place = 0
//!          └── at its end, not followed ──────────────────────────────────> finished
//! ```
//! A departed file (renamed or removed by a rotation) is read on through its open descriptor, or found again in its folder by its
//! identity: programs write to the old file until they are told to open the new one.
//!
//! Descriptors: a followed file stays open while at most half of the queue's budget is used, else it is opened for each look.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pq::{FdBudget, Permit};

use super::place::{FileId, HEAD_BYTES_MAX, Head, Place, Slot};
use crate::config::AtEnd;
use crate::lines::Rest;

/// How long a departed file is watched after its last byte came.
const GRACE: Duration = Duration::from_secs(5);
const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// One file being read.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    place: Place,
    slot: Slot,
    at_end: AtEnd,
    open: Option<Open>,
    departed: Option<Instant>,
    complaint: Option<String>,
}

#[derive(Debug)]
struct Open {
    // The file is closed before its permit is given back: fields drop in this order.
    file: File,
    _permit: Permit,
}

/// What a look at the file found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// So many bytes are in the buffer, and this is what becomes of an unfinished line among them.
    Bytes(usize, Rest),
    /// Nothing new.
    Nothing,
    /// Nothing will come any more.
    Finished,
}

/// Something a person should know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It was cut short, or written anew.
    Truncated,
    /// It was removed before it was read to its end, and no descriptor was left open.
    Vanished,
}

impl Tail {
    pub(crate) fn new(path: PathBuf, place: Place, slot: Slot, at_end: AtEnd) -> Self {
        Self { path, place, slot, at_end, open: None, departed: None, complaint: None }
    }

    /// A file that was renamed while nobody looked: what is left in it is read, then it is finished.
    pub(crate) fn departed(path: PathBuf, place: Place, slot: Slot, at_end: AtEnd) -> Self {
        Self { departed: Some(Instant::now()), ..Self::new(path, place, slot, at_end) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.at_end == AtEnd::Follow
    }

    /// Tells a person of an error, unless it is the one told last.
    pub(crate) fn complain_once(&mut self, error: &io::Error, notify: &mut dyn FnMut(String)) {
        let text = format!("{}: the file cannot be read now: {error}; trying again", self.path.display());
        if self.complaint.as_ref() != Some(&text) {
            notify(text.clone());
            self.complaint = Some(text);
        }
    }

    /// It was found under this path, which may be a new one.
    pub(crate) fn found_at(&mut self, path: &Path) {
        if self.path != path {
            path.clone_into(&mut self.path);
        }
        self.departed = None;
    }

    /// Fills the buffer from the place on.
    pub(crate) fn look(
        &mut self,
        fds: &Arc<FdBudget>,
        buffer: &mut [u8],
        notice: &mut impl FnMut(Notice),
    ) -> io::Result<Look> {
        if !self.ensure_open(fds)? {
            return Ok(self.look_without_file(notice));
        }
        let Some(open) = &self.open else { return Ok(Look::Nothing) };
        let length = open.file.metadata()?.len();
        let is_shorter = length < self.place.offset;
        if is_shorter || (length > self.place.offset && !self.place.head.is_at(&open.file)?) {
            notice(Notice::Truncated);
            self.place = Place { id: self.place.id, offset: 0, head: Head::default() };
        }
        let got =
            if length > self.place.offset { read_full(&open.file, buffer, self.place.offset)? } else { 0 };
        let is_end = self.place.offset + (got as u64) >= length;
        let look = if is_end { self.at_its_end(got) } else { Look::Bytes(got, Rest::Keep) };
        self.close_unless_wanted(fds, &look);
        Ok(look)
    }

    /// The place behind `taken` bytes of the last look.
    pub(crate) fn place_after(&self, taken: usize, chunk: &[u8]) -> io::Result<Place> {
        let offset = self.place.offset + taken as u64;
        let wanted = offset.min(HEAD_BYTES_MAX);
        let head = if self.place.head.length == wanted {
            self.place.head
        } else if self.place.offset == 0 {
            Head::of(chunk, wanted)
        } else if let Some(open) = &self.open {
            Head::read(&open.file, wanted)?
        } else {
            Head::read(&File::open(&self.path)?, wanted)?
        };
        Ok(Place { id: self.place.id, offset, head })
    }

    /// The records up to this place were appended.
    pub(crate) fn move_to(&mut self, place: Place) {
        self.place = place;
    }

    fn at_its_end(&mut self, got: usize) -> Look {
        if self.at_end == AtEnd::Finish {
            return if got > 0 { Look::Bytes(got, Rest::Take) } else { Look::Finished };
        }
        let is_here = fs::metadata(&self.path).is_ok_and(|meta| FileId::of(&meta) == self.place.id);
        if is_here && self.departed.is_none() {
            return if got > 0 { Look::Bytes(got, Rest::Keep) } else { Look::Nothing };
        }
        let since = *self.departed.get_or_insert_with(Instant::now);
        if got > 0 {
            // Its last line may lack a line feed; what comes from another file must not be joined to it later.
            self.departed = Some(Instant::now());
            return Look::Bytes(got, Rest::Take);
        }
        if since.elapsed() >= GRACE { Look::Finished } else { Look::Nothing }
    }

    /// The path leads elsewhere now: it is looked for in its folder.
    fn look_without_file(&mut self, notice: &mut impl FnMut(Notice)) -> Look {
        if let Some(path) = find_in(self.path.parent(), self.place.id) {
            self.path = path;
            self.departed.get_or_insert_with(Instant::now);
            return Look::Nothing;
        }
        if self.at_end == AtEnd::Finish {
            notice(Notice::Vanished);
            return Look::Finished;
        }
        let since = *self.departed.get_or_insert_with(Instant::now);
        if since.elapsed() >= GRACE { Look::Finished } else { Look::Nothing }
    }

    /// `false`: there is no such file under its path any more.
    fn ensure_open(&mut self, fds: &Arc<FdBudget>) -> io::Result<bool> {
        if self.open.is_some() {
            return Ok(true);
        }
        let permit = fds.try_acquire(ONE).unwrap_or_else(|| fds.acquire(ONE));
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let is_ours = FileId::of(&file.metadata()?) == self.place.id;
        if is_ours {
            self.open = Some(Open { file, _permit: permit });
        }
        Ok(is_ours)
    }

    fn close_unless_wanted(&mut self, fds: &Arc<FdBudget>, look: &Look) {
        let is_idle =
            matches!(look, Look::Finished) || (self.at_end == AtEnd::Finish && *look == Look::Nothing);
        if is_idle || fds.used() > fds.limit().total / 2 {
            self.open = None;
        }
    }
}

/// The path in this folder under which the file stands now.
fn find_in(folder: Option<&Path>, id: FileId) -> Option<PathBuf> {
    let entries = fs::read_dir(folder?).ok()?;
    entries
        .filter_map(Result::ok)
        .find(|entry| entry.metadata().is_ok_and(|meta| meta.is_file() && FileId::of(&meta) == id))
        .map(|entry| entry.path())
}

fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
