//! The catalog: which streams there are, under which names, ids, incarnations and settings, and what each is known to have lost.
//!
//! It does no more than remember: a journal of changes (`catalog-<gen>`, see [`offsets::journal`]) and the state they add up to.
//! Directories and segments are its callers' business, in this order:
//!
//! ```text
//!   create   entry durable ──> directory ──> segment at the first append
//!   delete   tombstone durable ──> unlink ──> cursors forgotten ──> entry forgotten
//! ```
//!
//! Invariants: an id is never used again; no two living entries have one name; memory changes only after the journal took the change;
//! a loss is remembered by (stream, from, to), so that it is counted once.

use std::collections::BTreeMap;
use std::sync::Arc;

use disk::{Disk, SyncSite};
use offsets::journal::{Bodies, Generation, Journal, JournalError, JournalReport};
use wal_format::{Incarnation, JournalKind, QueueId, Seq, StreamId, WallTime};

use crate::losses::{Folded, Losses};
use crate::{Gap, StreamSettings};

mod body;

use body::{Change, LimitsBody, SettingsBody};

const CREATE: SyncSite = SyncSite::new("catalog.create");
const SETTINGS: SyncSite = SyncSite::new("catalog.settings");
const TOMBSTONE: SyncSite = SyncSite::new("catalog.tombstone");
const FORGET: SyncSite = SyncSite::new("catalog.forget");
const LOSS: SyncSite = SyncSite::new("catalog.loss");

/// One stream, as the catalog knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: StreamId,
    pub(crate) name: String,
    pub(crate) incarnation: Incarnation,
    pub(crate) created_at: WallTime,
    pub(crate) settings: StreamSettings,
    /// Its tombstone is durable: its files and cursors go.
    pub(crate) deleted: bool,
    pub(crate) losses: Losses,
}

/// Which streams there are.
#[derive(Debug)]
pub(crate) struct Catalog {
    journal: Option<Journal>,
    state: State,
}

/// What the changes add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    entries: BTreeMap<StreamId, Entry>,
    by_name: BTreeMap<String, StreamId>,
    next_id: u64,
}

/// What opening found.
#[derive(Debug, Default)]
pub(crate) struct CatalogReport {
    pub(crate) journal: JournalReport,
    /// Bodies that could not be understood.
    pub(crate) ignored_count: u64,
}

impl Catalog {
    /// Opens for writing.
    ///
    /// # Errors
    /// The disk, or a later version's file.
    pub(crate) fn open(disk: Arc<dyn Disk>, queue: QueueId) -> Result<(Self, CatalogReport), JournalError> {
        let (journal, bodies, report) = Journal::open(disk, "catalog", JournalKind::CATALOG, queue)?;
        let (state, ignored_count) = State::of(&bodies);
        Ok((Self { journal: Some(journal), state }, CatalogReport { journal: report, ignored_count }))
    }

    /// Opens for looking, beside a live owner.
    ///
    /// # Errors
    /// The disk, or a later version's file.
    pub(crate) fn look(disk: &Arc<dyn Disk>, queue: QueueId) -> Result<(Self, JournalReport), JournalError> {
        let (bodies, report) = Journal::read_only(&**disk, "catalog", JournalKind::CATALOG, queue)?;
        Ok((Self { journal: None, state: State::of(&bodies).0 }, report))
    }

