//! A queue's whole life, to be killed at any call: create, append, rotate, acknowledge, save, retire, remove a consumer, delete a
//! stream and create it again, close, open again. Each start first holds what is there against what earlier starts wrote down.
//!
//! ```text
//!   log, beside the queue, one write a line      intent before the call (`acking`, `deleting`, `new`), fact after it
//!                                                (`durable`, `saved`, `deleted`); a kill keeps what was written
//!   number of a record = its seq − 1             nothing is appended that is not waited for, so seqs are dense
//! ```
//! It is no benchmark: `cargo xtask kill --points` starts it, and kills it where `PQ_CRASH` says.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use pq::{Consumer, Item, Options, Queue, Seq, Stream, StreamSettings};

const CLOSE_DEADLINE: Duration = Duration::from_secs(20);
/// Segments of a dozen records.
const SEGMENT_BYTES: u64 = 8 << 10;
const PAYLOAD_BYTES: usize = 300;
/// The exit code for whoever reads nothing else.
const VIOLATED: u8 = 3;

/// Where it lives.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The queue's folder.
    dir: PathBuf,
    /// What was promised, line by line; outside the queue.
    log: PathBuf,
    /// Somebody damages segments between the starts: gaps are to be expected, wrong records are not.
    #[arg(long)]
    damaged: bool,
}

/// What earlier starts wrote down of one stream.
#[derive(Default)]
struct Known {
    epoch: u64,
    /// Records below this number are durable.
    durable: u64,
    /// The cursor was saved at this number.
    saved: u64,
    /// The highest number that anybody began to acknowledge.
    acking: u64,
    deleting: bool,
    deleted: bool,
}

struct Life<'a> {
    arguments: &'a Arguments,
    queue: Queue,
    log: File,
    known: BTreeMap<String, Known>,
    starts: u64,
    wrong: Vec<String>,
}

/// One start: check, live on, close.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match live(arguments) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            wrong.iter().for_each(|what| eprintln!("{what}"));
            ExitCode::from(VIOLATED)
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn live(arguments: &Arguments) -> Result<Vec<String>> {
    let text = match std::fs::read_to_string(&arguments.log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let log = OpenOptions::new().create(true).append(true).open(&arguments.log)?;
    let starts = text.lines().filter(|line| *line == "start").count() as u64;
    let options = Options { cursor_interval: Duration::from_secs(60), ..Options::default() };
    let queue = Queue::open(&arguments.dir, options).context("open")?;
    let mut life = Life { arguments, queue, log, known: known(&text), starts, wrong: Vec::new() };
    life.note("start")?;
    life.deleted_stay_deleted();
    life.long_stream().context("stream a")?;
    life.short_stream().context("stream b")?;
    life.queue.close(CLOSE_DEADLINE).context("close")?;
    Ok(life.wrong)
}

/// What the lines of the log say.
fn known(text: &str) -> BTreeMap<String, Known> {
    let mut all: BTreeMap<String, Known> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(verb), Some(name)) = (words.next(), words.next()) else { continue };
        let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let known = all.entry(name.to_owned()).or_default();
        match verb {
            "new" => *known = Known { epoch: number, ..Known::default() },
            "durable" => known.durable = number + 1,
            "saved" => known.saved = number,
            "acking" => known.acking = number,
            "deleting" => known.deleting = true,
            "deleted" => known.deleted = true,
            _ => {}
        }
    }
    all
}

