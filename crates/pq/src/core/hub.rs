//! The hub: what the writers of all streams tell the readers of all streams, without any file in between.
//!
//! It holds the state cache behind its short lock, the wake-up cells beside it, the lanes' dirty set, the commit timers, and the
//! lists of those who wait. It does no I/O, starts no thread and reads no clock: `now` is the latest time anybody told it.
//!
//! ```text
//!   Log ──enlist──> dirty set ──────────> lanes
//!    ├──readable──> cell ──(asleep?)──> cache.signal ──> parking (pool), bells (pull)
//!    └──rotated───> cache.rotated ───────┘  └──> the tick is armed
//! ```
//!
//! Invariants: no file-system call and no wake-up under the cache's lock (I5); a stream is in the dirty set at most once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use crossbeam_channel::{Receiver, Sender};
use scheduler::{Cache, Key, Lease, Outcome, TurnEnd, Woken};
use wal_format::{Instant, SegmentId, Seq, StreamId};

use crate::clock::locked;
use crate::waits::{Bell, Parking};

use super::alarm::Alarm;
use super::changed::Changed;
use super::listener::Listener;

/// What goes through the lanes' channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneJob {
    /// Commit this stream.
    Stream(StreamId),
    /// One lane ends.
    Stop,
}

/// The cache and what must be looked up under its lock.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) cache: Cache,
    /// Each tells this hub, and is held by its stream: strong both ways nothing of a queue would ever be freed.
    listeners: HashMap<StreamId, Weak<Listener>>,
}

/// Turns with nothing to read that are ended under one hold of the lock, each in a microsecond or so.
const EMPTY_TURNS_MAX: usize = 64;

/// What a look for work found.
#[derive(Debug)]
pub(crate) enum Found<T> {
    /// This.
    Some(T),
    /// Nothing yet; there may be more. Let others have the lock, and their turn on the runtime, before the next look.
    Later,
    /// Nothing is due.
    Nothing,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Hub {
    now: AtomicU64,
    pub(super) signals: bool,
    shelf: Mutex<Shelf>,
    pub(crate) parking: Parking,
    bells: RwLock<HashMap<Key, Arc<Bell>>>,
    lanes: (Sender<LaneJob>, Receiver<LaneJob>),
    timers: Mutex<BinaryHeap<Reverse<(Instant, StreamId)>>>,
    /// When the timer thread is needed next.
    pub(crate) timer: Alarm,
    /// When a tick is due.
    pub(crate) saver: Alarm,
    pub(super) changed: Mutex<Changed>,
    /// How often anything became readable or acknowledged.
    moves: AtomicU64,
    /// Rung when anything ends: the queue, a stream, a turn of a sink that is to be parked.
    pub(crate) ended: Bell,
}

/// Whether readers are woken by commits, or look again by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signals {
    /// A commit wakes caught-up readers.
    On,
    /// They poll.
    Off,
}

impl Hub {
    pub(crate) fn new(cache: Cache, signals: Signals) -> Self {
        Self {
            now: AtomicU64::new(0),
            signals: signals == Signals::On,
            shelf: Mutex::new(Shelf { cache, listeners: HashMap::new() }),
            parking: Parking::default(),
            bells: RwLock::default(),
            lanes: crossbeam_channel::unbounded(),
            timers: Mutex::default(),
            timer: Alarm::new(),
            saver: Alarm::new(),
            changed: Mutex::default(),
            moves: AtomicU64::new(0),
            ended: Bell::default(),
        }
    }

