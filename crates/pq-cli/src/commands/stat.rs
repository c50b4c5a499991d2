//! `pq stat`: what a queue holds, seen from outside, beside its owner.

use pq::WallTime;
use pq::inspect::{DiskUse, InspectError, Inspection, QuarantineReport, StreamInfo};
use pq::repair::OrphanInfo;
use serde::Serialize;

use crate::Ended;
use crate::cli::Look;
use crate::failure::EXIT_WRONG;
use crate::output::{Reader, bytes, count, counted, put, table, time};
use crate::run::{inspect_failure, open_failure};

#[derive(Serialize)]
struct Stat<'a> {
    dir: String,
    disk: DiskUse,
    streams: &'a [StreamInfo],
    orphans: &'a [OrphanInfo],
    quarantine: &'a QuarantineReport,
}

/// Shows a queue.
pub(crate) fn stat(args: &Look) -> Ended {
    let inspection = Inspection::open(&args.dir).map_err(|error| open_failure(&args.dir, &error))?;
    let failed = |error: InspectError| inspect_failure(&args.dir, &error);
    let streams = inspection.streams().map_err(failed)?;
    let disk = inspection.disk_use(&streams).map_err(failed)?;
    let quarantine = inspection.quarantine().map_err(failed)?;
    let orphans = inspection.orphans().map_err(failed)?;
    let text = if args.json {
        let dir = args.dir.display().to_string();
        let stat = Stat { dir, disk, streams: &streams, orphans: &orphans, quarantine: &quarantine };
        serde_json::to_string_pretty(&stat).unwrap_or_default() + "\n"
    } else {
        text(&streams, disk)
            + &losses_text(&streams)
            + &quarantine_text(&quarantine)
            + &unseen_text(args, &streams, &orphans)
    };
    let (Reader::Present | Reader::Gone) = put(text.as_bytes())?;
    let is_all = orphans.is_empty() && streams.iter().all(|stream| stream.unreadable.is_none());
    Ok(if is_all { 0 } else { EXIT_WRONG })
}

/// What could not be shown, and what to do about it.
fn unseen_text(args: &Look, streams: &[StreamInfo], orphans: &[OrphanInfo]) -> String {
    let mut text = String::new();
    for stream in streams {
        if let Some(reason) = &stream.unreadable {
            text.push_str(&format!("stream {}: {reason}\n", stream.name));
        }
    }
    for orphan in orphans {
        let (dir, segments) = (&orphan.dir, counted(orphan.segments_count as u64, "segment"));
        text.push_str(&format!("{dir}: {segments}, {}; no stream stands for it\n", bytes(orphan.bytes)));
    }
    if text.is_empty() {
        return text;
    }
    format!("\n{text}`pq repair {}` says what can be done about it\n", args.dir.display())
}

fn text(streams: &[StreamInfo], disk: DiskUse) -> String {
    if streams.is_empty() {
        return "no streams\n".to_owned();
    }
    let rows: Vec<Vec<String>> = streams.iter().map(row).collect();
    let mut text = table(&["stream", "records", "seqs", "durable to", "segments", "bytes"], &rows);
    let consumers: Vec<Vec<String>> = streams.iter().flat_map(consumer_rows).collect();
    if !consumers.is_empty() {
        text.push('\n');
        text.push_str(&table(&["consumer", "next seq", "lag"], &consumers));
    }
    let limits: Vec<Vec<String>> =
        streams.iter().filter(|stream| has_limits(stream)).map(limits_row).collect();
    if !limits.is_empty() {
        text.push('\n');
        let headings = ["limits", "bytes", "of at most", "when full", "age at most", "trimmed", "expired"];
        text.push_str(&table(&headings, &limits));
    }
    let quarantine = match disk.quarantine_bytes {
        0 => String::new(),
        held => format!(", {} of it in quarantine", bytes(held)),
    };
    text.push_str(&format!("\n{} on the disk in all{quarantine}\n", bytes(disk.bytes)));
    text
}

fn has_limits(stream: &StreamInfo) -> bool {
    let dropped = stream.trimmed_records + stream.expired_records;
    stream.bytes_max.is_some() || stream.age_max_seconds.is_some() || stream.on_full != "block" || dropped > 0
}

fn limits_row(stream: &StreamInfo) -> Vec<String> {
    let none = || "-".to_owned();
    vec![
        stream.name.clone(),
        bytes(stream.bytes),
        stream.bytes_max.map_or_else(none, bytes),
        stream.on_full.to_owned(),
        stream.age_max_seconds.map_or_else(none, |age| format!("{age} s")),
        count(stream.trimmed_records),
        count(stream.expired_records),
    ]
}

fn row(stream: &StreamInfo) -> Vec<String> {
    if stream.unreadable.is_some() {
        let unknown = || "?".to_owned();
        let durable = stream.durable_end.saturating_sub(1).to_string();
        return vec![stream.name.clone(), unknown(), unknown(), durable, unknown(), unknown()];
    }
    let range = if stream.first >= stream.end {
        "-".to_owned()
    } else {
        format!("{}-{}", stream.first, stream.end - 1)
    };
    vec![
        stream.name.clone(),
        count(stream.records),
        range,
        stream.durable_end.saturating_sub(1).to_string(),
        count(stream.segments.len() as u64),
        bytes(stream.bytes),
    ]
}

fn consumer_rows(stream: &StreamInfo) -> Vec<Vec<String>> {
    let row = |consumer: &pq::inspect::ConsumerInfo| {
        vec![
            format!("{} / {}", stream.name, consumer.name),
            consumer.cursor.to_string(),
            count(consumer.lag_records),
        ]
    };
    stream.consumers.iter().map(row).collect()
}

/// Most ranges of lost records that are shown of one stream: the newest.
const RANGES_MAX: usize = 10;

fn losses_text(streams: &[StreamInfo]) -> String {
    let mut rows = Vec::new();
    for stream in streams.iter().filter(|stream| stream.lost_records > 0) {
        let more = stream.losses.len().saturating_sub(RANGES_MAX);
        for loss in stream.losses.iter().skip(more) {
            let found =
                loss.found_at.map_or_else(|| "-".to_owned(), |nanos| time(WallTime::from_nanos(nanos)));
            let seqs = format!("{}-{}", loss.from, loss.to.saturating_sub(1));
            let records = count(loss.to.saturating_sub(loss.from));
            rows.push(vec![stream.name.clone(), records, seqs, loss.reason.clone(), found]);
        }
        if more > 0 {
            let older = format!("and {} older ranges: --json", count(more as u64));
            rows.push(vec![stream.name.clone(), String::new(), older, String::new(), String::new()]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", table(&["lost", "records", "seqs", "reason", "found at"], &rows))
}

fn quarantine_text(quarantine: &QuarantineReport) -> String {
    if quarantine.files.is_empty() {
        return String::new();
    }
    let row = |file: &pq::inspect::QuarantineInfo| {
        let stream = file.stream.clone().unwrap_or_else(|| "-".to_owned());
        vec![file.name.clone(), stream, bytes(file.bytes), file.why.clone()]
    };
    let rows: Vec<Vec<String>> = quarantine.files.iter().map(row).collect();
    format!(
        "\n{}{} in quarantine, {}; what removing gives back: {}. Only you remove them.\n",
        table(&["quarantine", "stream", "bytes", "why"], &rows),
        counted(quarantine.files.len() as u64, "file"),
        bytes(quarantine.bytes),
        bytes(quarantine.own_bytes),
    )
}
