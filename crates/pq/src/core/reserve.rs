//! The reserve: a file that takes space for nothing, given back when the disk is full, so that cursors, floors and deletion go on and a
//! full queue can drain.
//!
//! ```text
//!   kept ──a save finds no space──> records held back, file unlinked, save again ──> spent
//!    ^                                                                                 │ each second, and with each tick
//!    └────────────── made again; records are written again <───────────────────────────┘
//! ```
//!
//! It is not what saves usually live on: each journal takes space ahead for its saves and for its next generation. It is for the first
//! save of a run, for the catalog, and for journals that grew while the disk was full.
//!
//! Invariants: while it is spent no record is written, so the space it gave back is not taken by the records that filled the disk; it holds
//! nothing, so whatever a crash leaves of it is as good as none.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use disk::{Disk, DiskError, EntryKind, ErrorClass};
use offsets::journal::JournalError;
use wal_format::Instant;

use crate::clock::locked;

use super::Core;

/// Its name in the queue's directory.
pub(crate) const RESERVE: &str = "reserve";
/// How often it is tried to make it again.
const RETRY: Duration = Duration::from_secs(1);
/// The same if the disk refuses for another reason than its space.
const RETRY_REFUSED: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(super) struct Reserve {
    disk: Arc<dyn Disk>,
    bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    /// To be made again, and when to try.
    Missing(Instant),
}

impl Reserve {
    /// As the last run left it: it may be needed before anything else is done.
    pub(super) fn find(disk: Arc<dyn Disk>, bytes: u64, now: Instant) -> Self {
        let is_kept = bytes == 0
            || disk
                .stat(Path::new(RESERVE))
                .is_ok_and(|stat| stat.kind == EntryKind::File && stat.len == bytes);
        Self { disk, bytes, state: Mutex::new(if is_kept { State::Kept } else { State::Missing(now) }) }
    }

    /// When it is to be made again.
    pub(super) fn due(&self) -> Option<Instant> {
        match *locked(&self.state) {
            State::Kept => None,
            State::Missing(at) => Some(at),
        }
    }

    /// Whether there is one.
    fn is_kept(&self) -> bool {
        self.bytes > 0 && *locked(&self.state) == State::Kept
    }

    /// Gives its space back; `false`: there was none to give.
    fn spend(&self, now: Instant) -> bool {
        let mut state = locked(&self.state);
        if self.bytes == 0 || *state != State::Kept || self.disk.remove_file(Path::new(RESERVE)).is_err() {
            return false;
        }
        // With the end of the tick that did this: what it unlinks may be enough.
        *state = State::Missing(now);
        true
    }

    /// A save failed: whatever space there is, is for its next try.
    pub(super) fn postpone(&self, now: Instant) {
        let mut state = locked(&self.state);
        if let State::Missing(at) = *state {
            *state = State::Missing(at.max(now.saturating_add(RETRY)));
        }
    }

    /// Makes it if it is missing; whether there is one now, or why not.
    fn make(&self, now: Instant) -> Result<(), DiskError> {
        let mut state = locked(&self.state);
        if *state == State::Kept {
            return Ok(());
        }
        let made = self.create();
        *state = match &made {
            Ok(()) => State::Kept,
            Err(error) if error.class() == ErrorClass::NoSpace => State::Missing(now.saturating_add(RETRY)),
            Err(_) => State::Missing(now.saturating_add(RETRY_REFUSED)),
        };
        made
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
            Err(error) if error.is_for_space() && self.spend_reserve(now) => save(),
            saved => saved,
        }
    }

    fn spend_reserve(&self, now: Instant) -> bool {
        if !self.reserve.is_kept() {
            return false;
        }
        // First: who writes records would be quicker.
        self.room.space().hold_writes();
        if !self.reserve.spend(now) {
            self.room.resume_writes();
            return false;
        }
        tracing::warn!(
            "the disk is full: records wait, and the reserve was given back for cursors and deletion"
        );
        self.hub.saver.wake.wake();
        true
    }

    /// Makes the reserve again if it is missing; until then records wait, if it is for want of space.
    pub(super) fn keep_reserve(&self, now: Instant) {
        if self.reserve.due().is_none_or(|due| due > now) {
            return;
        }
        match self.reserve.make(now) {
            Err(error) if error.class() == ErrorClass::NoSpace => {
                if self.quiet.may_speak(now) {
                    tracing::warn!(%error, "the disk is full");
                }
                self.room.space().hold_writes();
            }
            // Without a reserve for another reason records are no worse off than before.
            _ => self.room.resume_writes(),
        }
    }
}

/// An error that may be one of the disk's.
pub(super) trait OfDisk {
    /// The disk's error, if it is one.
    fn of_disk(&self) -> Option<&DiskError>;

    /// Whether it is for want of space.
    fn is_for_space(&self) -> bool {
        self.of_disk().is_some_and(|error| error.class() == ErrorClass::NoSpace)
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
