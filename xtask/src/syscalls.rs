//! System calls per MB and per record, counted by strace.
//!
//! Each workload runs twice, with once and with twice the work: the difference is what the work costs, and start and stop cost
//! nothing in it. The store's own counters stand beside strace's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::pipeline::{CrashPoints, Scratch, build};
use crate::shell::verdict;

/// What strace is asked to show. Calls that wait or make memory are no I/O and not asked for, save in the one workload that
/// counts every call.
const TRACED: &str = "trace=write,pwrite64,writev,pwritev,pwritev2,fdatasync,fsync,sync_file_range,openat,openat2,read,pread64,readv,preadv,preadv2,close,fallocate,ftruncate";

/// A workload of `pq-bench workload`, and how many records it is given the first time.
struct Workload {
    name: &'static str,
    records: u64,
    payload_bytes: u64,
    traced: &'static str,
}

/// What the workload says of itself.
#[derive(Deserialize)]
struct Report {
    records: u64,
    payload_bytes: u64,
    syncs: u64,
}

/// Calls by name, and how many `fsync`s went to something that is no directory.
#[derive(Default)]
struct Calls {
    by_name: BTreeMap<String, u64>,
    fsyncs_of_files: u64,
}

/// What the second run did more than the first.
struct Cost {
    calls: BTreeMap<String, u64>,
    records: f64,
    megabytes: f64,
    syncs: f64,
    fsyncs_of_files: u64,
}

impl Cost {
    fn of(&self, names: &[&str]) -> f64 {
        names.iter().map(|name| self.calls.get(*name).copied().unwrap_or(0) as f64).sum()
    }

    fn writes(&self) -> f64 {
        self.of(&["write", "pwrite64", "writev", "pwritev", "pwritev2"])
    }

    fn reads(&self) -> f64 {
        self.of(&["read", "pread64", "readv", "preadv", "preadv2"])
    }

    fn opens(&self) -> f64 {
        self.of(&["openat", "openat2"])
    }

    fn syncs_seen(&self) -> f64 {
        self.of(&["fdatasync"])
    }

    fn all(&self) -> f64 {
        self.calls.values().sum::<u64>() as f64
    }
}

/// Runs the check.
pub(crate) fn run() -> Result<()> {
    if Command::new("strace").arg("-V").output().is_err() {
        bail!("syscalls: SKIPPED, no strace here (Debian: apt-get install strace)");
    }
    let scratch = Scratch::new("syscalls")?;
    let program = build("pq-bench", "pq-bench", CrashPoints::Absent)?;
    let mut found = Vec::new();
    let mut rule = |holds: bool, what: String| {
        println!("{} {what}", if holds { "ok  " } else { "MISS" });
        if !holds {
            found.push(what);
        }
    };
    let cost = |workload: &Workload| cost(&program, scratch.path(), workload);

    let batches = cost(&Workload { name: "batches", records: 200_000, payload_bytes: 1000, traced: TRACED })?;
    print("a: 10 MB batches", &batches);
    let per_mb = batches.syncs_seen() / batches.megabytes;
    rule(per_mb <= 0.12, format!("(a) {per_mb:.3} fdatasync per MB written, at most 0.12"));

    let append = cost(&Workload { name: "append", records: 1000, payload_bytes: 256, traced: "trace=all" })?;
    print("b: durable append, one producer", &append);
    let syncs = append.syncs_seen() / append.records;
    let others = append.all() / append.records - syncs;
    rule((syncs - 1.0).abs() < 0.01, format!("(b) {syncs:.3} fdatasync a record, one"));
    rule(others <= 2.0, format!("(b) {others:.2} other calls a record, at most 2"));

    let group = cost(&Workload { name: "group", records: 20_000, payload_bytes: 256, traced: TRACED })?;
    print("c: 64 producers", &group);
    let per_sync = group.records / group.syncs_seen();
    let own = group.records / group.syncs;
    rule(
        per_sync >= 16.0,
        format!("(c) {per_sync:.1} records per fdatasync (the store counts {own:.1}), at least 16"),
    );

    let drain = cost(&Workload { name: "drain", records: 200_000, payload_bytes: 1000, traced: TRACED })?;
    print("d: drain", &drain);
    let (reads, opens) = (drain.reads() / drain.megabytes, drain.opens() / drain.megabytes);
    rule(reads <= 20.0, format!("(d) {reads:.2} reads per MB, at most 20"));
    rule(opens <= 0.2, format!("(d) {opens:.3} opens per MB, at most 0.2"));

    let of_files: u64 = [&batches, &append, &group, &drain].iter().map(|cost| cost.fsyncs_of_files).sum();
    rule(of_files == 0, format!("{of_files} fsync of something that is no directory, none"));

    let figures = format!(
        "{per_mb:.3} fdatasync/MB in batches, {syncs:.2} + {others:.2} calls a durable append, {per_sync:.0} records a sync in a group, {reads:.2} reads and {opens:.3} opens/MB drained"
    );
    verdict("syscalls", &figures, &found)?;
    scratch.passed();
    Ok(())
}

