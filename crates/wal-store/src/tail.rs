//! The tail of a log: the open batch, what was closed in memory before it, and the next seq. All of it stands under one
//! short lock; no call to the disk and no wake-up happens under it.

use std::collections::VecDeque;
use std::sync::Arc;

use wal_format::{Now, Seq, Tag};

use crate::batch::Batch;
use crate::meter::{Refusal, Shortage};
use crate::record::Record;
use crate::shared::Shared;
use crate::sync::lock;
use crate::word::Word;
use crate::{AppendError, SyncSetting, Ticket};

/// Most words kept for another use.
const SPARE_WORDS_MAX: usize = 16;

/// What appends change.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) open: Batch,
    /// Batches the next append did not fit into, oldest first.
    pub(crate) full: VecDeque<Batch>,
    pub(crate) next: Seq,
    pub(crate) state: TailState,
    pub(crate) records: u64,
    pub(crate) payload_bytes: u64,
    /// The time of the last append, for a commit nobody asked for.
    pub(crate) last: Now,
    spare: Vec<Batch>,
    spare_words: VecDeque<Arc<Word>>,
}

/// Whether appends are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TailState {
    Running,
    Paused,
    Closed,
}

/// What an append must tell after the lock is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tell {
    Nothing,
    /// A batch was begun: it is due after the interval.
    Begun,
    /// A limit was reached.
    Limit,
}

/// Why nothing was pushed.
enum Refused {
    Space(Refusal),
    Other(AppendError),
}

impl Tail {
    pub(crate) fn new(next: Seq) -> Self {
        Self {
            open: Batch::default(),
            full: VecDeque::new(),
            next,
            state: TailState::Running,
            records: 0,
            payload_bytes: 0,
            last: Now::default(),
            spare: Vec::new(),
            spare_words: VecDeque::new(),
        }
    }

    /// Takes batches and words back for another use.
    pub(crate) fn give_back(&mut self, batches: &mut Vec<Batch>, words: &mut Vec<Arc<Word>>) {
        self.spare.append(batches);
        self.spare_words.extend(words.drain(..));
        while self.spare_words.len() > SPARE_WORDS_MAX {
            self.spare_words.pop_front();
        }
    }

    /// Moves what is open to the full ones.
    pub(crate) fn close_batch(&mut self) {
        if !self.open.is_empty() {
            let fresh = self.spare.pop().unwrap_or_default();
            self.full.push_back(std::mem::replace(&mut self.open, fresh));
        }
    }

    /// Drops what is not yet taken.
    pub(crate) fn forget(&mut self) {
        self.full.clear();
        self.open = Batch::default();
    }

    /// The words of all batches not yet taken.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Arc<Word>> {
        self.full.iter().chain(Some(&self.open)).filter_map(|batch| batch.word.as_ref())
    }

    /// A word no ticket holds.
    fn word(&mut self, log: &Shared) -> Arc<Word> {
        for _ in 0..self.spare_words.len() {
            let Some(mut word) = self.spare_words.pop_front() else { break };
            if let Some(unshared) = Arc::get_mut(&mut word) {
                unshared.reset();
                return word;
            }
            self.spare_words.push_back(word);
        }
        Arc::new(Word::new(log.weak()))
    }

    /// Whether `bytes` of frames in `count` records do not fit into the open batch beside what is in it.
    fn overflows(&self, log: &Shared, bytes: usize, count: u64) -> bool {
        self.open.frames_bytes + bytes > log.settings.batch_bytes_max
            || self.open.count() + count > u64::from(log.settings.batch_records_max)
    }

    /// Space on the disk that these frames may take: a new batch may need a header of its own, and one of a segment.
    fn charge_for(&self, log: &Shared, bytes: usize, count: u64) -> u64 {
        let begins = self.open.is_empty() || self.overflows(log, bytes, count);
        (bytes as u64).saturating_add(if begins { log.meter.overhead() } else { 0 })
    }

    /// Makes sure `bytes` of frames in `count` records fit into the open batch.
    fn make_room(&mut self, log: &Shared, bytes: usize, count: u64, now: Now) -> Tell {
        let full = self.overflows(log, bytes, count);
        if full {
            self.close_batch();
        }
        if self.open.is_empty() {
            let word = self.word(log);
            self.open.begin(self.next, now, word);
            return if full { Tell::Limit } else { Tell::Begun };
        }
        Tell::Nothing
    }

    fn is_full(&self, log: &Shared) -> bool {
        self.open.frames_bytes >= log.settings.batch_bytes_max
            || self.open.count() >= u64::from(log.settings.batch_records_max)
    }
}

