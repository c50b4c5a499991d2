//! Readers: threads that read files for those who must not block. Started as needed, up to a limit; never a runtime's.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

use crossbeam_channel::{Receiver, Sender};

/// A piece of work.
type Job = Box<dyn FnOnce() + Send>;

/// The threads.
#[derive(Debug)]
pub(crate) struct Readers {
    shared: Arc<Shared>,
    max: usize,
}

#[derive(Debug)]
struct Shared {
    sender: Sender<Option<Job>>,
    jobs: Receiver<Option<Job>>,
    idle: AtomicUsize,
    started: AtomicUsize,
    stopped: AtomicBool,
}

impl Readers {
    /// Starts the first one; at most `max` in all.
    ///
    /// # Errors
    /// It could not be started.
    pub(crate) fn start(max: usize) -> io::Result<Self> {
        let (sender, jobs) = crossbeam_channel::unbounded();
        let shared =
            Arc::new(Shared { sender, jobs, idle: 0.into(), started: 0.into(), stopped: false.into() });
        let readers = Self { shared, max: max.max(1) };
        readers.add()?;
        Ok(readers)
    }

    /// Has `job` done by one of them; once they are stopped it is dropped instead.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        // The receiver lives in `shared`.
        let _ = self.shared.sender.send(Some(Box::new(job)));
        if self.shared.stopped.load(Ordering::SeqCst) {
            self.shared.drop_jobs();
            return;
        }
        if self.shared.idle.load(Ordering::SeqCst) == 0
            && self.shared.started.load(Ordering::SeqCst) < self.max
        {
            // Without another thread the ones there are serve it a little later.
            let _ = self.add();
        }
    }

    /// They end once what was submitted is done.
    pub(crate) fn stop(&self) {
        if self.shared.stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        for _ in 0..self.shared.started.load(Ordering::SeqCst) {
            let _ = self.shared.sender.send(None);
        }
    }

    fn add(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        Builder::new().name("pq-reader".to_owned()).spawn(move || work(&shared))?;
        self.shared.started.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Nobody will do them: those who wait for one learn of it. What tells other threads to stop stays.
    fn drop_jobs(&self) {
        let mut stops = 0;
        while let Ok(job) = self.jobs.try_recv() {
            stops += usize::from(job.is_none());
        }
        (0..stops).for_each(|_| drop(self.sender.send(None)));
    }
}

fn work(shared: &Shared) {
    loop {
        shared.idle.fetch_add(1, Ordering::SeqCst);
        let job = shared.jobs.recv();
        shared.idle.fetch_sub(1, Ordering::SeqCst);
        match job {
            Ok(Some(job)) => super::threads::guarded("read", job),
            // Whoever submits from now on sees that they are stopped.
            Ok(None) | Err(_) => return shared.drop_jobs(),
        }
    }
}
