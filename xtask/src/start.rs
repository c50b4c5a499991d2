//! How long a queue takes to open: with many streams, and with a long backlog; closed in order, and as a kill leaves it.
//!
//! Times are printed and bound nothing. What is held is what they rest on: opening finds everything, and reads no more than the newest
//! segment of each stream, once, a little of each older one, and the queue's own files: a backlog is not read.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::pipeline::{CrashPoints, Scratch, build};
use crate::shell::{output, verdict};

/// Payload bytes of a record, as `pq-bench start` writes them.
const PAYLOAD_BYTES: u64 = 256;
/// Records of a batch there: the last batch of a stream may be missing behind a kill.
const BATCH_RECORDS: u64 = 1000;
/// Records of each of many streams.
const RECORDS_OF_MANY: u64 = 10;
/// Streams of a long backlog.
const STREAMS_OF_BACKLOG: u64 = 4;
/// What opening may read of any segment; of a stream's newest beside all of it.
const HEAD_BYTES_MAX: u64 = 16 << 10;

/// How much.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Streams of the queue with many.
    #[arg(long, default_value_t = 10_000)]
    streams: u64,
    /// Payload of the queue with a backlog, in MiB; a fifth more must be free on the disk.
    #[arg(long, default_value_t = 10 << 10)]
    backlog: u64,
    /// Openings of each kind; the median is printed.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// A queue to be opened.
struct Case {
    streams: u64,
    records: u64,
    end: End,
}

/// How its last owner left it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

impl End {
    /// As `pq-bench start` takes it.
    const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Killed => "killed",
        }
    }
}

/// What opening it once came to.
struct Opened {
    ms: f64,
    streams: u64,
    records: u64,
    read: u64,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.rounds > 0 && arguments.streams > 0, "--rounds and --streams must be at least 1");
    let scratch = Scratch::new("start")?;
    let program = build("pq-bench", "pq-bench", CrashPoints::Absent)?;
    let records = (arguments.backlog << 20) / PAYLOAD_BYTES / STREAMS_OF_BACKLOG;
    let mut found = Vec::new();
    for end in [End::Closed, End::Killed] {
        for case in [
            Case { streams: arguments.streams, records: RECORDS_OF_MANY, end },
            Case { streams: STREAMS_OF_BACKLOG, records, end },
        ] {
            watch(&program, scratch.path(), &case, arguments.rounds, &mut found)?;
        }
    }
    let figures = format!(
        "{} streams and {} MiB of backlog, {} rounds",
        arguments.streams, arguments.backlog, arguments.rounds
    );
    verdict("start", &figures, &found)?;
    scratch.passed();
    Ok(())
}

/// Fills a queue, opens it again and again, prints a line.
fn watch(program: &Path, folder: &Path, case: &Case, rounds: usize, found: &mut Vec<String>) -> Result<()> {
    let queue = folder.join("queue");
    let start = |step: &str| {
        let mut command = Command::new(program);
        command.args(["start", step]).arg(&queue).args(["--end", case.end.word()]);
        command
    };
    let (streams, records) = (case.streams.to_string(), case.records.to_string());
    output(start("fill").args(["--streams", &streams, "--records", &records]))?;
    let (bytes, read_max) = sizes(&queue)?;
    let name = format!("{} streams, {} MiB, {}", case.streams, bytes >> 20, case.end.word());
    let mut line = format!("start: {name}:");
    let mut read = 0;
    for cache in ["cold", "warm"] {
        let mut times = Vec::new();
        for _ in 0..rounds {
            if cache == "cold" && !drop_caches() {
                break;
            }
            let opened = opened(&output(&mut start("open"))?)?;
            found.extend(wrong(case, &opened, read_max).map(|what| format!("{name}: {what}")));
            read = read.max(opened.read);
            times.push(opened.ms);
        }
        times.sort_by(f64::total_cmp);
        line += &match times.get(times.len() / 2) {
            Some(ms) => format!(" {ms:.0} ms {cache},"),
            None => format!(" {cache} SKIPPED (only root can drop the cache),"),
        };
    }
    println!("{line} {} KiB read", read >> 10);
    fs::remove_dir_all(&queue).context("cannot remove the queue")
}

/// The bytes of all segments, and how many of all files opening may read.
fn sizes(queue: &Path) -> Result<(u64, u64)> {
    let (mut bytes, mut read_max) = (0, 0);
    for stream in fs::read_dir(queue.join("streams"))? {
        let mut segments = Vec::new();
        for segment in fs::read_dir(stream?.path())? {
            let segment = segment?;
            segments.push((segment.file_name(), segment.metadata()?.len()));
        }
        segments.sort();
        bytes += segments.iter().map(|(_, len)| len).sum::<u64>();
        let newest = segments.last().map_or(0, |(_, len)| *len);
        read_max += newest + HEAD_BYTES_MAX * segments.len() as u64;
    }
    for own in fs::read_dir(queue)? {
        let metadata = own?.metadata()?;
        // A journal is read, mended where it must be, and read back.
        read_max += if metadata.is_file() { 3 * metadata.len() } else { 0 };
    }
    Ok((bytes, read_max))
}

/// Whether the page cache was emptied; only root can.
fn drop_caches() -> bool {
    let synced = Command::new("sync").status().is_ok_and(|status| status.success());
    synced && fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// `us=… streams=… records=… read=…`.
fn opened(line: &str) -> Result<Opened> {
    let value = |name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.and_then(|word| word.parse::<u64>().ok()).with_context(|| format!("no {name} in {line:?}"))
    };
    Ok(Opened {
        ms: value("us")? as f64 / 1000.0,
        streams: value("streams")?,
        records: value("records")?,
        read: value("read")?,
    })
}

/// What an opening found that is not as it must be.
fn wrong(case: &Case, opened: &Opened, read_max: u64) -> impl Iterator<Item = String> {
    let unsure = if case.end == End::Killed { (case.records - 1) % BATCH_RECORDS + 1 } else { 0 };
    let records = (case.streams * (case.records - unsure), case.streams * case.records);
    [
        (opened.streams != case.streams).then(|| format!("{} streams", opened.streams)),
        (opened.records < records.0 || opened.records > records.1)
            .then(|| format!("{} records, {records:?} expected", opened.records)),
        (opened.read > read_max).then(|| format!("{} bytes read, at most {read_max}", opened.read)),
    ]
    .into_iter()
    .flatten()
}