    /// Somebody knows what time it is.
    pub(crate) fn saw(&self, now: Instant) {
        self.now.fetch_max(now.nanos(), Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// Runs `f` under the cache's short lock.
    pub(crate) fn with_cache<T>(&self, f: impl FnOnce(&mut Cache) -> T) -> T {
        f(&mut locked(&self.shelf).cache)
    }

    pub(crate) fn open_stream(
        &self,
        listener: &Arc<Listener>,
        segments: &[(SegmentId, Seq)],
        open: SegmentId,
    ) {
        let mut shelf = locked(&self.shelf);
        shelf.listeners.insert(listener.stream, Arc::downgrade(listener));
        shelf.cache.open_stream(listener.stream, segments, open);
    }

    pub(crate) fn close_stream(&self, stream: StreamId) {
        let mut shelf = locked(&self.shelf);
        shelf.cache.close_stream(stream);
        shelf.listeners.remove(&stream);
    }

    /// The oldest due pool turn that has something to read; those before it are ended on the way, under the same lock. Arms the
    /// timer for what is due later, and wakes one more worker if more is due now.
    pub(crate) fn lease(&self, now: Instant) -> Found<Lease> {
        let mut completed = Vec::new();
        let (found, more, next) = {
            let Shelf { cache, listeners } = &mut *locked(&self.shelf);
            let found = self.pass_empty(cache, listeners, now, &mut completed);
            (found, cache.has_due(now), cache.next_timer(now))
        };
        if let Some(next) = next {
            self.timer.arm(next);
        }
        if matches!(found, Found::Some(_)) && more {
            self.parking.wake(1);
        }
        completed.into_iter().for_each(|stream| self.touch(stream));
        found
    }

    /// Caught up, or a segment that was read to its end: such a turn needs neither a file nor a sink, and there may be thousands.
    fn pass_empty(
        &self,
        cache: &mut Cache,
        listeners: &HashMap<StreamId, Weak<Listener>>,
        now: Instant,
        completed: &mut Vec<StreamId>,
    ) -> Found<Lease> {
        for _ in 0..EMPTY_TURNS_MAX {
            let Some(lease) = cache.lease(now, &|stream| readable_of(listeners, stream)) else {
                return Found::Nothing;
            };
            if !lease.is_empty() {
                return Found::Some(lease);
            }
            let stream = lease.key.stream;
            // Whoever becomes due by this is in line already, behind the caller: nobody else need be woken.
            let end = cache.end_turn(lease, Outcome::AtBound, now, &|stream| self.asleep(listeners, stream));
            if end.completed.is_some() {
                completed.push(stream);
            }
        }
        Found::Later
    }

    /// What the cache asks of a reader that is about to sleep, see the wake-up cell.
    fn asleep(&self, listeners: &HashMap<StreamId, Weak<Listener>>, stream: StreamId) -> Seq {
        match listeners.get(&stream).and_then(Weak::upgrade) {
            Some(listener) if self.signals => Seq::new(listener.cell.fall_asleep()),
            Some(listener) => Seq::new(listener.cell.readable()),
            None => Seq::FIRST,
        }
    }

    /// The turn of one pull consumer, if it is due.
    pub(crate) fn lease_key(&self, key: Key, now: Instant) -> Option<Lease> {
        let Shelf { cache, listeners } = &mut *locked(&self.shelf);
        cache.lease_key(key, now, &|stream| readable_of(listeners, stream))
    }

    /// Takes a lease back and wakes whom that concerns.
    pub(crate) fn end_turn(&self, lease: Lease, outcome: Outcome, now: Instant) {
        let stream = lease.key.stream;
        let TurnEnd { woken, completed, due, .. } = {
            let Shelf { cache, listeners } = &mut *locked(&self.shelf);
            cache.end_turn(lease, outcome, now, &|stream| self.asleep(listeners, stream))
        };
        self.wake(woken);
        if let Some(due) = due.filter(|due| *due > now) {
            self.timer.arm(due);
        }
        if completed.is_some() {
            self.touch(stream);
        }
    }

    /// Wakes those who became due. Never under the cache's lock.
    pub(crate) fn wake(&self, woken: Woken) {
        if woken.pool_count > 0 {
            self.parking.wake(woken.pool_count);
        }
        for key in woken.pull {
            if let Some(bell) = self.bell(key) {
                bell.ring();
            }
        }
    }

    /// Wakes whoever became due by time alone; says when to look again.
    pub(crate) fn wake_due(&self, now: Instant) {
        let (woken, next) = {
            let cache = &mut locked(&self.shelf).cache;
            (cache.wake_due(now), cache.next_timer(now))
        };
        self.wake(woken);
        // What is due now and not yet leased is the workers' business: each of them arms the timer when it looks.
        if let Some(next) = next.filter(|next| *next > now) {
            self.timer.arm(next);
        }
    }

    pub(crate) fn add_bell(&self, key: Key) -> Arc<Bell> {
        let mut bells = self.bells.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(key).or_default())
    }

    pub(crate) fn remove_bell(&self, key: Key) {
        self.bells.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    fn bell(&self, key: Key) -> Option<Arc<Bell>> {
        self.bells.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Wakes every pull consumer: something ended.
    pub(crate) fn ring_all(&self) {
        let bells: Vec<_> =
            self.bells.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        bells.iter().for_each(|bell| bell.ring());
        self.ended.ring();
    }

    pub(crate) fn lane_jobs(&self) -> &Receiver<LaneJob> {
        &self.lanes.1
    }

    pub(crate) fn push_lane(&self, job: LaneJob) {
        // The receiver lives as long as the hub.
        let _ = self.lanes.0.send(job);
    }

    /// A commit of this stream is worth it from `due` on.
    pub(crate) fn arm_commit(&self, stream: StreamId, due: Instant) {
        locked(&self.timers).push(Reverse((due, stream)));
        self.timer.arm(due);
    }

    /// The streams whose commit timer is over; arms the timer for the rest.
    pub(crate) fn take_commit_timers(&self, now: Instant) -> Vec<StreamId> {
        let mut due = Vec::new();
        let next = {
            let mut timers = locked(&self.timers);
            loop {
                match timers.peek().copied() {
                    Some(Reverse((at, stream))) if at <= now => {
                        timers.pop();
                        due.push(stream);
                    }
                    next => break next.map(|Reverse((at, _))| at),
                }
            }
        };
        // Outside the lock: it may wake the timer's thread.
        if let Some(next) = next {
            self.timer.arm(next);
        }
        due
    }

    /// Something became readable, or a cursor moved.
    pub(super) fn moved(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn moves_count(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }
}

fn readable_of(listeners: &HashMap<StreamId, Weak<Listener>>, stream: StreamId) -> Seq {
    listeners
        .get(&stream)
        .and_then(Weak::upgrade)
        .map_or(Seq::FIRST, |listener| Seq::new(listener.cell.readable()))
}
