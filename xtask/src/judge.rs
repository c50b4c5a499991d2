//! Holds what a witness wrote down in one life against what it found in the next; see the table in `crates/witness/src/testimony.rs`.
//!
//! ```text
//!   put, ack, got, done, saved ──> what must be there, what may be, what must not
//!   cut, power (said by whoever cuts) ──> which of it was said and seen while there was no disk
//!   failing, mended (likewise) ──> whether a stream may be paused
//!   open, stream, cursor, record, gap, deliver, reported ──> what is there
//! ```
//! It knows nothing of segments, files or recovery: only what a client was told and shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use anyhow::{Context, Result, bail};

/// What is known of one queue over its lives.
#[derive(Default)]
pub(crate) struct Judge {
    streams: HashMap<String, Known>,
    report: HashMap<String, Shown>,
    /// A new life: what was never acknowledged and is not there now must never come.
    opened: bool,
    /// The power is off: what somebody is told or sees now means nothing.
    is_off: bool,
    /// The disk fails: a stream may be paused, and then says nothing.
    is_failing: bool,
    pub(crate) counts: Counts,
    pub(crate) broken: Vec<String>,
}

/// What was seen, and what was wrong.
#[derive(Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) acked: u64,
    pub(crate) reports: u64,
    pub(crate) lost: u64,
    pub(crate) ghosts: u64,
    pub(crate) again: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.acked += other.acked;
        self.reports += other.reports;
        self.lost += other.lost;
        self.ghosts += other.ghosts;
        self.again += other.again;
    }
}

#[derive(Default)]
struct Known {
    /// Appended, or about to be.
    put: HashSet<u64>,
    /// Given up for good, or absent at an open: must never be shown.
    gone: HashSet<u64>,
    /// Acknowledged as durable, or shown: must be there, at its seq, until it is done with.
    sure: BTreeMap<u64, u64>,
    saved: u64,
    done: u64,
}

/// One stream of a report.
#[derive(Default)]
struct Shown {
    kept: Range<u64>,
    cursor: u64,
    records: BTreeMap<u64, u64>,
    gaps: Vec<Range<u64>>,
    /// Where the next thing delivered must begin.
    delivered_to: u64,
}

