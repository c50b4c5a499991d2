//! The log of one stream: appends, commits, ends. Clones share it.
//!
//! ```text
//!   append ──► tail (short lock) ──► Ticket          never the device
//!   commit, wait, rotate, close ──► gate (long) ──► committer (commit.rs) ──► machine (machine.rs)
//! ```
//! Invariant: only what is called "commit", "wait", "rotate", "close" or "blocking" may wait for the device.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use wal_format::{Instant, Now, Tag};

use crate::machine::Ask;
use crate::record::Record;
use crate::shared::Shared;
use crate::sync::lock;
use crate::tail::TailState;
use crate::{
    AppendError, CommitError, Counters, DurableEnd, Ends, Limits, LogError, OwnedTag, Pressure, Recovery,
    SegmentList, Settings, SettingsError, StoreContext, Ticket,
};

/// What a commit is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Write what is open; sync as the settings say, or as somebody waits for.
    Batch,
    /// Write what is open, and make everything written durable.
    Durable,
}

/// What a commit reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The ends after it.
    pub ends: Ends,
    /// When it is worth calling again at the latest; `None`: after the next append.
    pub due: Option<Instant>,
}

/// What an append waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Memory.
    Room,
    /// The disk.
    Space,
}

/// One stream's log. Clones share it; dropping the last one commits what is open, as far as the disk allows.
#[derive(Clone)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

impl Log {
    /// Opens a log for appending behind what recovery found. Creates no file: the first commit does, and never goes on in
    /// an old one.
    ///
    /// # Errors
    /// A setting cannot be.
    pub fn open(ctx: StoreContext, recovery: &Recovery, settings: Settings) -> Result<Self, LogError> {
        Ok(Self { shared: Shared::open(ctx, recovery, settings)? })
    }

