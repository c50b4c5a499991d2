//! Progress: on a healed disk, by timers alone, everything that was accepted is stored or answered, delivered, acknowledged, saved, and
//! its segments are unlinked; then the queue is idle.

use std::time::Duration;

use super::{Health, World, reader_name, stream_name};
use crate::operation::{Load, TurnEnd};
use crate::oracle::{Fate, Presence};
use crate::violation::{Checked, Kind, Violation, ensure};

/// Far more rounds than any back-off takes.
const ROUNDS_MAX: u32 = 300;
/// What nobody may need: the longest wait of a round.
const WAIT_MAX: Duration = Duration::from_secs(3600);

impl World {
    /// Heals the disk, lets time pass, and expects that everything comes to its end.
    ///
    /// # Errors
    /// What does not.
    pub fn settle(&mut self) -> Checked {
        let (step, seed) = (self.step + 1, self.setup.seed);
        self.try_settle().map_err(|violation| Violation { step, seed, ..violation })
    }

    fn try_settle(&mut self) -> Checked {
        self.heal();
        self.until_idle()?;
        // From here on nothing may fail any more.
        self.health = Health::Sound;
        for stream in 0..self.slots.len() {
            self.create_stream(stream)?;
            for reader in 0..self.readers_count() {
                self.create_reader(stream, reader)?;
            }
            self.append_at_last(stream, Load { count: 2, bytes: 100 })?;
        }
        self.until_idle()?;
        for stream in 0..self.slots.len() {
            self.check_delivered(stream)?;
            self.check_counts(stream)?;
            self.rotate(stream)?;
        }
        self.until_idle()?;
        self.check_retired()?;
        let due = self.core.as_ref().and_then(|core| core.next_due(self.now.instant));
        ensure(due.is_none(), Kind::Stuck, || format!("idle, and something is due: {due:?}"))
    }

    /// Rounds of what is due, until nothing is.
    pub(super) fn until_idle(&mut self) -> Checked {
        for _ in 0..ROUNDS_MAX {
            let mut waiting = 0;
            for stream in 0..self.slots.len() {
                self.poll_tickets(stream);
                waiting += self.waiting_tickets(stream) + usize::from(self.slot(stream).waiting.is_some());
            }
            self.timers()?;
            self.look_at_tickets()?;
            let read = self.read_everything()?;
            let Some(core) = &self.core else { return Ok(()) };
            let due = core.next_due(self.now.instant);
            if due.is_none() && !read && waiting == 0 {
                return Ok(());
            }
            let wait = due.map_or(Duration::ZERO, |due| due.saturating_since(self.now.instant));
            ensure(wait <= WAIT_MAX, Kind::Stuck, || format!("the next thing is due in {wait:?}"))?;
            self.pass(wait.max(Duration::from_micros(10)));
        }
        Err(Violation::new(Kind::Stuck, self.what_waits()))
    }

    /// Every consumer reads and acknowledges all there is.
    fn read_everything(&mut self) -> Checked<bool> {
        let mut any = false;
        for stream in 0..self.slots.len() {
            for reader in 0..self.readers_count() - 1 {
                while self.read_some(stream, reader, 1 << 16)? {
                    any = true;
                    self.ack(stream, reader, 0)?;
                }
            }
        }
        while self.turn_taken(TurnEnd::Taken)? {
            any = true;
        }
        Ok(any)
    }

    /// Every consumer was given everything there is to be given.
    fn check_delivered(&self, stream: usize) -> Checked {
        let Some(handle) = &self.slot(stream).stream else {
            return Err(Violation::new(
                Kind::Stuck,
                format!("stream {:?} cannot be opened", stream_name(stream)),
            ));
        };
        let Some(book) = self.oracle.book(stream) else { return Ok(()) };
        let open = book.count(Fate::Pending) + book.count(Fate::Written);
        ensure(open == 0, Kind::Stuck, || {
            format!("{open} records of {:?} are neither durable nor given up", stream_name(stream))
        })?;
        let readable = handle.log().ends().readable.get();
        for reader in 0..self.readers_count() {
            let name = reader_name(reader);
            let at = book.cursor(&name).map_or(0, |cursor| cursor.next());
            ensure(at == readable && at >= book.durable_end(), Kind::Stuck, || {
                let durable = book.durable_end();
                format!("{name} of {:?} got up to {at} of {readable}, durable {durable}", stream_name(stream))
            })?;
        }
        Ok(())
    }

    fn check_retired(&self) -> Checked {
        for (stream, slot) in self.slots.iter().enumerate() {
            let Some(handle) =
                slot.stream.as_ref().filter(|_| self.oracle.presence(stream) == Presence::Present)
            else {
                continue;
            };
            let left = handle.log().segments().len();
            ensure(left == 0, Kind::Stuck, || {
                format!("{left} segments of {:?} are delivered and not unlinked", stream_name(stream))
            })?;
        }
        Ok(())
    }

    fn who_is_behind(&self, stream: usize) -> String {
        let (Some(handle), Some(book)) = (&self.slot(stream).stream, self.oracle.book(stream)) else {
            return String::new();
        };
        let readable = handle.log().ends().readable.get();
        let at = |reader| book.cursor(&reader_name(reader)).map(|cursor| cursor.next());
        let behind = (0..self.readers_count()).filter_map(at).filter(|at| *at < readable);
        behind.map(|at| format!("{} read up to {at} of {readable}, ", stream_name(stream))).collect()
    }

    fn what_waits(&self) -> String {
        let waiting: Vec<usize> = (0..self.slots.len()).map(|stream| self.waiting_tickets(stream)).collect();
        let due = self.core.as_ref().and_then(|core| core.next_due(self.now.instant));
        let told = self.take_told();
        let last = told.last().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let behind: Vec<String> = (0..self.slots.len()).map(|stream| self.who_is_behind(stream)).collect();
        format!(
            "{ROUNDS_MAX} rounds at {:?}: {waiting:?} tickets wait, next due {due:?}, {} told last: {last}",
            self.now.instant,
            behind.concat()
        )
    }
}
