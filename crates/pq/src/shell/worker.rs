//! One task of the reader pool: takes turns, hands deliveries to sinks, moves cursors by what they answer.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wal_store::ReadBuffers;

use crate::clock::locked;
use crate::core::{Core, Found, Turn, TurnResult};
use crate::waits::handoff;
use crate::{Clock, Delivery, OnRejected, ReadError, SendOutcome};

use super::in_hand::InHand;
use super::pool::Shared;
use super::{Counted, Readers, Shell};

/// One task of the pool.
pub(super) struct Worker {
    index: usize,
    core: Arc<Core>,
    clock: Arc<dyn Clock>,
    readers: Arc<Readers>,
    shared: Arc<Shared>,
    counted: Arc<Counted>,
    buffers: Option<ReadBuffers>,
}

/// Counts a worker out, however it ends.
struct Leaving(Arc<Shared>, Arc<Core>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.1.hub.ended.ring();
    }
}

impl Worker {
    /// It holds no handle of the queue: the last one's drop must be able to end it.
    pub(super) fn new(index: usize, shell: &Shell, shared: Arc<Shared>) -> Self {
        Self {
            index,
            core: Arc::clone(&shell.core),
            clock: Arc::clone(&shell.clock),
            readers: Arc::clone(&shell.readers),
            shared,
            counted: Arc::clone(&shell.counted),
            buffers: None,
        }
    }

    pub(super) async fn run(mut self) {
        let _leaving = Leaving(Arc::clone(&self.shared), Arc::clone(&self.core));
        while !self.stopping() {
            match self.core.look(self.clock.now()) {
                Found::Some(turn) => {
                    self.counted.turns.fetch_add(1, Ordering::Relaxed);
                    self.turn(turn).await;
                }
                Found::Later => tokio::task::yield_now().await,
                Found::Nothing => poll_fn(|cx| self.core.hub.parking.poll_park(self.index, cx)).await,
            }
        }
    }

    fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::SeqCst)
    }

    async fn turn(&mut self, turn: Turn) {
        let slot = locked(&self.shared.sinks).get(&turn.consumer.key).cloned();
        let taken = slot.and_then(|slot| {
            let sink = locked(&slot.inner).sink.take()?;
            Some(InHand::new(sink, slot, Arc::clone(&self.shared), Arc::clone(&self.core)))
        });
        let now = || self.clock.now();
        match taken {
            // Attached to the cache a moment before its sink is here, or detached: again at once, or never.
            None => turn.end(TurnResult::Failed { wait_min: Duration::ZERO }, now()),
            Some(mut in_hand) => self.run_turn(turn, &mut in_hand).await,
        }
    }

    async fn run_turn(&mut self, turn: Turn, in_hand: &mut InHand) {
        let mut turn = turn;
        if !turn.is_at_bound()
            && let Err(reason) = in_hand.start().await
        {
            return self.fail(turn, &reason, Duration::ZERO);
        }
        loop {
            if turn.is_at_bound() || self.is_spent(&turn) || in_hand.is_detached() {
                return turn.end(TurnResult::Handed, self.clock.now());
            }
            let (back, read) = match self.read(turn).await {
                Some(done) => done,
                // The readers are gone with the queue; the turn went with them.
                None => return,
            };
            turn = back;
            let delivery = match read {
                Ok(Some(delivery)) => delivery,
                Ok(None) => continue,
                Err(error) => return self.fail(turn, &error.to_string(), Duration::ZERO),
            };
            if let Err((reason, wait)) = self.deliver(in_hand, &delivery).await {
                return self.fail(turn, &reason, wait);
            }
        }
    }

    /// The turn has had its share of bytes and time, or the pool stops.
    fn is_spent(&self, turn: &Turn) -> bool {
        let options = self.core.options();
        let spent = turn.bytes() >= options.turn_bytes_max
            || self.clock.now().saturating_since(turn.begun()) >= options.turn_time_max;
        self.stopping() || (turn.bytes() > 0 && spent)
    }

    fn fail(&self, turn: Turn, reason: &str, wait_min: Duration) {
        tracing::debug!(stream = turn.stream(), consumer = turn.consumer(), reason, "turn failed");
        turn.note_failure(reason);
        turn.end(TurnResult::Failed { wait_min }, self.clock.now());
    }

    async fn read(&mut self, mut turn: Turn) -> Option<(Turn, Result<Option<Delivery>, ReadError>)> {
        let (sender, receiver) = handoff();
        let mut buffers = self.buffers.take().unwrap_or_else(|| self.core.read_buffers());
        let bytes_max = self.core.options().turn_bytes_max;
        self.readers.submit(move || {
            let read = turn.read(bytes_max, &mut buffers);
            sender.send((turn, buffers, read));
        });
        let (turn, buffers, read) = poll_fn(|cx| receiver.poll(cx)).await?;
        self.buffers = Some(buffers);
        Some((turn, read))
    }

    /// Hands a delivery to the sink until it is taken, or not. Moves the cursor by what was.
    async fn deliver(&self, in_hand: &mut InHand, delivery: &Delivery) -> Result<(), (String, Duration)> {
        let tries = in_hand.slot().settings.quick_tries_count.max(1);
        let mut last = (String::new(), Duration::ZERO);
        for _ in 0..tries {
            match in_hand.send(delivery).await {
                SendOutcome::Delivered { note } => {
                    return self.took(in_hand, delivery, delivery.next(), note.as_deref());
                }
                SendOutcome::Partial { next, note } => {
                    if next < delivery.first() || next > delivery.next() {
                        return Err((
                            format!("the sink took up to {next}, which it was not given"),
                            Duration::ZERO,
                        ));
                    }
                    self.took(in_hand, delivery, next, note.as_deref())?;
                    return if next == delivery.next() {
                        Ok(())
                    } else {
                        Err((format!("the sink took part, up to {next}"), Duration::ZERO))
                    };
                }
                SendOutcome::Throttled { wait } => return Err(("throttled".to_owned(), wait)),
                SendOutcome::Retry { reason } => last = (reason, Duration::ZERO),
                SendOutcome::Rejected { reason } => match in_hand.slot().settings.on_rejected {
                    OnRejected::Drop => {
                        let seek = delivery.made_for().map(|(_, seek)| seek);
                        let (consumer, to) = (&in_hand.slot().consumer, delivery.next());
                        let over = self.core.step_over(consumer, to, seek, delivery.next_hint());
                        return over.map_err(|error| (error.to_string(), Duration::ZERO));
                    }
                    _ => return Err((format!("rejected: {reason}"), Duration::ZERO)),
                },
            }
            if self.stopping() {
                break;
            }
        }
        Err(last)
    }

    fn took(
        &self,
        in_hand: &InHand,
        delivery: &Delivery,
        to: crate::Seq,
        note: Option<&[u8]>,
    ) -> Result<(), (String, Duration)> {
        let seek = delivery.made_for().map(|(_, seek)| seek);
        let hint = delivery.next_hint().filter(|_| to == delivery.next());
        let done = self.core.ack(&in_hand.slot().consumer, to, seek, hint, note);
        done.map(drop).map_err(|error| (error.to_string(), Duration::ZERO))
    }
}
