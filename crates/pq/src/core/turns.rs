//! Turns: lease, read, acknowledge, end. What the pool's workers, the pull consumers and the simulator do alike.
//!
//! ```text
//!   lease ──> Turn ──read──> Delivery ──(sink or caller)──> ack ──> … ──> end
//! ```
//!
//! Invariants: a turn reads no seq at or above its lease's bound; a turn that has nothing to read opens no file; every exit of a turn
//! returns its lease, a panic too (I11): a `Turn` that is dropped ends as failed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use scheduler::{Lease, Outcome};
use wal_format::{Instant, Seq};
use wal_store::{Position, ReadBuffers, ReadFrom, ReadLimits};

use crate::clock::locked;
use crate::{Delivery, GapReason, ReadError};

use super::Core;
use super::consumer::ConsumerState;
use super::hub::{Found, Hub};
use super::stream::StreamState;

/// The exclusive right to read on for one consumer, and where it is.
#[derive(Debug)]
pub struct Turn {
    lease: Option<Lease>,
    hub: Arc<Hub>,
    pub(crate) stream: Arc<StreamState>,
    pub(crate) consumer: Arc<ConsumerState>,
    at: Seq,
    begun: Instant,
    bytes: usize,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnResult {
    /// Everything read was handed over.
    Handed,
    /// The sink or the reader failed: on from the cursor, after `wait_min` and the back-off.
    Failed {
        /// The least wait the destination asked for.
        wait_min: Duration,
    },
}

impl Core {
    /// The oldest due turn of a sink that has something to read.
    pub fn lease(&self, now: Instant) -> Option<Turn> {
        loop {
            match self.look(now) {
                Found::Some(turn) => return Some(turn),
                Found::Later => {}
                Found::Nothing => return None,
            }
        }
    }

    /// As [`Core::lease`], but gives up after some turns that had nothing to read: for those who share a thread.
    pub(crate) fn look(&self, now: Instant) -> Found<Turn> {
        self.hub.saw(now);
        match self.hub.lease(now) {
            Found::Some(lease) => self.turn_of(lease, now).map_or(Found::Later, Found::Some),
            Found::Later => Found::Later,
            Found::Nothing => Found::Nothing,
        }
    }

    /// The turn of one pull consumer, if it is due.
    pub(crate) fn lease_for(
        &self,
        stream: &Arc<StreamState>,
        consumer: &Arc<ConsumerState>,
        now: Instant,
    ) -> Option<Turn> {
        self.hub.saw(now);
        let lease = self.hub.lease_key(consumer.key, now)?;
        Some(Turn::new(lease, &self.hub, Arc::clone(stream), Arc::clone(consumer), now))
    }

    fn turn_of(&self, lease: Lease, now: Instant) -> Option<Turn> {
        let stream = self.stream_of(lease.key.stream);
        let consumer = stream.as_ref().and_then(|s| s.consumer(lease.key.consumer));
        match (stream, consumer) {
            (Some(stream), Some(consumer)) => Some(Turn::new(lease, &self.hub, stream, consumer, now)),
            _ => {
                // It was removed between the lease and here; the cache forgets it with this.
                let at = lease.from;
                self.hub.end_turn(lease, Outcome::Failed { at, wait_min: Duration::from_secs(1) }, now);
                None
            }
        }
    }
}

impl Turn {
    fn new(
        lease: Lease,
        hub: &Arc<Hub>,
        stream: Arc<StreamState>,
        consumer: Arc<ConsumerState>,
        now: Instant,
    ) -> Self {
        let at = lease.from;
        Self { lease: Some(lease), hub: Arc::clone(hub), stream, consumer, at, begun: now, bytes: 0 }
    }

    fn bound(&self) -> Seq {
        self.lease.as_ref().map_or(self.at, |lease| lease.bound.end())
    }

    /// Whether there is nothing (more) to read.
    #[must_use]
    pub fn is_at_bound(&self) -> bool {
        self.at >= self.bound()
    }

    /// The next seq to read.
    #[must_use]
    pub fn at(&self) -> Seq {
        self.at
    }

    /// The stream's name.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.stream.name
    }

    /// The consumer's name.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.consumer.name
    }

    /// When it began: a driver that bounds its turns in time measures from here.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Bytes of memory behind what was read in it so far: a driver that bounds its turns in bytes asks after each read.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads on: whole batches, at least one, of about `bytes_max` at most; `None` at the bound. Blocks for the file only.
    ///
    /// # Errors
    /// Nothing was skipped.
    pub fn read(
        &mut self,
        bytes_max: usize,
        buffers: &mut ReadBuffers,
    ) -> Result<Option<Delivery>, ReadError> {
        let Some(lease) = &self.lease else { return Ok(None) };
        let bound = lease.bound.end();
        if self.at >= bound {
            return Ok(None);
        }
        let chunk = match self.stream.dropped_at(self.at, bound) {
            Some(gaps) => gaps,
            None => {
                let from = ReadFrom { seq: self.at, hint: self.hint() };
                let mut chunk = self.stream.log.read(from, bound, ReadLimits { bytes_max }, buffers)?;
                // Dropped between the look at the floor and the read.
                self.stream.dropped.name_gaps(&mut chunk);
                self.stream.name_losses(&mut chunk, self.at, bound);
                chunk
            }
        };
        if chunk.next <= self.at {
            return Err(ReadError::NotThere { at: self.at, bound });
        }
        let made_for = (lease.key, lease.seek_number);
        let delivery = Delivery::new(self.stream.identity, Some(made_for), self.at, chunk);
        let lost = delivery.gaps().filter(|gap| gap.reason == GapReason::Lost);
        for gap in lost.filter(|gap| !self.stream.knows_loss(gap)) {
            self.hub.lost(self.stream.id, &gap);
        }
        self.consumer.given(&delivery, lease.seek_number);
        self.bytes = self.bytes.saturating_add(delivery.bytes());
        self.at = delivery.next();
        Ok(Some(delivery))
    }

    fn hint(&self) -> Option<Position> {
        self.consumer.hint_for(self.at)
    }

    /// Gives the lease back.
    pub fn end(mut self, result: TurnResult, now: Instant) {
        self.finish(result, now);
    }

    fn finish(&mut self, result: TurnResult, now: Instant) {
        let Some(lease) = self.lease.take() else { return };
        self.hub.saw(now);
        let outcome = match result {
            TurnResult::Handed if self.at >= lease.bound.end() => Outcome::AtBound,
            TurnResult::Handed => Outcome::MoreToRead { at: self.at },
            TurnResult::Failed { wait_min } => {
                // What was not acknowledged is read again; a pull consumer's failed read gave nothing out.
                let at = self.failed_at(&lease);
                Outcome::Failed { at, wait_min }
            }
        };
        self.hub.end_turn(lease, outcome, now);
    }

    fn failed_at(&self, lease: &Lease) -> Seq {
        self.consumer.cursor().clamp(lease.from, self.at.max(lease.from))
    }

    /// Counts a failure and keeps its reason.
    pub(crate) fn note_failure(&self, reason: &str) {
        self.consumer.counted.failures.fetch_add(1, Ordering::Relaxed);
        *locked(&self.consumer.counted.last_failure) = Some(reason.to_owned());
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.lease.is_some() {
            self.note_failure("the turn was given up");
            let begun = self.begun;
            self.finish(TurnResult::Failed { wait_min: Duration::ZERO }, begun);
        }
    }
}
