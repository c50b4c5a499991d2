//! Streams and consumers created and removed, cursors saved, timers, a stop in order, and what is done to the disk.

use pq::StreamError;
use pq::core::TickReport;

use super::{Health, Slot, World, reader_name, stream_name};
use crate::operation::Limit;
use crate::oracle::{Origin, Presence, Stopped};
use crate::random::mix;
use crate::violation::{Checked, Kind, Violation};

impl World {
    pub(super) fn create_stream(&mut self, stream: usize) -> Checked {
        let (None, Some(core)) = (&self.slot(stream).stream, &self.core) else { return Ok(()) };
        if self.oracle.presence(stream) == Presence::Absent {
            self.oracle.attempt(stream);
        }
        let settings = self.setup.streams.get(stream);
        let opened = core.open_stream(&stream_name(stream), settings, self.now);
        if self.is_dead() {
            return Ok(());
        }
        match opened {
            Ok(handle) => {
                self.oracle.opened(stream, handle.incarnation())?;
                self.slots[stream].stream = Some(handle);
                Ok(())
            }
            Err(error) => self.expect("create a stream", &error),
        }
    }

    pub(super) fn delete_stream(&mut self, stream: usize) -> Checked {
        let (Some(_), Some(core)) = (&self.slot(stream).stream, &self.core) else { return Ok(()) };
        self.oracle.attempt(stream);
        let deleted = core.remove_stream(&stream_name(stream), self.now);
        if self.is_dead() {
            return Ok(());
        }
        let is_there = core.names().contains(&stream_name(stream));
        if !is_there {
            self.forget_handles(stream);
            self.oracle.deleted(stream);
        }
        match deleted {
            Ok(()) if is_there => {
                Err(Violation::new(Kind::Resurrected, format!("stream {stream} is there after its deletion")))
            }
            Ok(()) => Ok(()),
            Err(error) => self.expect("delete a stream", &error),
        }
    }

    fn forget_handles(&mut self, stream: usize) {
        let readers = self.slot(stream).readers.iter().map(|_| super::Reader::default()).collect();
        self.slots[stream] = Slot { readers, ..Slot::default() };
    }

    pub(super) fn create_reader(&mut self, stream: usize, reader: usize) -> Checked {
        let slot = self.slot(stream);
        let (Some(handle), None, Some(core)) = (slot.stream.clone(), &slot.readers[reader].taken, &self.core)
        else {
            return Ok(());
        };
        let name = reader_name(reader);
        let oldest = handle.first().get();
        let is_there = handle.consumers().iter().any(|consumer| consumer.name() == name);
        let origin = if is_there { Origin::Found } else { Origin::Created { oldest } };
        if !is_there && let Some(book) = self.oracle.book_mut(stream) {
            book.attempt_reader(&name, oldest);
        }
        let taken = if self.is_sink(reader) {
            core.open_sink(&handle, &name, pq::Start::Oldest, self.now)
        } else {
            core.open_consumer(&handle, &name, pq::Start::Oldest, self.now)
        };
        if self.is_dead() {
            return Ok(());
        }
        match taken {
            Ok(taken) => {
                self.note(taken.cursor().get());
                if let Some(book) = self.oracle.book_mut(stream) {
                    book.taken(&name, taken.cursor().get(), origin)?;
                }
                self.slots[stream].readers[reader].taken = Some(taken);
                self.count_from_here(stream, reader);
                Ok(())
            }
            Err(error) => self.expect("create a consumer", &error),
        }
    }

    pub(super) fn remove_reader(&mut self, stream: usize, reader: usize) -> Checked {
        let Some(handle) = self.slot(stream).stream.clone() else { return Ok(()) };
        let name = reader_name(reader);
        if !handle.consumers().iter().any(|consumer| consumer.name() == name) {
            return Ok(());
        }
        self.release(stream, reader);
        let Some(core) = &self.core else { return Ok(()) };
        if let Some(book) = self.oracle.book_mut(stream) {
            book.attempt_removal(&name);
        }
        let removed = core.forget_consumer(&handle, &name);
        if self.is_dead() {
            return Ok(());
        }
        match removed {
            Ok(()) | Err(StreamError::NoConsumer { .. }) => {
                self.slots[stream].readers[reader].deliveries.clear();
                if let Some(book) = self.oracle.book_mut(stream) {
                    book.removed(&name);
                }
                Ok(())
            }
            Err(error) => self.expect("remove a consumer", &error),
        }
    }

