//! The reference contenders: each benchmark's work done by the plain loops of [`crate::raw`].

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use rustix::thread::futex;

use crate::harness::{Sample, median};
use crate::load::{Load, payload};
use crate::raw::{RawGroup, RawLog, open_batch, push_frame, seal_batch};

/// Bytes a buffered put writes at once.
const PUT_WRITE_BYTES: usize = 1 << 20;

fn batch_of(batch: &mut Vec<u8>, from: u64, count: u64) {
    open_batch(batch);
    for number in from..from + count {
        push_frame(batch, &payload(number));
    }
    seal_batch(batch);
}

/// One producer, one record a sync: the median time in microseconds, the 99th percentile beside it.
pub(crate) fn append(folder: &Path, load: &Load) -> Result<Sample> {
    let mut log = RawLog::create(&folder.join("raw"))?;
    let mut batch = Vec::new();
    let mut times = Vec::new();
    for number in 0..load.appends {
        let begun = Instant::now();
        batch_of(&mut batch, number, 1);
        log.write(&batch)?;
        log.sync()?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times_sample(times))
}

/// A sample of single times in microseconds.
pub(crate) fn times_sample(mut times: Vec<f64>) -> Sample {
    times.sort_by(f64::total_cmp);
    let p99 = times.get(times.len() * 99 / 100).copied();
    Sample { figure: median(times), beside: p99, records_per_sync: Some(1.0) }
}

/// One producer, `batch_records` a sync: payload bytes a second.
pub(crate) fn batch(folder: &Path, load: &Load) -> Result<Sample> {
    let mut log = RawLog::create(&folder.join("raw"))?;
    let mut batch = Vec::new();
    let begun = Instant::now();
    for round in 0..load.batches {
        batch_of(&mut batch, round * load.batch_records, load.batch_records);
        log.write(&batch)?;
        log.sync()?;
    }
    let bytes = load.payload_bytes(load.batches * load.batch_records);
    Ok(Sample {
        figure: bytes / begun.elapsed().as_secs_f64(),
        records_per_sync: Some(load.batch_records as f64),
        ..Sample::default()
    })
}

/// Many threads, each waiting for its own record: records a second.
pub(crate) fn group(folder: &Path, load: &Load) -> Result<Sample> {
    let mut log = RawLog::create(&folder.join("raw"))?;
    let group = RawGroup::new();
    let begun = Instant::now();
    let (syncs, seconds) = std::thread::scope(|scope| -> Result<_> {
        let committer = scope.spawn(|| group.commit_until_stopped(&mut log));
        let producers: Vec<_> = (0..load.group_threads)
            .map(|thread| {
                let group = &group;
                scope.spawn(move || {
                    for number in 0..load.group_appends {
                        group.append_durable(&payload(thread * load.group_appends + number));
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().map_err(|_| anyhow!("a producer panicked"))?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        group.stop();
        let syncs = committer.join().map_err(|_| anyhow!("the committer panicked"))??;
        Ok((syncs, seconds))
    })?;
    let records = (load.group_threads * load.group_appends) as f64;
    Ok(Sample {
        figure: records / seconds,
        records_per_sync: Some(records / syncs as f64),
        ..Sample::default()
    })
}

/// One call a record, nothing synced: records a second until the last one is written.
pub(crate) fn put(folder: &Path, load: &Load) -> Result<Sample> {
    let mut log = RawLog::create(&folder.join("raw"))?;
    let mut batch = Vec::with_capacity(PUT_WRITE_BYTES * 2);
    let begun = Instant::now();
    open_batch(&mut batch);
    for number in 0..load.puts {
        push_frame(&mut batch, &payload(number));
        if batch.len() >= PUT_WRITE_BYTES {
            seal_batch(&mut batch);
            log.write(&batch)?;
            open_batch(&mut batch);
        }
    }
    seal_batch(&mut batch);
    log.write(&batch)?;
    Ok(Sample { figure: load.puts as f64 / begun.elapsed().as_secs_f64(), ..Sample::default() })
}

/// Reads back what was written before: records a second.
pub(crate) fn drain(folder: &Path, load: &Load) -> Result<Sample> {
    let mut log = RawLog::create(&folder.join("raw"))?;
    let mut batch = Vec::new();
    let mut from = 0;
    while from < load.drains {
        let count = load.batch_records.min(load.drains - from);
        batch_of(&mut batch, from, count);
        log.write(&batch)?;
        from += count;
    }
    log.sync()?;
    let mut reader = log.reader()?;
    let begun = Instant::now();
    let (records, sum) = reader.read_to(log.end())?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(
        records == load.drains && sum == load.sum_of_first_bytes(records),
        "the reader saw something else"
    );
    Ok(Sample { figure: records as f64 / seconds, ..Sample::default() })
}

/// A producer of durable batches and a reader at its heels: records a second until the last one is read.
pub(crate) fn end_to_end(folder: &Path, load: &Load) -> Result<Sample> {
    let mut log = RawLog::create(&folder.join("raw"))?;
    let mut reader = log.reader()?;
    let end = AtomicU64::new(0);
    let rounds = AtomicU32::new(0);
    let total = load.tail_batches * load.tail_batch_records;
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let consumer = scope.spawn(|| -> Result<()> {
            let mut seen = 0;
            while seen < total {
                let round = rounds.load(Ordering::Acquire);
                let (records, _) = reader.read_to(end.load(Ordering::Acquire))?;
                seen += records;
                if records == 0 {
                    let _changed = futex::wait(&rounds, futex::Flags::PRIVATE, round, None);
                }
            }
            Ok(())
        });
        let mut batch = Vec::new();
        for round in 0..load.tail_batches {
            batch_of(&mut batch, round * load.tail_batch_records, load.tail_batch_records);
            log.write(&batch)?;
            log.sync()?;
            end.store(log.end(), Ordering::Release);
            rounds.fetch_add(1, Ordering::AcqRel);
            let _woken = futex::wake(&rounds, futex::Flags::PRIVATE, 1);
        }
        consumer.join().map_err(|_| anyhow!("the reader panicked"))?
    })?;
    Ok(Sample {
        figure: total as f64 / begun.elapsed().as_secs_f64(),
        records_per_sync: Some(load.tail_batch_records as f64),
        ..Sample::default()
    })
}
