//! What feeds one stream: its files, in order, and their places.
//!
//! ```text
//!   chunk of a file ──split──> records + tag (slot, place behind them) ──one append_batch──> stream
//! ```
//! Invariants: records and the place behind them are in one batch, so after a crash both are there or neither: no line is lost, and
//! none is twice in the stream. A file is not let go before all that was read from it is durable: what a failing disk made the
//! stream give up is read again.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pq::{AppendError, CommitError, FdBudget, Record, Stream, Tag, Ticket};

use super::place::{FileId, Head, Place, Slot};
use super::tail::{Look, Notice, Tail};
use crate::config::AtEnd;
use crate::failure::Failure;
use crate::lines::{self, Limits};

/// A lasting fault is told so often.
pub(crate) const COMPLAINTS_APART: Duration = Duration::from_secs(60);
/// Bytes read from a file at once, if records are not longer.
const CHUNK_BYTES: usize = 1 << 20;

/// One stream's files.
#[derive(Debug)]
pub(crate) struct Feeder {
    stream: Stream,
    limits: Limits,
    files: Vec<Tail>,
    /// Places whose files are not there, or not seen yet: a file that comes back is known again.
    known: BTreeMap<Slot, Place>,
    /// Places of files that were read to their end and are still there.
    kept: BTreeMap<Slot, Place>,
    /// What is not known to be durable yet, in the order it was appended.
    unproven: VecDeque<Unproven>,
    /// When it was told last that the stream cannot take records.
    complained: Option<Instant>,
}

/// A batch that was appended, and where reading goes on if it is given up.
#[derive(Debug)]
struct Unproven {
    ticket: Ticket,
    slot: Slot,
    before: Place,
}

/// Places of files that are gone are kept up to so many slots, then their slots are used again: they cost room in every segment.
const SLOTS_KEPT: u32 = 64;

/// How a turn went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Records were appended.
    Progress,
    /// Nothing to read now.
    Idle,
    /// Every file was read to its end, but not all of it is durable: a commit is needed.
    Unproven,
    /// Every file was read to its end, none is followed, and all of it is durable.
    Finished,
}

/// Something a person should know of one file.
pub(crate) type Notify<'a> = &'a mut dyn FnMut(String);

