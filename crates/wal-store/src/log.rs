//! The log of one stream: appends, commits, ends. Clone-cheap.

use std::sync::{Arc, Mutex};

use wal_format::{Instant, Marks, Now, Seq, Tag};

use crate::{
    AppendError, CommitError, Counters, LogError, OwnedTag, Recovery, SegmentList, Settings, StoreContext, Ticket,
};

/// One record to append: a payload in one or several slices, and four bits of the caller's.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    payload: Payload<'a>,
    marks: Marks,
}

#[derive(Debug, Clone, Copy)]
enum Payload<'a> {
    One(&'a [u8]),
    Many(&'a [&'a [u8]]),
}

impl<'a> Record<'a> {
    /// A record of one slice.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload: Payload::One(payload), marks: Marks::NONE }
    }

    /// A record whose payload is these slices, one behind the other.
    pub fn from_slices(slices: &'a [&'a [u8]]) -> Self {
        Self { payload: Payload::Many(slices), marks: Marks::NONE }
    }

    /// The same record with the caller's marks.
    pub fn with_marks(self, marks: Marks) -> Self {
        Self { marks, ..self }
    }
}

impl<'a> From<&'a [u8]> for Record<'a> {
    fn from(payload: &'a [u8]) -> Self {
        Self::new(payload)
    }
}

/// What a commit is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Write what is open; sync as the settings say.
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

/// How far a log is, in exclusive seqs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Accepted.
    pub appended: Seq,
    /// Given to the operating system.
    pub written: Seq,
    /// On the medium.
    pub durable: Seq,
    /// Readers may see up to here.
    pub readable: Seq,
}

/// One stream's log. Clones share it.
#[derive(Clone)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

/// What all clones of a log share.
pub(crate) struct Shared {
    pub(crate) ctx: StoreContext,
    pub(crate) settings: Settings,
    /// Short lock: what segments there are. Never held over a call to the disk.
    pub(crate) segments: Mutex<SegmentList>,
}

impl Log {
    /// Opens a log for appending behind what recovery found. Creates no file: the first commit does.
    ///
    /// # Errors
    /// A setting cannot be.
    pub fn open(ctx: StoreContext, recovery: &Recovery, settings: Settings) -> Result<Self, LogError> {
        settings.validate()?;
        let segments = Mutex::new(recovery.segments.clone());
        Ok(Self { shared: Arc::new(Shared { ctx, settings, segments }) })
    }

    /// Takes a record. Never calls the device, never waits on a sync.
    ///
    /// # Errors
    /// The payload was not taken; [`AppendError::is_retryable`] says whether it may be later.
    pub fn append<'a>(&self, record: impl Into<Record<'a>>, now: Now) -> Result<Ticket, AppendError> {
        let _ = (record.into(), now);
        todo!()
    }

    /// Takes all records or none: one batch, all or nothing after a crash and in visibility, with an optional tag.
    ///
    /// # Errors
    /// As [`Log::append`]; too much for one batch is refused with both numbers.
    pub fn append_batch(&self, records: &[Record<'_>], tag: Option<Tag<'_>>, now: Now) -> Result<Ticket, AppendError> {
        let _ = (records, tag, now);
        todo!()
    }

    /// Writes what is open, syncing as `want` and the settings say. Blocks while another thread commits.
    ///
    /// # Errors
    /// What is durable: [`Log::ends`]. A retryable error leaves the records buffered.
    pub fn commit(&self, now: Now, want: Want) -> Result<Progress, CommitError> {
        let _ = (now, want);
        todo!()
    }

    /// As [`Log::commit`], or `None` at once when another thread commits.
    pub fn try_commit(&self, now: Now, want: Want) -> Option<Result<Progress, CommitError>> {
        let _ = (now, want);
        todo!()
    }

    /// When a commit is due: commit interval, sync interval, segment age, retry, probe. `None`: nothing is.
    pub fn due(&self) -> Option<Instant> {
        todo!()
    }

    /// Closes the open segment, after committing and syncing what it holds.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn rotate(&self, now: Now) -> Result<Progress, CommitError> {
        let _ = now;
        todo!()
    }

    /// Commits and syncs everything, then refuses appends. Calling it again tries again what failed.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn close(&self, now: Now) -> Result<Progress, CommitError> {
        let _ = now;
        todo!()
    }

    /// How far the log is.
    pub fn ends(&self) -> Ends {
        todo!()
    }

    /// What was counted since open.
    pub fn counters(&self) -> Counters {
        todo!()
    }

    /// The last durable tag of every producer.
    pub fn last_tags(&self) -> Vec<OwnedTag> {
        todo!()
    }

    /// The segments there are, oldest first.
    pub fn segments(&self) -> SegmentList {
        todo!()
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The context it was opened with.
    pub fn context(&self) -> &StoreContext {
        &self.shared.ctx
    }

    /// The last seq accepted, if any.
    pub fn last_seq(&self) -> Option<Seq> {
        todo!()
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("ctx", &self.shared.ctx).finish_non_exhaustive()
    }
}
