//! Clients that read: pull consumers, sinks, acknowledgements, seeks.

use pq::core::{CoreConsumer, CoreStream, TurnResult};
use pq::{Delivery, Item, Seq, Start, StreamError};

use super::{DELIVERIES_MAX, World, reader_name};
use crate::operation::TurnEnd;
use crate::violation::{Checked, Kind, Violation, ensure};

impl World {
    fn taken(&self, stream: usize, reader: usize) -> Option<(CoreStream, CoreConsumer)> {
        let slot = self.slot(stream);
        Some((slot.stream.clone()?, slot.readers.get(reader)?.taken.clone()?))
    }

    pub(super) fn read(&mut self, stream: usize, reader: usize, bytes_max: usize) -> Checked {
        self.read_some(stream, reader, bytes_max).map(drop)
    }

    /// Whether anything came.
    pub(super) fn read_some(&mut self, stream: usize, reader: usize, bytes_max: usize) -> Checked<bool> {
        let (Some((handle, consumer)), Some(core)) = (self.taken(stream, reader), &self.core) else {
            return Ok(false);
        };
        let next = core.next(&handle, &consumer, bytes_max, &mut self.buffers, self.now);
        if self.is_dead() {
            return Ok(false);
        }
        match next {
            Ok(Some(delivery)) => {
                self.given(stream, reader, &delivery)?;
                Ok(true)
            }
            Ok(None) => {
                let readable = handle.log().ends().readable.get();
                let at =
                    self.oracle.book(stream).and_then(|b| b.cursor(&reader_name(reader))).map(|c| c.next());
                let is_behind = at.is_some_and(|at| at < readable);
                if is_behind {
                    self.expect_seen(
                        "a read",
                        format!("came back empty at {at:?}, readable up to {readable}"),
                    )?;
                }
                Ok(false)
            }
            Err(error) => self.expect("read", &error).map(|()| false),
        }
    }

    /// A consumer was given this.
    fn given(&mut self, stream: usize, reader: usize, delivery: &Delivery) -> Checked {
        let name = reader_name(reader);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut gaps = Vec::new();
        let mut items_count = 0;
        let mut checked = Ok(());
        if let Some(book) = self.oracle.book_mut(stream) {
            let mut at = delivery.first().get();
            for item in delivery.items() {
                items_count += 1;
                checked = checked.and_then(|()| match item {
                    Item::Record(record) => {
                        at = record.seq.get() + 1;
                        book.delivered(&name, record.seq.get(), record.payload, &mut scratch)
                    }
                    Item::Gap(gap) => {
                        at = gap.to.get();
                        gaps.push(gap);
                        book.gap(&name, gap)
                    }
                    _ => Ok(()),
                });
            }
            let next = delivery.next().get();
            checked = checked.and_then(|()| {
                ensure(at == next, Kind::OutOfOrder, || {
                    format!("a delivery of {name} ends at {at}, says {next}")
                })
            });
        }
        self.scratch = scratch;
        self.counts.gap_seqs += gaps.iter().map(pq::Gap::count).sum::<u64>();
        self.passes(stream, reader, &gaps);
        self.counts.delivered += items_count;
        self.note(delivery.next().get());
        let reader = &mut self.slots[stream].readers[reader];
        reader.deliveries.push_back((delivery.clone(), reader.reading));
        if reader.deliveries.len() > DELIVERIES_MAX {
            reader.deliveries.pop_front();
        }
        checked
    }

    pub(super) fn ack(&mut self, stream: usize, reader: usize, back: u8) -> Checked {
        let Some((delivery, reading)) = self.slot(stream).readers[reader].deliveries.back().cloned() else {
            return Ok(());
        };
        let to = delivery.next().get().saturating_sub(u64::from(back)).max(delivery.first().get());
        self.acknowledge(stream, reader, (&delivery, reading), to)
    }

    pub(super) fn ack_again(&mut self, stream: usize, reader: usize) -> Checked {
        let Some((delivery, reading)) = self.slot(stream).readers[reader].deliveries.front().cloned() else {
            return Ok(());
        };
        self.acknowledge(stream, reader, (&delivery, reading), delivery.next().get())
    }