impl Feeder {
    /// Finds the places that the stream's last batches carried.
    pub(crate) fn new(stream: Stream) -> Self {
        let tags = stream.last_tags();
        let known =
            tags.iter().filter_map(|tag| Some((Slot::parse(&tag.producer)?, Place::parse(&tag.value)?)));
        let limits = Limits::of(stream.settings());
        Self {
            known: known.collect(),
            kept: BTreeMap::new(),
            limits,
            files: Vec::new(),
            unproven: VecDeque::new(),
            complained: None,
            stream,
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Bytes a buffer needs for one look.
    pub(crate) fn buffer_bytes(&self) -> usize {
        CHUNK_BYTES.max(self.limits.record_bytes_max.saturating_add(1))
    }

    /// Takes up a file that was found, unless it is being read already.
    pub(crate) fn offer(&mut self, path: &Path, meta: &Metadata, at_end: AtEnd) {
        let id = FileId::of(meta);
        if let Some(tail) = self.files.iter_mut().find(|tail| tail.place().id == id) {
            tail.found_at(path);
            return;
        }
        let (slot, place) = self.take_known(path, id, meta.len());
        self.files.push(Tail::new(path.to_path_buf(), place, slot, at_end));
    }

    /// Files that were renamed while nobody looked, and what is left in them: they come first.
    pub(crate) fn rescue(&mut self, found: &BTreeMap<FileId, PathBuf>, at_end: AtEnd) {
        let mut rescued = Vec::new();
        self.known.retain(|slot, place| {
            let path = found.iter().find(|(id, _)| id.is_same(&place.id)).map(|(_, path)| path);
            let Some(path) = path.filter(|path| has_more(path, place)) else { return true };
            rescued.push(Tail::departed(path.clone(), *place, *slot, at_end));
            false
        });
        self.files.splice(0..0, rescued);
    }

    /// Whether places wait for their files.
    pub(crate) fn has_unseen(&self) -> bool {
        !self.known.is_empty()
    }

    /// Reads one chunk of the first file that has something new.
    ///
    /// # Errors
    /// The stream refuses records; their place was not moved.
    pub(crate) fn turn(
        &mut self,
        fds: &Arc<FdBudget>,
        buffer: &mut [u8],
        notify: Notify<'_>,
    ) -> Result<Turn, Failure> {
        self.settle(notify);
        let mut at = 0;
        let mut waits = false;
        while let Some(tail) = self.files.get_mut(at) {
            let path = tail.path().to_path_buf();
            let look = tail.look(fds, buffer, &mut |notice| notify(describe(&path, &notice)));
            match look {
                Ok(Look::Bytes(got, rest)) => {
                    let before = tail.place();
                    match append(&self.stream, self.limits, tail, &buffer[..got], rest, notify)? {
                        Appended::Batch(ticket) => {
                            let slot = tail.slot();
                            self.unproven.push_back(Unproven { ticket, slot, before });
                            return Ok(Turn::Progress);
                        }
                        Appended::Dropped(error) => {
                            self.tell_dropped(&error, notify);
                            return Ok(Turn::Progress);
                        }
                        Appended::NotNow(error) => self.complain(&error.to_string(), notify),
                        Appended::Nothing => {}
                    }
                    waits = true;
                }
                Ok(Look::Nothing) => waits = true,
                Ok(Look::Finished) if self.unproven.is_empty() => {
                    self.let_go(at);
                    continue;
                }
                Ok(Look::Finished) => {}
                Err(error) if tail.is_followed() => {
                    tail.complain_once(&error, notify);
                    waits = true;
                }
                Err(error) => {
                    let path = path.display();
                    return Err(Failure::wrong(format!("{path}: the file cannot be read: {error}")).help(
                        "give pq the right to read it, then run it again: it goes on where it stopped",
                    ));
                }
            }
            at += 1;
        }
        Ok(match (waits, self.unproven.is_empty()) {
            (true, _) => Turn::Idle,
            (false, false) => Turn::Unproven,
            (false, true) => Turn::Finished,
        })
    }

    /// Tells a person what is wrong with the stream, once a minute at most.
    pub(crate) fn complain(&mut self, problem: &str, notify: Notify<'_>) {
        if self.complained.is_none_or(|told| told.elapsed() >= COMPLAINTS_APART) {
            notify(format!("stream `{}`: {problem}; trying again", self.stream.name()));
            self.complained = Some(Instant::now());
        }
    }

    /// Tells a person that records are dropped, once a minute at most.
    fn tell_dropped(&mut self, error: &AppendError, notify: Notify<'_>) {
        if self.complained.is_none_or(|told| told.elapsed() >= COMPLAINTS_APART) {
            notify(format!("stream `{}`: {error}", self.stream.name()));
            self.complained = Some(Instant::now());
        }
    }

    /// Forgets what is durable by now, and goes back to what was given up: its places were given up with it.
    fn settle(&mut self, notify: Notify<'_>) {
        while let Some(first) = self.unproven.front() {
            match first.ticket.peek() {
                Some(Ok(_)) => drop(self.unproven.pop_front()),
                Some(Err(error)) if !error.is_retryable() => return self.go_back(&error, notify),
                _ => return,
            }
        }
    }

    /// Whatever was appended behind a batch that was given up was given up too.
    fn go_back(&mut self, error: &CommitError, notify: Notify<'_>) {
        notify(format!("stream `{}`: {error}; reading them again", self.stream.name()));
        for batch in self.unproven.drain(..).rev() {
            let tail = self.files.iter_mut().find(|tail| tail.slot() == batch.slot);
            if let Some(tail) = tail {
                tail.move_to(batch.before);
            }
        }
    }

    fn let_go(&mut self, at: usize) {
        let tail = self.files.remove(at);
        let places = if tail.is_followed() { &mut self.known } else { &mut self.kept };
        places.insert(tail.slot(), tail.place());
    }

    /// The place of this file in the stream, or its beginning under a free slot.
    fn take_known(&mut self, path: &Path, id: FileId, length: u64) -> (Slot, Place) {
        for places in [&mut self.known, &mut self.kept] {
            let known =
                places.iter().find(|(_, place)| place.id.is_same(&id)).map(|(slot, place)| (*slot, *place));
            let Some((slot, place)) = known else { continue };
            places.remove(&slot);
            let is_same = length >= place.offset
                && fs::File::open(path).and_then(|file| place.head.is_at(&file)).unwrap_or(false);
            return (slot, if is_same { Place { id, ..place } } else { beginning(id) });
        }
        (self.free_slot(), beginning(id))
    }

    fn free_slot(&mut self) -> Slot {
        let is_free = |slot: &Slot| {
            let is_known = self.known.contains_key(slot) || self.kept.contains_key(slot);
            !is_known && self.files.iter().all(|file| file.slot() != *slot)
        };
        let free = (0..=u32::MAX).map(Slot).find(is_free).unwrap_or(Slot(u32::MAX));
        if free.0 < SLOTS_KEPT {
            return free;
        }
        self.known.pop_first().map_or(free, |(slot, _)| slot)
    }
}

fn beginning(id: FileId) -> Place {
    Place { id, offset: 0, head: Head::default() }
}

fn has_more(path: &Path, place: &Place) -> bool {
    let is_longer = fs::metadata(path).is_ok_and(|meta| meta.len() > place.offset);
    is_longer && fs::File::open(path).and_then(|file| place.head.is_at(&file)).unwrap_or(false)
}

/// What became of a chunk.
enum Appended {
    Batch(Ticket),
    /// The stream is full and drops the newest: it counted them.
    Dropped(AppendError),
    /// It holds no whole record, or its place cannot be told.
    Nothing,
    /// The stream cannot take it now.
    NotNow(AppendError),
}

/// Appends what the chunk holds.
fn append(
    stream: &Stream,
    limits: Limits,
    tail: &mut Tail,
    chunk: &[u8],
    rest: lines::Rest,
    notify: Notify<'_>,
) -> Result<Appended, Failure> {
    let mut records: Vec<Record<'_>> = Vec::new();
    let taken = lines::split(chunk, limits, rest, &mut records);
    if records.is_empty() {
        return Ok(Appended::Nothing);
    }
    let place = match tail.place_after(taken, chunk) {
        Ok(place) => place,
        Err(error) => {
            tail.complain_once(&error, notify);
            return Ok(Appended::Nothing);
        }
    };
    let (producer, value) = (tail.slot().producer(), place.to_string());
    let tag = Tag::new(producer.as_bytes(), value.as_bytes()).map_err(|error| {
        Failure::wrong(format!("{}: its place cannot be kept: {error}", tail.path().display()))
    })?;
    // A full stream must not hold up the others that this thread feeds; the file is where its lines wait.
    match stream.append_batch_unless_full(&records, Some(tag)) {
        Ok(ticket) => {
            tail.move_to(place);
            Ok(Appended::Batch(ticket))
        }
        Err(error @ AppendError::Dropped { .. }) => {
            tail.move_to(place);
            Ok(Appended::Dropped(error))
        }
        Err(error) if error.is_retryable() => Ok(Appended::NotNow(error)),
        Err(error) => Err(refused(stream, &error)),
    }
}

fn refused(stream: &Stream, error: &AppendError) -> Failure {
    Failure::wrong(format!("stream `{}`: records cannot be appended: {error}", stream.name()))
        .help("nothing of the source was skipped: mend the cause and run it again")
}

fn describe(path: &Path, notice: &Notice) -> String {
    let path = path.display();
    match notice {
        Notice::Truncated => {
            format!("{path}: the file was cut short or written anew; reading it from its beginning")
        }
        Notice::Vanished => format!("{path}: the file was removed before it was read"),
    }
}

#[cfg(test)]
#[path = "feeder_tests.rs"]
mod tests;
