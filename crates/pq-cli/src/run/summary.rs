//! The figures at the end of a run, for people and as JSON.

use std::path::Path;
use std::time::Duration;

use pq::{Queue, QueueStats, StreamStats};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{bytes, count, rate, table};

/// Streams with a line of their own in the text.
const LINES_MAX: usize = 40;

/// What a run did.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    ended: &'static str,
    elapsed_seconds: f64,
    /// Appended by this run.
    records_appended: u64,
    bytes_appended: u64,
    /// Acknowledged by sinks in this run, all sinks together.
    records_delivered: u64,
    /// Not delivered yet, all sinks together.
    lag: u64,
    /// Known to be lost, delivered as gaps.
    lost: u64,
    /// Dropped by limits before a sink had them, delivered as gaps: to stay under a byte limit, and for their age.
    trimmed: u64,
    expired: u64,
    /// Never accepted: the stream was full and drops the newest.
    dropped: u64,
    syncs: u64,
    segments_created: u64,
    segments_retired: u64,
    fds_max: usize,
    fds_peak: usize,
    /// Records that one turn of a sink holds at most, from the settings: what a crash may deliver again is counted in turns.
    turn_records_max: u64,
    cursor_saves: u64,
    turns: u64,
    streams: Vec<StreamStats>,
    #[serde(skip)]
    elapsed: Duration,
}

impl Summary {
    pub(crate) fn new(queue: &Queue, elapsed: Duration, turn_records_max: u64, ended: &'static str) -> Self {
        let QueueStats { streams, fds, cursor_saves_count, turns_count, .. } = queue.stats();
        let sum = |figure: fn(&StreamStats) -> u64| streams.iter().map(figure).sum();
        Self {
            ended,
            elapsed_seconds: elapsed.as_secs_f64(),
            records_appended: sum(|stream| stream.records_count),
            bytes_appended: sum(|stream| stream.payload_bytes),
            records_delivered: sum(|stream| {
                stream.consumers.iter().map(|consumer| consumer.acked_count).sum()
            }),
            lag: sum(|stream| stream.consumers.iter().map(|consumer| consumer.lag_records).sum()),
            lost: sum(|stream| stream.consumers.iter().map(|consumer| consumer.lost_count).sum()),
            trimmed: sum(|stream| stream.consumers.iter().map(|consumer| consumer.trimmed_count).sum()),
            expired: sum(|stream| stream.consumers.iter().map(|consumer| consumer.expired_count).sum()),
            dropped: sum(|stream| stream.dropped_records_count),
            syncs: sum(|stream| stream.syncs_count),
            segments_created: sum(|stream| stream.segments_created_count),
            segments_retired: sum(|stream| stream.segments_retired_count),
            fds_max: fds.limit,
            fds_peak: fds.peak,
            turn_records_max,
            cursor_saves: cursor_saves_count,
            turns: turns_count,
            streams,
            elapsed,
        }
    }

    /// Records known to be lost.
    pub(crate) fn lost_count(&self) -> u64 {
        self.lost
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if (1..=LINES_MAX).contains(&self.streams.len()) {
            let rows: Vec<Vec<String>> = self.streams.iter().map(row).collect();
            text = table(&["stream", "appended", "bytes", "delivered", "lag", "syncs", "segments"], &rows);
        }
        let lost = if self.lost > 0 { format!(", {} LOST", count(self.lost)) } else { String::new() };
        let limits = self.limits_text();
        let sinks_max = self.streams.iter().map(|stream| stream.consumers.len()).max().unwrap_or(0);
        let sinks = if sinks_max > 1 { format!(" to up to {sinks_max} sinks each") } else { String::new() };
        let left = if self.lag > 0 {
            format!(", {} not delivered yet (kept)", count(self.lag))
        } else {
            String::new()
        };
        text.push_str(&format!(
            "{}: {} records ({}) appended in {:.2} s, {}; {} delivered{sinks}{left}{limits}{lost}\n",
            self.ended,
            count(self.records_appended),
            bytes(self.bytes_appended),
            self.elapsed_seconds,
            rate(self.bytes_appended, self.elapsed),
            count(self.records_delivered),
        ));
        text.push_str(&format!(
            "{} syncs, {} cursor saves, {} segments created, {} retired, at most {} of {} files open",
            count(self.syncs),
            count(self.cursor_saves),
            count(self.segments_created),
            count(self.segments_retired),
            self.fds_peak,
            self.fds_max,
        ));
        text
    }

    /// What limits dropped, if anything.
    fn limits_text(&self) -> String {
        let dropped = [
            (self.trimmed, "trimmed"),
            (self.expired, "expired"),
            (self.dropped, "dropped, the stream was full"),
        ];
        let told = dropped.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {} {what}", count(*n)));
        told.collect()
    }

    /// For programs.
    ///
    /// # Errors
    /// The file cannot be written; the run itself is over and its data is safe.
    pub(crate) fn write_json(&self, path: &Path) -> Result<(), Failure> {
        let mut json = serde_json::to_vec_pretty(self).unwrap_or_default();
        json.push(b'\n');
        std::fs::write(path, json).map_err(|error| {
            Failure::wrong(format!("{}: the summary cannot be written: {error}", path.display()))
                .help("the run itself is complete; give --summary-json a path that can be written")
        })
    }
}

fn row(stream: &StreamStats) -> Vec<String> {
    let delivered = stream.consumers.iter().map(|consumer| consumer.acked_count).sum();
    let lag = stream.consumers.iter().map(|consumer| consumer.lag_records).max().unwrap_or(0);
    vec![
        stream.name.clone(),
        count(stream.records_count),
        bytes(stream.payload_bytes),
        count(delivered),
        count(lag),
        count(stream.syncs_count),
        count(stream.segments_count as u64),
    ]
}
