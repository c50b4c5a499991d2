//! One stream in memory: its log, its ear, its consumers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use wal_format::{ConsumerId, Instant, Seq, StreamId, StreamIdentity};
use wal_store::{Chunk, Ends, Item, Log};

use crate::clock::locked;
use crate::losses::Losses;
use crate::{ConsumerStats, Gap, GapReason, Loss, StreamSettings, StreamStats};

use super::dropped::Dropped;

use super::consumer::ConsumerState;
use super::listener::Listener;
use super::quiet::Quiet;

/// A stream that runs.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) id: StreamId,
    pub(crate) name: String,
    pub(crate) identity: StreamIdentity,
    pub(crate) settings: StreamSettings,
    pub(crate) log: Log,
    pub(crate) listener: Arc<Listener>,
    /// Every loss ever found and remembered, once.
    losses: Mutex<Losses>,
    consumers: Mutex<BTreeMap<ConsumerId, Arc<ConsumerState>>>,
    deleted: AtomicBool,
    /// The durable floor's seq: nothing below it is promised any more, though its file may still be there.
    floor: AtomicU64,
    /// What policies dropped below it.
    pub(crate) dropped: Dropped,
    pub(crate) retired: AtomicU64,
    pub(crate) quiet: Quiet,
}

impl StreamState {
    pub(crate) fn new(name: String, log: Log, listener: Arc<Listener>, losses: Losses) -> Self {
        let identity = log.context().identity;
        let settings = log.settings().clone();
        Self {
            id: identity.stream,
            name,
            identity,
            settings,
            log,
            listener,
            losses: Mutex::new(losses),
            consumers: Mutex::default(),
            deleted: AtomicBool::new(false),
            floor: AtomicU64::new(Seq::FIRST.get()),
            dropped: Dropped::default(),
            retired: AtomicU64::new(0),
            quiet: Quiet::default(),
        }
    }

