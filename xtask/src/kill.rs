//! `pq run` killed with SIGKILL again and again, at named points and at random moments, while its inputs grow; then what arrived is
//! held against what was put in.
//!
//! ```text
//!   inputs a, b, c ──▶ pq run ──▶ a file per stream (exactly once)  and  an HTTP receiver (at least once)
//!     grow each round     ▲ killed
//! ```
//! The receiver remembers seq and number of every record, so a record delivered again (same seq) is told from one stored twice
//! (another seq, same number).

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::pipeline::{CrashPoints, Random, Running, Scratch, Summary, build};
use crate::receiver::{Arrival, Receiver, number_of};
use crate::shell::verdict;

const STREAMS: [&str; 3] = ["a", "b", "c"];
/// Places inside commit, rotation, cursor save, journal compaction and retirement, and up to which occurrence to draw.
const POINTS: [(&str, u64); 16] = [
    ("write.seg:before", 16),
    ("write.seg:middle", 16),
    ("commit.batch:before", 16),
    ("commit.batch:after", 16),
    ("create.seg:after", 3),
    ("segment.dir:before", 3),
    ("segment.dir:after", 3),
    ("rotate.file:before", 2),
    ("rotate.file:after", 2),
    ("write.cursors:middle", 3),
    ("cursors.save:before", 3),
    ("cursors.save:after", 3),
    ("journal.generation:before", 1),
    ("remove.seg:before", 2),
    ("remove.seg:after", 2),
    ("retire.dir:before", 1),
];
/// A round that nobody kills lasts about twice as long.
const MOMENT_MAX_US: u64 = 80_000;
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// How often, and with what.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Times the program is started to be killed.
    #[arg(long, default_value_t = 50)]
    rounds: u64,
    /// Records of all streams together.
    #[arg(long, default_value_t = 300_000)]
    records: u64,
    /// What the moments, points and line lengths follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

struct Check<'a> {
    program: PathBuf,
    folder: &'a Path,
    receiver: Receiver,
    random: Random,
    appended: u64,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let scratch = Scratch::new("kill")?;
    let program = build("pq-queue-cli", "pq", CrashPoints::Compiled)?;
    let receiver = Receiver::start()?;
    let random = Random::new(arguments.seed);
    let mut check = Check { program, folder: scratch.path(), receiver, random, appended: 0 };
    check.write_config()?;
    let per_round = arguments.records.div_ceil(arguments.rounds * STREAMS.len() as u64);
    let (mut killed, mut inside) = (0, 0);
    for round in 0..arguments.rounds {
        check.grow_inputs(per_round)?;
        match check.round(round)? {
            End::AtPoint => (killed, inside) = (killed + 1, inside + 1),
            End::AtMoment => killed += 1,
            End::Itself => {}
        }
    }
    let summary = check.last_run()?;
    let found = check.compare()?;
    let bound = killed * STREAMS.len() as u64 * summary.turn_records_max;
    let mut rules = found.broken;
    if found.again > bound {
        rules.push(format!("{} records were delivered twice, the bound is {bound}", found.again));
    }
    if inside * 3 < arguments.rounds {
        rules.push(format!("only {inside} of {} rounds ended inside a named point", arguments.rounds));
    }
    println!("kill: seed {}, {} records, {inside} kills at named points", arguments.seed, check.appended);
    let figures = format!(
        "{} rounds, {killed} killed, {} lost, {} out of order, {} twice in a stream, {} delivered twice (bound {bound})",
        arguments.rounds, found.lost, found.out_of_order, found.twice, found.again
    );
    verdict("kill", &figures, &rules)?;
    scratch.passed();
    Ok(())
}

/// How a round ended.
enum End {
    AtPoint,
    AtMoment,
    Itself,
}

