//! The driver's outward half: what a round publishes, to whom, and in which order.
//!
//! Order: list of segments, ends, words (the waiters), room, listeners. Whoever is woken finds everything in place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use disk::DiskError;
use wal_format::{Now, SegmentId, Seq};

use super::Committer;
use crate::batch::Batch;
use crate::machine::{Closed, Publish, Reply, RoundEnd};
use crate::shared::Shared;
use crate::sync::lock;
use crate::tail::TailState;
use crate::word::Word;
use crate::{CommitError, SegmentInfo, SegmentList, SegmentState};

/// From this many unsynced words on those nobody waits for are dropped.
pub(super) const PRUNE_FROM: usize = 64;

impl Committer {
    pub(super) fn publish(&mut self, log: &Shared, publish: &Publish) -> Reply {
        if let Some((segment, first)) = publish.segment {
            let mut list = lock(&log.segments);
            move_end(&mut list, segment, first, publish);
        }
        *lock(&log.durable_end) = publish.durable;
        let readable = log.ends.publish(publish.written, publish.durable.end, log.settings.read_level);
        self.settle_unsynced(log, publish.durable.end);
        let mut room = 0;
        self.waiters = 0;
        for _ in 0..publish.finished {
            let Some(mut batch) = self.in_flight.pop_front() else { break };
            room += batch.room;
            self.settle(log, &mut batch, publish.durable.end);
            self.put_back(log, batch);
        }
        log.release_room(room);
        if let Some(end) = readable {
            log.ctx.events.readable(log.ctx.identity.stream, end);
        }
        Reply::Done
    }

    /// Answers the waiters of a batch that is written, or durable.
    fn settle(&mut self, log: &Shared, batch: &mut Batch, durable: Seq) {
        log.counts.batches.add(1);
        if !batch.tags.is_empty() {
            if batch.end <= durable {
                lock(&log.tags).merge(&batch.tags);
            } else {
                self.unsynced_tags.push_back((batch.end, std::mem::take(&mut batch.tags)));
            }
        }
        let Some(word) = batch.word.take() else { return };
        self.waiters += Arc::strong_count(&word) - 1;
        if batch.end <= durable {
            word.durable(&mut self.wakers);
            self.spare_words.push(word);
        } else {
            word.written(&mut self.wakers);
            self.unsynced.push_back((batch.end, word));
            self.prune();
        }
    }

    /// Answers the waiters of batches written before, and now durable.
    fn settle_unsynced(&mut self, log: &Shared, durable: Seq) {
        while self.unsynced.front().is_some_and(|(end, _)| *end <= durable) {
            let Some((_, word)) = self.unsynced.pop_front() else { break };
            word.durable(&mut self.wakers);
            self.spare_words.push(word);
        }
        while self.unsynced_tags.front().is_some_and(|(end, _)| *end <= durable) {
            let Some((_, tags)) = self.unsynced_tags.pop_front() else { break };
            lock(&log.tags).merge(&tags);
        }
    }

    /// Words nobody holds need no answer.
    fn prune(&mut self) {
        if self.unsynced.len() >= self.unsynced_prune_at {
            let spare = &mut self.spare_words;
            self.unsynced.retain(|(_, word)| {
                let held = Arc::strong_count(word) > 1;
                if !held && spare.is_empty() {
                    spare.push(Arc::clone(word));
                }
                held
            });
            self.unsynced_prune_at = PRUNE_FROM.max(self.unsynced.len() * 2);
        }
    }

    fn put_back(&mut self, log: &Shared, mut batch: Batch) {
        batch.recycle(log.ctx.room.chunks());
        self.spare.push(batch);
    }

    /// Leaves a segment: the list, the file, the listeners.
    pub(super) fn close(
        &mut self,
        log: &Shared,
        segment: SegmentId,
        closed: Closed,
        next: SegmentId,
    ) -> Reply {
        let healthy = self.machine.segment() == Some(segment);
        let end = match closed {
            Closed::Kept { end, end_offset } => {
                let mut list = lock(&log.segments);
                if let Some(info) = list.last_mut().filter(|info| info.id == segment) {
                    *info = SegmentInfo { end_seq: end, end_offset, state: SegmentState::Rotated, ..*info };
                }
                end
            }
            Closed::Void { end } => {
                lock(&log.segments).remove(segment);
                end
            }
        };
        let file = self.file.take();
        if healthy {
            log.counts.rotations.add(1);
            if let Some(file) = file {
                log.ctx.files.check_in(&self.path, file);
            }
        } else {
            log.counts.poisoned_files.add(1);
            drop(file);
            if matches!(closed, Closed::Void { .. }) {
                // Failing here is no failure: a retirement tries again.
                let _ = log.unlink_void(segment);
            }
        }
        log.ctx.events.rotated(log.ctx.identity.stream, end, next);
        Reply::Done
    }

    /// Fails everything that is not durable, and what was appended behind it: a record, or a tag, must not outlive one that came
    /// before it.
    pub(super) fn give_up(
        &mut self,
        log: &Shared,
        error: Option<&DiskError>,
        segment: Option<SegmentId>,
    ) -> Reply {
        let end = {
            let mut tail = lock(&log.tail);
            tail.close_batch();
            self.in_flight.append(&mut tail.full);
            // A failing disk pauses the log. It does so here, or an append could slip in between.
            if error.is_some() && tail.state == TailState::Running {
                tail.state = TailState::Paused;
            }
            tail.next
        };
        log.give_up(end);
        let mut room = 0;
        let mut range: Option<(Seq, Seq)> = None;
        let mut touched = !self.unsynced.is_empty();
        self.fail_unsynced(self.machine.durable().end, segment, error);
        while let Some(mut batch) = self.in_flight.pop_front() {
            room += batch.room;
            log.meter.give_back(batch.charge, log.space());
            touched |= batch.touched;
            log.counts.records_failed.add(batch.count());
            range = Some((range.map_or(batch.first, |(first, _)| first), batch.end));
            let failure = failure((batch.first, batch.end), batch.touched, segment, error);
            if let Some(word) = batch.word.take() {
                word.failed(failure, &mut self.wakers);
                self.spare_words.push(word);
            }
            self.put_back(log, batch);
        }
        self.gave_up = range.map(|range| failure(range, touched, segment, error));
        log.release_room(room);
        Reply::Done
    }

