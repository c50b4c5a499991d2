//! Writing for people and programs: stdout that may be closed at any time, stderr that must never be a reason to fail, and figures.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use pq::{Gap, WallTime};

use crate::failure::Failure;

/// One line to stderr; a closed stderr is no error.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the reader of stdout is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Reader {
    Present,
    /// `pq read … | head`: no error, there is just nothing left to do.
    Gone,
}

/// Writes bytes to stdout and flushes it.
///
/// # Errors
/// It cannot be written, for another reason than that nobody reads it.
pub(crate) fn put(bytes: &[u8]) -> Result<Reader, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::Present),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(stdout_failure(&error)),
    }
}

/// Says nothing about the data: the output is not whole, that is all.
pub(crate) fn stdout_failure(error: &io::Error) -> Failure {
    Failure::new(format!("stdout cannot be written: {error}"))
        .help("what was printed is not whole; this says nothing of what the command did to the queue")
}

/// A count with its thousands apart: `1,234,567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with what it counts: `1 batch`, `2 batches`, `1,234 records`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    let ending = match what {
        _ if n == 1 => "",
        what if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", count(n))
}

/// Seqs `from` to `to`, both there: `record 7`, `records 7 to 9`.
pub(crate) fn records(from: u64, to: u64) -> String {
    if from == to { format!("record {from}") } else { format!("records {from} to {to}") }
}

/// What is missing and why, for a person: `record 7 missing: lost`.
pub(crate) fn missing(gap: Gap) -> String {
    format!("{} missing: {}", records(gap.from.get(), gap.to.get().saturating_sub(1)), gap.reason)
}

/// A time of day as RFC 3339 has it, in UTC, to the second: `2026-03-01T12:00:00Z`.
pub(crate) fn time(at: WallTime) -> String {
    let seconds = i64::try_from(at.nanos() / 1_000_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| at.to_string(), |time| time.to_string())
}

/// Bytes as people read them: `640 B`, `1.3 MB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: &[&str] = &["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    #[expect(clippy::cast_precision_loss, reason = "one digit behind the point is shown")]
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Bytes a second.
pub(crate) fn rate(n: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-6);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "shown rounded"
    )]
    let rate = (n as f64 / seconds) as u64;
    format!("{}/s", bytes(rate))
}

/// Columns under headings: the first to the left, the others to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = String::new();
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    for row in std::iter::once(&headings).chain(rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths.get(column).copied().unwrap_or(0);
            let _ =
                if column == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