    pub(super) fn tick(&mut self) -> Checked {
        self.before_save();
        let Some(core) = &self.core else { return Ok(()) };
        let ticked = core.tick(self.now);
        if self.is_dead() {
            return Ok(());
        }
        match ticked {
            Ok(report) => self.saved(report, Ticked::Yes),
            Err(error) => self.expect("save", &error),
        }
    }

    pub(super) fn timers(&mut self) -> Checked {
        let Some(core) = &self.core else { return Ok(()) };
        core.run_timers(self.now.instant);
        self.trace = mix(self.trace ^ core.commit_due(self.now) as u64);
        self.before_save();
        let Some(core) = &self.core else { return Ok(()) };
        let ticked = core.tick_if_due(self.now);
        if self.is_dead() {
            return Ok(());
        }
        match ticked {
            Ok(report) => self.saved(report, Ticked::Perhaps),
            Err(error) => self.expect("save", &error),
        }
    }

    /// A save answered.
    fn saved(&mut self, report: TickReport, ticked: Ticked) -> Checked {
        self.note(report.cursors_count as u64 ^ (report.retired_count as u64) << 32);
        let is_written = report.cursors_count + report.floors_count > 0;
        if !is_written && ticked == Ticked::Perhaps {
            return Ok(());
        }
        let is_whole = self.health == Health::Sound && ticked == Ticked::Yes;
        for stream in 0..self.slots.len() {
            let Some(handle) = &self.slot(stream).stream else { continue };
            let saved: Vec<(String, u64)> =
                handle.consumers().iter().map(|c| (c.name().to_owned(), c.saved().get())).collect();
            let durable = handle.log().ends().durable.get();
            let Some(book) = self.oracle.book_mut(stream) else { continue };
            for (name, at) in saved {
                crate::violation::ensure(at <= durable, Kind::Ahead, || {
                    format!("{name} is saved at {at}, durable up to {durable}")
                })?;
                book.saved(&name, at, is_whole)?;
                if is_written {
                    book.settled(&name);
                }
            }
        }
        let dropped = self.look_at_floors()?;
        let is_told = report.floors_count == 0 || report.dropped_count == dropped;
        crate::violation::ensure(is_told, Kind::Unexpected, || {
            format!("{dropped} records were dropped, a save says {}", report.dropped_count)
        })
    }

    /// A stop in order, and the next start.
    pub(super) fn close(&mut self) -> Checked {
        match self.close_only()? {
            Some(stopped) => self.reopen(stopped),
            None => Ok(()),
        }
    }

    /// A stop in order; `None`: there was nothing to stop, or the machine stopped in it.
    pub(super) fn close_only(&mut self) -> Checked<Option<Stopped>> {
        self.before_save();
        let Some(core) = &self.core else { return Ok(None) };
        let now = self.now;
        let closed = core.close(|| now);
        if self.is_dead() {
            return Ok(None);
        }
        self.look_at_tickets()?;
        let stopped = match closed {
            Ok(report) if report.clean => {
                self.saved(TickReport::default(), Ticked::Yes)?;
                Stopped::Clean
            }
            Ok(_) => {
                self.expect_seen("close", "not clean, for records were given up".to_owned())?;
                Stopped::PowerCut
            }
            Err(error) => {
                self.expect("close", &error)?;
                Stopped::Failing
            }
        };
        Ok(Some(stopped))
    }

    pub(super) fn limit(&mut self, limit: Limit) {
        self.expect_trouble();
        self.is_limited = true;
        match limit {
            Limit::Space(bytes) => {
                let used = self.disk.used_bytes();
                self.disk.set_capacity(Some(used + u64::from(bytes)));
            }
            Limit::OpenFiles(count) => self.disk.set_open_files_max(Some(usize::from(count))),
            Limit::ReadOnly => self.disk.remount_read_only(),
        }
    }

    /// Faults and limits end. What they led to may last.
    pub(super) fn heal(&mut self) {
        self.disk.clear_faults();
        self.planned = None;
        self.heal_limits();
        // A planned stop is gone with the rest.
        self.crash = None;
    }

    /// What ran out is there again.
    pub(super) fn heal_limits(&mut self) {
        self.disk.set_capacity(None);
        self.disk.set_quota(None);
        self.disk.set_file_bytes_max(None);
        self.disk.set_open_files_max(None);
        self.disk.remount_read_write();
        self.is_limited = false;
    }
}

/// Whether a tick ran for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ticked {
    Yes,
    Perhaps,
}
