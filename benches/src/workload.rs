//! Single workloads for whoever watches the process from outside, by `strace` for example.
//!
//! Each prints one line of JSON: how much it did, and the syncs that the store itself counted.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use pq::{Options, Queue, Stream, StreamSettings};

const PRODUCERS: u64 = 64;
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

/// Which workload, and how much of it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// batches: one producer, 10 MB batches; append: one producer, each record durable; group: 64 producers, each record durable;
    /// drain: read and acknowledge what drain-fill left.
    name: String,
    /// Records in all.
    #[arg(long)]
    records: u64,
    /// Bytes of a record.
    #[arg(long, default_value_t = 256)]
    payload_bytes: usize,
    /// The queue's folder.
    #[arg(long)]
    dir: PathBuf,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let queue = Queue::open(&arguments.dir, Options::default())?;
    let settings = StreamSettings { commit_interval: Duration::from_secs(5), ..StreamSettings::default() };
    let stream = queue.stream_with("work", settings)?;
    let before = stream.stats().syncs_count;
    match arguments.name.as_str() {
        "batches" => batches(&stream, arguments)?,
        "append" => append(&stream, arguments)?,
        "group" => group(&stream, arguments)?,
        "drain-fill" => {
            // A registered consumer: from now on every record is kept for it.
            drop(stream.consumer("reader")?);
            batches(&stream, arguments)?;
        }
        "drain" => drain(&stream, arguments)?,
        other => bail!("no workload is named {other}: batches, append, group, drain-fill or drain"),
    }
    let syncs = stream.stats().syncs_count - before;
    queue.close(CLOSE_DEADLINE)?;
    let bytes = arguments.records * arguments.payload_bytes as u64;
    println!("{{\"records\":{},\"payload_bytes\":{bytes},\"syncs\":{syncs}}}", arguments.records);
    Ok(())
}

fn payload(arguments: &Arguments) -> Vec<u8> {
    vec![0x5a; arguments.payload_bytes]
}

/// Nobody waits for a record: the store commits when a batch is full.
fn batches(stream: &Stream, arguments: &Arguments) -> Result<()> {
    let payload = payload(arguments);
    for _ in 0..arguments.records {
        // Committed by its batch; the last commit below waits for all of them.
        drop(stream.append_blocking(&payload)?);
    }
    stream.commit_blocking()?;
    Ok(())
}

fn append(stream: &Stream, arguments: &Arguments) -> Result<()> {
    let payload = payload(arguments);
    for _ in 0..arguments.records {
        stream.append_durable(&payload)?;
    }
    Ok(())
}

fn group(stream: &Stream, arguments: &Arguments) -> Result<()> {
    let payload = payload(arguments);
    std::thread::scope(|scope| {
        let producer = |number: u64| {
            let share = arguments.records / PRODUCERS + u64::from(number < arguments.records % PRODUCERS);
            let payload = &payload;
            scope.spawn(move || (0..share).try_for_each(|_| stream.append_durable(payload).map(drop)))
        };
        let producers: Vec<_> = (0..PRODUCERS).map(producer).collect();
        for producer in producers {
            producer.join().map_err(|_| anyhow!("a producer panicked"))??;
        }
        Ok(())
    })
}

fn drain(stream: &Stream, arguments: &Arguments) -> Result<()> {
    let mut consumer = stream.consumer("reader")?;
    let mut records = 0;
    while records < arguments.records {
        let delivery = consumer.next_blocking()?.context("the stream ended early")?;
        records += delivery.records().count() as u64;
        let _acked = consumer.ack(&delivery)?;
    }
    Ok(())
}
