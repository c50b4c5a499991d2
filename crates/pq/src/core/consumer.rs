//! One registered consumer in memory: its cursor, what it was given, what is saved, what was counted.
//!
//! It knows no file. A cursor moves by acknowledgements (forward) and by seeks (anywhere); the tick saves it, see `tick.rs`.
//!
//! ```text
//!   saved <= cursor <= read         (seqs; in one reading, that is between two seeks)
//! ```
//!
//! Invariants: within a process a cursor never moves back but by seek (I8); an acknowledgement with an older seek number changes
//! nothing; a gap below the cursor is counted once. A cursor may stand below the floor only in front of what a policy dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use offsets::{ConsumerEntry, CursorMove, Direction, NOTE_BYTES_MAX};
use scheduler::{Key, SeekNumber};
use wal_format::{Seq, StreamIdentity};
use wal_store::Position;

use crate::clock::locked;
use crate::waits::Bell;
use crate::{AckError, Delivery, Gap, SaveError};

use super::tally::{Counted, Fate, take_passed};

/// See the module.
#[derive(Debug)]
pub(crate) struct ConsumerState {
    pub(crate) key: Key,
    pub(crate) name: String,
    pub(crate) identity: StreamIdentity,
    attached: AtomicBool,
    removed: AtomicBool,
    progress: Mutex<Progress>,
    /// The durable cursor.
    saved: AtomicU64,
    failure: Mutex<Failure>,
    /// Rung when the cursor was saved, or a save failed.
    pub(crate) saved_bell: Bell,
    /// Rung when the cursor moved.
    pub(crate) moved_bell: Bell,
    pub(crate) counted: Counted,
}

#[derive(Debug)]
struct Progress {
    cursor: Seq,
    /// Where `cursor` stands.
    hint: Option<Position>,
    note: Vec<u8>,
    note_changed: bool,
    /// Everything below was given out.
    read: Seq,
    /// Where a seq that was or will be read stands.
    read_hint: Option<(Seq, Position)>,
    /// Which reading this is; `None`: nobody is attached.
    seek: Option<SeekNumber>,
    /// It is in the list of changed cursors.
    listed: bool,
    /// It was moved by a seek that is not saved yet.
    sought: bool,
    /// Given out, not yet counted.
    gaps: Vec<Gap>,
}

#[derive(Debug, Default)]
struct Failure {
    count: u64,
    last: Option<SaveError>,
}

/// What an acknowledgement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckDone {
    /// Nothing: it was done before, or belongs to an older reading.
    Nothing,
    /// The cursor or the note changed; the tick knows already.
    Changed,
    /// The cursor or the note changed and the tick must be told.
    ChangedFirst,
}

impl ConsumerState {
    /// From its durable entry; a cursor below `least` is lifted to it.
    pub(crate) fn new(entry: &ConsumerEntry, identity: StreamIdentity, least: Seq) -> Arc<Self> {
        let cursor = entry.cursor.max(least);
        let hint = entry.hint.filter(|_| cursor == entry.cursor);
        let hint = hint.map(|h| Position { segment: h.segment, offset: h.offset });
        Arc::new(Self {
            key: Key::new(entry.stream, entry.consumer),
            name: entry.name.clone(),
            identity,
            attached: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            progress: Mutex::new(Progress {
                cursor,
                hint,
                note: entry.note.clone(),
                note_changed: false,
                read: cursor,
                read_hint: hint.map(|h| (cursor, h)),
                seek: None,
                listed: false,
                sought: false,
                gaps: Vec::new(),
            }),
            saved: AtomicU64::new(entry.cursor.get()),
            failure: Mutex::default(),
            saved_bell: Bell::default(),
            moved_bell: Bell::default(),
            counted: Counted::default(),
        })
    }

    /// Takes it exclusively; `false`: somebody has it.
    pub(crate) fn take(&self) -> bool {
        !self.attached.swap(true, Ordering::AcqRel)
    }

