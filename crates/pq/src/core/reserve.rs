//! The reserve: a file that takes space for nothing, given back when the disk is full, so that cursors, floors and deletion go on and a
//! full queue can drain.
//!
//! ```text
//!   kept ──a save finds no space──> records held back, file unlinked, save again ──> spent
//!    ^                                                                                 │ each second, with each tick, and by commits
//!    └────────────── made again; records are written again <───────────────────────────┘
//! ```
//!
//! It is not what saves usually live on: each journal takes space ahead for its saves and for its next generation. It is for the first
//! save of a run, for the catalog, and for journals that grew while the disk was full.
//!
//! A commit that finds records held back looks whether they need be: a shortage that is over costs nobody a wait for a timer. At once for
//! the first time, then less and less often, so that a full disk is not asked by each commit.
//!
//! Invariants: while it is spent no record is written, so the space it gave back is not taken by the records that filled the disk; it holds
//! nothing, so whatever a crash leaves of it is as good as none.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use disk::{Disk, DiskError, EntryKind, ErrorClass};
use offsets::journal::JournalError;
use wal_format::Instant;
use wal_store::{Keeper, Room};

use crate::clock::locked;

use super::Core;
use super::quiet::Quiet;

/// Its name in the queue's directory.
pub(crate) const RESERVE: &str = "reserve";
/// How often it is tried to make it again.
const RETRY: Duration = Duration::from_secs(1);
/// Commits try it again after this, twice as long after each refusal, up to [`RETRY`]; the first two at once.
const RETRY_BY_COMMIT: Duration = Duration::from_millis(1);
/// The same if the disk refuses for another reason than its space.
const RETRY_REFUSED: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(super) struct Reserve {
    disk: Arc<dyn Disk>,
    /// Whose writes it holds back.
    room: Arc<Room>,
    bytes: u64,
    /// A long lock, held while the file is made or unlinked and what follows for the writes is said: were it let go in between, records
    /// would be let through that a save just had held back. Nobody who appends takes it; a commit does only while records are held back.
    state: Mutex<State>,
    quiet: Quiet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    /// Given back for a save that is about to be tried again: nobody makes it, or it would take that save's space.
    Given,
    Missing(Missing),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Missing {
    /// When it is made again by time.
    due: Instant,
    /// From when on a commit may try.
    commits_from: Instant,
    /// Refusals in a row.
    refusals: u32,
}

/// Who tries to make it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Time,
    Commit,
}

impl Missing {
    fn since(now: Instant) -> Self {
        Self { due: now, commits_from: now, refusals: 0 }
    }

    /// The disk refused again, whoever asked; what is due by time stays so behind a commit.
    fn refused(self, by: By, now: Instant, retry: Duration) -> Self {
        let wait = match self.refusals {
            0 => Duration::ZERO,
            n => RETRY_BY_COMMIT.saturating_mul(1 << (n - 1).min(10)).min(retry),
        };
        Self {
            due: if by == By::Time { now.saturating_add(retry) } else { self.due },
            commits_from: now.saturating_add(wait),
            refusals: self.refusals.saturating_add(1),
        }
    }
}

impl Reserve {
    /// As the last run left it: it may be needed before anything else is done.
    pub(super) fn find(disk: Arc<dyn Disk>, room: Arc<Room>, bytes: u64, now: Instant) -> Arc<Self> {
        let is_kept = bytes == 0
            || disk
                .stat(Path::new(RESERVE))
                .is_ok_and(|stat| stat.kind == EntryKind::File && stat.len == bytes);
        let state = if is_kept { State::Kept } else { State::Missing(Missing::since(now)) };
        let reserve = Arc::new(Self { disk, room, bytes, state: Mutex::new(state), quiet: Quiet::default() });
        let keeper: Arc<dyn Keeper> = Arc::<Self>::clone(&reserve);
        reserve.room.space().set_keeper(Arc::downgrade(&keeper));
        reserve
    }

    /// When it is to be made again.
    pub(super) fn due(&self) -> Option<Instant> {
        match *locked(&self.state) {
            State::Kept | State::Given => None,
            State::Missing(missing) => Some(missing.due),
        }
    }

