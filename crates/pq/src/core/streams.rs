//! Streams: found, created, deleted, created again.
//!
//! Creation: entry durable → directory → segment (at the first append). Deletion: tombstone durable → unlink → cursors forgotten →
//! entry forgotten. A stream created again under its name has a new id and incarnation, so no old cursor and no old byte is its own.

use std::path::Path;
use std::sync::Arc;

use wal_format::Now;

use crate::clock::locked;
use crate::options::check_stream;
use crate::{Limits, Loss, StreamError, StreamSettings};

use super::layout::{STREAMS, STREAMS_DIR, finish_delete};
use super::open::new_incarnation;
use super::{Core, Phase, StreamState};

impl Core {
    /// The stream of that name, created with `settings` (else the queue's) if there is none.
    ///
    /// Settings given for a stream that exists are kept with it; they apply at once if nobody uses it yet, else from the next open on; its
    /// limits apply at once, if the size of the segments it writes allows.
    ///
    /// # Errors
    /// The name, a setting, the disk, or the stream is paused.
    pub(crate) fn stream(
        &self,
        name: &str,
        settings: Option<&StreamSettings>,
        now: Now,
    ) -> Result<Arc<StreamState>, StreamError> {
        if self.phase() != Phase::Open {
            return Err(StreamError::Closed);
        }
        if let Some(stream) = self.find(name)
            && settings.is_none_or(|settings| *settings == stream.settings_now())
        {
            return Ok(stream);
        }
        crate::names::check(name)?;
        if let Some(settings) = settings {
            check_stream(settings, self.options.buffer_bytes_max)?;
        }
        self.hub.saw(now.instant);
        // The ledger orders creations; look again behind it.
        let mut ledger = locked(&self.ledger);
        if let (Some(entry), Some(settings)) = (ledger.catalog.named(name).cloned(), settings)
            && entry.settings != *settings
        {
            ledger.catalog.set_settings(entry.id, settings)?;
            self.close_unused(name);
            if let Some(stream) = self.find(name) {
                // Else from the next open on, like the rest.
                let _ = stream.log.set_limits(settings.limits);
                self.hub.touch(stream.id);
            }
        }
        if let Some(stream) = self.find(name) {
            return Ok(stream);
        }
        let entry = match ledger.catalog.named(name) {
            Some(entry) => {
                // It could not be opened, or nobody used it: its directory may be one whose sync failed, and that could not be
                // removed then.
                self.disk.sync_dir(Path::new(STREAMS), STREAMS_DIR)?;
                entry.clone()
            }
            None => {
                let incarnation = new_incarnation(&mut locked(&self.ids));
                let settings = settings.unwrap_or(&self.options.stream);
                ledger.catalog.create(name, incarnation, now.wall, settings)?
            }
        };
        let (opened, _) = self.opener(now.wall).open(&mut ledger, &entry, None);
        let mut streams = self.streams_mut();
        streams.paused.remove(name);
        streams.add(entry, opened.clone());
        drop(streams);
        // Its files are its log's to count from here on, or are not yet.
        self.count_other(&ledger);
        opened.map_err(|reason| StreamError::Paused { name: name.to_owned(), reason })
    }

    /// Changes what a stream may hold, durably and at once.
    ///
    /// # Errors
    /// The limits cannot be, or the disk; the old ones stay.
    pub(crate) fn set_limits(&self, stream: &StreamState, limits: Limits) -> Result<(), StreamError> {
        let mut ledger = locked(&self.ledger);
        self.check_open(stream)?;
        // Alone and beside what the log runs with; what is kept with the stream may differ by now.
        check_stream(&StreamSettings { limits, ..stream.settings.clone() }, self.options.buffer_bytes_max)?;
        let entry = ledger.catalog.named(&stream.name).map(|entry| entry.settings.clone());
        let settings = StreamSettings { limits, ..entry.unwrap_or_else(|| stream.settings.clone()) };
        check_stream(&settings, self.options.buffer_bytes_max)?;
        ledger.catalog.set_settings(stream.id, &settings)?;
        let applied = stream.log.set_limits(limits);
        debug_assert!(applied.is_ok(), "they were checked");
        drop(ledger);
        self.hub.touch(stream.id);
        Ok(())
    }

    fn find(&self, name: &str) -> Option<Arc<StreamState>> {
        let streams = self.streams();
        streams.by_id.get(streams.by_name.get(name)?).cloned()
    }

    /// Forgets the state of a stream that nobody holds and nobody wrote to in this run, so that it is opened anew.
    fn close_unused(&self, name: &str) {
        let mut streams = self.streams_mut();
        let Some(id) = streams.by_name.get(name).copied() else { return };
        let unused = streams.by_id.get(&id).is_some_and(|stream| {
            Arc::strong_count(stream) == 1
                && stream.log.counters().records == 0
                && stream.consumers().iter().all(|consumer| !consumer.is_attached())
        });
        if unused {
            streams.by_name.remove(name);
            streams.by_id.remove(&id);
            drop(streams);
            self.hub.close_stream(id);
        }
    }

    /// Deletes a stream with its records and cursors.
    ///
    /// # Errors
    /// `NotFound`; or the disk: once the tombstone is durable the stream is gone, and what is left of it goes at the next open.
    pub(crate) fn delete_stream(&self, name: &str, now: Now) -> Result<(), StreamError> {
        if self.phase() != Phase::Open {
            return Err(StreamError::Closed);
        }
        let mut ledger = locked(&self.ledger);
        let entry = ledger.catalog.named(name).cloned();
        let entry = entry.ok_or_else(|| StreamError::NotFound { name: name.to_owned() })?;
        self.saving(now.instant, || ledger.catalog.delete(entry.id))?;
        let stream = {
            let mut streams = self.streams_mut();
            streams.by_name.remove(name);
            streams.paused.remove(name);
            streams.by_id.remove(&entry.id)
        };
        if let Some(stream) = &stream {
            self.end_stream(stream, now);
        }
        finish_delete(&*self.disk, &self.files, &mut ledger, entry.id)?;
        if let Some(stream) = &stream {
            stream.log.give_up_space();
        }
        self.count_other(&ledger);
        Ok(())
    }

    /// Nobody reads or writes it any more.
    fn end_stream(&self, stream: &StreamState, now: Now) {
        stream.set_deleted();
        // So that nothing is written to it any more; whether its last records were is of no interest.
        if let Err(error) = stream.log.close(now) {
            tracing::debug!(stream = %stream.name, %error, "deleted with records not written");
            stream.log.discard();
        }
        self.hub.close_stream(stream.id);
        for consumer in stream.consumers() {
            consumer.remove();
        }
        self.hub.ring_all();
    }

    /// Every loss remembered, by stream, paused ones too.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        let ledger = locked(&self.ledger);
        ledger.catalog.living().flat_map(|entry| entry.losses.of(&entry.name)).collect()
    }

    /// Names of all streams, paused ones too, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let streams = self.streams();
        let mut names: Vec<String> = streams.by_name.keys().chain(streams.paused.keys()).cloned().collect();
        names.sort_unstable();
        names
    }

    /// Why a stream is paused, by name.
    #[must_use]
    pub fn paused(&self) -> Vec<(String, String)> {
        self.streams().paused.iter().map(|(name, paused)| (name.clone(), paused.reason.clone())).collect()
    }
}
