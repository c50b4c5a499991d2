//! Clients that write: append, commit, wait, rotate; and what tickets tell.

use pq::{AppendError, CommitError, Level, Tag};
use wal_store::{Record, Ticket, Want};

use super::limits::charge_most;
use super::{Held, World};
use crate::operation::Load;
use crate::oracle::{Payload, Told};
use crate::random::mix;
use crate::violation::Checked;

impl World {
    /// New payloads, never used before.
    pub(super) fn payloads(&mut self, load: Load, limit: usize) -> Vec<Payload> {
        let one = |id: u64| {
            // Some are empty, most are about as long as asked for, none is over the limit.
            let bytes = match mix(id) % 16 {
                0 => 0,
                n => usize::from(load.bytes) * usize::try_from(n).unwrap_or(1) / 8,
            };
            Payload { id, bytes: u32::try_from(bytes.min(limit)).unwrap_or(0) }
        };
        let first = self.payloads_count + 1;
        self.payloads_count += u64::from(load.count.max(1));
        (first..=self.payloads_count).map(one).collect()
    }

    pub(super) fn append(&mut self, stream: usize, load: Load) -> Checked {
        let Some(handle) = self.slot(stream).stream.clone() else { return Ok(()) };
        for payload in self.payloads(load, handle.log().settings().record_bytes_max) {
            payload.write(&mut self.scratch);
            match handle.log().append(self.scratch.as_slice(), self.now) {
                Ok(ticket) => self.accepted(stream, ticket, &[payload], None)?,
                Err(error) => return self.refused(stream, &error),
            }
        }
        Ok(())
    }

    pub(super) fn append_batch(&mut self, stream: usize, load: Load) -> Checked {
        let Some(handle) = self.slot(stream).stream.clone() else { return Ok(()) };
        let settings = handle.log().settings();
        let count = u32::from(load.count.max(1)).min(settings.batch_records_max);
        let frames = settings.batch_bytes_max / usize::try_from(count).unwrap_or(1);
        let load = Load { count: u8::try_from(count).unwrap_or(u8::MAX), bytes: load.bytes };
        // Room for the heads of frames, and for the tag.
        let payloads = self.payloads(load, frames.saturating_sub(64).min(settings.record_bytes_max));
        let bytes: Vec<Vec<u8>> = payloads
            .iter()
            .map(|payload| {
                let mut bytes = Vec::new();
                payload.write(&mut bytes);
                bytes
            })
            .collect();
        let records: Vec<Record<'_>> = bytes.iter().map(|bytes| Record::new(bytes)).collect();
        let value = payloads.first().map_or(0, |payload| payload.id).to_le_bytes();
        let producer: &[u8] = if payloads.len().is_multiple_of(2) { b"even" } else { b"odd" };
        let Ok(tag) = Tag::new(producer, &value) else { return Ok(()) };
        match handle.log().append_batch(&records, Some(tag), self.now) {
            Ok(ticket) => self.accepted(stream, ticket, &payloads, Some((producer, &value))),
            Err(error) => self.refused(stream, &error),
        }
    }

    pub(super) fn accepted(
        &mut self,
        stream: usize,
        ticket: Ticket,
        payloads: &[Payload],
        tag: Option<(&[u8], &[u8])>,
    ) -> Checked {
        let first = ticket.seq().get();
        self.note(first);
        self.counts.records += payloads.len() as u64;
        if let Some(book) = self.oracle.book_mut(stream) {
            book.appended(first, payloads, tag)?;
        }
        self.counted_in(stream, ticket.end().get());
        let charge_most = charge_most(payloads);
        self.slots[stream].tickets.push(Held { ticket, is_written: false, charge_most });
        Ok(())
    }

    pub(super) fn refused(&mut self, stream: usize, error: &AppendError) -> Checked {
        if let Some(checked) = self.refused_space(stream, error) {
            return checked;
        }
        match error {
            // Little room is the setup's wish; but what is stored holds none.
            AppendError::Busy { .. } if (0..self.slots.len()).any(|n| self.waiting_tickets(n) > 0) => Ok(()),
            error => self.expect("append", error),
        }
    }

    pub(super) fn commit(&mut self, stream: usize, want: Want) -> Checked {
        let Some(handle) = self.slot(stream).stream.clone() else { return Ok(()) };
        let done = handle.log().commit(self.now, want);
        self.committed("commit", done.map(drop))
    }

    pub(super) fn rotate(&mut self, stream: usize) -> Checked {
        let Some(handle) = self.slot(stream).stream.clone() else { return Ok(()) };
        let done = handle.log().rotate(self.now);
        self.committed("rotate", done.map(drop))
    }

    pub(super) fn wait(&mut self, stream: usize) -> Checked {
        let Some(held) = self.slot(stream).tickets.last() else { return Ok(()) };
        let done = held.ticket.wait(Level::Durable, self.now);
        self.committed("wait", done.map(drop))
    }

    fn committed(&mut self, verb: &'static str, done: Result<(), CommitError>) -> Checked {
        if self.is_dead() {
            return Ok(());
        }
        self.note(u64::from(done.is_ok()));
        done.or_else(|error| self.expect(verb, &error))
    }

    /// What tickets tell by now.
    pub(super) fn look_at_tickets(&mut self) -> Checked {
        for stream in 0..self.slots.len() {
            let mut tickets = std::mem::take(&mut self.slots[stream].tickets);
            let mut found = Ok(());
            tickets.retain_mut(|held| {
                if found.is_err() {
                    return true;
                }
                let told = told(held);
                if let Some(told) = told {
                    let (first, end) = (held.ticket.seq().get(), held.ticket.end().get());
                    self.note(first ^ (told as u64) << 56);
                    let book = self.oracle.book_mut(stream);
                    found = book.map_or(Ok(()), |book| book.told(first, end, told));
                    if found.is_ok()
                        && let Some(Err(error)) = held.ticket.peek(Level::Durable)
                    {
                        found = self.expect("a ticket", &error);
                    }
                }
                matches!(told, None | Some(Told::Written)) && !is_closed(held)
            });
            self.slots[stream].tickets = tickets;
            found?;
        }
        self.look_at_waiting()?;
        self.check_caps()
    }

    /// Tickets that tell nothing more than that they wait.
    pub(super) fn waiting_tickets(&self, stream: usize) -> usize {
        self.slot(stream).tickets.len()
    }

    /// Asks every ticket, as a future that is polled: the stream goes on its lane.
    pub(super) fn poll_tickets(&mut self, stream: usize) {
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        for held in &mut self.slots[stream].tickets {
            let _ = held.ticket.poll(Level::Durable, &mut context);
        }
    }
}

fn told(held: &mut Held) -> Option<Told> {
    match held.ticket.peek(Level::Durable) {
        Some(Ok(_)) => return Some(Told::Durable),
        Some(Err(CommitError::NotWritten { .. })) => return Some(Told::NotWritten),
        Some(Err(CommitError::Indeterminate { .. })) => return Some(Told::Indeterminate),
        _ => {}
    }
    let is_news = !held.is_written && matches!(held.ticket.peek(Level::Written), Some(Ok(_)));
    held.is_written |= is_news;
    is_news.then_some(Told::Written)
}

fn is_closed(held: &Held) -> bool {
    matches!(held.ticket.peek(Level::Durable), Some(Err(CommitError::Closed)))
}
