//! `pq repair`: what is damaged, what would be done, what it costs; and with `--apply`, doing it.

use std::io::ErrorKind;

use pq::repair::{self, OrphanInfo, RepairError, RepairOptions, RepairReport, RepairStep};
use pq::{Clock, StreamId, SystemClock};

use crate::Ended;
use crate::cli::Repair;
use crate::failure::{EXIT_WRONG, Failure};
use crate::output::{Reader, bytes, counted, put, records};
use crate::run::help_of_disk;

/// Most ranges of lost records that are shown of one file.
const RANGES_MAX: usize = 20;

const NOT_A_QUEUE: &str = "give the queue's directory, the one with `queue.meta` in it";

/// Plans or repairs.
pub(crate) fn repair(args: &Repair) -> Ended {
    let mut options = RepairOptions::at(SystemClock::new().both().wall);
    for adopt in &args.adopt {
        let (id, name) = parse_adopt(adopt)?;
        options = options.adopt(id, name);
    }
    let done =
        if args.apply { repair::apply(&args.dir, &options) } else { repair::plan(&args.dir, &options) };
    let report = done.map_err(|error| failure(args, &error))?;
    let text = if args.json { json(&report) } else { text(args, &report) };
    let (Reader::Present | Reader::Gone) = put(text.as_bytes())?;
    Ok(if report.is_damage_left() { EXIT_WRONG } else { 0 })
}

/// `0000000000000003=orders`, or with the directory in front.
fn parse_adopt(text: &str) -> Result<(StreamId, String), Failure> {
    let bad = || {
        Failure::new(format!("--adopt {text:?}: expected ID=NAME, as in 0000000000000003=orders"))
            .help("`pq repair DIR` lists the directories that no stream stands for")
    };
    let (id, name) = text.split_once('=').ok_or_else(bad)?;
    let id = id.strip_prefix("streams/").unwrap_or(id);
    let id = u64::from_str_radix(id, 16).map_err(|_| bad())?;
    Ok((StreamId::new(id), name.to_owned()))
}

fn failure(args: &Repair, error: &RepairError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", args.dir.display()));
    match error {
        RepairError::InUse { .. } => failure.help(
            "stop its owner first: a repair owns the queue; without --apply it only plans, beside an owner too",
        ),
        RepairError::NotAQueue => failure.help(NOT_A_QUEUE),
        RepairError::Disk(error)
            if error.io_error().kind() == ErrorKind::NotFound && error.path() == args.dir =>
        {
            failure.help(NOT_A_QUEUE)
        }
        _ => match error.disk() {
            Some(disk) if args.apply => failure.help(format!(
                "{}; what was done is whole, the rest is as it was",
                help_of_disk(&args.dir, disk)
            )),
            Some(disk) => failure.help(help_of_disk(&args.dir, disk)),
            None => failure,
        },
    }
}

fn json(report: &RepairReport) -> String {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("clean".to_owned(), report.is_clean().into());
        object.insert("damage_left".to_owned(), report.is_damage_left().into());
        object.insert("bytes".to_owned(), report.bytes().into());
        object.insert("lost_records".to_owned(), report.lost_count().into());
    }
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

fn text(args: &Repair, report: &RepairReport) -> String {
    let mut text = String::new();
    for step in &report.steps {
        text.push_str(&step_text(report, step));
    }
    for left in &report.left {
        text.push_str(&found_text(left));
        text.push_str(&format!("  left as it is: {}\n", left.action));
    }
    for loss in &report.losses {
        let (from, to) = (loss.from, loss.to.saturating_sub(1));
        let done = if report.applied { "written down" } else { "not yet written down; would be" };
        let (records, reason) = (records(from, to), &loss.reason);
        text.push_str(&format!("stream {}: {records} {reason}; {done}\n", loss.stream));
    }
    for orphan in &report.orphans {
        text.push_str(&orphan_text(orphan));
    }
    for blocked in &report.blocked {
        text.push_str(&format!("stream {}: cannot be repaired now: {}\n", blocked.stream, blocked.reason));
    }
    for stray in &report.strays {
        text.push_str(&format!("ignored: {stray} is not the queue's\n"));
    }
    text + &verdict(args, report)
}

