//! 1,000 streams with a backlog under a limit of 64 open files: written, rotated, delivered and retired.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::pipeline::{CrashPoints, Running, Scratch, Summary, build};
use crate::shell::verdict;

const STREAMS: usize = 1000;
const LINES: usize = 400;
const FILES_MAX: u64 = 64;
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// Runs the check: a backlog first, with nobody to take it; then the destinations.
pub(crate) fn run() -> Result<()> {
    let scratch = Scratch::new("fds")?;
    let program = build("pq-queue-cli", "pq", CrashPoints::Absent)?;
    let folder = scratch.path();
    write_inputs(folder)?;
    fs::write(folder.join("fill.toml"), config(""))?;
    fs::write(folder.join("drain.toml"), config("[[sink.file]]\npath = \"out/{stream}.log\"\n"))?;
    let mut found = Vec::new();
    let fill = limited_run(&program, folder, "fill", &mut found)?;
    let segments_before = segments(&folder.join("queue"))?;
    let drain = limited_run(&program, folder, "drain", &mut found)?;
    let segments_after = segments(&folder.join("queue"))?;
    let records = (STREAMS * LINES) as u64;
    let mut rule = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    rule(fill.records_appended == records, format!("{} of {records} records written", fill.records_appended));
    rule(
        drain.records_delivered == records,
        format!("{} of {records} records delivered", drain.records_delivered),
    );
    rule(segments_before >= 3 * STREAMS, format!("{segments_before} segments of backlog, too few to rotate"));
    rule(
        segments_after <= STREAMS,
        format!("{segments_after} segments are left of {segments_before}: not retired"),
    );
    let differ = (0..STREAMS).filter(|stream| !same(folder, *stream)).count();
    rule(differ == 0, format!("{differ} outputs differ from their inputs"));
    let figures = format!(
        "{STREAMS} streams, {segments_before} segments of backlog, {segments_after} left, limit {FILES_MAX}, budget {}, open at most {} writing and {} delivering",
        drain.fds_max, fill.fds_peak, drain.fds_peak
    );
    verdict("fds", &figures, &found)?;
    scratch.passed();
    Ok(())
}

fn config(sink: &str) -> String {
    format!(
        "[queue]\ndir = \"queue\"\nsegment_bytes_max = \"16 KiB\"\nbatch_bytes_max = \"4 KiB\"\n\
         [[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{{stem}}\"\n{sink}"
    )
}

fn write_inputs(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("in"))?;
    for stream in 0..STREAMS {
        let mut text = String::new();
        for line in 0..LINES {
            writeln!(text, "stream {stream} line {line} {:.<100}", "")?;
        }
        fs::write(folder.join(format!("in/s{stream}.log")), text)?;
    }
    Ok(())
}

/// Starts the program under the limit and watches from outside how many files it has open.
fn limited_run(program: &Path, folder: &Path, name: &str, found: &mut Vec<String>) -> Result<Summary> {
    let summary = format!("{name}.json");
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={FILES_MAX}")).arg(program);
    command.args(["run", &format!("{name}.toml"), "--summary-json", &summary]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = Running::start(&mut command)?;
    let listing = format!("/proc/{}/fd", child.id());
    let mut seen = 0;
    let end = Instant::now() + RUN_LIMIT;
    let status = loop {
        if let Some(status) = child.wait_until(Instant::now() + Duration::from_millis(20))? {
            break status;
        }
        ensure!(Instant::now() < end, "{name} had not ended after {RUN_LIMIT:?}");
        seen = seen.max(fs::read_dir(&listing).map_or(0, Iterator::count) as u64);
    };
    ensure!(status.success(), "{name} ended with {status}");
    let summary = Summary::read(&folder.join(summary))?;
    println!(
        "{name}: {} segments created, budget {}, open at most {} by its own count, {seen} seen from outside",
        summary.segments_created, summary.fds_max, summary.fds_peak
    );
    if summary.fds_peak > summary.fds_max {
        found.push(format!("{name}: {} open files, the budget is {}", summary.fds_peak, summary.fds_max));
    }
    if seen > FILES_MAX {
        found.push(format!("{name}: {seen} open files, the limit is {FILES_MAX}"));
    }
    Ok(summary)
}

fn segments(queue: &Path) -> Result<usize> {
    let mut count = 0;
    for stream in fs::read_dir(queue.join("streams")).context("the queue has no streams")? {
        let files = fs::read_dir(stream?.path())?;
        count +=
            files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "seg")).count();
    }
    Ok(count)
}

fn same(folder: &Path, stream: usize) -> bool {
    let read = |place: &str| fs::read(folder.join(place).join(format!("s{stream}.log")));
    matches!((read("in"), read("out")), (Ok(put), Ok(got)) if put == got)
}