    /// All entries, deleted ones too, by id.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.state.entries.values()
    }

    /// The living stream of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Entry> {
        self.state.entries.get(self.state.by_name.get(name)?)
    }

    /// The living streams, by name.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Entry> {
        self.state.by_name.values().filter_map(|id| self.state.entries.get(id))
    }

    /// Whether this is the id of a stream, or of one whose deletion is not finished.
    pub(crate) fn knows(&self, id: StreamId) -> bool {
        self.state.entries.contains_key(&id)
    }

    /// Never gives these ids to a new stream. Those near the top of the type, which no queue reaches, do not use the others up.
    pub(crate) fn spend(&mut self, ids: impl IntoIterator<Item = StreamId>) {
        const NEAR_THE_END: u64 = u64::MAX - (1 << 32);
        let spent = ids.into_iter().map(StreamId::get).filter(|id| *id < NEAR_THE_END).max();
        self.state.next_id = self.state.next_id.max(spent.map_or(0, |id| id + 1));
    }

    /// The file saves go to, once there was one in this run.
    pub(crate) fn generation(&self) -> Option<Generation> {
        self.journal.as_ref().and_then(Journal::generation)
    }

    /// Adds a stream under the next id. The name must be free.
    ///
    /// # Errors
    /// The disk; the stream is not there then, its id is not used again all the same. `NumbersUsedUp` at the top of the type.
    pub(crate) fn create(
        &mut self,
        name: &str,
        incarnation: Incarnation,
        created_at: WallTime,
        settings: &StreamSettings,
    ) -> Result<Entry, JournalError> {
        debug_assert!(self.named(name).is_none(), "the caller looked");
        let id = StreamId::new(self.state.next_id.max(1));
        let used_up = || JournalError::NumbersUsedUp { prefix: "catalog".to_owned() };
        // A failed save may still be found after a crash: its id is spent.
        self.state.next_id = id.get().checked_add(1).ok_or_else(used_up)?;
        let entry = Entry {
            id,
            name: name.to_owned(),
            incarnation,
            created_at,
            settings: settings.clone(),
            deleted: false,
            losses: Losses::default(),
        };
        self.save(&[Change::create(&entry)], CREATE)?;
        Ok(entry)
    }

    /// Adds a stream that has files already, under the id and incarnation they bear. Id and name must be free.
    ///
    /// # Errors
    /// The disk; the stream is not there then.
    pub(crate) fn adopt(&mut self, entry: &Entry) -> Result<(), JournalError> {
        debug_assert!(self.named(&entry.name).is_none() && !self.knows(entry.id), "the caller looked");
        self.save(&[Change::create(entry)], CREATE)
    }

    /// Writes a new generation of the journal now, whatever its length.
    ///
    /// # Errors
    /// The disk. What was durable still is.
    pub(crate) fn compact(&mut self) -> Result<(), JournalError> {
        let mut all = Bodies::new();
        self.state.snapshot(&mut all);
        self.journal.as_mut().map_or(Ok(()), |journal| journal.compact(&all))
    }

    /// Replaces a stream's settings.
    ///
    /// # Errors
    /// The disk; the old settings stay.
    pub(crate) fn set_settings(
        &mut self,
        id: StreamId,
        settings: &StreamSettings,
    ) -> Result<(), JournalError> {
        self.save(&[Change::settings(id, settings)], SETTINGS)
    }

    /// Marks a stream as deleted; its name is free from now on.
    ///
    /// # Errors
    /// The disk; the stream lives on, but may be found deleted after a crash.
    pub(crate) fn delete(&mut self, id: StreamId) -> Result<(), JournalError> {
        self.save(&[Change::Tombstone { id: id.get() }], TOMBSTONE)
    }

    /// Forgets a deleted stream whose files and cursors are gone.
    ///
    /// # Errors
    /// The disk; it is forgotten at the next open.
    pub(crate) fn forget(&mut self, id: StreamId) -> Result<(), JournalError> {
        self.save(&[Change::Forget { id: id.get() }], FORGET)
    }

    /// What a stream is known to have lost.
    pub(crate) fn losses(&self, id: StreamId) -> Option<&Losses> {
        self.state.entries.get(&id).map(|entry| &entry.losses)
    }

    /// Remembers losses; what is known of them already is left out. Returns what is new.
    ///
    /// # Errors
    /// The disk; nothing of them is remembered.
    pub(crate) fn add_losses(
        &mut self,
        id: StreamId,
        gaps: &[Gap],
        found_at: WallTime,
    ) -> Result<Vec<Gap>, JournalError> {
        let Some(entry) = self.state.entries.get(&id) else { return Ok(Vec::new()) };
        let mut known = entry.losses.clone();
        let mut new = Vec::new();
        for gap in gaps {
            new.extend(known.news(gap));
            known.add(gap, Some(found_at));
        }
        if !new.is_empty() {
            let changes: Vec<Change> = new.iter().map(|gap| Change::loss(id, gap, Some(found_at))).collect();
            self.save(&changes, LOSS)?;
        }
        Ok(new)
    }

    fn save(&mut self, changes: &[Change], site: SyncSite) -> Result<(), JournalError> {
        let mut bodies = Bodies::new();
        for change in changes {
            bodies.push(&change.encode());
        }
        let state = &self.state;
        let Some(journal) = &mut self.journal else {
            debug_assert!(false, "a catalog opened for looking is never saved");
            return Ok(());
        };
        journal.save(&bodies, |snapshot| state.snapshot(snapshot), site)?;
        for change in changes {
            self.state.apply(change);
        }
        Ok(())
    }
}

