//! The cache against a model without lines, counts or shortcuts: one list of consumers, searched from end to end, and the
//! tables of the design written down once more. Every answer and every view must be the same after every operation.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use scheduler::{Backoff, Bound, Cache, Detached, Key, Lease, Mode, Outcome, Phase, Policy, WalState};
use wal_format::{Instant, SegmentId, Seq, StreamId};

use crate::world::key;

const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(1), max: Duration::from_secs(5), jitter_percent: 0 };

#[derive(Clone, Debug)]
enum Op {
    Advance(u64),
    Commit(u64),
    Rotate(u64),
    Retire(u64, u64),
    Close(u64),
    Attach(Key, u64, Mode),
    Detach(Key),
    Seek(Key, u64),
    Kick(Key),
    Lease,
    LeaseKey(Key),
    End { which: usize, how: How, records_meanwhile: u64 },
    WakeDue,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Bound,
    More(u64),
    Failed(u64),
    Throttled,
}

fn keys() -> impl Strategy<Value = Key> {
    (1..=2_u64, 1..=3_u64).prop_map(|(stream, consumer)| key(stream, consumer))
}

fn ops() -> impl Strategy<Value = Op> {
    let mode = prop_oneof![Just(Mode::Pool), Just(Mode::Pull)];
    let how = prop_oneof![
        4 => Just(How::Bound),
        2 => (0..3_u64).prop_map(How::More),
        2 => (0..3_u64).prop_map(How::Failed),
        1 => Just(How::Throttled),
    ];
    prop_oneof![
        3 => (0..3_000_u64).prop_map(Op::Advance),
        4 => (1..=2_u64).prop_map(Op::Commit),
        2 => (1..=2_u64).prop_map(Op::Rotate),
        1 => (1..=2_u64, 0..8_u64).prop_map(|(stream, below)| Op::Retire(stream, below)),
        1 => (1..=2_u64).prop_map(Op::Close),
        3 => (keys(), 1..30_u64, mode).prop_map(|(key, at, mode)| Op::Attach(key, at, mode)),
        1 => keys().prop_map(Op::Detach),
        1 => (keys(), 1..30_u64).prop_map(|(key, to)| Op::Seek(key, to)),
        1 => keys().prop_map(Op::Kick),
        8 => Just(Op::Lease),
        4 => keys().prop_map(Op::LeaseKey),
        9 => (any::<usize>(), how, prop_oneof![3 => Just(0_u64), 1 => Just(2)])
            .prop_map(|(which, how, records_meanwhile)| Op::End { which, how, records_meanwhile }),
        2 => Just(Op::WakeDue),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let push_back = Duration::from_millis(1_500);
    prop_oneof![Just(Policy::Signal), Just(Policy::Poll { push_back })]
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Doing {
    Due,
    CaughtUp,
    BackOff,
    Leased { dirty: bool, leaving: bool },
}

#[derive(Clone, Debug)]
struct Consumer {
    mode: Mode,
    reading: u64,
    at: u64,
    life: u64,
    failures: u32,
    doing: Doing,
    /// When it is due, and the count of operations when that was settled.
    due: Option<(Instant, u64)>,
}

#[derive(Clone, Default, Debug)]
struct Stream {
    rotated: Vec<(u64, u64)>,
    open: u64,
    readable_end: u64,
    retired_below: u64,
}

impl Stream {
    fn segments(&self) -> impl Iterator<Item = (u64, u64)> {
        self.rotated.iter().copied().filter(|segment| segment.0 >= self.retired_below)
    }

    fn first(&self, wanted: impl Fn(u64, u64) -> bool) -> (u64, Option<u64>) {
        self.segments()
            .find(|&(id, end)| wanted(id, end))
            .map_or((self.open, None), |(id, end)| (id, Some(end)))
    }
}

struct Model {
    policy: Policy,
    now: Instant,
    streams: BTreeMap<u64, Stream>,
    consumers: BTreeMap<Key, Consumer>,
    order: u64,
    lives: u64,
}

struct ModelLease {
    from: u64,
    reading: u64,
    rotated: Option<u64>,
    bound: u64,
    life: u64,
}

/// Pool turns that became due, and pull consumers.
type Woken = (usize, Vec<Key>);

impl Model {
    fn set(&mut self, key: Key, doing: Doing, due: Option<Instant>) {
        self.order += 1;
        let order = self.order;
        let consumer = self.consumers.get_mut(&key).expect("known");
        consumer.doing = doing;
        consumer.due = due.map(|at| (at, order));
    }

    fn due_now(&mut self, key: Key) -> Woken {
        self.set(key, Doing::Due, Some(self.now));
        match self.consumers[&key].mode {
            Mode::Pool => (1, vec![]),
            Mode::Pull => (0, vec![key]),
        }
    }

    fn attached(&mut self, key: Key) -> Option<&mut Consumer> {
        self.consumers
            .get_mut(&key)
            .filter(|consumer| !matches!(consumer.doing, Doing::Leased { leaving: true, .. }))
    }

    fn wake_caught_up(&mut self, stream: u64) -> Woken {
        let sleeping =
            |key: &Key, consumer: &Consumer| key.stream.get() == stream && consumer.doing == Doing::CaughtUp;
        let keys: Vec<Key> = self.consumers.iter().filter(|(k, c)| sleeping(k, c)).map(|(&k, _)| k).collect();
        keys.into_iter().map(|key| self.due_now(key)).fold((0, vec![]), |mut sum, (pool, pull)| {
            sum.0 += pool;
            sum.1.extend(pull);
            sum
        })
    }

    fn attach(&mut self, key: Key, at: u64, mode: Mode) -> Woken {
        let Some(stream) = self.streams.get(&key.stream.get()) else { return (0, vec![]) };
        let reading = stream.first(|_, end| end > at).0;
        self.lives += 1;
        let leased = self.consumers.get(&key).is_some_and(|c| matches!(c.doing, Doing::Leased { .. }));
        let doing = Doing::Leased { dirty: true, leaving: false };
        let life = self.lives;
        self.consumers.insert(key, Consumer { mode, reading, at, life, failures: 0, doing, due: None });
        if leased { (0, vec![]) } else { self.due_now(key) }
    }

    fn detach(&mut self, key: Key) -> Detached {
        match self.attached(key).map(|consumer| &mut consumer.doing) {
            None => Detached::Unknown,
            Some(Doing::Leased { leaving, .. }) => {
                *leaving = true;
                Detached::AfterTurn
            }
            Some(_) => {
                self.consumers.remove(&key);
                Detached::Forgotten
            }
        }
    }

    fn kick(&mut self, key: Key, to: Option<u64>) -> Woken {
        let stream = self.streams.get(&key.stream.get()).cloned();
        self.lives += 1;
        let life = self.lives;
        let Some(consumer) = self.attached(key) else { return (0, vec![]) };
        consumer.failures = 0;
        if let Some(to) = to {
            consumer.at = to;
            consumer.reading = stream.expect("a consumer has a stream").first(|_, end| end > to).0;
            consumer.life = life;
        }
        match &mut consumer.doing {
            Doing::Leased { dirty, .. } => {
                *dirty = true;
                (0, vec![])
            }
            Doing::Due => (0, vec![]),
            Doing::CaughtUp | Doing::BackOff => self.due_now(key),
        }
    }

    fn is_due(&self, consumer: &Consumer) -> bool {
        consumer.doing == Doing::Due || consumer.due.is_some_and(|(at, _)| at <= self.now)
    }

    fn oldest(&self) -> Option<Key> {
        let due = self.consumers.iter().filter(|(_, c)| c.mode == Mode::Pool && self.is_due(c));
        due.min_by_key(|(_, c)| c.due).map(|(&key, _)| key)
    }

    fn due_count(&self) -> usize {
        self.consumers.values().filter(|c| c.mode == Mode::Pool && self.is_due(c)).count()
    }

    fn next_due(&self) -> Option<Instant> {
        let told = |c: &Consumer| c.mode == Mode::Pull && c.doing == Doing::Due;
        self.consumers.values().filter(|c| !told(c)).filter_map(|c| c.due).map(|(at, _)| at).min()
    }

    fn next_timer(&self) -> Option<Instant> {
        let later = |c: &&Consumer| match c.mode {
            Mode::Pool => !self.is_due(c),
            Mode::Pull => c.doing != Doing::Due,
        };
        self.consumers.values().filter(later).filter_map(|c| c.due).map(|(at, _)| at).min()
    }

    fn wake_due(&mut self) -> Woken {
        let waits = |c: &Consumer| c.mode == Mode::Pull && c.doing != Doing::Due && self.is_due(c);
        let mut keys: Vec<Key> =
            self.consumers.iter().filter(|(_, c)| waits(c)).map(|(&key, _)| key).collect();
        keys.sort_by_key(|key| self.consumers[key].due);
        for &key in &keys {
            let _ = self.due_now(key);
        }
        (self.due_count(), keys)
    }

    fn take(&mut self, key: Key) -> Option<ModelLease> {
        let consumer = self.consumers.get(&key).filter(|consumer| self.is_due(consumer))?;
        let (from, life) = (consumer.at, consumer.life);
        let stream = &self.streams[&key.stream.get()];
        let (reading, rotated) = stream.first(|id, _| id >= consumer.reading);
        let bound = rotated.unwrap_or(stream.readable_end);
        self.set(key, Doing::Leased { dirty: false, leaving: false }, None);
        self.consumers.get_mut(&key)?.reading = reading;
        Some(ModelLease { from, reading, rotated, bound, life })
    }

    /// Whom it wakes, and which segment it completes.
    fn end(&mut self, key: Key, lease: &ModelLease, outcome: Outcome) -> (Woken, Option<u64>) {
        let consumer = self.consumers.get_mut(&key).expect("leased");
        let Doing::Leased { dirty, leaving } = consumer.doing else { panic!("leased") };
        if leaving {
            self.consumers.remove(&key);
            return ((0, vec![]), None);
        }
        if consumer.life != lease.life {
            return (self.due_now(key), None);
        }
        let stream = &self.streams[&key.stream.get()];
        match outcome {
            Outcome::MoreToRead { at } => {
                consumer.at = at.get();
                consumer.failures = 0;
                (self.due_now(key), None)
            }
            Outcome::AtBound => {
                consumer.at = lease.bound.max(lease.from);
                consumer.failures = 0;
                if lease.rotated.is_some() {
                    consumer.reading = stream.first(|id, _| id > lease.reading).0;
                    return (self.due_now(key), Some(lease.reading));
                }
                if dirty || consumer.reading < stream.open || stream.readable_end > consumer.at {
                    return (self.due_now(key), None);
                }
                let due = match self.policy {
                    Policy::Signal => None,
                    Policy::Poll { push_back } => {
                        let every = push_back.as_nanos() as u64;
                        Some(Instant::from_nanos((self.now.nanos() / every + 1) * every))
                    }
                };
                self.set(key, Doing::CaughtUp, due);
                ((0, vec![]), None)
            }
            Outcome::Failed { at, wait_min } => {
                consumer.failures = if at.get() > lease.from { 1 } else { consumer.failures + 1 };
                consumer.at = at.get();
                if dirty {
                    consumer.failures = 0;
                    return (self.due_now(key), None);
                }
                let doubled = BACKOFF.first * 2_u32.pow(consumer.failures.min(10) - 1);
                let delay = doubled.min(BACKOFF.max).max(wait_min);
                self.set(key, Doing::BackOff, Some(self.now.saturating_add(delay)));
                ((0, vec![]), None)
            }
        }
    }
}

/// Both, and the leases that are out.
struct Pair {
    cache: Cache,
    model: Model,
    leases: Vec<(Lease, ModelLease)>,
}

fn plain(woken: scheduler::Woken) -> Woken {
    (woken.pool_count, woken.pull)
}

impl Pair {
    fn new(policy: Policy) -> Self {
        let cache = Cache::new(policy, BACKOFF, 1);
        let streams = BTreeMap::new();
        let now = Instant::ZERO;
        let model = Model { policy, now, streams, consumers: BTreeMap::new(), order: 0, lives: 0 };
        let mut pair = Self { cache, model, leases: Vec::new() };
        for stream in 1..=2 {
            pair.open(stream);
        }
        pair
    }

    fn open(&mut self, stream: u64) {
        let rotated = [(1, 5), (2, 5), (4, 9)];
        let ids: Vec<_> = rotated.iter().map(|&(id, end)| (SegmentId::new(id), Seq::new(end))).collect();
        self.cache.open_stream(StreamId::new(stream), &ids, SegmentId::new(5));
        let state = Stream { rotated: rotated.to_vec(), open: 5, readable_end: 12, retired_below: 0 };
        self.model.streams.insert(stream, state);
    }

    fn apply(&mut self, op: &Op) {
        let now = self.model.now;
        match *op {
            Op::Advance(ms) => self.model.now = now.saturating_add(Duration::from_millis(ms)),
            Op::Commit(stream) => {
                self.model.streams.get_mut(&stream).expect("open").readable_end += 1;
                self.signal(stream);
            }
            Op::Rotate(stream) => {
                let state = self.model.streams.get_mut(&stream).expect("open");
                let (old, end) = (state.open, state.readable_end);
                state.rotated.push((old, end));
                state.open += 2;
                let woken =
                    self.cache.rotated(StreamId::new(stream), Seq::new(end), SegmentId::new(old + 2), now);
                assert_eq!(plain(woken), self.model.wake_caught_up(stream));
            }
            Op::Retire(stream, below) => {
                let state = self.model.streams.get_mut(&stream).expect("open");
                // The open segment is never unlinked.
                state.retired_below = state.retired_below.max(below.min(state.open));
                self.cache.retired(StreamId::new(stream), SegmentId::new(below));
            }
            Op::Close(stream) => {
                self.cache.close_stream(StreamId::new(stream));
                let keys: Vec<Key> = self.model.consumers.keys().copied().collect();
                for key in keys.into_iter().filter(|key| key.stream.get() == stream) {
                    let _ = self.model.detach(key);
                }
                self.open(stream);
            }
            Op::Attach(key, at, mode) => {
                let woken = self.cache.attach(key, Seq::new(at), mode, now);
                assert_eq!(plain(woken), self.model.attach(key, at, mode));
            }
            Op::Detach(key) => assert_eq!(self.cache.detach(key), self.model.detach(key)),
            Op::Seek(key, to) => {
                let woken = self.cache.seek(key, Seq::new(to), now);
                assert_eq!(plain(woken), self.model.kick(key, Some(to)));
            }
            Op::Kick(key) => {
                assert_eq!(plain(self.cache.kick(key, now)), self.model.kick(key, None));
            }
            Op::Lease => {
                let oldest = self.model.oldest();
                let streams = &self.model.streams;
                let lease = self.cache.lease(now, &|s| Seq::new(streams[&s.get()].readable_end));
                assert_eq!(lease.as_ref().map(|lease| lease.key), oldest, "the oldest due goes first");
                self.leased(oldest, lease);
            }
            Op::LeaseKey(key) => {
                let streams = &self.model.streams;
                let lease = self.cache.lease_key(key, now, &|s| Seq::new(streams[&s.get()].readable_end));
                self.leased(Some(key), lease);
            }
            Op::End { which, how, records_meanwhile } if !self.leases.is_empty() => {
                self.end(which % self.leases.len(), how, records_meanwhile);
            }
            Op::End { .. } => {}
            Op::WakeDue => assert_eq!(plain(self.cache.wake_due(now)), self.model.wake_due()),
        }
    }

    fn signal(&mut self, stream: u64) {
        let woken = self.cache.signal(StreamId::new(stream), self.model.now);
        assert_eq!(plain(woken), self.model.wake_caught_up(stream));
    }

    fn leased(&mut self, key: Option<Key>, lease: Option<Lease>) {
        let expected = key.and_then(|key| self.model.take(key));
        let Some(lease) = lease else { return assert!(expected.is_none(), "a turn is due and not given") };
        let expected = expected.expect("a turn is given that is not due");
        let bound = match lease.bound {
            Bound::Open { to } => (None, to.get()),
            Bound::Rotated { end } => (Some(end.get()), end.get()),
        };
        assert_eq!((lease.from.get(), lease.reading.get()), (expected.from, expected.reading));
        assert_eq!(bound, (expected.rotated, expected.bound));
        let twice = self.leases.iter().any(|(other, _)| other.key == lease.key);
        assert!(!twice, "at most one lease per key");
        self.leases.push((lease, expected));
    }

    fn end(&mut self, which: usize, how: How, records_meanwhile: u64) {
        let (lease, expected) = self.leases.swap_remove(which);
        let key = lease.key;
        let end = lease.from.max(lease.bound.end());
        let at = |by: u64| lease.from.saturating_add(by).min(end);
        let outcome = match how {
            How::Bound => Outcome::AtBound,
            How::More(by) => Outcome::MoreToRead { at: at(by) },
            How::Failed(by) => Outcome::Failed { at: at(by), wait_min: Duration::ZERO },
            How::Throttled => Outcome::Failed { at: lease.from, wait_min: Duration::from_secs(30) },
        };
        if let Some(stream) = self.model.streams.get_mut(&key.stream.get()) {
            stream.readable_end += records_meanwhile;
        }
        let streams = &self.model.streams;
        let now = self.model.now;
        let turn_end =
            self.cache.end_turn(lease, outcome, now, &|s| Seq::new(streams[&s.get()].readable_end));
        let (woken, completed) = self.model.end(key, &expected, outcome);
        assert_eq!(plain(turn_end.woken), woken, "{outcome:?}");
        assert_eq!(turn_end.completed.map(SegmentId::get), completed);
        let due = self.model.consumers.get(&key).and_then(|consumer| consumer.due).map(|(at, _)| at);
        assert_eq!(turn_end.due, due);
        if records_meanwhile > 0 {
            self.signal(key.stream.get());
        }
    }

    fn compare(&self) {
        for (stream, consumer) in (1..=2_u64).flat_map(|s| (1..=3_u64).map(move |c| (s, c))) {
            let key = key(stream, consumer);
            let visible = |c: &&Consumer| !matches!(c.doing, Doing::Leased { leaving: true, .. });
            let expected = self.model.consumers.get(&key).filter(visible);
            let view = self.cache.view(key);
            assert_eq!(view.is_some(), expected.is_some(), "{key}");
            let (Some(view), Some(expected)) = (view, expected) else { continue };
            let due = expected.due.map(|(at, _)| at);
            let phase = match expected.doing {
                Doing::Due => Phase::Due(due.expect("due")),
                Doing::CaughtUp => Phase::CaughtUp(due),
                Doing::BackOff => {
                    Phase::BackOff { until: due.expect("due later"), failures: expected.failures }
                }
                Doing::Leased { .. } => Phase::Leased,
            };
            let state = match expected.reading < self.model.streams[&stream].open {
                true => WalState::Rotated,
                false => WalState::NextReadAt(due),
            };
            let seen = (view.phase, view.state, view.reading.get(), view.at.get(), view.failures);
            assert_eq!(seen, (phase, state, expected.reading, expected.at, expected.failures), "{key}");
        }
        assert_eq!(self.cache.next_due(), self.model.next_due());
        assert_eq!(self.cache.next_timer(self.model.now), self.model.next_timer());
        assert_eq!(self.cache.due_count(self.model.now), self.model.due_count());
        assert_eq!(self.cache.has_due(self.model.now), self.model.due_count() > 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_does_what_the_model_does(policy in policies(), ops in prop::collection::vec(ops(), 1..150)) {
        let mut pair = Pair::new(policy);
        for op in &ops {
            pair.apply(op);
            pair.compare();
        }
    }
}
