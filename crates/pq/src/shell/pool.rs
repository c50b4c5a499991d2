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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use scheduler::Key;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::clock::locked;
use crate::core::{ConsumerState, Core};
use crate::{DynSink, Options, SinkSettings};

use super::Shell;
use super::worker::Worker;

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

/// What the workers share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) sinks: Mutex<HashMap<Key, Arc<SinkSlot>>>,
    pub(super) stopping: AtomicBool,
    pub(super) running: AtomicUsize,
}

/// A sink, and whether it is at work.
pub(crate) struct SinkSlot {
    pub(crate) consumer: Arc<ConsumerState>,
    pub(super) settings: SinkSettings,
    pub(super) inner: Mutex<Inner>,
}

impl std::fmt::Debug for SinkSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkSlot").field("consumer", &self.consumer.name).finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    /// `None` while a worker has it.
    pub(super) sink: Option<Box<dyn DynSink>>,
    pub(super) started: bool,
    pub(super) detached: bool,
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

    /// Lets go of the sinks whose consumers are gone, and of all once the queue is closed.
    pub(crate) fn forget(&self, which: impl Fn(&ConsumerState) -> bool) {
        let gone: Vec<_> = {
            let mut sinks = locked(&self.shared.sinks);
            let keys: Vec<Key> =
                sinks.iter().filter(|(_, slot)| which(&slot.consumer)).map(|(key, _)| *key).collect();
            keys.iter().filter_map(|key| sinks.remove(key)).collect()
        };
        // Outside the lock: a sink may hold handles of this queue.
        drop(gone);
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
            let worker = Worker::new(index, shell, Arc::clone(&self.shared));
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
    pub(super) fn remove(&self, core: &Core, slot: &SinkSlot) {
        locked(&self.sinks).remove(&slot.consumer.key);
        core.give_back(&slot.consumer);
    }
}