    /// Holds records back and gives its space to whoever was refused for this; `false`: there was none to give.
    fn spend(&self, cause: &DiskError) -> bool {
        let mut state = locked(&self.state);
        if self.bytes == 0 || *state != State::Kept {
            return false;
        }
        // First: who writes records would be quicker.
        self.room.space().hold_writes(cause.clone());
        if self.disk.remove_file(Path::new(RESERVE)).is_err() {
            self.room.resume_writes();
            return false;
        }
        *state = State::Given;
        true
    }

    /// The save that it was given back for was tried.
    fn spent(&self, now: Instant) {
        // Due with the end of the tick that did this: what it unlinks may be enough.
        *locked(&self.state) = State::Missing(Missing::since(now));
    }

    /// A save failed: whatever space there is, is for its next try.
    pub(super) fn postpone(&self, now: Instant) {
        let mut state = locked(&self.state);
        if let State::Missing(missing) = &mut *state {
            missing.due = missing.due.max(now.saturating_add(RETRY));
            missing.commits_from = missing.due;
        }
    }

    /// Makes it if it is missing and that is due; until there is one records wait, if it is for want of space.
    pub(super) fn keep(&self, now: Instant) {
        self.make(By::Time, now);
    }

    fn make(&self, by: By, now: Instant) {
        let mut state = locked(&self.state);
        let State::Missing(missing) = *state else { return };
        let from = match by {
            By::Time => missing.due,
            By::Commit => missing.commits_from,
        };
        if from > now {
            return;
        }
        match self.create() {
            Err(error) if error.class() == ErrorClass::NoSpace => {
                if self.quiet.may_speak(now) {
                    tracing::warn!(%error, "the disk is full");
                }
                *state = State::Missing(missing.refused(by, now, RETRY));
                self.room.space().hold_writes(error);
            }
            made => {
                *state = match made {
                    Ok(()) => State::Kept,
                    Err(_) => State::Missing(missing.refused(by, now, RETRY_REFUSED)),
                };
                // Without a reserve for another reason records are no worse off than before.
                self.room.resume_writes();
            }
        }
    }

    fn create(&self) -> Result<(), DiskError> {
        let path = Path::new(RESERVE);
        match self.disk.stat(path) {
            // Of another size, or what a crash left of it.
            Ok(_) => self.disk.remove_file(path)?,
            Err(error) if error.class() == ErrorClass::NotFound => {}
            Err(error) => return Err(error),
        }
        let file = self.disk.create(path)?;
        let taken = match file.allocate(0..self.bytes) {
            // Without it a file that only says it is long would take nothing: better none.
            Err(error) if error.class() == ErrorClass::Unsupported => fill(&*file, self.bytes),
            taken => taken,
        };
        taken.inspect_err(|_| {
            let _ = self.disk.remove_file(path);
        })
    }
}

fn fill(file: &dyn disk::File, bytes: u64) -> Result<(), DiskError> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = 0;
    while at < bytes {
        let want = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&[std::io::IoSlice::new(ZEROS.get(..want).unwrap_or(&ZEROS))], at)?;
        at += want as u64;
    }
    Ok(())
}

impl Core {
    /// A save; on a full disk once more, with what the reserve gives back.
    pub(super) fn saving<T, E: OfDisk>(
        &self,
        now: Instant,
        mut save: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        match save() {
            Err(error) if error.want_of_space().is_some_and(|cause| self.reserve.spend(cause)) => {
                tracing::warn!(
                    "the disk is full: records wait, and the reserve was given back for cursors and deletion"
                );
                let saved = save();
                self.reserve.spent(now);
                self.hub.saver.wake.wake();
                saved
            }
            saved => saved,
        }
    }
}

impl Keeper for Reserve {
    fn look_again(&self, now: Instant) {
        self.make(By::Commit, now);
    }
}

/// An error that may be one of the disk's.
pub(super) trait OfDisk {
    /// The disk's error, if it is one.
    fn of_disk(&self) -> Option<&DiskError>;

    /// The disk's error, if it is for want of space.
    fn want_of_space(&self) -> Option<&DiskError> {
        self.of_disk().filter(|error| error.class() == ErrorClass::NoSpace)
    }
}

impl OfDisk for JournalError {
    fn of_disk(&self) -> Option<&DiskError> {
        self.disk()
    }
}

impl OfDisk for offsets::SaveError {
    fn of_disk(&self) -> Option<&DiskError> {
        match self {
            Self::Journal(error) => error.disk(),
            _ => None,
        }
    }
}