impl Check<'_> {
    fn write_config(&self) -> Result<()> {
        let text = format!(
            r#"
[queue]
dir = "queue"
cursor_save_interval = "20ms"
turn_bytes_max = "64 KiB"
segment_bytes_max = "256 KiB"
batch_bytes_max = "32 KiB"

[[source.file]]
paths = ["*.in"]
stream = "{{stem}}"

[[sink.file]]
path = "{{stream}}.out"
format = "seq"

[[sink.http]]
url = "{}"
body = "lines"
"#,
            self.receiver.url()
        );
        Ok(fs::write(self.folder.join("kill.toml"), text)?)
    }

    /// Each stream's input gets that many more lines: a number, then bytes of a random length.
    fn grow_inputs(&mut self, lines: u64) -> Result<()> {
        let first = self.appended / STREAMS.len() as u64;
        for stream in STREAMS {
            let mut text = String::new();
            for number in first..first + lines {
                let length = usize::try_from(self.random.below(200))?;
                writeln!(text, "{number} {:.<length$}", stream)?;
            }
            let path = self.folder.join(format!("{stream}.in"));
            OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())?;
        }
        self.appended += lines * STREAMS.len() as u64;
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["run", "kill.toml", "--summary-json", "summary.json"]).current_dir(self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// One start that is to be killed: two of three times at a named point, else at a random moment.
    fn round(&mut self, round: u64) -> Result<End> {
        let mut command = self.command();
        command.stderr(fs::File::create(self.folder.join("stderr"))?);
        let at_point = round % 3 != 2;
        let mut limit = RUN_LIMIT;
        let mut chosen = String::from("a random moment");
        if at_point {
            let (point, most) = POINTS[usize::try_from(self.random.below(POINTS.len() as u64))?];
            chosen = format!("{point}:{}", self.random.below(most) + 1);
            command.env("PQ_CRASH", &chosen);
        } else {
            limit = Duration::from_micros(self.random.below(MOMENT_MAX_US));
        }
        let mut child = Running::start(&mut command)?;
        let Some(status) = child.wait_until(Instant::now() + limit)? else {
            ensure!(!at_point, "round {round} ({chosen}): the program hangs");
            child.kill()?;
            return Ok(End::AtMoment);
        };
        if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
            return Ok(End::AtPoint);
        }
        if !status.success() {
            let said = fs::read_to_string(self.folder.join("stderr"))?;
            bail!("round {round} ({chosen}): the program ended with {status}: {said}");
        }
        Ok(End::Itself)
    }

    /// Nobody kills this one: it delivers what is left.
    fn last_run(&self) -> Result<Summary> {
        let status = Running::start(&mut self.command())?.wait(RUN_LIMIT)?;
        ensure!(status.success(), "the last run ended with {status}");
        Summary::read(&self.folder.join("summary.json"))
    }

    fn compare(&self) -> Result<Found> {
        let mut found = Found::default();
        let lines = self.appended / STREAMS.len() as u64;
        for stream in STREAMS {
            found.add(&format!("{stream} at the receiver"), &self.receiver.arrived(stream), lines);
            found.add(&format!("{stream}.out"), &self.read_output(stream)?, lines);
        }
        Ok(found)
    }

    /// The file sink's lines: seq, tab, record.
    fn read_output(&self, stream: &str) -> Result<Vec<Arrival>> {
        let path = self.folder.join(format!("{stream}.out"));
        let bytes = fs::read(&path).with_context(|| format!("no output {}", path.display()))?;
        let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n');
        lines
            .map(|line| {
                let tab = line.iter().position(|byte| *byte == b'\t').context("a line without its seq")?;
                Ok(Arrival { seq: number_of(&line[..tab])?, number: number_of(&line[tab + 1..])? })
            })
            .collect()
    }
}

/// What is wrong, counted.
#[derive(Default)]
struct Found {
    lost: u64,
    out_of_order: u64,
    twice: u64,
    again: u64,
    broken: Vec<String>,
}

impl Found {
    /// Holds what arrived at one destination against the numbers `0..lines`, which its stream got in this order.
    fn add(&mut self, place: &str, arrivals: &[Arrival], lines: u64) {
        let mut seen_seqs = HashSet::new();
        let mut seen_numbers = HashSet::new();
        let mut last = None;
        let (mut out_of_order, mut twice) = (0, 0);
        for arrival in arrivals {
            if !seen_seqs.insert(arrival.seq) {
                self.again += 1;
                continue;
            }
            if !seen_numbers.insert(arrival.number) {
                twice += 1;
            }
            // First deliveries come in the order of the stream, and the stream has the order of its input.
            if last.is_some_and(|(seq, number)| arrival.seq <= seq || arrival.number <= number) {
                out_of_order += 1;
            }
            last = Some((arrival.seq, arrival.number));
        }
        let lost = (0..lines).filter(|number| !seen_numbers.contains(number)).count() as u64;
        let strange = seen_numbers.iter().filter(|number| **number >= lines).count();
        for (count, what) in [(lost, "lost"), (out_of_order, "out of order"), (twice, "twice in the stream")]
        {
            if count > 0 {
                self.broken.push(format!("{place}: {count} {what}"));
            }
        }
        if strange > 0 {
            self.broken.push(format!("{place}: {strange} records that nobody put in"));
        }
        self.lost += lost;
        self.out_of_order += out_of_order;
        self.twice += twice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arrivals: &[(u64, u64)], lines: u64) -> (u64, u64, u64, u64) {
        let arrivals: Vec<_> = arrivals.iter().map(|&(seq, number)| Arrival { seq, number }).collect();
        let mut found = Found::default();
        found.add("here", &arrivals, lines);
        (found.lost, found.out_of_order, found.twice, found.again)
    }

    #[test]
    fn each_fault_is_counted_as_what_it_is() {
        assert_eq!(found(&[(1, 0), (2, 1), (3, 2)], 3), (0, 0, 0, 0));
        assert_eq!(found(&[(1, 0), (3, 2)], 3), (1, 0, 0, 0), "lost");
        assert_eq!(found(&[(1, 0), (3, 2), (2, 1)], 3), (0, 1, 0, 0), "out of order");
        assert_eq!(found(&[(1, 0), (2, 1), (3, 1), (4, 2)], 3), (0, 1, 1, 0), "twice in the stream");
        assert_eq!(found(&[(1, 0), (2, 1), (1, 0), (2, 1), (3, 2)], 3), (0, 0, 0, 2), "delivered twice");
    }
}