    /// Gives it back: what was given out and not acknowledged is given out again.
    pub(crate) fn give_back(&self) {
        let mut progress = locked(&self.progress);
        progress.seek = None;
        progress.read = progress.cursor;
        progress.gaps.clear();
        drop(progress);
        self.attached.store(false, Ordering::Release);
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Acquire)
    }

    /// It is gone for good.
    pub(crate) fn remove(&self) {
        self.removed.store(true, Ordering::Release);
        self.saved_bell.ring();
        self.moved_bell.ring();
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    /// Begins a reading at the cursor.
    pub(crate) fn begin(&self, seek: Option<SeekNumber>) {
        let mut progress = locked(&self.progress);
        progress.seek = seek;
        progress.read = progress.cursor;
        progress.gaps.clear();
    }

    pub(crate) fn cursor(&self) -> Seq {
        locked(&self.progress).cursor
    }

    pub(crate) fn saved(&self) -> Seq {
        Seq::new(self.saved.load(Ordering::Acquire))
    }

    pub(crate) fn note(&self) -> Vec<u8> {
        locked(&self.progress).note.clone()
    }

    /// Where `seq` stands, if that is known.
    pub(crate) fn hint_for(&self, seq: Seq) -> Option<Position> {
        let progress = locked(&self.progress);
        let read = progress.read_hint.filter(|(at, _)| *at == seq).map(|(_, hint)| hint);
        read.or_else(|| progress.hint.filter(|_| progress.cursor == seq))
    }

    /// A delivery is given out.
    pub(crate) fn given(&self, delivery: &Delivery, seek: SeekNumber) {
        let mut progress = locked(&self.progress);
        if progress.seek != Some(seek) {
            return;
        }
        let before = progress.read;
        progress.read = progress.read.max(delivery.next());
        progress.read_hint = delivery.next_hint().map(|hint| (delivery.next(), hint));
        for gap in delivery.gaps() {
            let from = gap.from.max(before);
            if from < gap.to {
                progress.gaps.push(Gap { from, ..gap });
            }
        }
        drop(progress);
        self.counted.delivered.fetch_add(delivery.records_count(), Ordering::Relaxed);
    }

    /// Which reading a delivery belongs to.
    ///
    /// # Errors
    /// It was made for another consumer, perhaps of another queue, where ids are the same.
    pub(crate) fn seek_of(&self, delivery: &Delivery) -> Result<SeekNumber, AckError> {
        match delivery.made_for() {
            Some((key, seek)) if key == self.key && delivery.incarnation() == self.identity.incarnation => {
                Ok(seek)
            }
            _ => Err(AckError::Foreign),
        }
    }

    /// Everything below `to` is done with.
    ///
    /// # Errors
    /// Nothing changed.
    pub(crate) fn ack(
        &self,
        to: Seq,
        seek: Option<SeekNumber>,
        hint: Option<Position>,
        note: Option<&[u8]>,
        fate: Fate,
    ) -> Result<AckDone, AckError> {
        if self.is_removed() {
            return Err(AckError::Removed);
        }
        if let Some(bytes) = note.map(<[u8]>::len).filter(|bytes| *bytes > NOTE_BYTES_MAX) {
            return Err(AckError::NoteTooLong { bytes, max: NOTE_BYTES_MAX });
        }
        let mut progress = locked(&self.progress);
        if seek.is_some() && seek != progress.seek {
            return Ok(AckDone::Nothing);
        }
        if to > progress.read {
            return Err(AckError::NotDelivered { to, next: progress.read });
        }
        if to < progress.cursor || (to == progress.cursor && note.is_none()) {
            return Ok(AckDone::Nothing);
        }
        let before = std::mem::replace(&mut progress.cursor, to);
        progress.hint = hint;
        if let Some(note) = note {
            progress.note = note.to_vec();
            progress.note_changed = true;
        }
        let gaps = take_passed(&mut progress.gaps, to);
        let first = !std::mem::replace(&mut progress.listed, true);
        drop(progress);
        self.counted.passed(before.distance_to(to), gaps, fate);
        self.moved_bell.ring();
        Ok(if first { AckDone::ChangedFirst } else { AckDone::Changed })
    }

    /// What the tick is to save; a cursor is saved up to `durable` at most. The second value: it must be saved again later.
    pub(crate) fn to_save(&self, durable: Seq) -> (CursorMove, Later) {
        let mut progress = locked(&self.progress);
        progress.listed = false;
        let cursor = progress.cursor.min(durable);
        let whole = cursor == progress.cursor;
        let hint = progress.hint.filter(|_| whole);
        let entry = CursorMove {
            consumer: self.key.consumer,
            cursor,
            hint: hint.map(|h| offsets::Position { segment: h.segment, offset: h.offset }),
            acked_above: Vec::new(),
            // A note belongs to its cursor: it waits with it.
            note: (whole && progress.note_changed).then(|| progress.note.clone()),
            direction: if progress.sought { Direction::Seek } else { Direction::Forward },
        };
        (entry, if whole { Later::No } else { Later::Yes })
    }

    /// What was to be saved is durable.
    pub(crate) fn did_save(&self, entry: &CursorMove) {
        let mut progress = locked(&self.progress);
        if entry.note.as_ref() == Some(&progress.note) {
            progress.note_changed = false;
        }
        if entry.direction == Direction::Seek {
            progress.sought = false;
        }
        drop(progress);
        self.saved.store(entry.cursor.get(), Ordering::Release);
        self.saved_bell.ring();
    }

    /// It is in the list of changed cursors again. `false`: it was.
    pub(crate) fn list_again(&self) -> bool {
        !std::mem::replace(&mut locked(&self.progress).listed, true)
    }

    /// A save that concerned it failed.
    pub(crate) fn save_failed(&self, error: &SaveError) {
        let mut failure = locked(&self.failure);
        failure.count += 1;
        failure.last = Some(error.clone());
        drop(failure);
        self.saved_bell.ring();
    }

    /// How many saves failed, and how the last one did.
    pub(crate) fn failures(&self) -> (u64, Option<SaveError>) {
        let failure = locked(&self.failure);
        (failure.count, failure.last.clone())
    }

    /// Moves the cursor by a seek that is saved already.
    pub(crate) fn sought(&self, to: Seq, seek: Option<SeekNumber>) {
        let mut progress = locked(&self.progress);
        progress.cursor = to;
        progress.hint = None;
        progress.read = to;
        progress.read_hint = None;
        progress.gaps.clear();
        progress.seek = seek.or(progress.seek);
        drop(progress);
        self.saved.store(to.get(), Ordering::Release);
        self.saved_bell.ring();
        self.moved_bell.ring();
    }
}

/// Whether something is left to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Later {
    /// All of it was in the entry.
    No,
    /// Part of it waits until its records are durable.
    Yes,
}
