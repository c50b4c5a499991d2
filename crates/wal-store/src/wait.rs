//! Blocking waits: for a ticket's level, and for room. A blocked waiter commits by itself when nobody else does, so a
//! log is live without lanes.
//!
//! ```text
//!   known? ─► yes: done
//!   gate free? ─► commit inline, again
//!   register on the word ─► known? gate free? ─► enlist, sleep until anything happens, again
//! ```

use std::sync::Arc;

use wal_format::{Instant, Now, Seq, Tag};

use crate::machine::{Ask, RoundEnd};
use crate::record::Record;
use crate::shared::Shared;
use crate::sync::{Cell, lock};
use crate::tail::TailState;
use crate::word::Word;
use crate::{AppendError, CommitError, Level, Ticket};

impl Shared {
    /// Blocks until `word` settles for `level`, or the disk refuses.
    pub(crate) fn wait_for(&self, word: &Word, end: Seq, level: Level, now: Now) -> Result<(), CommitError> {
        if level == Level::Durable {
            self.ends.want_durable(end);
        }
        let stalls_seen = self.stall.seen();
        let mut now = now;
        let mut registered = None;
        loop {
            if let Some(outcome) = word.outcome(level) {
                return outcome;
            }
            if let Some(error) = self.stall.since(stalls_seen) {
                return Err(error);
            }
            if self.gate.try_enter() {
                self.counts.inline_commits.add(1);
                registered = None;
                match self.run_rounds(now, Ask::default()) {
                    RoundEnd::Clean { .. } | RoundEnd::GaveUp(_) | RoundEnd::IdsUsedUp => {}
                    RoundEnd::Stalled(source) | RoundEnd::Paused(source) => {
                        return word.outcome(level).unwrap_or(Err(CommitError::Stalled { source }));
                    }
                    RoundEnd::Backoff { at, wait, .. } => {
                        let seen = word.register();
                        if word.outcome(level).is_none() {
                            word.sleep(seen, Some(wait));
                        }
                        now = later(now, at);
                    }
                }
                continue;
            }
            match registered.take() {
                None => registered = Some(word.register()),
                Some(seen) => {
                    self.ctx.events.enlist(self.ctx.identity.stream);
                    word.sleep(seen, None);
                }
            }
        }
    }

    /// Rounds until the log is clean or the disk refuses; back-offs are slept through. Blocks while others commit.
    pub(crate) fn drive(&self, now: Now, ask: Ask) -> Result<(), CommitError> {
        let mut now = now;
        loop {
            self.gate.enter();
            let end = self.run_rounds(now, ask);
            match end {
                RoundEnd::Backoff { at, wait, .. } => {
                    // Nobody wakes this cell: a sleep, measured by the kernel.
                    Cell::new(0).wait(0, Some(wait));
                    now = later(now, at);
                }
                end => return self.outcome_of(end),
            }
        }
    }

    /// See [`Log::abandon`](crate::Log::abandon).
    pub(crate) fn abandon(&self) {
        let words: Vec<Arc<Word>> = {
            let mut tail = lock(&self.tail);
            tail.state = TailState::Closed;
            let words = tail.words().cloned().collect();
            tail.forget();
            words
        };
        let mut committer = lock(&self.committer);
        committer.close_words(&words);
        committer.forget();
        self.ends.want_nothing();
    }

    /// See [`Log::discard`](crate::Log::discard).
    pub(crate) fn discard(&self) {
        lock(&self.tail).state = TailState::Closed;
        self.gate.enter();
        lock(&self.committer).discard(self);
        self.gate.leave();
        self.look_again(&[]);
    }

    /// A round's end as the answer to whoever asked for the round.
    pub(crate) fn outcome_of(&self, end: RoundEnd) -> Result<(), CommitError> {
        match end {
            RoundEnd::Clean { .. } => Ok(()),
            RoundEnd::Stalled(source)
            | RoundEnd::Paused(source)
            | RoundEnd::Backoff { error: source, .. } => Err(CommitError::Stalled { source }),
            RoundEnd::GaveUp(source) => {
                let gave_up = lock(&self.committer).gave_up();
                Err(gave_up.unwrap_or(CommitError::Stalled { source }))
            }
            RoundEnd::IdsUsedUp => {
                let gave_up = lock(&self.committer).gave_up();
                gave_up.map_or(Ok(()), Err)
            }
        }
    }

    /// Appends; without room commits, or waits until another stream gave some back; at a byte limit waits for space.
    pub(crate) fn append_waiting(&self, record: &Record<'_>, now: Now) -> Result<Ticket, AppendError> {
        let waits =
            |error: &AppendError| matches!(error, AppendError::Busy { .. }) || self.waits_for_space(error);
        self.waiting(now, waits, || self.append(record, now))
    }

    /// As `append_waiting` for a batch, but a want of memory is the caller's to deal with.
    pub(crate) fn append_batch_waiting(
        &self,
        records: &[Record<'_>],
        tag: Option<&Tag<'_>>,
        now: Now,
    ) -> Result<Ticket, AppendError> {
        self.waiting(now, |error| self.waits_for_space(error), || self.append_batch(records, tag, now))
    }

    /// Tries until the refusal is none to wait for; sleeps in between.
    fn waiting(
        &self,
        now: Now,
        waits: impl Fn(&AppendError) -> bool,
        attempt: impl Fn() -> Result<Ticket, AppendError>,
    ) -> Result<Ticket, AppendError> {
        loop {
            match attempt() {
                Err(error) if waits(&error) => {}
                settled => return settled,
            }
            let (room, space) = (self.ctx.room.register(), self.space().register());
            let for_space = match attempt() {
                Err(error) if waits(&error) => !matches!(error, AppendError::Busy { .. }),
                settled => return settled,
            };
            if self.holds_room()
                && self.gate.try_enter()
                && matches!(self.run_rounds(now, Ask::default()), RoundEnd::Clean { .. })
            {
                continue;
            }
            // Others hold it, or the disk refuses: whoever gets it to work again gives back.
            if for_space {
                self.space().sleep(space);
            } else {
                self.ctx.room.sleep(room);
            }
        }
    }
}

fn later(now: Now, at: Instant) -> Now {
    Now { instant: now.instant.max(at), ..now }
}

/// The last handle is gone: what was taken is committed as far as the disk allows, and every ticket gets an answer.
impl Drop for Shared {
    fn drop(&mut self) {
        let (last, is_empty) = {
            let tail = lock(&self.tail);
            (tail.last, tail.open.is_empty() && tail.full.is_empty())
        };
        // What a failed round left behind is no longer in the tail.
        let is_empty = is_empty && !lock(&self.committer).is_midway();
        if !is_empty || self.ends.durable_is_wanted() {
            // Best effort: nobody is left to be told but the tickets, and their words tell them.
            let _ = self.drive(last, Ask::default());
        }
        let words: Vec<Arc<Word>> = lock(&self.tail).words().cloned().collect();
        let mut committer = lock(&self.committer);
        committer.close_words(&words);
        drop(committer);
        self.release_all_room();
        self.meter.end(self.ctx.room.space());
    }
}