    /// What is known to be lost.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        locked(&self.losses).of(&self.name).collect()
    }

    /// The same, as gaps.
    pub(crate) fn lost_gaps(&self) -> Vec<Gap> {
        locked(&self.losses).gaps()
    }

    /// Whether all of a gap is remembered already.
    pub(crate) fn knows_loss(&self, gap: &Gap) -> bool {
        locked(&self.losses).know(gap)
    }

    /// What is remembered as lost is told so, also where the file that showed why is mended by now, or gone: where nothing stands
    /// behind `at`, nothing else tells.
    pub(crate) fn name_losses(&self, chunk: &mut Chunk, at: Seq, bound: Seq) {
        if chunk.next <= at {
            let lost = locked(&self.losses).lost_at(at);
            if let Some(to) = lost.map(|gap| gap.to.min(bound)).filter(|to| *to > at) {
                chunk.items = vec![Item::Gap(Gap { from: at, to, reason: GapReason::Lost })];
                (chunk.next, chunk.next_hint) = (to, None);
            }
        } else if chunk.gaps().any(|gap| gap.reason == GapReason::NotDurable) {
            let losses = locked(&self.losses);
            let items = std::mem::take(&mut chunk.items);
            chunk.items = items.into_iter().flat_map(|item| losses.named(item)).collect();
        }
    }

    /// The catalog remembers these now.
    pub(crate) fn set_losses(&self, losses: &Losses) {
        locked(&self.losses).clone_from(losses);
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// From now on every reader of it gets the end.
    pub(crate) fn set_deleted(&self) {
        self.deleted.store(true, Ordering::Release);
    }

    pub(crate) fn consumers(&self) -> Vec<Arc<ConsumerState>> {
        locked(&self.consumers).values().cloned().collect()
    }

    pub(crate) fn consumer(&self, id: ConsumerId) -> Option<Arc<ConsumerState>> {
        locked(&self.consumers).get(&id).cloned()
    }

    pub(crate) fn consumer_named(&self, name: &str) -> Option<Arc<ConsumerState>> {
        locked(&self.consumers).values().find(|c| c.name == name).cloned()
    }

    pub(crate) fn add_consumer(&self, consumer: Arc<ConsumerState>) {
        locked(&self.consumers).insert(consumer.key.consumer, consumer);
    }

    pub(crate) fn remove_consumer(&self, id: ConsumerId) {
        locked(&self.consumers).remove(&id);
    }

    /// Its timer rang: puts it on its lane if a commit is due, and arms the timer for what is due later.
    pub(crate) fn timer_rang(&self, now: Instant) {
        self.listener.timer_over();
        match self.log.due() {
            Some(due) if due <= now => self.listener.enlist(),
            Some(due) => self.listener.arm(due),
            None => {}
        }
    }

    pub(crate) fn ends(&self) -> Ends {
        self.log.ends()
    }

    /// A floor became durable.
    pub(crate) fn raise_floor(&self, seq: Seq) {
        self.floor.fetch_max(seq.get(), Ordering::AcqRel);
    }

    /// The durable floor's seq.
    pub(crate) fn floor(&self) -> Seq {
        Seq::new(self.floor.load(Ordering::Acquire))
    }

    /// What a reader at `at` is told instead of a record: policies dropped it. Costs one load above the floor.
    pub(crate) fn dropped_at(&self, at: Seq, bound: Seq) -> Option<Chunk> {
        if at >= self.floor() { None } else { self.dropped.chunk_at(at, bound) }
    }

    /// Its settings, with the limits as they are by now.
    pub(crate) fn settings_now(&self) -> StreamSettings {
        StreamSettings { limits: self.log.limits(), ..self.settings.clone() }
    }

    /// The oldest seq kept, not below the floor; the end if there is none.
    pub(crate) fn first(&self) -> Seq {
        let ends = self.log.ends();
        let oldest = self.log.segments().first().map_or(ends.durable, |segment| segment.first_seq);
        oldest.max(self.floor())
    }

    /// Records this consumer may see and did not acknowledge.
    pub(crate) fn lag(&self, consumer: &ConsumerState) -> u64 {
        consumer.cursor().distance_to(Seq::new(self.listener.cell.readable()))
    }

    pub(crate) fn consumer_stats(&self, consumer: &ConsumerState) -> ConsumerStats {
        let counted = &consumer.counted;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConsumerStats {
            name: consumer.name.clone(),
            cursor: consumer.cursor().get(),
            saved: consumer.saved().get(),
            lag_records: self.lag(consumer),
            attached: consumer.is_attached(),
            delivered_count: count(&counted.delivered),
            acked_count: count(&counted.acked),
            dropped_count: count(&counted.dropped),
            lost_count: count(&counted.lost),
            trimmed_count: count(&counted.trimmed),
            expired_count: count(&counted.expired),
            failures_count: count(&counted.failures),
            last_failure: locked(&counted.last_failure).clone(),
        }
    }

    pub(crate) fn stats(&self) -> StreamStats {
        let (ends, counters, segments) = (self.log.ends(), self.log.counters(), self.log.segments());
        let (trimmed_records_count, expired_records_count) = self.dropped.counts();
        StreamStats {
            name: self.name.clone(),
            first: self.first().get(),
            appended_end: ends.appended.get(),
            written_end: ends.written.get(),
            durable_end: ends.durable.get(),
            readable_end: ends.readable.get(),
            records_count: counters.records,
            payload_bytes: counters.payload_bytes,
            written_bytes: counters.written_bytes,
            writes_count: counters.writes,
            syncs_count: counters.syncs,
            batches_count: counters.batches,
            segments_count: segments.len(),
            segments_created_count: counters.segments_created,
            segments_retired_count: self.retired.load(Ordering::Relaxed),
            poisoned_files_count: counters.poisoned_files,
            lost_records_count: locked(&self.losses).records_count(),
            bytes_used: self.log.bytes_used(),
            bytes_max: self.log.limits().bytes_max,
            full_count: counters.full,
            dropped_records_count: counters.dropped_records,
            trimmed_records_count,
            expired_records_count,
            consumers: self.consumers().iter().map(|c| self.consumer_stats(c)).collect(),
        }
    }
}