    /// Takes a record. Never calls the device, never waits on a sync.
    ///
    /// # Errors
    /// The payload was not taken; [`AppendError::is_retryable`] says whether it may be later.
    pub fn append<'a>(&self, record: impl Into<Record<'a>>, now: Now) -> Result<Ticket, AppendError> {
        self.shared.append(&record.into(), now)
    }

    /// As [`Log::append`], but without room it commits, or blocks until other streams gave room back; at a byte limit it
    /// blocks until something was unlinked, where the policy is to block or to drop the oldest.
    ///
    /// # Errors
    /// As [`Log::append`], without [`AppendError::Busy`].
    pub fn append_blocking<'a>(
        &self,
        record: impl Into<Record<'a>>,
        now: Now,
    ) -> Result<Ticket, AppendError> {
        self.shared.append_waiting(&record.into(), now)
    }

    /// As [`Log::append_batch`], but blocks at a byte limit like [`Log::append_blocking`]. It does not wait for room in
    /// memory.
    ///
    /// # Errors
    /// As [`Log::append_batch`].
    pub fn append_batch_blocking(
        &self,
        records: &[Record<'_>],
        tag: Option<Tag<'_>>,
        now: Now,
    ) -> Result<Ticket, AppendError> {
        self.shared.append_batch_waiting(records, tag.as_ref(), now)
    }

    /// As [`Log::append`], but pending without room; somebody must commit the streams that hold it. At a byte limit it is
    /// pending where [`Log::append_blocking`] blocks.
    ///
    /// # Errors
    /// As [`Log::append`], without [`AppendError::Busy`].
    pub fn poll_append<'a>(
        &self,
        record: impl Into<Record<'a>>,
        now: Now,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Ticket, AppendError>> {
        let record = record.into();
        let shared = &self.shared;
        let mut stands_in = None;
        loop {
            let lacks = match shared.append(&record, now) {
                Err(AppendError::Busy { .. }) => Lack::Room,
                Err(full) if shared.waits_for_space(&full) => Lack::Space,
                settled => return Poll::Ready(settled),
            };
            // Tried again after the registration, and still in the right line.
            if stands_in.replace(lacks) == Some(lacks) {
                return Poll::Pending;
            }
            match lacks {
                Lack::Room => shared.ctx.room.register_waker(cx.waker()),
                Lack::Space => shared.space().register_waker(cx.waker()),
            }
        }
    }

    /// Takes all records or none: one batch, all or nothing after a crash and in visibility, with an optional tag. The
    /// ticket is for all of them.
    ///
    /// # Errors
    /// As [`Log::append`]; what can never fit into one batch is refused with the numbers.
    pub fn append_batch(
        &self,
        records: &[Record<'_>],
        tag: Option<Tag<'_>>,
        now: Now,
    ) -> Result<Ticket, AppendError> {
        self.shared.append_batch(records, tag.as_ref(), now)
    }

    /// Writes what is open, syncing as `want` and the settings say. Blocks while another thread commits: it never
    /// returns before what was appended before the call is at least written.
    ///
    /// # Errors
    /// What is durable: [`Log::ends`]. A retryable error leaves the records buffered.
    pub fn commit(&self, now: Now, want: Want) -> Result<Progress, CommitError> {
        self.shared.gate.enter();
        self.commit_entered(now, want)
    }

    /// As [`Log::commit`], or `None` at once when another thread commits.
    pub fn try_commit(&self, now: Now, want: Want) -> Option<Result<Progress, CommitError>> {
        self.shared.gate.try_enter().then(|| self.commit_entered(now, want))
    }

    fn commit_entered(&self, now: Now, want: Want) -> Result<Progress, CommitError> {
        let end = self.shared.run_rounds(now, Ask { durable: want == Want::Durable, ..Ask::default() });
        self.shared.outcome_of(end)?;
        Ok(self.progress())
    }

    /// When a commit is due: commit interval, sync interval, segment age, retry, probe. `None`: nothing is.
    pub fn due(&self) -> Option<Instant> {
        let open = {
            let tail = lock(&self.shared.tail);
            let opened = tail.full.front().or((!tail.open.is_empty()).then_some(&tail.open));
            opened.map(|batch| batch.opened.instant.saturating_add(self.shared.settings.commit_interval))
        };
        // What was due when the disk refused waits for the machine's next attempt: else it would be due for ever.
        let troubled_at = self.shared.troubled_at.load(Ordering::Acquire);
        let open = open.filter(|due| troubled_at == u64::MAX || due.nanos() > troubled_at);
        let machine = self.shared.machine_due.load(Ordering::SeqCst);
        let machine = (machine != u64::MAX).then(|| Instant::from_nanos(machine));
        open.into_iter().chain(machine).min()
    }

    /// Commits what is open and closes the segment: the next batch begins another. Does nothing to a log without an open
    /// segment.
    ///
    /// # Errors
    /// As [`Log::commit`]. The request is kept and done by a later commit.
    pub fn rotate(&self, now: Now) -> Result<Progress, CommitError> {
        self.shared.drive(now, Ask { durable: true, rotate: true, ..Ask::default() })?;
        Ok(self.progress())
    }

    /// Refuses appends from now on, commits and syncs everything. Calling it again tries again what failed.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn close(&self, now: Now) -> Result<DurableEnd, CommitError> {
        lock(&self.shared.tail).state = TailState::Closed;
        self.shared.space().wake();
        self.shared.drive(now, Ask { durable: true, release_file: true, ..Ask::default() })?;
        Ok(self.durable_end())
    }

    /// Forgets what is not written, as a kill of the process does: appends are refused, tickets hear `Closed`, and dropping the
    /// last handle commits nothing. Blocks while another thread commits.
    pub fn abandon(&self) {
        self.shared.abandon();
    }

    /// Gives up what is not durable, for a log whose files are about to be deleted: appends are refused, tickets hear what they hear
    /// of records that are given up, and the room those held is free. Blocks while another thread commits.
    pub fn discard(&self) {
        self.shared.discard();
    }

    /// How far the log is.
    pub fn ends(&self) -> Ends {
        self.shared.ends.get()
    }

    /// Where everything durable ends, for a record of it elsewhere.
    pub fn durable_end(&self) -> DurableEnd {
        *lock(&self.shared.durable_end)
    }

    /// Whether records were given up, and nothing behind them is durable yet: the next run must read the medium, and leave seqs out.
    pub fn has_given_up(&self) -> bool {
        self.shared.ends.has_given_up()
    }

    /// What was counted since open.
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }

    /// The last durable tag of every producer.
    pub fn last_tags(&self) -> Vec<OwnedTag> {
        lock(&self.shared.tags).to_tags()
    }

    /// The segments there are, oldest first.
    pub fn segments(&self) -> SegmentList {
        lock(&self.shared.segments).clone()
    }

    /// What it may hold.
    pub fn limits(&self) -> Limits {
        self.shared.meter.limits()
    }

    /// Changes what it may hold, at once. What is over a lower limit stays until it is retired; whoever waits looks again.
    ///
    /// # Errors
    /// The limits cannot be, beside the log's settings; the old ones stay.
    pub fn set_limits(&self, limits: Limits) -> Result<(), SettingsError> {
        self.shared.meter.set_limits(limits, &self.shared.settings, self.shared.space())
    }

    /// Bytes it holds on the disk or is about to: of its segment files, dead ones included, and of what is accepted and
    /// not yet written, with all the overhead that may need.
    pub fn bytes_used(&self) -> u64 {
        self.shared.meter.used()
    }

    /// How short of space it is, and what its policy asks for.
    pub fn space_pressure(&self) -> Pressure {
        self.shared.meter.pressure(self.shared.space())
    }

    /// Its files are gone, or about to be: from now on they do not count against the queue's limit.
    pub fn give_up_space(&self) {
        self.shared.meter.end(self.shared.space());
    }

    /// The settings it was opened with; [`Log::limits`] may differ by now.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The context it was opened with.
    pub fn context(&self) -> &StoreContext {
        &self.shared.ctx
    }

    fn progress(&self) -> Progress {
        Progress { ends: self.ends(), due: self.due() }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("ctx", &self.shared.ctx)
            .field("ends", &self.ends())
            .finish_non_exhaustive()
    }
}