impl State {
    fn of(bodies: &Bodies) -> (Self, u64) {
        let mut state = Self::default();
        let mut ignored = 0;
        for body in bodies.iter() {
            match Change::decode(body) {
                Some(change) => state.apply(&change),
                None => ignored += 1,
            }
        }
        (state, ignored)
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::NextId { id } => self.next_id = self.next_id.max(*id),
            Change::Create { id, .. } | Change::CreateLimited { id, .. } => {
                self.next_id = self.next_id.max(id.saturating_add(1));
                if let Some(entry) = change.entry() {
                    self.by_name.insert(entry.name.clone(), entry.id);
                    self.entries.insert(entry.id, entry);
                }
            }
            Change::Settings { id, settings } => self.put_settings(*id, settings, None),
            Change::SettingsLimited { id, settings, limits } => {
                self.put_settings(*id, settings, Some(limits));
            }
            Change::Tombstone { id } => {
                let id = StreamId::new(*id);
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.deleted = true;
                    if self.by_name.get(&entry.name) == Some(&id) {
                        self.by_name.remove(&entry.name);
                    }
                }
            }
            Change::Forget { id } => {
                self.entries.remove(&StreamId::new(*id));
            }
            Change::Loss { id, from, to, reason } => self.lose(*id, (*from, *to), *reason, None),
            Change::LossAt { id, from, to, reason, found_at } => {
                self.lose(*id, (*from, *to), *reason, Some(WallTime::from_nanos(*found_at)));
            }
            Change::LossesFolded { id, below, ranges_count, records_count } => {
                if let Some(entry) = self.entries.get_mut(&StreamId::new(*id)) {
                    let (ranges_count, records_count) = (*ranges_count, *records_count);
                    entry.losses.fold(Folded { below: Seq::new(*below), ranges_count, records_count });
                }
            }
        }
    }

    fn put_settings(&mut self, id: u64, settings: &SettingsBody, limits: Option<&LimitsBody>) {
        if let Some(entry) = self.entries.get_mut(&StreamId::new(id)) {
            entry.settings = body::settings_of(settings, limits);
        }
    }

    fn lose(&mut self, id: u64, (from, to): (u64, u64), reason: u8, found_at: Option<WallTime>) {
        if let Some(entry) = self.entries.get_mut(&StreamId::new(id)) {
            let gap = Gap { from: Seq::new(from), to: Seq::new(to), reason: body::reason_of(reason) };
            entry.losses.add(&gap, found_at);
        }
    }

    fn snapshot(&self, bodies: &mut Bodies) {
        bodies.push(&Change::NextId { id: self.next_id }.encode());
        for entry in self.entries.values() {
            bodies.push(&Change::create(entry).encode());
            if entry.deleted {
                bodies.push(&Change::Tombstone { id: entry.id.get() }.encode());
            }
            if entry.losses.folded() != Folded::default() {
                bodies.push(&Change::folded(entry.id, entry.losses.folded()).encode());
            }
            for lost in entry.losses.iter() {
                bodies.push(&Change::loss(entry.id, &lost.gap, lost.found_at).encode());
            }
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
