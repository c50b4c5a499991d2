//! Clients that meet limits: a cap that is set, an append that is refused or waits; and what the limits' own words (docs/durability.md) say
//! against the files that are really there.
//!
//! ```text
//!   refused ──> is it full? does the policy refuse?     save ──> what may it drop? what did it?      any call ──> under the cap?
//! ```
//!
//! Invariants: file lengths come from the disk, never from the queue's counters; a run without limits looks at none of this.

mod counts;
mod held;

pub(super) use counts::{Passed, Refusals};
pub(super) use held::charge_most;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use pq::core::CoreStream;
use pq::{AppendError, FullOf, Limits, OnFull};

use super::{Health, World, stream_name};
use crate::operation::{Bound, Load};
use crate::oracle::Payload;
use crate::setup::Setup;
use crate::violation::{Checked, Kind, Violation, ensure};

/// What is known of limits over all lives.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    streams: Vec<Bounds>,
    /// The queue's cap in this life.
    queue: Option<u64>,
    /// For how long the queue was open, over all lives.
    opened_for: Duration,
    /// Something was done to the disk: failed writes may leave bytes behind that nobody can foresee.
    was_troubled: bool,
}

/// One stream's limits.
#[derive(Debug, Clone, Default)]
struct Bounds {
    now: Limits,
    /// What they were about to become when a call failed or never returned.
    maybe: Option<Limits>,
    /// Bytes that were held when they were lowered; they may stay.
    over: u64,
    /// Ends of appends, and for how long the queue was open then.
    accepted: Vec<(u64, Duration)>,
}

/// A record that waits for space.
#[derive(Debug)]
pub(super) struct Waiting {
    payload: Payload,
    woken: Arc<Woken>,
}

#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Known {
    pub(super) fn of(setup: &Setup) -> Self {
        let bounds = |settings: &pq::StreamSettings| Bounds { now: settings.limits, ..Bounds::default() };
        Self {
            streams: setup.streams.iter().map(bounds).collect(),
            queue: setup.options.bytes_max,
            ..Self::default()
        }
    }

    pub(super) fn pass(&mut self, by: Duration) {
        self.opened_for += by;
    }

    pub(super) fn trouble(&mut self) {
        self.was_troubled = true;
    }

    fn stream(&self, stream: usize) -> Bounds {
        self.streams.get(stream).cloned().unwrap_or_default()
    }
}

impl Bounds {
    fn bytes_max(&self) -> u64 {
        let of = |limits: Limits| limits.bytes_max.unwrap_or(u64::MAX);
        self.maybe.map_or(0, of).max(of(self.now)).max(self.over)
    }

    /// Below which seq every record is older than the limit.
    fn old_below(&self, opened_for: Duration) -> u64 {
        let ages = [Some(self.now), self.maybe].into_iter().flatten().filter_map(|limits| limits.age_max);
        let Some(age) = ages.min() else { return 0 };
        let old = self.accepted.iter().take_while(|(_, at)| opened_for.saturating_sub(*at) >= age);
        old.last().map_or(0, |(end, _)| *end)
    }
}

impl World {
    /// Whether any limit is to be looked after for a stream.
    pub(super) fn is_bounded(&self, stream: usize) -> bool {
        let bounds = self.known.streams.get(stream);
        let is_bound = |limits: &Limits| limits.bytes_max.is_some() || limits.age_max.is_some();
        self.known.queue.is_some()
            || bounds
                .is_some_and(|bounds| is_bound(&bounds.now) || bounds.maybe.as_ref().is_some_and(is_bound))
    }

    pub(super) fn bound(&mut self, bound: Bound) -> Checked {
        match bound {
            Bound::Stream(stream, on_full, more) => {
                let stream = self.at(stream);
                let held = self.held(stream).unwrap_or_default();
                let bytes_max = Some(held.bytes().saturating_add_signed(i64::from(more)));
                self.set_limits(stream, Limits { bytes_max, on_full, ..self.known.stream(stream).now })
            }
            Bound::Age(stream, millis) => {
                let stream = self.at(stream);
                let age_max = Some(Duration::from_millis(u64::from(millis)));
                self.set_limits(stream, Limits { age_max, ..self.known.stream(stream).now })
            }
            Bound::Queue(more) => {
                self.limit_queue(more);
                Ok(())
            }
        }
    }