impl Life<'_> {
    /// One write: it is there after a kill.
    fn note(&mut self, line: &str) -> Result<()> {
        Ok(self.log.write_all(format!("{line}\n").as_bytes())?)
    }

    fn wrong(&mut self, what: String) {
        self.wrong.push(format!("start {}: {what}", self.starts));
    }

    fn deleted_stay_deleted(&mut self) {
        let there = self.queue.streams();
        let back = self.known.iter().filter(|(name, known)| known.deleted && there.contains(name));
        let back: Vec<_> = back.map(|(name, _)| format!("{name} was deleted and is back")).collect();
        back.into_iter().for_each(|what| self.wrong(what));
    }

    /// Lives as long as the queue: rotated, read half, retired; a second consumer comes and goes.
    fn long_stream(&mut self) -> Result<()> {
        let stream = self.open("a")?;
        self.check(&stream)?;
        self.append(&stream, 30)?;
        stream.rotate()?;
        self.consume(&stream, 20)?;
        self.queue.save_cursors()?;
        if stream.consumers().iter().any(|consumer| consumer.name == "passing") {
            stream.remove_consumer("passing")?;
        }
        drop(stream.consumer("passing")?);
        stream.remove_consumer("passing")?;
        self.append(&stream, 3)
    }

    /// Deleted and created again at every start.
    fn short_stream(&mut self) -> Result<()> {
        let there = self.queue.streams().iter().any(|name| name == "b");
        let epoch = match self.known.get("b") {
            Some(known) if !known.deleting => {
                let stream = self.open("b")?;
                self.check(&stream)?;
                self.known.get("b").map_or(0, |known| known.epoch)
            }
            Some(known) => known.epoch,
            None => 0,
        };
        if there {
            self.note("deleting b")?;
            self.queue.delete_stream("b")?;
            self.note("deleted b")?;
        }
        self.note(&format!("new b {}", epoch + 1))?;
        self.known.insert("b".to_owned(), Known { epoch: epoch + 1, ..Known::default() });
        let stream = self.open("b")?;
        self.check(&stream)?;
        self.append(&stream, 15)?;
        self.consume(&stream, 5)
    }

    /// Each start gives other settings, which are kept durably.
    fn open(&self, name: &str) -> Result<Stream> {
        let settings = StreamSettings {
            segment_bytes_max: SEGMENT_BYTES,
            commit_interval: Duration::from_millis(20 + self.starts),
            ..StreamSettings::default()
        };
        Ok(self.queue.stream_with(name, settings)?)
    }

    fn append(&mut self, stream: &Stream, count: u64) -> Result<()> {
        let epoch = self.known.get(stream.name()).map_or(0, |known| known.epoch);
        for _ in 0..count {
            let number = stream.ends().appended.get() - 1;
            let seq = stream.append_durable(payload(stream.name(), epoch, number))?;
            if seq.get() != number + 1 {
                self.wrong(format!("{}: record {number} got seq {seq}", stream.name()));
            }
            self.note(&format!("durable {} {number}", stream.name()))?;
        }
        Ok(())
    }

    /// Acknowledges about as many records, and waits until that is saved.
    fn consume(&mut self, stream: &Stream, count: u64) -> Result<()> {
        let mut consumer = stream.consumer("c")?;
        let from = consumer.cursor().get();
        while let Some(delivery) = consumer.try_next()? {
            let to = delivery.next().get().min(from + count);
            self.note(&format!("acking {} {}", stream.name(), to - 1))?;
            consumer.ack_to(Seq::new(to))?.wait()?;
            self.note(&format!("saved {} {}", stream.name(), to - 1))?;
            if to == from + count {
                break;
            }
        }
        Ok(())
    }

    /// From the cursor on, everything durable is delivered, in order, and nothing that is not of this life of the stream.
    fn check(&mut self, stream: &Stream) -> Result<()> {
        let name = stream.name().to_owned();
        let known = self.known.remove(&name).unwrap_or_default();
        let mut consumer = stream.consumer("c")?;
        let cursor = consumer.cursor().get() - 1;
        if cursor < known.saved || cursor > known.acking.max(known.saved) {
            let (saved, acking) = (known.saved, known.acking);
            self.wrong(format!("{name}: cursor {cursor}, saved was {saved}, acknowledged at most {acking}"));
        }
        let end = self.walk(&mut consumer, &name, known.epoch)?;
        if end < known.durable {
            self.wrong(format!("{name}: delivered up to {end}, durable were {}", known.durable));
        }
        self.known.insert(name, known);
        Ok(())
    }

    /// Reads to the end; returns the number behind the last.
    fn walk(&mut self, consumer: &mut Consumer, name: &str, epoch: u64) -> Result<u64> {
        let mut next = consumer.cursor().get() - 1;
        while let Some(delivery) = consumer.try_next()? {
            for item in delivery.items() {
                match item {
                    Item::Record(record) => {
                        let number = record.seq.get() - 1;
                        if number != next || record.payload != payload(name, epoch, number).as_slice() {
                            let text = String::from_utf8_lossy(record.payload).into_owned();
                            self.wrong(format!("{name}: {next} expected, at {number} came {text:.30}"));
                        }
                        next = number + 1;
                    }
                    Item::Gap(gap) => {
                        if !self.arguments.damaged || gap.from.get() - 1 != next {
                            self.wrong(format!("{name}: at {next} came a gap, {gap:?}"));
                        }
                        next = gap.to.get() - 1;
                    }
                    _ => self.wrong(format!("{name}: something unknown was delivered")),
                }
            }
        }
        Ok(next)
    }
}

fn payload(name: &str, epoch: u64, number: u64) -> Vec<u8> {
    let mut bytes = format!("{name} {epoch} {number} ").into_bytes();
    bytes.resize(PAYLOAD_BYTES, b'.');
    bytes
}
