//! pq and published crates that claim persistence behind one narrow door, for whoever kills them, cuts their power and flips their
//! bits: append numbered records, each acknowledged before the next; read back what is there.
//!
//! ```text
//!   peer NAME write DIR   ─▶ stdout: `a 17` once the crate said that record 17 is safe
//!   peer NAME read DIR    ─▶ stdout: `r 17` a record as it was put in, `w …` another, `g …` damage reported, `end`
//!                            (other lines are what a crate prints by itself)
//! ```
//! A record's bytes follow from its number, so that any other payload is known as wrong. Each crate runs at the strongest setting
//! its documentation names; feature `peers` compiles the others.

#[cfg(feature = "peers")]
mod others;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use pq::{Item, Options, Queue};

const CLOSE_DEADLINE: Duration = Duration::from_secs(20);
const PAYLOAD_LEAST: u64 = 24;
const PAYLOAD_SPREAD: u64 = 1000;

/// Which crate, and what it shall do.
#[derive(Args)]
pub(crate) struct Arguments {
    /// pq, okaywal, queue-file, walrus-rust or yaque.
    name: String,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Appends records one after the other; says each number once it is safe.
    Write {
        /// Where the crate keeps its files.
        dir: PathBuf,
        /// The first record's number.
        #[arg(long)]
        first: u64,
        /// How many.
        #[arg(long)]
        count: u64,
    },
    /// Reads all records back.
    Read {
        /// Where the crate keeps its files.
        dir: PathBuf,
    },
    /// The setting it runs at.
    Setting,
}

/// One crate: how to open it for appending, and how to read all of it.
struct Peer {
    /// What makes an append as safe as the crate can.
    setting: &'static str,
    open: fn(&Path) -> Result<Box<dyn Appender>>,
    read: fn(&Path, &mut Seen) -> Result<()>,
}

/// A log or queue, open for appending.
trait Appender {
    /// Returns once the crate says that the record is safe.
    fn append(&mut self, payload: &[u8]) -> Result<()>;

    /// The end of an orderly life.
    fn close(self: Box<Self>) -> Result<()>;
}

/// What a reader saw, said at once.
struct Seen;

impl Seen {
    fn record(&mut self, bytes: &[u8]) {
        let number = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        match number.filter(|number| payload(*number) == bytes) {
            Some(number) => println!("r {number}"),
            None => println!("w {} bytes", bytes.len()),
        }
    }

    fn damage(&mut self, what: &dyn std::fmt::Display) {
        println!("g {}", what.to_string().replace('\n', " "));
    }
}

/// A record's bytes: its number, then bytes that follow from it, of a length that follows from it.
fn payload(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let length = PAYLOAD_LEAST + (mixed >> 32) % PAYLOAD_SPREAD;
    let rest =
        (8..length).map(|at| mixed.rotate_left((at % 61) as u32).to_le_bytes()[0] ^ at.to_le_bytes()[0]);
    number.to_le_bytes().into_iter().chain(rest).collect()
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let peer = find(&arguments.name)?;
    match &arguments.task {
        Task::Write { dir, first, count } => {
            let mut appender = (peer.open)(dir).context("open")?;
            let mut out = std::io::stdout().lock();
            for number in *first..first.saturating_add(*count) {
                appender.append(&payload(number)).context("append")?;
                writeln!(out, "a {number}")?;
                out.flush()?;
            }
            appender.close().context("close")
        }
        Task::Read { dir } => {
            (peer.read)(dir, &mut Seen).context("open")?;
            println!("end");
            Ok(())
        }
        Task::Setting => {
            println!("{}", peer.setting);
            Ok(())
        }
    }
}

fn find(name: &str) -> Result<Peer> {
    match name {
        "pq" => Ok(Peer {
            setting: "append_durable",
            open: |dir| Ok(Box::new(Ours { queue: Queue::open(dir, Options::default())? })),
            read: read_ours,
        }),
        #[cfg(feature = "peers")]
        _ => others::find(name).with_context(|| format!("no peer is named {name}")),
        #[cfg(not(feature = "peers"))]
        _ => bail!("{name} is compiled with the feature `peers` only"),
    }
}

struct Ours {
    queue: Queue,
}

impl Appender for Ours {
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.queue.stream("compared")?.append_durable(payload)?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.queue.close(CLOSE_DEADLINE)?;
        Ok(())
    }
}

fn read_ours(dir: &Path, seen: &mut Seen) -> Result<()> {
    let queue = Queue::open(dir, Options::default())?;
    if queue.streams().is_empty() && queue.recovery().created {
        return Ok(());
    }
    let mut consumer = queue.stream("compared")?.consumer("reader")?;
    while let Some(delivery) = consumer.try_next()? {
        for item in delivery.items() {
            match item {
                Item::Record(record) => seen.record(record.payload),
                Item::Gap(gap) => seen.damage(&format!("gap {}..{}: {:?}", gap.from, gap.to, gap.reason)),
                _ => bail!("something unknown was delivered"),
            }
        }
        consumer.ack(&delivery)?;
    }
    Ok(())
}