    /// Calls no file; what it answers, and the cursor after it, are known at once.
    fn acknowledge(
        &mut self,
        stream: usize,
        reader: usize,
        (delivery, reading): (&Delivery, u64),
        to: u64,
    ) -> Checked {
        let (Some((_, consumer)), Some(core)) = (self.taken(stream, reader), &self.core) else {
            return Ok(());
        };
        let name = reader_name(reader);
        let before = consumer.cursor().get();
        let is_current = reading == self.slot(stream).readers[reader].reading;
        let done = core.acknowledge(&consumer, delivery, Seq::new(to), Some(&to.to_le_bytes()));
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                return Err(Violation::new(
                    Kind::Unexpected,
                    format!("{name} cannot acknowledge {to}: {error}"),
                ));
            }
        };
        ensure(done == (is_current && to >= before), Kind::Unexpected, || {
            format!("{name} acknowledged {to} at {before}, current reading {is_current}: answered {done}")
        })?;
        if done && let Some(book) = self.oracle.book_mut(stream) {
            book.acked(&name, to);
        }
        self.note(to ^ u64::from(done) << 63);
        let (after, expected) = (consumer.cursor().get(), if done { to } else { before });
        ensure(after == expected, Kind::OutOfOrder, || {
            format!("{name} acknowledged {to} and stands at {after}")
        })
    }

    pub(super) fn turn(&mut self, end: TurnEnd) -> Checked {
        self.turn_taken(end).map(drop)
    }

    /// One turn of a sink; whether there was one that did not fail.
    pub(super) fn turn_taken(&mut self, end: TurnEnd) -> Checked<bool> {
        let Some(core) = &self.core else { return Ok(false) };
        let Some(mut turn) = core.lease(self.now.instant) else { return Ok(false) };
        let of = (0..self.slots.len()).find(|n| super::stream_name(*n) == turn.stream());
        let (stream, reader) = (of.unwrap_or(0), self.readers_count() - 1);
        let read = turn.read(2048, &mut self.buffers);
        if self.is_dead() {
            return Ok(false);
        }
        let now = self.now.instant;
        match read {
            Ok(None) => turn.end(TurnResult::Handed, now),
            Err(error) => {
                turn.end(TurnResult::Failed { wait_min: std::time::Duration::ZERO }, now);
                return self.expect("a sink's read", &error).map(|()| false);
            }
            Ok(Some(delivery)) => {
                self.given(stream, reader, &delivery)?;
                match end {
                    TurnEnd::Taken => {
                        let reading = self.slot(stream).readers[reader].reading;
                        self.acknowledge(stream, reader, (&delivery, reading), delivery.next().get())?;
                        turn.end(TurnResult::Handed, now);
                    }
                    TurnEnd::Failed => {
                        turn.end(TurnResult::Failed { wait_min: std::time::Duration::ZERO }, now)
                    }
                    TurnEnd::Dropped => drop(turn),
                }
                if end != TurnEnd::Taken
                    && let Some(book) = self.oracle.book_mut(stream)
                {
                    book.rewound(&reader_name(reader));
                }
            }
        }
        Ok(true)
    }

    pub(super) fn seek(&mut self, stream: usize, reader: usize, share: u8) -> Checked {
        let (Some((handle, consumer)), Some(core)) = (self.taken(stream, reader), &self.core) else {
            return Ok(());
        };
        let name = reader_name(reader);
        let (first, ends) = (handle.first().get(), handle.log().ends());
        let end = ends.readable.min(ends.durable).get().max(first);
        // Some lie beyond the end.
        let to = 1 + end * u64::from(share) / 250;
        let start = if share % 16 == 15 { Start::Now } else { Start::Seq(Seq::new(to)) };
        let wanted = if start == Start::Now { end } else { to.max(first) };
        let is_beyond = start != Start::Now && to > end;
        if !is_beyond && let Some(book) = self.oracle.book_mut(stream) {
            book.seeking(&name, wanted);
        }
        let sought = core.move_cursor(&handle, &consumer, start, self.now);
        if self.is_dead() {
            return Ok(());
        }
        match sought {
            Ok(at) => {
                ensure(!is_beyond && at.get() == wanted, Kind::OutOfOrder, || {
                    format!("{name} sought {to} of {first}..{end} and stands at {at}")
                })?;
                self.slots[stream].readers[reader].reading += 1;
                self.slots[stream].readers[reader].passed = super::limits::Passed::default();
                if let Some(book) = self.oracle.book_mut(stream) {
                    book.sought(&name, wanted);
                }
                Ok(())
            }
            Err(StreamError::BeyondEnd { .. }) if is_beyond => Ok(()),
            Err(error) => self.expect("seek", &error),
        }
    }

    pub(super) fn retake(&mut self, stream: usize, reader: usize) -> Checked {
        self.release(stream, reader);
        self.create_reader(stream, reader)
    }

    /// Gives a consumer back, if it is taken.
    pub(super) fn release(&mut self, stream: usize, reader: usize) {
        let taken = self.slots[stream].readers[reader].taken.take();
        if let (Some(taken), Some(core)) = (taken, &self.core) {
            core.release(&taken);
            self.slots[stream].readers[reader].reading += 1;
        }
    }
}
