//! A small world: a stream, its readers, and every next step of each; what must hold in every state.

use std::cell::RefCell;

use super::truth::{Fault, Op, Step, Truth};
use crate::cache::*;
use crate::{Bound, Lease, Outcome};

const STREAM: StreamId = StreamId::new(1);
const NOW: Instant = Instant::from_nanos(1);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Admin {
    Seek(usize, u64),
    Kick(usize),
    Detach(usize),
    Attach(usize),
}

#[derive(Clone)]
struct Reader {
    registered: bool,
    mode: Mode,
    /// The next record it must be given.
    cursor: u64,
    lease: Option<Lease>,
}

#[derive(Clone)]
pub(super) struct World {
    cache: Cache,
    truth: Truth,
    readers: Vec<Reader>,
    admin: &'static [Admin],
    fails: u32,
}

pub(super) type Successors = Vec<(String, Result<World, String>)>;

const fn key(reader: usize) -> Key {
    Key::new(STREAM, ConsumerId::new(reader as u64))
}

impl World {
    pub(super) fn new(
        ops: &'static [Op],
        readers: usize,
        admin: &'static [Admin],
        fails: u32,
        fault: Fault,
    ) -> Self {
        let mut cache = Cache::new(Policy::Signal, Backoff::default(), 0);
        cache.open_stream(STREAM, &[], SegmentId::new(1));
        let readers: Vec<Reader> = (0..readers)
            .map(|n| {
                let mode = if n == 0 { Mode::Pool } else { Mode::Pull };
                let _ = cache.attach(key(n), Seq::FIRST, mode, NOW);
                Reader { registered: true, mode, cursor: 1, lease: None }
            })
            .collect();
        let segments = vec![(1, None)];
        let truth = Truth {
            ops,
            fault,
            done: 0,
            step: Step::Op,
            segments,
            readable_end: 1,
            asleep: false,
            owes_mark: false,
            unlinked_below: 1,
        };
        Self { cache, truth, readers, admin, fails }
    }

    pub(super) fn successors(&self) -> Successors {
        let mut out = Vec::new();
        self.writer(&mut out);
        self.retire(&mut out);
        self.operate(&mut out);
        for n in 0..self.readers.len() {
            self.take(n, &mut out);
            self.end(n, &mut out);
        }
        out
    }

    fn writer(&self, out: &mut Successors) {
        let mut next = self.clone();
        let label = format!("writer: {:?} of operation {}", self.truth.step, self.truth.done);
        if next.truth.lock_free_step() {
            out.push((label, Ok(next)));
            return;
        }
        let woken = match self.truth.step {
            Step::Mark => next.cache.signal(STREAM, NOW),
            Step::Rotated => {
                let new = SegmentId::new(self.truth.segments.len() as u64);
                let old_end = self.truth.segments[self.truth.segments.len() - 2].1.expect("closed");
                next.cache.rotated(STREAM, Seq::new(old_end), new, NOW)
            }
            Step::Op | Step::Publish | Step::Swap => return,
        };
        next.truth.step = next.truth.next_op();
        let checked = self.check_woken(&woken, next, None);
        out.push((label, checked));
    }

    /// Unlinks what is rotated, known to be so, and below every cursor.
    fn retire(&self, out: &mut Successors) {
        let cursors = self.readers.iter().filter(|reader| reader.registered).map(|reader| reader.cursor);
        let Some(floor) = cursors.min() else { return };
        let open = self.cache.open_segment(STREAM).expect("open").get();
        let below = (self.truth.unlinked_below..open)
            .take_while(|&id| self.truth.segment(SegmentId::new(id)).1.is_some_and(|end| end <= floor))
            .last();
        if let Some(last) = below {
            let mut next = self.clone();
            next.truth.unlinked_below = last + 1;
            next.cache.retired(STREAM, SegmentId::new(last + 1));
            out.push((format!("tick: unlink up to {last}"), Ok(next)));
        }
    }