    fn set_limits(&mut self, stream: usize, limits: Limits) -> Checked {
        let (Some(handle), Some(core)) = (self.slot(stream).stream.clone(), &self.core) else {
            return Ok(());
        };
        let held = self.held(stream).unwrap_or_default();
        let Some(bounds) = self.known.streams.get_mut(stream) else { return Ok(()) };
        bounds.maybe = Some(limits);
        bounds.over = bounds.over.max(held.most());
        let set = core.limit_stream(&handle, limits);
        if self.disk.is_halted() {
            return Ok(());
        }
        match set {
            Ok(()) => {
                bounds.now = limits;
                bounds.maybe = None;
                Ok(())
            }
            Err(error) => self.expect("set limits", &error),
        }
    }

    /// A record that waits for space where the policy says so.
    pub(super) fn append_waiting(&mut self, stream: usize, load: Load) -> Checked {
        let Some(handle) = self.slot(stream).stream.clone() else { return Ok(()) };
        if self.slot(stream).waiting.is_some() {
            return Ok(());
        }
        let payloads = self.payloads(Load { count: 1, ..load }, handle.log().settings().record_bytes_max);
        payloads.into_iter().try_for_each(|payload| {
            self.try_waiting(stream, &handle, Waiting { payload, woken: Arc::default() })
        })
    }

    fn try_waiting(&mut self, stream: usize, handle: &CoreStream, waiting: Waiting) -> Checked {
        let mut bytes = Vec::new();
        waiting.payload.write(&mut bytes);
        let waker = Waker::from(Arc::clone(&waiting.woken));
        match handle.log().poll_append(bytes.as_slice(), self.now, &mut Context::from_waker(&waker)) {
            Poll::Ready(Ok(ticket)) => self.accepted(stream, ticket, &[waiting.payload], None),
            Poll::Ready(Err(error)) => self.refused(stream, &error),
            Poll::Pending => {
                let on_full = self.known.stream(stream).now.on_full;
                let refusals = &mut self.slots[stream].refusals;
                refusals.waited = true;
                refusals.needed = charge_most(&[waiting.payload]);
                self.slots[stream].waiting = Some(waiting);
                ensure(matches!(on_full, OnFull::Block | OnFull::DropOldest), Kind::Unexpected, || {
                    format!("an append waits, the policy is {on_full:?}")
                })
            }
        }
    }

    /// Tries again what was woken.
    pub(super) fn look_at_waiting(&mut self) -> Checked {
        for stream in 0..self.slots.len() {
            let is_woken = |waiting: &mut Waiting| waiting.woken.0.swap(false, Ordering::SeqCst);
            let waiting = self.slots[stream].waiting.take_if(is_woken);
            if let (Some(waiting), Some(handle)) = (waiting, self.slot(stream).stream.clone()) {
                self.try_waiting(stream, &handle, waiting)?;
            }
        }
        Ok(())
    }

    /// An append was accepted that ends at `end`.
    pub(super) fn counted_in(&mut self, stream: usize, end: u64) {
        let opened_for = self.known.opened_for;
        if self.is_bounded(stream)
            && let Some(bounds) = self.known.streams.get_mut(stream)
        {
            // What a crash took leaves its seqs to others.
            bounds.accepted.retain(|(before, _)| *before < end);
            bounds.accepted.push((end, opened_for));
        }
    }

