//! The queue: a directory of streams, with one owner.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use disk::{Disk, FdBudget, OsDisk};

use crate::core::{Core, Seed};
use crate::options::check_process_limit;
use crate::shell::Shell;
#[cfg(feature = "tokio")]
use crate::{AttachError, Attached, Sink, SinkSettings};
use crate::{
    CloseError, CloseReport, FdStats, Loss, OpenError, OpenReport, Options, QueueId, QueueStats, SaveError,
    Stream, StreamError, StreamSettings,
};

/// An open queue. Cheap to clone. Call [`Queue::close`] to learn how it ended; the last handle dropped without it closes too, and
/// blocks for that.
#[derive(Debug, Clone)]
pub struct Queue {
    shell: Arc<Shell>,
}

impl Queue {
    /// Opens the queue in `dir`, creates it if there is none, recovers what the last owner left.
    ///
    /// # Errors
    /// [`OpenError::InUse`] at once if somebody owns it. [`OpenError::Options`] also if the process may not open as many files as the
    /// budget needs. One damaged stream is no error: see [`Queue::recovery`].
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        options.validate()?;
        check_process_limit(options.fds_max)?;
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::create(dir.as_ref())?);
        #[cfg(feature = "crash-points")]
        let disk = disk::KillAt::from_env(disk)
            .map_err(|error| crate::OptionsError { field: "PQ_CRASH", reason: error.to_string() })?;
        Self::open_on(disk, options)
    }

    /// [`Queue::open`] on a disk of the caller's, a simulated one for example.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Self, OpenError> {
        let now = options.clock.both();
        let core = Core::open(disk, options, Seed::Random, now)?;
        Ok(Self { shell: Shell::start(core)? })
    }

    /// What opening found.
    #[must_use]
    pub fn recovery(&self) -> &OpenReport {
        self.shell.core.report()
    }

    /// The queue's id.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.shell.core.id()
    }

    /// The stream of that name; created, durably, with the queue's settings if there is none.
    ///
    /// # Errors
    /// The name, the disk, or the stream is paused.
    pub fn stream(&self, name: &str) -> Result<Stream, StreamError> {
        let state = self.shell.core.stream(name, None, self.shell.now())?;
        Ok(Stream { shell: Arc::clone(&self.shell), state })
    }

    /// The stream of that name with these settings, which are kept with it. They apply at once if the stream is new or nobody uses it
    /// yet in this run, else from the next open on.
    ///
    /// # Errors
    /// As for `stream`, and a setting that cannot be.
    pub fn stream_with(&self, name: &str, settings: StreamSettings) -> Result<Stream, StreamError> {
        let state = self.shell.core.stream(name, Some(&settings), self.shell.now())?;
        Ok(Stream { shell: Arc::clone(&self.shell), state })
    }

    /// Deletes a stream with its records and cursors. A stream of the same name is a new one.
    ///
    /// # Errors
    /// `NotFound`, or the disk; once the tombstone is durable the rest is done at the next open at the latest.
    pub fn delete_stream(&self, name: &str) -> Result<(), StreamError> {
        let deleted = self.shell.core.delete_stream(name, self.shell.now());
        #[cfg(feature = "tokio")]
        self.shell.pool.forget(|consumer| consumer.is_removed());
        deleted
    }

    /// Names of all streams, in order.
    #[must_use]
    pub fn streams(&self) -> Vec<String> {
        self.shell.core.names()
    }

    /// Streams that could not be recovered, with the reason; asking for one by [`Queue::stream`] tries again.
    #[must_use]
    pub fn paused(&self) -> Vec<(String, String)> {
        self.shell.core.paused()
    }

    /// Every loss ever found and remembered, by stream, once each for ever: what opening found missing, and what a reader of this queue
    /// met. What a reader meets is remembered with the next save of cursors, before the cursors that pass it. Neighbouring ranges of one
    /// reason are one; of more than 4,096 ranges in one stream the oldest are only counted. Blocks while a save is on.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        self.shell.core.losses()
    }

    /// Attaches a sink to a stream as the consumer of that name; the reader pool drives it from now on.
    ///
    /// # Errors
    /// [`StreamError::InUse`] if the consumer is open.
    #[cfg(feature = "tokio")]
    pub fn attach(
        &self,
        stream: &Stream,
        consumer: &str,
        sink: impl Sink,
        settings: SinkSettings,
    ) -> Result<Attached, AttachError> {
        settings.validate()?;
        let (core, now) = (&self.shell.core, self.shell.now());
        let state = core.register_consumer(&stream.state, consumer, settings.start, now)?;
        let slot = self.shell.pool.add(&self.shell, &state, Box::new(sink), settings);
        match slot {
            Ok(slot) => {
                core.attach(&stream.state, &state, scheduler::Mode::Pool, now.instant);
                Ok(Attached::new(stream.clone(), slot))
            }
            Err(error) => {
                state.give_back();
                Err(AttachError::Runtime(error))
            }
        }
    }

    /// Counters and gauges of everything.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let core = &self.shell.core;
        let counted = &self.shell.counted;
        QueueStats {
            streams: core.all_streams().iter().map(|stream| stream.stats()).collect(),
            fds: FdStats {
                used: core.fds().used(),
                peak: core.fds().peak(),
                limit: core.fds().limit().total,
            },
            buffer_bytes: core.room().used() as u64,
            buffer_bytes_max: core.room().limit() as u64,
            bytes_used: core.room().space().used(),
            bytes_max: core.room().space().limit(),
            cursor_saves_count: core.saves_count(),
            turns_count: counted.turns.load(Ordering::Relaxed),
            timer_wakes_count: counted.timer_wakes.load(Ordering::Relaxed),
        }
    }

    /// Grows whenever records of any stream became readable, or a cursor moved. Costs next to nothing: whoever shows [`Queue::stats`]
    /// regularly can look here first whether there is anything new.
    #[must_use]
    pub fn moves_count(&self) -> u64 {
        self.shell.core.hub.moves_count()
    }

    /// The descriptor budget; sinks take their sockets from it too.
    #[must_use]
    pub fn fds(&self) -> Arc<FdBudget> {
        Arc::clone(self.shell.core.fds())
    }

    /// Saves cursors now, and retires what they allow. Blocks.
    ///
    /// # Errors
    /// The disk refused; cursors stay acknowledged in memory.
    pub fn save_cursors(&self) -> Result<(), SaveError> {
        self.shell.core.tick(self.shell.now()).map(drop)
    }

    /// Commits what is open, parks readers after their current delivery, saves cursors, writes the clean-stop record. Blocks until
    /// `deadline`, or a second longer if sinks used it up and the disk has not answered yet. Afterwards nothing is taken, delivered or saved by any handle.
    /// A second close, of any handle, changes nothing: it waits for the first and answers the same.
    ///
    /// # Errors
    /// What was left undone; nothing durable is lost by it.
    pub fn close(&self, deadline: Duration) -> Result<CloseReport, CloseError> {
        self.shell.close(deadline)
    }
}