    fn operate(&self, out: &mut Successors) {
        let Some((&first, rest)) = self.admin.split_first() else { return };
        let mut next = self.clone();
        next.admin = rest;
        let floor = match self.truth.unlinked_below {
            1 => 1,
            below => self.truth.segment(SegmentId::new(below - 1)).1.expect("unlinked segments have an end"),
        };
        let mut moved = None;
        let woken = match first {
            Admin::Kick(n) => next.cache.kick(key(n), NOW),
            Admin::Seek(n, to) => {
                moved = Some(n);
                next.readers[n].cursor = to.max(floor);
                if self.truth.fault == Fault::SeekDoesNotReachTheCache {
                    Woken::default()
                } else {
                    next.cache.seek(key(n), Seq::new(to.max(floor)), NOW)
                }
            }
            Admin::Detach(n) => {
                next.readers[n].registered = false;
                let _ = next.cache.detach(key(n));
                Woken::default()
            }
            Admin::Attach(n) => {
                moved = Some(n);
                let reader = &mut next.readers[n];
                reader.registered = true;
                reader.cursor = reader.cursor.max(floor);
                next.cache.attach(key(n), Seq::new(reader.cursor), reader.mode, NOW)
            }
        };
        let checked = self.check_woken(&woken, next, moved);
        out.push((format!("operator: {first:?}"), checked));
    }

    fn take(&self, n: usize, out: &mut Successors) {
        for (name, now) in [("due", NOW), ("after its back-off", Instant::MAX)] {
            let mut next = self.clone();
            let end = Seq::new(self.truth.readable_end);
            let Some(lease) = next.cache.lease_key(key(n), now, &|_| end) else { continue };
            let label = format!("reader {n}, {name}: {lease:?}");
            let objection = self.truth.object(&lease, self.readers[n].cursor);
            let result = match objection {
                _ if self.readers[n].lease.is_some() => Err("two leases for one key".to_owned()),
                _ if !self.readers[n].registered => Err("a lease for a detached consumer".to_owned()),
                Some(objection) => Err(objection),
                None => {
                    next.readers[n].lease = Some(lease);
                    Ok(next)
                }
            };
            out.push((label, result));
            break;
        }
    }

    fn end(&self, n: usize, out: &mut Successors) {
        let Some(lease) = &self.readers[n].lease else { return };
        let mut outcomes = vec![Outcome::AtBound];
        let in_the_middle = lease.from.saturating_add(1);
        if in_the_middle < lease.bound.end() {
            outcomes.push(Outcome::MoreToRead { at: in_the_middle });
        }
        if self.fails > 0 && !lease.is_empty() {
            outcomes.push(Outcome::Failed { at: lease.from, wait_min: Duration::ZERO });
            outcomes.push(Outcome::Failed { at: in_the_middle, wait_min: Duration::ZERO });
        }
        for outcome in outcomes {
            // The writer may take steps between the two halves of the reader's part of the wake-up cell.
            for writer_steps in 0..4 {
                let Some((label, next)) = self.end_with(n, outcome, writer_steps) else { break };
                out.push((label, next));
            }
        }
    }

    fn end_with(
        &self,
        n: usize,
        outcome: Outcome,
        writer_steps: usize,
    ) -> Option<(String, Result<Self, String>)> {
        let mut next = self.clone();
        let lease = next.readers[n].lease.take()?;
        let label = format!("reader {n}: {outcome:?}, the writer moves {writer_steps} steps meanwhile");
        if next.readers[n].registered && next.cache.seek_number(key(n)) == Some(lease.seek_number) {
            next.readers[n].cursor = match outcome {
                Outcome::AtBound => lease.from.max(lease.bound.end()).get(),
                Outcome::MoreToRead { at } | Outcome::Failed { at, .. } => at.get(),
            };
        }
        next.fails -= u32::from(matches!(outcome, Outcome::Failed { .. }));
        let truth = RefCell::new((next.truth.clone(), 0));
        let end = next.cache.end_turn(lease, outcome, NOW, &|_| {
            let (truth, moved) = &mut *truth.borrow_mut();
            let loads_first = truth.fault == Fault::ReaderLoadsBeforeItSetsAsleep;
            let early = truth.readable_end;
            truth.asleep |= !loads_first;
            while *moved < writer_steps && truth.lock_free_step() {
                *moved += 1;
            }
            truth.asleep = truth.asleep || loads_first;
            Seq::new(if loads_first { early } else { truth.readable_end })
        });
        let (truth, moved) = truth.into_inner();
        if moved < writer_steps {
            return None;
        }
        next.truth = truth;
        Some((label, self.check_woken(&end.woken, next, None)))
    }