    /// Fails what is written and neither durable nor in memory, from `from` on.
    pub(super) fn fail_unsynced(&mut self, from: Seq, segment: Option<SegmentId>, error: Option<&DiskError>) {
        let keep = self.unsynced.partition_point(|(end, _)| *end <= from);
        for (end, word) in self.unsynced.drain(keep..) {
            word.failed(failure((from, end), true, segment, error), &mut self.wakers);
            self.spare_words.push(word);
        }
        let keep = self.unsynced_tags.partition_point(|(end, _)| *end <= from);
        self.unsynced_tags.truncate(keep);
    }

    /// After a panic: nobody knows what happened to the batches in flight.
    pub(super) fn abandon(&mut self, log: &Shared) {
        self.in_flight.iter_mut().for_each(|batch| batch.touched = true);
        self.discard(log);
    }

    /// Gives up what is not durable. The machine has nothing left to do.
    pub(crate) fn discard(&mut self, log: &Shared) {
        let segment = self.machine.segment();
        self.give_up(log, None, segment);
        self.machine.abandon();
    }

    /// The round's last duties: waiters of a refusal are told, an idle clean file may be closed, the next due time.
    pub(super) fn round_over(&mut self, log: &Shared, now: Now, end: &RoundEnd) {
        let paused = matches!(end, RoundEnd::GaveUp(_) | RoundEnd::Paused(_));
        if paused != self.paused {
            self.paused = paused;
            set_paused(log, paused);
        }
        if let RoundEnd::Stalled(error) | RoundEnd::Paused(error) | RoundEnd::GaveUp(error) = end {
            log.stall.set(error);
            let mut words = self.words_in_flight();
            words.extend(lock(&log.tail).words().cloned());
            words.extend(self.unsynced.iter().map(|(_, word)| Arc::clone(word)));
            words.iter().for_each(|word| word.kick_all(&mut self.wakers));
        }
        if self.machine.may_close_file()
            && log.files_are_short()
            && let Some(file) = self.file.take()
        {
            log.ctx.files.check_in(&self.path, file);
            self.machine.file_closed();
        }
        let troubled = matches!(
            end,
            RoundEnd::Stalled(_) | RoundEnd::Backoff { .. } | RoundEnd::Paused(_) | RoundEnd::GaveUp(_)
        );
        log.troubled_at.store(if troubled { now.instant.nanos() } else { u64::MAX }, Ordering::Release);
        let due = self.machine.due();
        // Stored first: whoever keeps the time and rings for something older asks the log behind that.
        log.machine_due.store(due.map_or(u64::MAX, |at| at.nanos()), Ordering::SeqCst);
        // Whoever ran this round may never come again: a retry, a probe, a sync by time must not depend on it.
        if let Some(at) = due {
            log.ctx.events.due(log.ctx.identity.stream, at);
        }
    }

    /// The words of batches that wait for another attempt.
    pub(super) fn words_in_flight(&self) -> Vec<Arc<Word>> {
        self.in_flight.iter().filter_map(|batch| batch.word.clone()).collect()
    }

    /// Nothing will be committed any more: answers `words`, and whoever waits for what is not durable.
    pub(crate) fn close_words(&mut self, words: &[Arc<Word>]) {
        let mut all = self.words_in_flight();
        all.extend(self.unsynced.iter().map(|(_, word)| Arc::clone(word)));
        all.extend_from_slice(words);
        all.iter().for_each(|word| word.failed(CommitError::Closed, &mut self.wakers));
    }

    /// What the last round gave up.
    pub(crate) fn gave_up(&self) -> Option<CommitError> {
        self.gave_up.clone()
    }
}

impl Shared {
    /// What is not durable below `end` was given up: readers see no further than what is durable, until more is published.
    pub(super) fn give_up(&self, end: Seq) {
        self.ends.give_up(end);
        self.ctx.events.given_up(self.ctx.identity.stream, self.ends.readable());
    }
}

/// Appends are refused while paused: they would only fill the room.
fn set_paused(log: &Shared, paused: bool) {
    let mut tail = lock(&log.tail);
    tail.state = match tail.state {
        TailState::Closed => TailState::Closed,
        _ if paused => TailState::Paused,
        _ => TailState::Running,
    };
}

/// Moves the end of the segment being written, or adds it.
fn move_end(list: &mut SegmentList, segment: SegmentId, first: Seq, publish: &Publish) {
    let (end_seq, end_offset) = (publish.written, publish.written_offset);
    match list.last_mut().filter(|info| info.id == segment) {
        Some(info) => *info = SegmentInfo { end_seq, end_offset, ..*info },
        None => list.push(SegmentInfo {
            id: segment,
            first_seq: first,
            end_seq,
            end_offset,
            state: SegmentState::Open,
        }),
    }
}

fn failure(
    (first, end): (Seq, Seq),
    touched: bool,
    segment: Option<SegmentId>,
    error: Option<&DiskError>,
) -> CommitError {
    let source = error.cloned();
    if touched {
        CommitError::Indeterminate { first, end, segment, source }
    } else {
        CommitError::NotWritten { first, end, source }
    }
}
