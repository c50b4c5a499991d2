//! A queue to be opened, and the opening of one, watched by `cargo xtask start`.
//!
//! A queue is left closed, or as a kill leaves it: the program ends without a word, the last batches unsynced. Opening it reports how
//! long it took, what it found and how much it read.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use pq::{Options, Queue, Record, Stream};

use crate::load::{PAYLOAD_BYTES, payload};

const CLOSE_DEADLINE: Duration = Duration::from_secs(120);
/// Records of a batch; each batch is one sync, the last one of a stream is not waited for.
const BATCH_RECORDS: u64 = 1000;

/// What to do, and with which queue.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    step: Step,
    /// How the program ends.
    #[arg(long, value_enum, global = true, default_value_t = End::Closed)]
    end: End,
}

#[derive(Subcommand)]
enum Step {
    /// Makes a queue.
    Fill {
        /// Its folder.
        dir: PathBuf,
        /// Streams.
        #[arg(long)]
        streams: u64,
        /// Records of each.
        #[arg(long)]
        records: u64,
    },
    /// Opens it and prints `us=… streams=… records=… read=…`, `read` in bytes.
    Open {
        /// Its folder.
        dir: PathBuf,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum End {
    /// In order.
    Closed,
    /// Between two instructions, as a kill would.
    Killed,
}

/// Does one step.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let queue = match &arguments.step {
        Step::Fill { dir, streams, records } => fill(dir, *streams, *records)?,
        Step::Open { dir } => open(dir)?,
    };
    match arguments.end {
        End::Closed => queue.close(CLOSE_DEADLINE).map(drop).context("close"),
        End::Killed => std::process::exit(0),
    }
}

fn fill(dir: &PathBuf, streams: u64, records: u64) -> Result<Queue> {
    let queue = Queue::open(dir, Options::default())?;
    for number in 0..streams {
        append(&queue.stream(&format!("s{number:06}"))?, records)?;
    }
    Ok(queue)
}

fn append(stream: &Stream, records: u64) -> Result<()> {
    let mut payloads: Vec<[u8; PAYLOAD_BYTES]> = Vec::new();
    for from in (0..records).step_by(usize::try_from(BATCH_RECORDS)?) {
        let to = (from + BATCH_RECORDS).min(records);
        payloads.clear();
        payloads.extend((from..to).map(payload));
        let batch: Vec<_> = payloads.iter().map(|payload| Record::from(payload.as_slice())).collect();
        let ticket = stream.append_batch_blocking(&batch, None)?;
        if to < records {
            ticket.wait()?;
        }
    }
    Ok(())
}

fn open(dir: &PathBuf) -> Result<Queue> {
    let before = read_bytes()?;
    let begun = Instant::now();
    let queue = Queue::open(dir, Options::default())?;
    let took = begun.elapsed();
    let read = read_bytes()? - before;
    let names = queue.streams();
    let mut records = 0;
    for name in &names {
        let stream = queue.stream(name)?;
        records += stream.ends().durable.get() - stream.first().get();
    }
    println!("us={} streams={} records={records} read={read}", took.as_micros(), names.len());
    Ok(queue)
}

/// What this process read so far, from the cache or not.
fn read_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/io").context("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|count| count.trim().parse().ok()).context("no rchar in /proc/self/io")
}
