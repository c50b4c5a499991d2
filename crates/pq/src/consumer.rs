//! A named reader of a stream with a durable cursor of its own, pulled by its user.
//!
//! ```text
//!   next ──> lease (the cache's lock) ──> read: here, or on a reader thread for async ──> end of turn ──> Delivery
//!   nothing there: registered at the bell, looked again, asleep; a commit rings
//! ```

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use wal_format::Instant;
use wal_store::ReadBuffers;

use crate::clock::ClockWake;
use crate::core::{ConsumerState, Phase, Turn, TurnResult};
use crate::shell::Shell;
use crate::waits::{Bell, Handoff, handoff};
use crate::{AckError, Acked, ConsumerStats, Delivery, ReadError, Seq, Start, Stream, StreamError};

/// A consumer, open exclusively. `next` may be called several times before `ack`; dropping it returns what is not acknowledged:
/// whoever opens it next gets that again.
#[derive(Debug)]
pub struct Consumer {
    stream: Stream,
    state: Arc<ConsumerState>,
    bell: Arc<Bell>,
    wake: Arc<ClockWake>,
    buffers: Option<ReadBuffers>,
    /// A read on its way; it outlives the future that asked for it.
    pending: Option<Handoff<Done>>,
}

/// What a reader thread hands back.
type Done = (Turn, ReadBuffers, Result<Option<Delivery>, ReadError>);

/// What there is to do.
enum Step {
    Read(Turn),
    Wait,
    Ended,
}

impl Consumer {
    pub(crate) fn new(stream: Stream, state: Arc<ConsumerState>) -> Self {
        let bell = stream.shell.core.hub.add_bell(state.key);
        Self { stream, state, bell, wake: ClockWake::new(), buffers: None, pending: None }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The stream it reads.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The note given last with an acknowledgement; empty if none.
    #[must_use]
    pub fn note(&self) -> Vec<u8> {
        self.state.note()
    }

    /// Seq of the next record not acknowledged.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.state.cursor()
    }

