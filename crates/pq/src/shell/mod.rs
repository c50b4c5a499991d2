//! The shell: the threads and the clock over the core. It decides nothing; it calls the core when there is something to do, and sleeps
//! otherwise. No thread polls: an idle queue uses no CPU.
//!
//! ```text
//!   lanes    n threads   wait for the dirty set (crossbeam-channel), commit
//!   timer    1 thread    sleeps until the next commit, back-off or poll is due
//!   saver    1 thread    sleeps until the next tick is due: cursors, floors, unlinking
//!   readers  <= n        started as needed: file reads for async consumers and sinks
//!   pool     n tasks     on tokio: lease → read (on a reader) → sink → ack
//! ```

#[cfg(feature = "tokio")]
mod in_hand;
mod io;
#[cfg(feature = "tokio")]
mod pool;
mod threads;
#[cfg(feature = "tokio")]
mod worker;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wal_format::{Instant, Now};

use crate::clock::{ClockWake, locked};
use crate::core::{Core, LaneJob};
use crate::{Clock, CloseError, CloseReport, OpenError};

pub(crate) use io::Readers;
#[cfg(feature = "tokio")]
pub(crate) use pool::{Pool, SinkSlot};

/// How long the last handle's drop waits for what `close` would have done.
const DROP_DEADLINE: Duration = Duration::from_secs(10);

/// How long the disk gets at least, once the sinks are parked.
const DISK_GRACE: Duration = Duration::from_secs(1);

/// An open queue: the core and what drives it. All handles share it; the last one dropped closes it.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) core: Arc<Core>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) readers: Arc<Readers>,
    #[cfg(feature = "tokio")]
    pub(crate) pool: Pool,
    threads: Mutex<threads::Threads>,
    pub(crate) counted: Arc<Counted>,
    /// How the first close ended; held while it is on, so that a second one waits and answers the same.
    ended: Mutex<Option<Result<CloseReport, CloseError>>>,
}

/// What the shell counts.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) timer_wakes: AtomicU64,
    pub(crate) turns: AtomicU64,
}

impl Shell {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread could not be started; those that were are stopped.
    pub(crate) fn start(core: Core) -> Result<Arc<Self>, OpenError> {
        let core = Arc::new(core);
        let clock = Arc::clone(&core.options().clock);
        let counted = Arc::new(Counted::default());
        let readers = Arc::new(Readers::start(core.options().readers_count).map_err(OpenError::Thread)?);
        let threads = threads::Threads::start(&core, &clock, &counted).map_err(OpenError::Thread)?;
        Ok(Arc::new(Self {
            #[cfg(feature = "tokio")]
            pool: Pool::new(core.options()),
            core,
            clock,
            readers,
            threads: Mutex::new(threads),
            counted,
            ended: Mutex::new(None),
        }))
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.both()
    }

    /// Blocks until `done`, `due`, or a wake-up that `register` arranged for; says whether it was done.
    pub(crate) fn block_until(
        &self,
        due: Option<Instant>,
        register: impl Fn(&std::task::Waker),
        done: impl Fn() -> bool,
    ) -> bool {
        let wake = ClockWake::new();
        let waker = std::task::Waker::from(Arc::clone(&wake));
        loop {
            register(&waker);
            if done() {
                return true;
            }
            if due.is_some_and(|due| due <= self.clock.now()) {
                return false;
            }
            self.clock.sleep_until(due, &wake);
        }
    }

    /// Parks the readers, commits, saves, records the clean stop, ends the threads; a second time it answers what the first did.
    ///
    /// # Errors
    /// What was left undone, and why.
    pub(crate) fn close(&self, deadline: Duration) -> Result<CloseReport, CloseError> {
        let mut ended = locked(&self.ended);
        if let Some(ended) = &*ended {
            return ended.clone();
        }
        let result = self.close_once(deadline);
        *ended = Some(result.clone());
        result
    }

    fn close_once(&self, deadline: Duration) -> Result<CloseReport, CloseError> {
        let until = self.clock.now().saturating_add(deadline);
        self.core.begin_close();
        let mut left = self.park(until);
        // Sinks that used up the time must not cost the records their commit.
        let until = until.max(self.clock.now().saturating_add(DISK_GRACE));
        // On a thread of its own: a device that hangs must not hold the caller beyond its deadline.
        let (done, result) = crossbeam_channel::bounded(1);
        let (core, clock) = (Arc::clone(&self.core), Arc::clone(&self.clock));
        let ended = ClockWake::new();
        let tell = Arc::clone(&ended);
        let closer = std::thread::Builder::new().name("pq-close".to_owned()).spawn(move || {
            let _ = done.send(core.close(|| clock.both()));
            tell.wake();
        });
        let result = match closer {
            Ok(_) => self.wait_for(&result, until, &ended),
            Err(_) => Some(self.core.close(|| self.clock.both())),
        };
        if result.is_some() {
            locked(&self.threads).join();
        } else {
            left.push("the disk did not answer".to_owned());
        }
        #[cfg(feature = "tokio")]
        self.pool.forget(|_| true);
        match result {
            Some(result) if left.is_empty() => result,
            _ => Err(CloseError::Deadline { left: left.join(", ") }),
        }
    }

    fn wait_for<T>(
        &self,
        result: &crossbeam_channel::Receiver<T>,
        until: Instant,
        ended: &Arc<ClockWake>,
    ) -> Option<T> {
        loop {
            if let Ok(result) = result.try_recv() {
                return Some(result);
            }
            if self.clock.now() >= until {
                return None;
            }
            self.clock.sleep_until(Some(until), ended);
        }
    }

    /// Lets the sinks finish their current delivery; names what is still at it after that.
    fn park(&self, until: Instant) -> Vec<String> {
        let mut left = Vec::new();
        #[cfg(feature = "tokio")]
        {
            self.pool.stop(&self.core);
            let bell = &self.core.hub.ended;
            if !self.block_until(Some(until), |waker| bell.register(waker), || self.pool.is_stopped()) {
                left.push("a sink did not finish its delivery".to_owned());
                self.pool.abort();
            }
        }
        self.readers.stop();
        locked(&self.threads).stop(&self.core);
        let _ = until;
        left.dedup();
        left
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let is_open = locked(&self.ended).is_none();
        if is_open && let Err(error) = self.close(DROP_DEADLINE) {
            tracing::warn!(%error, "the last handle of a queue was dropped without close");
        }
    }
}

/// One lane's turns, until it is told to stop.
fn lane(core: &Core, clock: &dyn Clock) {
    while let Ok(LaneJob::Stream(id)) = core.hub.lane_jobs().recv() {
        threads::guarded("commit", || core.lane_turn(id, clock.both()));
    }
}
