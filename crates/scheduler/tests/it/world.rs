//! What stands around the cache in a queue, without threads: streams with their wake-up cells, a writer, a clock that
//! goes only where it is told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use scheduler::{Backoff, Cache, Key, Lease, Mode, Outcome, Policy, TurnEnd, Woken};
use wal_format::{ConsumerId, Instant, SegmentId, Seq, StreamId};

/// The writer's side of one stream.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) readable_end: u64,
    asleep: bool,
    open: u64,
}

/// A cache, its streams and the time.
pub(crate) struct World {
    pub(crate) cache: Cache,
    pub(crate) now: Instant,
    policy: Policy,
    pub(crate) cells: RefCell<BTreeMap<StreamId, Cell>>,
}

pub(crate) const fn key(stream: u64, consumer: u64) -> Key {
    Key::new(StreamId::new(stream), ConsumerId::new(consumer))
}

/// No jitter, so that scripts can name the instants.
pub(crate) fn backoff(first: Duration, max: Duration) -> Backoff {
    Backoff { first, max, jitter_percent: 0 }
}

impl World {
    pub(crate) fn new(policy: Policy, backoff: Backoff) -> Self {
        Self::with(Cache::new(policy, backoff, 7), policy)
    }

    pub(crate) fn with(cache: Cache, policy: Policy) -> Self {
        Self { cache, now: Instant::ZERO, policy, cells: RefCell::default() }
    }

    pub(crate) fn open(&mut self, stream: u64, rotated: &[(u64, u64)], open: u64, readable_end: u64) {
        let segments: Vec<_> = rotated.iter().map(|&(id, end)| (SegmentId::new(id), Seq::new(end))).collect();
        let stream = StreamId::new(stream);
        self.cache.open_stream(stream, &segments, SegmentId::new(open));
        self.cells.borrow_mut().insert(stream, Cell { readable_end, asleep: false, open });
    }

    pub(crate) fn attach(&mut self, key: Key, at: u64, mode: Mode) -> Woken {
        self.cache.attach(key, Seq::new(at), mode, self.now)
    }

    /// A commit of `records` became readable. `None`: the writer did not need the lock.
    pub(crate) fn commit(&mut self, stream: u64, records: u64) -> Option<Woken> {
        let stream = StreamId::new(stream);
        self.publish(stream, records);
        self.swap_and_signal(stream)
    }

    /// The first half of a commit's end.
    pub(crate) fn publish(&self, stream: StreamId, records: u64) {
        self.cells.borrow_mut().get_mut(&stream).expect("open").readable_end += records;
    }

    /// The second half.
    pub(crate) fn swap_and_signal(&mut self, stream: StreamId) -> Option<Woken> {
        let was_asleep = {
            let mut cells = self.cells.borrow_mut();
            std::mem::replace(&mut cells.get_mut(&stream).expect("open").asleep, false)
        };
        was_asleep.then(|| self.cache.signal(stream, self.now))
    }

    pub(crate) fn rotate(&mut self, stream: u64) -> Woken {
        let stream = StreamId::new(stream);
        let (end, open) = {
            let mut cells = self.cells.borrow_mut();
            let cell = cells.get_mut(&stream).expect("open");
            cell.open += 1;
            (Seq::new(cell.readable_end), SegmentId::new(cell.open))
        };
        self.cache.rotated(stream, end, open, self.now)
    }

    pub(crate) fn readable_end(&self, stream: StreamId) -> Seq {
        Seq::new(self.cells.borrow().get(&stream).expect("open").readable_end)
    }

    pub(crate) fn lease(&mut self) -> Option<Lease> {
        let cells = &self.cells;
        self.cache.lease(self.now, &|stream| load(cells, stream))
    }

    pub(crate) fn lease_key(&mut self, key: Key) -> Option<Lease> {
        let cells = &self.cells;
        self.cache.lease_key(key, self.now, &|stream| load(cells, stream))
    }

    pub(crate) fn end(&mut self, lease: Lease, outcome: Outcome) -> TurnEnd {
        self.end_while_committing(lease, outcome, 0).0
    }

    /// Ends a turn while the writer publishes `records` between the reader's setting `asleep` and its load. What the
    /// writer wakes after that comes second.
    pub(crate) fn end_while_committing(
        &mut self,
        lease: Lease,
        outcome: Outcome,
        records: u64,
    ) -> (TurnEnd, Option<Woken>) {
        let stream = lease.key.stream;
        let polls = matches!(self.policy, Policy::Poll { .. });
        let cells = &self.cells;
        let end = self.cache.end_turn(lease, outcome, self.now, &|stream| {
            let mut cells = cells.borrow_mut();
            let cell = cells.get_mut(&stream).expect("open");
            cell.asleep = !polls;
            cell.readable_end += records;
            Seq::new(cell.readable_end)
        });
        let woken = if records > 0 { self.swap_and_signal(stream) } else { None };
        (end, woken)
    }
}

fn load(cells: &RefCell<BTreeMap<StreamId, Cell>>, stream: StreamId) -> Seq {
    Seq::new(cells.borrow().get(&stream).expect("open").readable_end)
}