    /// The next delivery; waits, without blocking, while there is none. Files are never read on the thread that polls.
    /// `None`: the stream or the queue is closed. Cancel safe: a dropped future loses nothing.
    ///
    /// # Errors
    /// Nothing is skipped; the next call tries the same place.
    pub async fn next(&mut self) -> Result<Option<Delivery>, ReadError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`Consumer::next`] as a poll, for those who write their own futures.
    ///
    /// # Errors
    /// As for `next`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Delivery>, ReadError>> {
        loop {
            if let Some(pending) = &self.pending {
                let Poll::Ready(done) = pending.poll(cx) else { return Poll::Pending };
                self.pending = None;
                match self.take_in(done) {
                    Ok(None) => continue,
                    done => return Poll::Ready(done),
                }
            }
            match self.step() {
                Step::Read(turn) => self.submit(turn),
                Step::Ended => return Poll::Ready(Ok(None)),
                Step::Wait => {
                    self.bell.register(cx.waker());
                    match self.step() {
                        Step::Read(turn) => self.submit(turn),
                        Step::Ended => return Poll::Ready(Ok(None)),
                        Step::Wait => return Poll::Pending,
                    }
                }
            }
        }
    }

    /// [`Consumer::next`] that blocks.
    ///
    /// # Errors
    /// As for `next`.
    pub fn next_blocking(&mut self) -> Result<Option<Delivery>, ReadError> {
        self.next_until(None)
    }

    /// [`Consumer::next_blocking`] that gives up after a while.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`], or as for `next`.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Delivery>, ReadError> {
        let until = self.shell().clock.now().saturating_add(timeout);
        self.next_until(Some(until))
    }

    /// What is there now, without waiting for more; `None`: nothing, or closed. Blocks for the file read only.
    ///
    /// # Errors
    /// As for `next`.
    pub fn try_next(&mut self) -> Result<Option<Delivery>, ReadError> {
        loop {
            if self.pending.is_some() {
                return self.next_blocking();
            }
            match self.step() {
                Step::Read(turn) => match self.read_here(turn) {
                    Ok(None) => {}
                    done => return done,
                },
                Step::Wait | Step::Ended => return Ok(None),
            }
        }
    }

    /// Everything up to and including this delivery is done with. In memory at once, saved with the next tick; a second time, or
    /// late, it changes nothing.
    ///
    /// # Errors
    /// The cursor is unchanged; [`AckError::Closed`] behind [`crate::Queue::close`].
    pub fn ack(&self, delivery: &Delivery) -> Result<Acked, AckError> {
        let seek = self.state.seek_of(delivery)?;
        self.shell().core.ack(&self.state, delivery.next(), Some(seek), delivery.next_hint(), None)?;
        Ok(self.acked(delivery.next()))
    }

    /// Everything below `to` is done with.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn ack_to(&self, to: Seq) -> Result<Acked, AckError> {
        self.shell().core.ack(&self.state, to, None, None, None)?;
        Ok(self.acked(to))
    }

    /// [`Consumer::ack_to`] with a note of at most 256 bytes that is saved in the same step.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn ack_with_note(&self, to: Seq, note: &[u8]) -> Result<Acked, AckError> {
        self.shell().core.ack(&self.state, to, None, None, Some(note))?;
        Ok(self.acked(to))
    }

    /// Moves the cursor, either way, and saves it before it returns.
    ///
    /// # Errors
    /// The cursor is where it was.
    pub fn seek(&mut self, to: Start) -> Result<Seq, StreamError> {
        // A read that is on its way belongs to the old place.
        self.pending = None;
        self.shell().core.seek(&self.stream.state, &self.state, to, self.shell().clock.now())
    }

    /// Records readers see and this consumer did not acknowledge.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.stream.state.lag(&self.state)
    }

    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> ConsumerStats {
        self.stream.state.consumer_stats(&self.state)
    }

    /// Blocks until everything readable at the call is acknowledged, or the timeout; says which.
    #[must_use]
    pub fn wait_drained(&self, timeout: Duration) -> bool {
        wait_drained(&self.stream, &self.state, timeout)
    }

    fn shell(&self) -> &Shell {
        &self.stream.shell
    }

    fn acked(&self, to: Seq) -> Acked {
        Acked::new(self.stream.clone(), Arc::clone(&self.state), to)
    }

    /// Looks whether there is something to read. Turns with nothing to read end here, and open no file.
    fn step(&self) -> Step {
        let shell = self.shell();
        loop {
            if shell.core.phase() != Phase::Open || self.stream.state.is_deleted() {
                return Step::Ended;
            }
            let now = shell.clock.now();
            let Some(turn) = shell.core.lease_for(&self.stream.state, &self.state, now) else {
                return Step::Wait;
            };
            if !turn.is_at_bound() {
                return Step::Read(turn);
            }
            turn.end(TurnResult::Handed, now);
        }
    }

    fn next_until(&mut self, until: Option<Instant>) -> Result<Option<Delivery>, ReadError> {
        let waker = Waker::from(Arc::clone(&self.wake));
        loop {
            let done = match self.pending.take() {
                Some(pending) => match pending.poll(&Context::from_waker(&waker)) {
                    Poll::Ready(done) => Some(self.take_in(done)),
                    Poll::Pending => {
                        self.pending = Some(pending);
                        None
                    }
                },
                None => match self.step_or_register(&waker) {
                    Step::Read(turn) => Some(self.read_here(turn)),
                    Step::Ended => return Ok(None),
                    Step::Wait => None,
                },
            };
            match done {
                Some(Ok(None)) => continue,
                Some(done) => return done,
                None => {}
            }
            if until.is_some_and(|until| until <= self.shell().clock.now()) {
                return Err(ReadError::TimedOut);
            }
            self.shell().clock.sleep_until(until, &self.wake);
        }
    }

    fn step_or_register(&self, waker: &Waker) -> Step {
        match self.step() {
            Step::Wait => {
                self.bell.register(waker);
                self.step()
            }
            step => step,
        }
    }

    fn take_buffers(&mut self) -> ReadBuffers {
        self.buffers.take().unwrap_or_else(|| self.shell().core.read_buffers())
    }

    fn bytes_max(&self) -> usize {
        self.shell().core.options().turn_bytes_max
    }

    fn read_here(&mut self, mut turn: Turn) -> Result<Option<Delivery>, ReadError> {
        let mut buffers = self.take_buffers();
        let read = turn.read(self.bytes_max(), &mut buffers);
        self.take_in(Some((turn, buffers, read)))
    }

    fn submit(&mut self, mut turn: Turn) {
        let (sender, receiver) = handoff();
        let mut buffers = self.take_buffers();
        let bytes_max = self.bytes_max();
        self.pending = Some(receiver);
        self.shell().readers.submit(move || {
            let read = turn.read(bytes_max, &mut buffers);
            sender.send((turn, buffers, read));
        });
    }

    /// The end of a read and of its turn.
    fn take_in(&mut self, done: Option<Done>) -> Result<Option<Delivery>, ReadError> {
        let (turn, buffers, read) = done.ok_or(ReadError::Down)?;
        self.buffers = Some(buffers);
        let now = self.shell().clock.now();
        match &read {
            Ok(_) => turn.end(TurnResult::Handed, now),
            Err(error) => {
                turn.note_failure(&error.to_string());
                turn.end(TurnResult::Failed { wait_min: Duration::ZERO }, now);
            }
        }
        read
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stream.shell.core.give_back(&self.state);
    }
}

/// Blocks until `state` acknowledged everything readable now.
pub(crate) fn wait_drained(stream: &Stream, state: &ConsumerState, timeout: Duration) -> bool {
    let target = Seq::new(stream.state.listener.cell.readable());
    let until = stream.shell.clock.now().saturating_add(timeout);
    let drained = || state.cursor() >= target;
    let over = || drained() || state.is_removed() || stream.shell.core.phase() == Phase::Closed;
    let register = |waker: &Waker| {
        state.moved_bell.register(waker);
        stream.shell.core.hub.ended.register(waker);
    };
    stream.shell.block_until(Some(until), register, over);
    drained()
}
