//! The reader pool: a fixed number of tasks that run sinks' turns. None sleeps holding a turn: a sink that fails gives its slot back
//! and is due again later.
//!
//! ```text
//!   worker: lease ──> read (on a reader thread) ──> sink ──> ack ──> more, within the turn's budget ──> end
//!      └── nothing due: parked; a commit, a due time, a kick wakes as many as there are turns
//! ```
//!
//! Invariants: a worker never reads a file itself; every exit of a turn returns its lease and its sink, a panic of the sink too.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;

use scheduler::Key;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use wal_store::ReadBuffers;

use crate::clock::locked;
use crate::core::{ConsumerState, Core, Turn, TurnResult};
use crate::waits::handoff;
use crate::{Clock, Delivery, DynSink, OnRejected, Options, ReadError, SendOutcome, SinkSettings};

use super::{Counted, Shell};

/// The tasks, and the sinks they run.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    shared: Arc<Shared>,
    handle: Option<Handle>,
    workers_count: usize,
}

#[derive(Debug, Default)]
struct State {
    started: bool,
    aborts: Vec<AbortHandle>,
    /// Ends our own runtime's thread when dropped.
    own: Option<tokio::sync::oneshot::Sender<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    sinks: Mutex<HashMap<Key, Arc<SinkSlot>>>,
    stopping: AtomicBool,
    running: AtomicUsize,
}

/// A sink, and whether it is at work.
pub(crate) struct SinkSlot {
    pub(crate) consumer: Arc<ConsumerState>,
    settings: SinkSettings,
    inner: Mutex<Inner>,
}

impl std::fmt::Debug for SinkSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkSlot").field("consumer", &self.consumer.name).finish_non_exhaustive()
    }
}

struct Inner {
    /// `None` while a worker has it.
    sink: Option<Box<dyn DynSink>>,
    started: bool,
    detached: bool,
}

impl Pool {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            state: Mutex::default(),
            shared: Arc::default(),
            handle: options.runtime.clone(),
            workers_count: options.readers_count,
        }
    }

    /// Gives a sink to the workers. Its consumer is taken, and attached to the cache after this.
    ///
    /// # Errors
    /// The runtime could not be started.
    pub(crate) fn add(
        &self,
        shell: &Arc<Shell>,
        consumer: &Arc<ConsumerState>,
        sink: Box<dyn DynSink>,
        settings: SinkSettings,
    ) -> std::io::Result<Arc<SinkSlot>> {
        self.ensure_started(shell)?;
        let slot = Arc::new(SinkSlot {
            consumer: Arc::clone(consumer),
            settings,
            inner: Mutex::new(Inner { sink: Some(sink), started: false, detached: false }),
        });
        locked(&self.shared.sinks).insert(consumer.key, Arc::clone(&slot));
        Ok(slot)
    }

    /// Stops a sink after its current delivery and gives its consumer back.
    pub(crate) fn detach(&self, core: &Core, slot: &SinkSlot) {
        let idle = {
            let mut inner = locked(&slot.inner);
            let first = !std::mem::replace(&mut inner.detached, true);
            first && inner.sink.is_some()
        };
        if idle {
            self.shared.remove(core, slot);
        }
    }

    /// No worker begins another turn or delivery.
    pub(crate) fn stop(&self, core: &Core) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        core.hub.parking.wake(self.workers_count);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.running.load(Ordering::SeqCst) == 0
    }

    /// Ends workers that do not end by themselves; their turns end as failed.
    pub(crate) fn abort(&self) {
        locked(&self.state).aborts.iter().for_each(AbortHandle::abort);
    }

    fn ensure_started(&self, shell: &Arc<Shell>) -> std::io::Result<()> {
        let mut state = locked(&self.state);
        if state.started {
            return Ok(());
        }
        let handle = match &self.handle {
            Some(handle) => handle.clone(),
            None => {
                let (handle, own) = own_runtime()?;
                state.own = Some(own);
                handle
            }
        };
        shell.core.hub.parking.set_workers(self.workers_count);
        for index in 0..self.workers_count {
            let worker = Worker {
                index,
                core: Arc::clone(&shell.core),
                clock: Arc::clone(&shell.clock),
                shell: Arc::downgrade(shell),
                shared: Arc::clone(&self.shared),
                counted: Arc::clone(&shell.counted),
                buffers: Some(ReadBuffers::default()),
            };
            self.shared.running.fetch_add(1, Ordering::SeqCst);
            state.aborts.push(handle.spawn(worker.run()).abort_handle());
        }
        state.started = true;
        Ok(())
    }
}