    /// A refusal for want of space: the right one for the policy, and not before it is full.
    pub(super) fn refused_space(&mut self, stream: usize, error: &AppendError) -> Option<Checked> {
        let (needed, used, limit, of, is_dropped) = match error {
            AppendError::Full { needed, used, limit, of } => (*needed, *used, *limit, *of, false),
            AppendError::Dropped { needed, used, limit, of } => (*needed, *used, *limit, *of, true),
            _ => return None,
        };
        let bounds = self.known.stream(stream);
        let (held, of_all) = (self.held(stream).unwrap_or_default(), self.held_by_all());
        let (set, most) = match of {
            FullOf::Stream => (bounds.now.bytes_max, held.most()),
            FullOf::Queue => (self.known.queue, of_all),
        };
        let refusals = &mut self.slots[stream].refusals;
        refusals.needed = needed;
        if is_dropped {
            refusals.dropped += 1;
        } else {
            refusals.full += 1;
        }
        let is_full = used + needed > limit && set == Some(limit);
        let is_true = self.known.was_troubled || used <= most;
        let is_policy = is_dropped == (bounds.now.on_full == OnFull::DropNewest);
        Some(ensure(is_full && is_true && is_policy, Kind::Unexpected, || {
            format!(
                "refused: {error}; limits {:?}, queue {:?}, held {held:?}, {of_all} by all",
                bounds.now, self.known.queue
            )
        }))
    }

    /// A save begins: cursors may move floors, and so may limits.
    pub(super) fn before_save(&mut self) {
        self.oracle.saving();
        for stream in 0..self.slots.len() {
            if self.is_bounded(stream) {
                let expire_to = self.known.stream(stream).old_below(self.known.opened_for);
                let trim_to = self.trim_to(stream);
                self.oracle.book_mut(stream).into_iter().for_each(|book| book.may_drop(trim_to, expire_to));
            }
        }
    }

    /// A save answered: what was dropped is what a limit asked for; how many records that were.
    pub(super) fn look_at_floors(&mut self) -> Checked<u64> {
        let mut dropped = 0;
        for stream in 0..self.slots.len() {
            let Some(handle) = self.slot(stream).stream.clone().filter(|_| self.is_bounded(stream)) else {
                continue;
            };
            let stats = handle.stats();
            let Some(book) = self.oracle.book_mut(stream) else { continue };
            let news =
                book.dropped(stats.first, (stats.trimmed_records_count, stats.expired_records_count))?;
            dropped += news;
            if news > 0 {
                self.slots[stream].refusals.needed = 0;
            }
            let held = self.held(stream).unwrap_or_default();
            if let Some(bounds) = self.known.streams.get_mut(stream) {
                bounds.over = bounds.over.min(held.most());
            }
        }
        Ok(dropped)
    }

    /// No stream takes more than its cap; the queue neither.
    pub(super) fn check_caps(&self) -> Checked {
        if self.known.was_troubled {
            return Ok(());
        }
        for stream in (0..self.slots.len()).filter(|stream| self.is_bounded(*stream)) {
            let (held, most) = (self.held(stream).unwrap_or_default(), self.known.stream(stream).bytes_max());
            ensure(held.bytes() <= most, Kind::Unexpected, || {
                format!("{:?} takes {held:?}, and may take {most}", stream_name(stream))
            })?;
        }
        Ok(())
    }

    /// What was found after an open is what was set, or about to be.
    pub(super) fn limits_found(&mut self) -> Checked {
        self.known.queue = self.setup.options.bytes_max;
        for stream in 0..self.slots.len() {
            let Some(handle) = self.slot(stream).stream.clone().filter(|_| self.is_bounded(stream)) else {
                continue;
            };
            let found = handle.log().limits();
            let Some(bounds) = self.known.streams.get_mut(stream) else { continue };
            ensure(found == bounds.now || Some(found) == bounds.maybe, Kind::Lost, || {
                format!("limits are {found:?}, set {:?}, perhaps {:?}", bounds.now, bounds.maybe)
            })?;
            bounds.now = found;
            bounds.maybe = None;
        }
        self.check_caps()
    }

    /// What is appended is taken, if need be once what is delivered was unlinked.
    pub(super) fn append_at_last(&mut self, stream: usize, load: Load) -> Checked {
        if !self.is_bounded(stream) {
            return self.append(stream, load);
        }
        for _ in 0..2 {
            let before = self.counts.records;
            self.append(stream, load)?;
            if self.counts.records > before {
                return Ok(());
            }
            self.until_idle()?;
        }
        Err(Violation::new(
            Kind::Stuck,
            format!("everything is delivered, and {:?} is full", stream_name(stream)),
        ))
    }

    /// Whether nothing was done to the disk that may still show.
    fn is_sound(&self) -> bool {
        self.health == Health::Sound && !self.known.was_troubled
    }
}
