//! Opening a harmed queue as its next owner does, and writing down what a client sees.

use std::sync::Arc;

use disk::Disk;
use pq::core::{Core, CoreConsumer, CoreStream, Seed};
use pq::{Item, Start};
use sim_disk::SimDisk;
use wal_store::{ReadBuffers, Want};

use crate::flip::specimen::{OTHER, OTHER_PAYLOAD, SLOW, STREAM, Specimen, now, options};

/// What a client sees of the harmed queue.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The stream is there and runs.
    pub(crate) found: Found,
    /// Seqs delivered, ascending.
    pub(crate) delivered: Vec<u64>,
    /// Gaps delivered in their place, `[from, to)`, ascending.
    pub(crate) gaps: Vec<(u64, u64)>,
    /// Gaps that the open reported.
    pub(crate) opened: Vec<(u64, u64)>,
    /// The seq that the next record gets.
    pub(crate) next_seq: u64,
    /// The cursor of each consumer, in the specimen's order; `None`: nobody knows it.
    pub(crate) cursors: Vec<Option<u64>>,
    /// What must never be: a payload that was never written under this seq, an order that is none, and the like.
    pub(crate) wrong: Vec<String>,
    /// The open said something about the queue's own files.
    pub(crate) notes: Vec<String>,
    /// Names that the open listed as not the queue's.
    pub(crate) strays: Vec<String>,
}

/// Whether the stream is there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// It runs.
    #[default]
    Running,
    /// The catalog does not know it.
    Unknown,
    /// It is there and cannot run now, with the reason.
    Paused(String),
    /// The queue did not open, with the reason.
    Refused(String),
}

/// How much is done after reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Nothing.
    Read,
    /// A record is appended and delivered, and the queue is opened once more.
    GoOn,
}

/// Opens the harmed disk and reads everything.
pub(crate) fn look(specimen: &Specimen, disk: &SimDisk, depth: Depth) -> Seen {
    let mut seen = Seen::default();
    let core = match Core::open(Arc::new(disk.clone()) as Arc<dyn Disk>, options(), Seed::Fixed(2), now()) {
        Ok(core) => core,
        Err(error) => {
            seen.found = Found::Refused(error.to_string());
            return seen;
        }
    };
    seen.notes.clone_from(&core.report().notes);
    seen.strays.clone_from(&core.report().strays);
    for told in core.report().streams.iter().filter(|told| told.name == STREAM) {
        seen.opened.extend(told.gaps.iter().map(|gap| (gap.from.get(), gap.to.get())));
        if let Some(reason) = &told.paused {
            seen.found = Found::Paused(reason.clone());
            return seen;
        }
    }
    if !core.names().iter().any(|name| name == STREAM) {
        seen.found = Found::Unknown;
        return seen;
    }
    let stream = match core.open_stream(STREAM, None, now()) {
        Ok(stream) => stream,
        Err(error) => {
            seen.found = Found::Paused(error.to_string());
            return seen;
        }
    };
    seen.next_seq = stream.log().ends().appended.get();
    let known: Vec<String> = stream.consumers().iter().map(|consumer| consumer.name().to_owned()).collect();
    let mut slow = None;
    for (name, _) in &specimen.consumers {
        let is_known = known.iter().any(|known| known == name);
        match core.open_consumer(&stream, name, Start::Oldest, now()) {
            Ok(consumer) => {
                seen.cursors.push(is_known.then(|| consumer.cursor().get()));
                if *name == SLOW {
                    slow = Some(consumer);
                }
            }
            Err(error) => seen.wrong.push(format!("consumer {name}: {error}")),
        }
    }
    if let Some(slow) = slow {
        drain(&core, &stream, &slow, specimen, &mut seen);
        if depth == Depth::GoOn {
            go_on(&core, &stream, &slow, &mut seen);
        }
    }
    if depth == Depth::GoOn {
        other(&core, &mut seen);
        drop((core, stream));
        again(disk, &mut seen);
    }
    seen
}