impl Judge {
    /// Takes in a testimony, or its next part; a last line that was cut is passed over.
    pub(crate) fn hear(&mut self, text: &str) -> Result<()> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            self.take(line).with_context(|| format!("a line that no witness writes: {line}"))?;
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        match words.as_slice() {
            ["ack" | "got" | "gotgap" | "saved", ..] if self.is_off => {}
            ["put", stream, hash] => drop(self.known(stream).put.insert(number(hash, 16)?)),
            ["ack", stream, seq, hash] => {
                self.counts.acked += 1;
                self.sure("acknowledged", stream, number(seq, 10)?, number(hash, 16)?);
            }
            ["refused", stream, hash] => drop(self.known(stream).gone.insert(number(hash, 16)?)),
            ["unsure", ..] | ["note", ..] => {}
            ["cut"] => self.is_off = true,
            ["power"] => (self.is_off, self.is_failing) = (false, false),
            ["failing"] => self.is_failing = true,
            ["mended"] => self.is_failing = false,
            ["got", stream, seq, hash] => {
                self.show("delivered", stream, number(seq, 10)?, number(hash, 16)?);
            }
            ["gotgap", stream, from, to, why] => {
                self.gap(stream, number(from, 10)?..number(to, 10)?, why);
            }
            ["done", stream, to] => {
                let to = number(to, 10)?;
                let known = self.known(stream);
                known.done = known.done.max(to);
            }
            ["saved", stream, to] => {
                let to = number(to, 10)?;
                let known = self.known(stream);
                known.saved = known.saved.max(to);
            }
            ["open" | "stream" | "paused" | "cursor" | "record" | "gap", ..] if self.is_off => {}
            ["deliver" | "delivergap" | "reported", ..] if self.is_off => {}
            ["open", ..] => (self.opened, self.report) = (true, HashMap::new()),
            ["paused", ..] if self.is_failing => {}
            ["paused", stream, ..] => self.broken.push(format!("stream {stream} is paused: {line}")),
            ["reported"] => self.compare(),
            _ => return self.take_report(&words),
        }
        Ok(())
    }

    fn take_report(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["stream", stream, first, end] => {
                let kept = number(first, 10)?..number(end, 10)?;
                self.report.insert((*stream).to_owned(), Shown { kept, ..Shown::default() });
            }
            ["cursor", stream, seq] => {
                let shown = self.shown(stream)?;
                shown.cursor = number(seq, 10)?;
                shown.delivered_to = shown.cursor;
            }
            ["record", stream, seq, hash] => {
                let (seq, hash) = (number(seq, 10)?, number(hash, 16)?);
                // Beside a working owner somebody who only looks may see what is not durable yet.
                match self.opened {
                    true => self.show("read", stream, seq, hash),
                    false => self.must_be_known("read", stream, seq, hash),
                }
                self.shown(stream)?.records.insert(seq, hash);
            }
            ["gap", stream, from, to, why] => {
                let gap = number(from, 10)?..number(to, 10)?;
                self.shown(stream)?.gaps.push(gap.clone());
                self.gap(stream, gap, why);
            }
            ["deliver", stream, seq, hash] => {
                let (seq, hash) = (number(seq, 10)?, number(hash, 16)?);
                self.show("delivered", stream, seq, hash);
                self.next_delivered(stream, seq..seq.saturating_add(1))?;
            }
            ["delivergap", stream, from, to, why] => {
                let gap = number(from, 10)?..number(to, 10)?;
                self.next_delivered(stream, gap.clone())?;
                self.gap(stream, gap, why);
            }
            _ => bail!("unknown"),
        }
        Ok(())
    }

    fn known(&mut self, stream: &str) -> &mut Known {
        self.streams.entry(stream.to_owned()).or_default()
    }

    fn shown(&mut self, stream: &str) -> Result<&mut Shown> {
        self.report.get_mut(stream).context("of a stream that was not named")
    }

    /// From now on this record must be there.
    fn sure(&mut self, how: &str, stream: &str, seq: u64, hash: u64) {
        let before = self.known(stream).sure.insert(seq, hash);
        if before.is_some_and(|before| before != hash) {
            self.counts.ghosts += 1;
            self.broken.push(format!("stream {stream}: another record than before was {how} at seq {seq}"));
        }
    }

    fn show(&mut self, how: &str, stream: &str, seq: u64, hash: u64) {
        self.must_be_known(how, stream, seq, hash);
        self.sure(how, stream, seq, hash);
    }

    fn must_be_known(&mut self, how: &str, stream: &str, seq: u64, hash: u64) {
        let known = self.known(stream);
        let ghost = match (known.put.contains(&hash), known.gone.contains(&hash)) {
            (false, _) => Some("that nobody appended"),
            (true, true) => Some("that was given up or absent before"),
            (true, false) => None,
        };
        if let Some(what) = ghost {
            self.counts.ghosts += 1;
            self.broken.push(format!("stream {stream}: a record {what} was {how} at seq {seq}"));
        }
    }

    /// Only what was never durable may be a gap: nothing here damages files.
    fn gap(&mut self, stream: &str, gap: Range<u64>, why: &str) {
        let covered = self.known(stream).sure.range(gap.clone()).count() as u64;
        self.counts.lost += covered;
        if covered > 0 || why != "not durable" {
            self.broken.push(format!("stream {stream}: gap {gap:?} ({why}) over {covered} sure records"));
        }
    }

    fn next_delivered(&mut self, stream: &str, seqs: Range<u64>) -> Result<()> {
        let shown = self.shown(stream)?;
        let due = std::mem::replace(&mut shown.delivered_to, seqs.end);
        if due != seqs.start {
            self.broken.push(format!("stream {stream}: {seqs:?} was delivered where {due} was due"));
        }
        Ok(())
    }

    fn compare(&mut self) {
        self.counts.reports += 1;
        let report = std::mem::take(&mut self.report);
        let opened = std::mem::take(&mut self.opened);
        for (name, known) in &mut self.streams {
            let Some(shown) = report.get(name) else {
                if self.is_failing {
                    continue;
                }
                self.counts.lost += known.sure.len() as u64;
                if !known.sure.is_empty() {
                    self.broken.push(format!("stream {name} is gone, with {} records", known.sure.len()));
                }
                continue;
            };
            let lost = known.compare(name, shown, &mut self.broken);
            if opened {
                shown.must_be_dense(name, &mut self.broken);
            }
            self.counts.lost += lost;
            self.counts.again += known.done.saturating_sub(shown.cursor);
            if opened {
                let there: HashSet<u64> = known.sure.values().copied().collect();
                known.gone.extend(known.put.iter().filter(|hash| !there.contains(hash)));
            }
            known.sure = known.sure.split_off(&shown.kept.start);
        }
    }
}

impl Known {
    /// How many records are lost.
    fn compare(&self, name: &str, shown: &Shown, broken: &mut Vec<String>) -> u64 {
        let mut rule = |holds: bool, what: String| {
            if !holds {
                broken.push(format!("stream {name}: {what}"));
            }
        };
        let missing = |seq: &&u64| match **seq < shown.kept.start {
            true => **seq >= self.done,
            false => !shown.records.contains_key(*seq),
        };
        let lost: Vec<u64> = self.sure.keys().filter(missing).copied().collect();
        rule(lost.is_empty(), format!("{} records are lost, the first: {:?}", lost.len(), lost.first()));
        let (saved, cursor, done) = (self.saved, shown.cursor, self.done.max(1));
        rule(saved <= cursor, format!("the cursor is {cursor}, saved was {saved}"));
        rule(cursor <= done, format!("the cursor is {cursor}, acknowledged was {done}"));
        rule(shown.kept.start <= done, format!("{:?} is kept, acknowledged was {done}", shown.kept));
        let (end, to) = (shown.kept.end, shown.delivered_to);
        rule(to == end, format!("delivered up to {to} of {end}"));
        lost.len() as u64
    }
}

impl Shown {
    /// Every seq of what is kept is a record or in a gap, and none is beyond. Below may be what its segment still holds.
    fn must_be_dense(&self, name: &str, broken: &mut Vec<String>) {
        let kept = &self.kept;
        let counted = self.records.range(kept.start..).count() as u64;
        let inside = |gap: &Range<u64>| gap.end.saturating_sub(gap.start.max(kept.start));
        let in_gaps: u64 = self.gaps.iter().map(inside).sum();
        if counted + in_gaps != kept.end.saturating_sub(kept.start) {
            broken.push(format!("stream {name}: {counted} records and {in_gaps} in gaps of {kept:?}"));
        }
    }
}

fn number(word: &str, radix: u32) -> Result<u64> {
    u64::from_str_radix(word, radix).with_context(|| format!("`{word}` is no number"))
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
