//! The threads that commit, keep the timer, and save cursors.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use crate::Clock;
use crate::core::{Core, LaneJob};

use super::Counted;

/// Those that run.
#[derive(Debug)]
pub(super) struct Threads {
    handles: Vec<JoinHandle<()>>,
    lanes_count: usize,
    stop: Arc<AtomicBool>,
}

impl Threads {
    /// Starts them.
    ///
    /// # Errors
    /// One could not be started; the others are stopped.
    pub(super) fn start(
        core: &Arc<Core>,
        clock: &Arc<dyn Clock>,
        counted: &Arc<Counted>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads =
            Self { handles: Vec::new(), lanes_count: core.options().lanes_count, stop: Arc::clone(&stop) };
        let started = threads.spawn_all(core, clock, counted, &stop);
        if let Err(error) = started {
            threads.stop(core);
            threads.join();
            return Err(error);
        }
        Ok(threads)
    }

    fn spawn_all(
        &mut self,
        core: &Arc<Core>,
        clock: &Arc<dyn Clock>,
        counted: &Arc<Counted>,
        stop: &Arc<AtomicBool>,
    ) -> io::Result<()> {
        for _ in 0..self.lanes_count {
            let (core, clock) = (Arc::clone(core), Arc::clone(clock));
            self.spawn("pq-lane", move || super::lane(&core, &*clock))?;
        }
        let (of, by, told, count) =
            (Arc::clone(core), Arc::clone(clock), Arc::clone(stop), Arc::clone(counted));
        self.spawn("pq-timer", move || timer(&of, &*by, &told, &count))?;
        let (of, by, told) = (Arc::clone(core), Arc::clone(clock), Arc::clone(stop));
        self.spawn("pq-saver", move || saver(&of, &*by, &told))
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.handles.push(Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }

    /// Tells them to end. They finish what they are at.
    pub(super) fn stop(&self, core: &Core) {
        self.stop.store(true, Ordering::SeqCst);
        core.hub.timer.wake.wake();
        core.hub.saver.wake.wake();
        (0..self.lanes_count).for_each(|_| core.hub.push_lane(LaneJob::Stop));
    }

    /// Waits for their end.
    pub(super) fn join(&mut self) {
        for handle in self.handles.drain(..) {
            // The last handle of a queue may be dropped by one of them.
            if handle.thread().id() != std::thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

/// Sleeps until something is due by time.
fn timer(core: &Core, clock: &dyn Clock, stop: &AtomicBool, counted: &Counted) {
    let alarm = &core.hub.timer;
    while !stop.load(Ordering::SeqCst) {
        let now = clock.now();
        match alarm.due() {
            Some(due) if due <= now => guarded("timer", || core.run_timers(now)),
            due => {
                clock.sleep_until(due, &alarm.wake);
                counted.timer_wakes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Sleeps until a tick is due.
fn saver(core: &Core, clock: &dyn Clock, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        let now = clock.both();
        match core.tick_due(now.instant) {
            Some(due) if due <= now.instant => {
                // A failure is logged, told to those who wait, and tried again by itself.
                guarded("tick", || core.tick(now));
            }
            due => clock.sleep_until(due, &core.hub.saver.wake),
        }
    }
}

/// A panic in one piece of work must not end the thread that does everybody's.
pub(super) fn guarded<T>(what: &str, work: impl FnOnce() -> T) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!(what, "panicked");
    }
}