    /// Who became due is woken, nobody else is, and nothing went back that only grows.
    fn check_woken(&self, woken: &Woken, next: Self, moved: Option<usize>) -> Result<Self, String> {
        let is_due = |cache: &Cache, n| cache.view(key(n)).is_some_and(|v| matches!(v.phase, Phase::Due(_)));
        let mut expected = Woken::default();
        for (n, reader) in self.readers.iter().enumerate() {
            // Who attaches again is woken again: it may have changed its mode.
            let again = moved == Some(n) && !woken.is_empty();
            if is_due(&next.cache, n) && (again || !is_due(&self.cache, n)) {
                expected.add(key(n), reader.mode);
            }
            if let (Some(before), Some(after)) = (self.cache.view(key(n)), next.cache.view(key(n)))
                && after.reading < before.reading
                && moved != Some(n)
            {
                return Err(format!("reading of {n} went back from {} to {}", before.reading, after.reading));
            }
        }
        if let Some(objection) = next.object_to_the_lines() {
            return Err(objection);
        }
        if next.cache.open_segment(STREAM) < self.cache.open_segment(STREAM) {
            return Err("open_segment went back".to_owned());
        }
        if *woken == expected { Ok(next) } else { Err(format!("woke {woken:?}, due became {expected:?}")) }
    }

    /// Every consumer stands in the line of what it is doing, and in no other.
    fn object_to_the_lines(&self) -> Option<String> {
        let sleeping = |c: &&Consumer| matches!(c.standing, Standing::CaughtUp(_));
        let in_line = |c: &&Consumer| match c.standing {
            Standing::Due(_) => c.mode == Mode::Pool,
            Standing::CaughtUp(slot) => slot.is_some(),
            Standing::BackOff(_) => true,
            Standing::Leased(_) => false,
        };
        let listed = self.cache.streams.get(&STREAM).map_or(0, |stream| stream.caught_up.len());
        let consumers = || self.cache.consumers.values();
        let right = listed == consumers().filter(sleeping).count()
            && self.cache.dues.len() == consumers().filter(in_line).count();
        (!right).then(|| format!("the lines are not those of the consumers: {:?}", self.cache))
    }

    /// What is wrong with a world in which nothing can happen any more.
    pub(super) fn object_to_the_end(&self) -> Option<String> {
        for (n, reader) in self.readers.iter().enumerate() {
            let Some(view) = self.cache.view(key(n)) else {
                if reader.registered || self.cache.consumers.contains_key(&key(n)) {
                    return Some(format!("{n} is registered or not forgotten, and has no view"));
                }
                continue;
            };
            let open = self.cache.open_segment(STREAM);
            let sleeps = view.phase == Phase::CaughtUp(None);
            if reader.cursor < self.truth.readable_end || !sleeps || Some(view.reading) != open {
                return Some(format!(
                    "STUCK at {}, readable to {}: {view:?}",
                    reader.cursor, self.truth.readable_end
                ));
            }
        }
        None
    }

    /// All of the state that decides what can happen next.
    pub(super) fn fingerprint(&self) -> Vec<u64> {
        let t = &self.truth;
        let mut print = vec![
            t.done as u64 * 8 + t.step as u64,
            t.readable_end,
            u64::from(t.asleep) * 2 + u64::from(t.owes_mark),
            t.unlinked_below,
            self.admin.len() as u64 * 8 + u64::from(self.fails),
            self.cache.open_segment(STREAM).map_or(0, SegmentId::get),
        ];
        for (n, reader) in self.readers.iter().enumerate() {
            print.extend([u64::from(reader.registered), reader.cursor]);
            match self.cache.consumers.get(&key(n)) {
                None => print.push(0),
                Some(c) => {
                    let standing = match c.standing {
                        Standing::Due(_) => 1,
                        Standing::CaughtUp(_) => 2,
                        Standing::BackOff(_) => 3,
                        Standing::Leased(note) => 4 + note as u64,
                    };
                    print.extend([standing, c.reading.get(), c.at.get(), u64::from(c.failures)]);
                }
            }
            if let Some(lease) = &reader.lease {
                let current =
                    self.cache.consumers.get(&key(n)).is_some_and(|c| c.seek_number == lease.seek_number);
                let kind = u64::from(matches!(lease.bound, Bound::Open { .. })) * 2 + u64::from(current);
                print.extend([9, kind, lease.reading.get(), lease.from.get(), lease.bound.end().get()]);
            }
        }
        print
    }
}
