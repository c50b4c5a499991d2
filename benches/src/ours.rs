//! Our contenders: each benchmark's work done through the public API of `pq`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use pq::{Level, Options, Queue, ReadMethod, Record, Seq, Stream, StreamSettings, SyncSetting};

use crate::harness::Sample;
use crate::load::{Load, PAYLOAD_BYTES, payload};
use crate::reference::times_sample;

/// More than the put benchmark writes.
const UNSYNCED_BYTES: u64 = 1 << 30;
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// A new queue with one stream; closed by [`Bench::end`].
struct Bench {
    queue: Queue,
    stream: Stream,
}

impl Bench {
    fn begin(folder: &Path, settings: StreamSettings) -> Result<Self> {
        Self::begin_with(folder, settings, Options::default())
    }

    fn begin_with(folder: &Path, settings: StreamSettings, options: Options) -> Result<Self> {
        let queue = Queue::open(folder.join("pq"), options)?;
        let stream = queue.stream_with("bench", settings)?;
        Ok(Self { queue, stream })
    }

    /// Syncs of data since the stream was opened.
    fn syncs(&self) -> u64 {
        self.stream.stats().syncs_count
    }

    fn end(self) -> Result<()> {
        self.queue.close(CLOSE_DEADLINE)?;
        Ok(())
    }

    /// Appends records `from..from + count` as one batch and returns its ticket.
    fn batch(&self, payloads: &mut Vec<[u8; PAYLOAD_BYTES]>, from: u64, count: u64) -> Result<pq::Ticket> {
        payloads.clear();
        payloads.extend((from..from + count).map(payload));
        let records: Vec<_> = payloads.iter().map(|payload| Record::from(payload.as_slice())).collect();
        Ok(self.stream.append_batch_blocking(&records, None)?)
    }
}

