//! `pq export`: a stream, or a file in quarantine, as JSON lines: a record a line, and a gap a line of its own.

use std::path::Path;

use pq::inspect::{InspectError, InspectReader, Inspection, QuarantineReader};
use pq::{Delivery, Gap, GapReason, Item, Seq};
use serde::Serialize;

use crate::Ended;
use crate::cli::Export;
use crate::failure::{EXIT_WRONG, Failure};
use crate::json::JsonRecord;
use crate::output::{Reader, counted, put, tell};
use crate::run::{inspect_failure, open_failure};

/// A line for seqs that are not there; `to` is the first seq behind.
#[derive(Serialize)]
struct GapLine<'a> {
    stream: &'a str,
    gap: GapRange,
}

#[derive(Serialize)]
struct GapRange {
    from: u64,
    to: u64,
    count: u64,
    reason: String,
}

/// What is read: a stream, or one file.
enum From {
    Stream(Box<InspectReader>),
    Quarantine(Box<QuarantineReader>),
}

impl From {
    fn next(&mut self) -> Result<Option<Delivery>, InspectError> {
        match self {
            Self::Stream(reader) => reader.next(),
            Self::Quarantine(reader) => reader.next(),
        }
    }
}

/// Exports.
pub(crate) fn export(args: &Export) -> Ended {
    let inspection = Inspection::open(&args.dir).map_err(|error| open_failure(&args.dir, &error))?;
    let failed = |error: InspectError| inspect_failure(&args.dir, &error);
    let mut below = None;
    let (mut from, stream) = match (&args.quarantine, &args.stream) {
        (Some(file), named) => {
            let reader = inspection.read_quarantined(&bare(&args.dir, file)).map_err(failed)?;
            // Nobody says a name for it: it is not in the catalog any more.
            let stream = named.clone().or_else(|| reader.stream().map(str::to_owned)).unwrap_or_default();
            (From::Quarantine(Box::new(reader)), stream)
        }
        (None, Some(stream)) => {
            let first = args.from.map_or(Seq::FIRST, Seq::new);
            let mut reader = inspection.read(stream, first).map_err(failed)?;
            if let Some(from) = args.from {
                let to = reader.oldest().map_err(failed)?;
                below = Some(Gap { from: Seq::new(from), to, reason: GapReason::Retired });
            }
            (From::Stream(Box::new(reader)), stream.clone())
        }
        (None, None) => return Err(Failure::new("name a stream, or a file in quarantine with --quarantine")),
    };
    let mut lines = Lines { args, stream, lost: 0 };
    // Asked for by number, and not there any more: delivered to everybody, or dropped by a limit.
    if let Some(gap) = below
        && lines.put_gap(gap)? == Reader::Gone
    {
        return Ok(0);
    }
    while let Some(delivery) = from.next().map_err(failed)? {
        if lines.put(&delivery)? == Reader::Gone || delivery.next() > lines.last() {
            break;
        }
    }
    if lines.lost > 0 {
        tell(&format!(
            "pq: {} of what was asked for lost; each range is a line with \"gap\"",
            counted(lines.lost, "record")
        ));
    }
    Ok(if lines.lost > 0 { EXIT_WRONG } else { 0 })
}

/// The file's name in quarantine, however it was pointed at.
fn bare(dir: &Path, file: &Path) -> String {
    let file = file.strip_prefix(dir).unwrap_or(file);
    file.strip_prefix("quarantine").unwrap_or(file).to_string_lossy().into_owned()
}

struct Lines<'a> {
    args: &'a Export,
    stream: String,
    lost: u64,
}

impl Lines<'_> {
    /// The first seq asked for.
    fn first(&self) -> Seq {
        self.args.from.map_or(Seq::FIRST, Seq::new)
    }

    /// The last seq asked for.
    fn last(&self) -> Seq {
        self.args.to.map_or(Seq::MAX, Seq::new)
    }

    fn put(&mut self, delivery: &Delivery) -> Result<Reader, Failure> {
        let mut out = Vec::with_capacity(delivery.bytes());
        let (first, last) = (self.first(), self.last());
        for item in delivery.items() {
            match item {
                Item::Record(record) if first <= record.seq && record.seq <= last => {
                    JsonRecord::new(&self.stream, &record).write(&mut out);
                }
                Item::Gap(gap) => self.gap(gap, &mut out),
                _ => {}
            }
        }
        put(&out)
    }

    fn put_gap(&mut self, gap: Gap) -> Result<Reader, Failure> {
        let mut out = Vec::new();
        self.gap(gap, &mut out);
        put(&out)
    }

    /// What of it was asked for, if anything.
    fn gap(&mut self, gap: Gap, out: &mut Vec<u8>) {
        let (from, to) = (gap.from.max(self.first()), gap.to.min(self.last().saturating_add(1)));
        if from >= to {
            return;
        }
        let gap = Gap { from, to, ..gap };
        if gap.reason == GapReason::Lost {
            self.lost += gap.count();
        }
        let range = GapRange {
            from: gap.from.get(),
            to: gap.to.get(),
            count: gap.count(),
            reason: gap.reason.to_string(),
        };
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut *out, &GapLine { stream: &self.stream, gap: range });
        out.push(b'\n');
    }
}