/// A runtime on one thread: sinks wait, they do not compute, and files are read elsewhere.
fn own_runtime() -> std::io::Result<(Handle, tokio::sync::oneshot::Sender<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (own, ended) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("pq-sinks".to_owned()).spawn(move || {
        let _ = runtime.block_on(ended);
    })?;
    Ok((handle, own))
}

impl Shared {
    fn remove(&self, core: &Core, slot: &SinkSlot) {
        locked(&self.sinks).remove(&slot.consumer.key);
        core.give_back(&slot.consumer);
    }
}

struct Worker {
    index: usize,
    core: Arc<Core>,
    clock: Arc<dyn Clock>,
    /// Not held while parked: the last handle's drop must be able to end the workers.
    shell: Weak<Shell>,
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
    async fn run(mut self) {
        let _leaving = Leaving(Arc::clone(&self.shared), Arc::clone(&self.core));
        while !self.stopping() {
            match self.core.lease(self.clock.now()) {
                Some(turn) => {
                    self.counted.turns.fetch_add(1, Ordering::Relaxed);
                    self.turn(turn).await;
                }
                None => poll_fn(|cx| self.core.hub.parking.poll_park(self.index, cx)).await,
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
            Some(InHand {
                sink: Some(sink),
                slot,
                shared: Arc::clone(&self.shared),
                core: Arc::clone(&self.core),
            })
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
        let mut buffers = self.buffers.take().unwrap_or_default();
        let bytes_max = self.core.options().turn_bytes_max;
        {
            let shell = self.shell.upgrade()?;
            shell.readers.submit(move || {
                let read = turn.read(bytes_max, &mut buffers);
                sender.send((turn, buffers, read));
            });
        }
        let (turn, buffers, read) = poll_fn(|cx| receiver.poll(cx)).await?;
        self.buffers = Some(buffers);
        Some((turn, read))
    }

    /// Hands a delivery to the sink until it is taken, or not. Moves the cursor by what was.
    async fn deliver(&self, in_hand: &mut InHand, delivery: &Delivery) -> Result<(), (String, Duration)> {
        let tries = in_hand.slot.settings.quick_tries_count.max(1);
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
                SendOutcome::Rejected { reason } => match in_hand.slot.settings.on_rejected {
                    OnRejected::Drop => {
                        let dropped = &in_hand.slot.consumer.counted.dropped;
                        dropped.fetch_add(delivery.records_count(), Ordering::Relaxed);
                        return self.took(in_hand, delivery, delivery.next(), None);
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
        let done = self.core.ack(&in_hand.slot.consumer, to, seek, hint, note);
        done.map(drop).map_err(|error| (error.to_string(), Duration::ZERO))
    }
}

/// A sink in a worker's hand; put back however the turn ends.
struct InHand {
    sink: Option<Box<dyn DynSink>>,
    slot: Arc<SinkSlot>,
    shared: Arc<Shared>,
    core: Arc<Core>,
}

impl InHand {
    fn is_detached(&self) -> bool {
        locked(&self.slot.inner).detached
    }

    /// Starts the sink if it is not.
    async fn start(&mut self) -> Result<(), String> {
        if locked(&self.slot.inner).started {
            return Ok(());
        }
        let note = self.slot.consumer.note();
        let Some(sink) = &mut self.sink else { return Err("the sink is gone".to_owned()) };
        match caught(sink.start_boxed(&note)).await {
            Some(Ok(())) => {
                locked(&self.slot.inner).started = true;
                Ok(())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the sink panicked".to_owned()),
        }
    }

    async fn send(&mut self, delivery: &Delivery) -> SendOutcome {
        let Some(sink) = &mut self.sink else { return SendOutcome::retry("the sink is gone") };
        match caught(sink.send_boxed(delivery)).await {
            Some(outcome) => outcome,
            None => {
                // What it had begun is unknown: it starts again from what is acknowledged.
                locked(&self.slot.inner).started = false;
                SendOutcome::retry("the sink panicked")
            }
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let detached = {
            let mut inner = locked(&self.slot.inner);
            inner.sink = self.sink.take();
            inner.detached
        };
        if detached {
            self.shared.remove(&self.core, &self.slot);
        }
    }
}

/// `None`: it panicked.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}