/// Reads everything there is for a consumer.
fn drain(core: &Core, stream: &CoreStream, consumer: &CoreConsumer, specimen: &Specimen, seen: &mut Seen) {
    let mut buffers = ReadBuffers::default();
    let mut expected = consumer.cursor().get();
    loop {
        match core.next(stream, consumer, 1 << 20, &mut buffers, now()) {
            Ok(None) => return,
            Err(error) => return seen.wrong.push(format!("reading: {error}")),
            Ok(Some(delivery)) => {
                for item in delivery.items() {
                    let (from, to) = match item {
                        Item::Record(record) => {
                            let seq = record.seq.get();
                            let truth =
                                seq.checked_sub(1).and_then(|index| specimen.payloads.get(index as usize));
                            if truth.is_none_or(|truth| truth != record.payload) {
                                seen.wrong
                                    .push(format!("seq {seq} has a payload that was never written there"));
                            }
                            seen.delivered.push(seq);
                            (seq, seq + 1)
                        }
                        Item::Gap(gap) => {
                            seen.gaps.push((gap.from.get(), gap.to.get()));
                            (gap.from.get(), gap.to.get())
                        }
                        _ => continue,
                    };
                    if from != expected || to <= from {
                        seen.wrong.push(format!("{from}..{to} was delivered where {expected} was expected"));
                    }
                    expected = to;
                }
                if delivery.next().get() != expected {
                    seen.wrong
                        .push(format!("a delivery says it ends at {}, not {expected}", delivery.next()));
                    return;
                }
            }
        }
    }
}

/// A record appended now must come, and nothing but a gap in front of it.
fn go_on(core: &Core, stream: &CoreStream, consumer: &CoreConsumer, seen: &mut Seen) {
    let appended = stream.log().append(b"new", now()).map(|ticket| ticket.seq());
    let committed = stream.log().commit(now(), Want::Durable);
    let seq = match (appended, committed) {
        (Ok(seq), Ok(_)) => seq,
        (appended, committed) => {
            return seen.wrong.push(format!("nothing can be appended: {appended:?}, {committed:?}"));
        }
    };
    let mut buffers = ReadBuffers::default();
    let mut payloads = Vec::new();
    while let Ok(Some(delivery)) = core.next(stream, consumer, 1 << 20, &mut buffers, now()) {
        payloads.extend(delivery.records().map(|record| (record.seq, record.payload.to_vec())));
    }
    if payloads != [(seq, b"new".to_vec())] {
        seen.wrong.push(format!("{} records came instead of the new one", payloads.len()));
    }
}

/// The neighbour is untouched.
fn other(core: &Core, seen: &mut Seen) {
    if !core.names().iter().any(|name| name == OTHER) {
        return;
    }
    let read = || -> Result<Vec<Vec<u8>>, String> {
        let stream = core.open_stream(OTHER, None, now()).map_err(|e| e.to_string())?;
        let consumer =
            core.open_consumer(&stream, "look", Start::Oldest, now()).map_err(|e| e.to_string())?;
        let next = core.next(&stream, &consumer, 1 << 20, &mut ReadBuffers::default(), now());
        let delivery = next.map_err(|e| e.to_string())?;
        Ok(delivery
            .iter()
            .flat_map(|d| d.records().map(|r| r.payload.to_vec()).collect::<Vec<_>>())
            .collect())
    };
    match read() {
        Ok(payloads) if payloads == [OTHER_PAYLOAD.to_vec()] => {}
        found => seen.wrong.push(format!("stream {OTHER} is not as it was: {found:?}")),
    }
}

/// A second open finds nothing new.
fn again(disk: &SimDisk, seen: &mut Seen) {
    let disk = disk.kill();
    match Core::open(Arc::new(disk) as Arc<dyn Disk>, options(), Seed::Fixed(3), now()) {
        Ok(core) => {
            let told = core.report().streams.iter().filter(|told| told.name == STREAM);
            let gaps: Vec<_> = told.flat_map(|told| told.gaps.clone()).collect();
            if !gaps.is_empty() {
                seen.wrong.push(format!("a second open finds losses the first did not: {gaps:?}"));
            }
        }
        Err(error) => seen.wrong.push(format!("a second open fails: {error}")),
    }
}