fn print(title: &str, cost: &Cost) {
    println!("\n{title}: {:.0} records, {:.1} MB of payload; per MB:", cost.records, cost.megabytes);
    for (name, count) in [
        ("write", cost.writes()),
        ("fdatasync", cost.syncs_seen()),
        ("fsync", cost.of(&["fsync"])),
        ("open", cost.opens()),
        ("read", cost.reads()),
    ] {
        println!("  {name:<10} {:>10.3}   ({count:.0} calls)", count / cost.megabytes);
    }
}

fn cost(program: &Path, folder: &Path, workload: &Workload) -> Result<Cost> {
    let (once, first) = traced(program, folder, workload, 1)?;
    let (twice, second) = traced(program, folder, workload, 2)?;
    ensure!(second.records == 2 * first.records, "the workload did not double");
    let calls = twice
        .by_name
        .iter()
        .map(|(name, count)| {
            (name.clone(), count.saturating_sub(once.by_name.get(name).copied().unwrap_or(0)))
        })
        .collect();
    Ok(Cost {
        calls,
        records: (second.records - first.records) as f64,
        megabytes: (second.payload_bytes - first.payload_bytes) as f64 / 1e6,
        syncs: second.syncs.saturating_sub(first.syncs).max(1) as f64,
        fsyncs_of_files: once.fsyncs_of_files + twice.fsyncs_of_files,
    })
}

/// Runs a workload under strace.
fn traced(program: &Path, folder: &Path, workload: &Workload, times: u64) -> Result<(Calls, Report)> {
    let data = folder.join(format!("{}-{times}", workload.name));
    let trace = folder.join(format!("{}-{times}.strace", workload.name));
    let arguments = |stage: &str| {
        vec![
            "workload".to_owned(),
            format!("{}{stage}", workload.name),
            format!("--records={}", workload.records * times),
            format!("--payload-bytes={}", workload.payload_bytes),
            format!("--dir={}", data.display()),
        ]
    };
    if workload.name == "drain" {
        let status = Command::new(program).args(arguments("-fill")).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "filling the queue for the drain failed");
    }
    let output = Command::new("strace")
        .args(["-f", "-y", "-qq", "--signal=none", "-e", workload.traced, "-o"])
        .arg(&trace)
        .arg(program)
        .args(arguments(""))
        .stderr(Stdio::inherit())
        .output()
        .context("could not start strace")?;
    ensure!(output.status.success(), "the workload {} failed under strace", workload.name);
    let report =
        serde_json::from_slice(&output.stdout).context("the workload's report is not as expected")?;
    let text = fs::read_to_string(&trace)?;
    fs::remove_dir_all(&data)?;
    Ok((count(&text), report))
}

/// Counts the calls of a trace; a call split in two lines counts once.
fn count(trace: &str) -> Calls {
    let mut calls = Calls::default();
    for line in trace.lines() {
        let call = line.trim_start_matches(|character: char| character.is_ascii_digit() || character == ' ');
        if call.starts_with("<...") || call.starts_with("+++") || call.starts_with("---") {
            continue;
        }
        let Some((name, rest)) = call.split_once('(') else { continue };
        *calls.by_name.entry(name.to_owned()).or_default() += 1;
        if name == "fsync" {
            // -y shows `fsync(5</folder/of/queue>)`; what it names may be gone again by now: then it was no directory of ours.
            let path = rest.split_once('<').and_then(|(_, path)| path.split_once('>')).map(|(path, _)| path);
            if path.is_some_and(|path| Path::new(path).is_file() || path.ends_with(".seg")) {
                calls.fsyncs_of_files += 1;
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_two_lines_counts_once() {
        let calls = count(
            "12 fdatasync(5</q/1.seg> <unfinished ...>\n13 write(1</o>, \"x\", 1) = 1\n12 <... fdatasync resumed>) = 0\n",
        );
        assert_eq!(calls.by_name.get("fdatasync"), Some(&1));
        assert_eq!(calls.by_name.get("write"), Some(&1));
    }

    #[test]
    fn a_full_sync_of_a_file_is_seen() {
        assert_eq!(count("12 fsync(5</q/streams/1/1.seg>) = 0\n").fsyncs_of_files, 1);
        assert_eq!(count("12 fsync(5</q/streams/1>) = 0\n").fsyncs_of_files, 0);
    }
}