fn found_text(step: &RepairStep) -> String {
    let whose = step.stream.as_ref().map_or_else(String::new, |stream| format!("stream {stream}: "));
    let mut text = format!("{whose}{}\n", step.path);
    for found in &step.found {
        text.push_str(&format!("  found: {found}\n"));
    }
    for (from, to) in step.lost.iter().take(RANGES_MAX) {
        text.push_str(&format!("  costs: {}\n", records(*from, to.saturating_sub(1))));
    }
    if step.lost.len() > RANGES_MAX {
        text.push_str(&format!(
            "  costs: and {} more ranges; --json lists all\n",
            step.lost.len() - RANGES_MAX
        ));
    }
    text
}

fn step_text(report: &RepairReport, step: &RepairStep) -> String {
    let mut text = found_text(step);
    let written = if step.bytes > 0 { format!(", {}", bytes(step.bytes)) } else { String::new() };
    text.push_str(&format!("  {}: {}{written}\n", if report.applied { "done" } else { "do" }, step.action));
    if let Some(kept) = &step.kept {
        text.push_str(&format!("  original: {kept}\n"));
    }
    text
}

fn orphan_text(orphan: &OrphanInfo) -> String {
    let segments = counted(orphan.segments_count as u64, "segment");
    let what = format!("{}: {segments}, {}", orphan.dir, bytes(orphan.bytes));
    match (&orphan.adopted_as, &orphan.refused) {
        (Some(name), _) => format!("{what}; adopted as stream {name}\n"),
        (None, Some(reason)) => {
            format!("{what}; no stream stands for it, and it cannot be adopted: {reason}\n")
        }
        (None, None) => format!(
            "{what}; no stream stands for it; `--adopt {:016x}=NAME` makes it a stream of that name\n",
            orphan.id
        ),
    }
}

fn verdict(args: &Repair, report: &RepairReport) -> String {
    if report.is_clean() {
        let what = if report.left.is_empty() { "clean: nothing to repair" } else { "nothing to repair" };
        return format!("{what}\n") + &left_text(args, report);
    }
    let dir = args.dir.display();
    let (files, written) = (counted(report.steps.len() as u64, "file"), bytes(report.bytes()));
    let lost = match report.lost_count() {
        0 => String::new(),
        lost => format!(", {} lost", counted(lost, "record")),
    };
    let adopted = report.orphans.iter().filter(|orphan| orphan.adopted_as.is_some()).count() as u64;
    let adopted_text =
        if adopted > 0 { format!(", {} adopted", counted(adopted, "stream")) } else { String::new() };
    let has_work = adopted > 0 || !report.steps.is_empty() || !report.losses.is_empty();
    let mut text = String::new();
    if report.applied && has_work {
        text.push_str(&format!(
            "REPAIRED: {files}, {written} written{lost}{adopted_text}; `pq verify` checks every byte\n"
        ));
    }
    if !report.applied {
        text.push_str(&format!(
            "DAMAGED: {files} to mend, {written} to write{lost}{adopted_text}; nothing was changed\n"
        ));
        if has_work {
            text.push_str(&format!("`pq repair {dir} --apply` does it, when nobody owns the queue\n"));
        }
    }
    text + &left_text(args, report)
}

/// What a repair does not mend by itself, and what mends it.
fn left_text(args: &Repair, report: &RepairReport) -> String {
    let dir = args.dir.display();
    let mut text = String::new();
    if !report.blocked.is_empty() {
        let streams = counted(report.blocked.len() as u64, "stream");
        text.push_str(&format!(
            "NOT MENDED: {streams} that cannot be repaired now; mend the cause and run it again\n"
        ));
    }
    if !report.left.is_empty() {
        let files = counted(report.left.len() as u64, "damaged file");
        text.push_str(&format!(
            "NOT MENDED: {files} that stay as they are; nothing more can be read of them\n"
        ));
    }
    let left: Vec<&OrphanInfo> = report.orphans.iter().filter(|orphan| orphan.is_left()).collect();
    let Some(first) = left.iter().find(|orphan| orphan.refused.is_none()).or(left.first()) else {
        return text;
    };
    let what = match (report.catalog_missing, left.len()) {
        (true, 1) => {
            "the catalog: it is lost, and nothing else says the name of the stream in the directory above"
        }
        (true, _) => {
            "the catalog: it is lost, and nothing else says the names of the streams in the directories above"
        }
        (false, 1) => "a directory with segments that no stream stands for",
        (false, _) => "directories with segments that no stream stands for",
    };
    text.push_str(&format!("NOT MENDED: {what}\n"));
    if first.refused.is_none() {
        let id = first.id;
        text.push_str(&format!(
            "`pq repair {dir} --apply --adopt {id:016x}=NAME` makes it a stream of that name, with the default settings; --adopt may be \
             given several times\n"
        ));
    }
    text
}
