//! `pq verify`: every byte of every segment is read and checked; nothing is changed.

use pq::inspect::{Inspection, StreamCheck, VerifyReport};

use crate::Ended;
use crate::cli::Look;
use crate::failure::EXIT_WRONG;
use crate::output::{Reader, bytes, counted, put, records};
use crate::run::{inspect_failure, open_failure};

/// Checks a queue.
pub(crate) fn verify(args: &Look) -> Ended {
    let inspection = Inspection::open(&args.dir).map_err(|error| open_failure(&args.dir, &error))?;
    let report = inspection.verify().map_err(|error| inspect_failure(&args.dir, &error))?;
    let text = if args.json { json(&report) } else { text(args, &report) };
    let (Reader::Present | Reader::Gone) = put(text.as_bytes())?;
    Ok(if report.is_damaged() { EXIT_WRONG } else { 0 })
}

fn json(report: &VerifyReport) -> String {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("damaged".to_owned(), report.is_damaged().into());
    }
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

fn text(args: &Look, report: &VerifyReport) -> String {
    let mut text = String::new();
    for stream in &report.streams {
        text.push_str(&stream_text(stream));
    }
    for stray in &report.strays {
        text.push_str(&format!("ignored: {stray} is not the queue's\n"));
    }
    for note in &report.notes {
        text.push_str(&format!("damage: {note}\n"));
    }
    let records: u64 = report.streams.iter().map(|stream| stream.records_count).sum();
    let checked: u64 = report.streams.iter().map(|stream| stream.bytes).sum();
    let verdict = if report.is_damaged() { "DAMAGED" } else { "clean" };
    let (streams, records) = (counted(report.streams.len() as u64, "stream"), counted(records, "record"));
    text.push_str(&format!("{verdict}: {streams}, {records}, {} checked\n", bytes(checked)));
    if report.is_damaged() {
        text.push_str(&format!(
            "`pq repair {}` says what mends it, and what that costs\n",
            args.dir.display()
        ));
    }
    text
}

fn stream_text(stream: &StreamCheck) -> String {
    let is_whole = !stream.is_damaged();
    let mut text = format!(
        "{}: {}, {} in {}, {}\n",
        stream.name,
        if is_whole { "whole" } else { "DAMAGED" },
        counted(stream.records_count, "record"),
        counted(stream.batches_count, "batch"),
        bytes(stream.bytes),
    );
    if stream.torn_bytes > 0 {
        text.push_str(&format!(
            "  {} behind the end that a crash left; no damage\n",
            bytes(stream.torn_bytes)
        ));
    }
    for (from, to, reason) in &stream.lost {
        let is_known = !stream.lost_news.iter().any(|(new, end)| new < to && from < end);
        let known = if is_known { "; written down" } else { "" };
        text.push_str(&format!("  {reason}: {}{known}\n", records(*from, to.saturating_sub(1))));
    }
    for damage in &stream.damage {
        text.push_str(&format!("  damage: {damage}\n"));
    }
    for stray in &stream.strays {
        text.push_str(&format!("  ignored: {stray} is no segment\n"));
    }
    text
}