/// One producer, one record a sync: the median time in microseconds, the 99th percentile beside it.
pub(crate) fn append(folder: &Path, load: &Load) -> Result<Sample> {
    let bench = Bench::begin(folder, StreamSettings::default())?;
    let mut times = Vec::new();
    let syncs = bench.syncs();
    for number in 0..load.appends {
        let begun = Instant::now();
        bench.stream.append_durable(payload(number))?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let per_sync = load.appends as f64 / (bench.syncs() - syncs).max(1) as f64;
    bench.end()?;
    Ok(Sample { records_per_sync: Some(per_sync), ..times_sample(times) })
}

/// One producer, `batch_records` a sync: payload bytes a second.
pub(crate) fn batch(folder: &Path, load: &Load) -> Result<Sample> {
    let bench = Bench::begin(folder, StreamSettings::default())?;
    let mut payloads = Vec::new();
    let syncs = bench.syncs();
    let begun = Instant::now();
    for round in 0..load.batches {
        bench.batch(&mut payloads, round * load.batch_records, load.batch_records)?.wait()?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let records = load.batches * load.batch_records;
    let per_sync = records as f64 / (bench.syncs() - syncs).max(1) as f64;
    bench.end()?;
    Ok(Sample {
        figure: load.payload_bytes(records) / seconds,
        records_per_sync: Some(per_sync),
        ..Sample::default()
    })
}

/// Many threads, each waiting for its own record: records a second.
pub(crate) fn group(folder: &Path, load: &Load) -> Result<Sample> {
    let bench = Bench::begin(folder, StreamSettings::default())?;
    let syncs = bench.syncs();
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let producers: Vec<_> = (0..load.group_threads)
            .map(|thread| {
                let stream = &bench.stream;
                scope.spawn(move || -> Result<()> {
                    for number in 0..load.group_appends {
                        stream.append_durable(payload(thread * load.group_appends + number))?;
                    }
                    Ok(())
                })
            })
            .collect();
        for producer in producers {
            producer.join().map_err(|_| anyhow!("a producer panicked"))??;
        }
        Ok(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let records = (load.group_threads * load.group_appends) as f64;
    let per_sync = records / (bench.syncs() - syncs).max(1) as f64;
    bench.end()?;
    Ok(Sample { figure: records / seconds, records_per_sync: Some(per_sync), ..Sample::default() })
}

/// One call a record, nothing synced: records a second until the last one is written.
pub(crate) fn put(folder: &Path, load: &Load) -> Result<Sample> {
    // The reference loop syncs nothing: neither do we, not even at a rotation.
    let settings = StreamSettings {
        sync: SyncSetting::Never,
        segment_bytes_max: UNSYNCED_BYTES,
        unsynced_bytes_max: UNSYNCED_BYTES,
        ..StreamSettings::default()
    };
    let bench = Bench::begin(folder, settings)?;
    let begun = Instant::now();
    let mut last = None;
    for number in 0..load.puts {
        last = Some(bench.stream.append_blocking(payload(number))?);
    }
    last.context("nothing was put")?.level(Level::Written).wait()?;
    let seconds = begun.elapsed().as_secs_f64();
    bench.end()?;
    Ok(Sample { figure: load.puts as f64 / seconds, ..Sample::default() })
}

/// Reads back what was written before, each delivery acknowledged: records a second.
pub(crate) fn drain(folder: &Path, load: &Load) -> Result<Sample> {
    drain_by(ReadMethod::Read, folder, load)
}

/// [`drain`] with rotated segments mapped instead of read.
pub(crate) fn drain_map(folder: &Path, load: &Load) -> Result<Sample> {
    drain_by(ReadMethod::Map, folder, load)
}

fn drain_by(read_method: ReadMethod, folder: &Path, load: &Load) -> Result<Sample> {
    let options = Options { read_method, ..Options::default() };
    let bench = Bench::begin_with(folder, StreamSettings::default(), options)?;
    // Registered first: a stream keeps everything for it.
    let mut consumer = bench.stream.consumer("reader")?;
    let mut payloads = Vec::new();
    let mut from = 0;
    while from < load.drains {
        let count = load.batch_records.min(load.drains - from);
        drop(bench.batch(&mut payloads, from, count)?);
        from += count;
    }
    bench.stream.commit_blocking()?;
    let (mut records, mut sum) = (0u64, 0u64);
    let begun = Instant::now();
    while records < load.drains {
        let delivery = consumer.next_blocking()?.context("the stream ended early")?;
        for record in delivery.records() {
            records += 1;
            sum += u64::from(record.payload.first().copied().unwrap_or(0));
        }
        let _acked = consumer.ack(&delivery)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(
        records == load.drains && sum == load.sum_of_first_bytes(records),
        "the consumer saw something else"
    );
    drop(consumer);
    bench.end()?;
    Ok(Sample { figure: records as f64 / seconds, ..Sample::default() })
}

/// A producer of durable batches and a consumer at its heels: records a second until the last one is acknowledged.
pub(crate) fn end_to_end(folder: &Path, load: &Load) -> Result<Sample> {
    let bench = Bench::begin(folder, StreamSettings::default())?;
    let mut consumer = bench.stream.consumer("reader")?;
    let total = load.tail_batches * load.tail_batch_records;
    let syncs = bench.syncs();
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let reader = scope.spawn(move || -> Result<()> {
            let mut next = Seq::FIRST.get();
            while next <= total {
                let delivery = consumer.next_blocking()?.context("the stream ended early")?;
                for record in delivery.records() {
                    ensure!(record.seq.get() == next, "record {} came in the place of {next}", record.seq);
                    next += 1;
                }
                let _acked = consumer.ack(&delivery)?;
            }
            Ok(())
        });
        let mut payloads = Vec::new();
        for round in 0..load.tail_batches {
            bench.batch(&mut payloads, round * load.tail_batch_records, load.tail_batch_records)?.wait()?;
        }
        reader.join().map_err(|_| anyhow!("the consumer panicked"))?
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let per_sync = total as f64 / (bench.syncs() - syncs).max(1) as f64;
    bench.end()?;
    Ok(Sample { figure: total as f64 / seconds, records_per_sync: Some(per_sync), ..Sample::default() })
}