impl Shared {
    /// Encodes records into the open batch. `bytes` of frames are reserved; they are given back on error.
    pub(crate) fn push(
        &self,
        records: &[Record<'_>],
        tag: Option<&Tag<'_>>,
        bytes: usize,
        now: Now,
    ) -> Result<Ticket, AppendError> {
        let taken = self.push_locked(records, tag, bytes, now);
        let (ticket, tell, shortage) = taken.map_err(|refused| {
            self.release_room(bytes);
            self.answer(refused, records.len() as u64)
        })?;
        self.tell_shortage(shortage);
        let stream = self.ctx.identity.stream;
        match tell {
            Tell::Limit => self.ctx.events.enlist(stream),
            _ if self.settings.sync == SyncSetting::EachAppend => self.ctx.events.enlist(stream),
            Tell::Begun => {
                self.ctx.events.due(stream, now.instant.saturating_add(self.settings.commit_interval))
            }
            Tell::Nothing => {}
        }
        Ok(ticket)
    }

    /// The answer to a push that was refused, for want of space or otherwise.
    fn answer(&self, refused: Refused, count: u64) -> AppendError {
        match refused {
            Refused::Space(refusal) => {
                self.tell_shortage(self.meter.was_refused(refusal.of, self.space()));
                self.refused(&refusal, count)
            }
            Refused::Other(error) => error,
        }
    }

    fn push_locked(
        &self,
        records: &[Record<'_>],
        tag: Option<&Tag<'_>>,
        bytes: usize,
        now: Now,
    ) -> Result<(Ticket, Tell, Shortage), Refused> {
        let (identity, pool) = (&self.ctx.identity, self.ctx.room.chunks());
        let count = records.len() as u64;
        let mut tail = lock(&self.tail);
        match tail.state {
            TailState::Running => {}
            TailState::Paused => return Err(Refused::Other(AppendError::Paused)),
            TailState::Closed => return Err(Refused::Other(AppendError::Closed)),
        }
        let first = tail.next;
        let end = first.checked_add(count).ok_or(Refused::Other(AppendError::SeqsUsedUp))?;
        let charge = tail.charge_for(self, bytes, count);
        let shortage = self.meter.take(charge, self.space()).map_err(Refused::Space)?;
        let tell = tail.make_room(self, bytes, count, now);
        let tail = &mut *tail;
        tail.open.charge += charge;
        if let Some(tag) = tag {
            tail.open.push_tag(tag, identity, pool);
        }
        for record in records {
            let next = tail.open.end.saturating_add(1);
            tail.open.push(record, next, identity, pool);
            tail.payload_bytes += record.payload_bytes() as u64;
        }
        debug_assert_eq!(tail.open.end, end);
        tail.open.room += bytes;
        tail.next = end;
        tail.records += count;
        tail.last = now;
        let word = tail.open.word.clone();
        let tell = if tail.is_full(self) { Tell::Limit } else { tell };
        self.ends.set_appended(end);
        // `make_room` began the batch, so there is a word.
        let word = word.unwrap_or_else(|| Arc::new(Word::new(self.weak())));
        Ok((Ticket::new(first, end, word), tell, shortage))
    }
}
