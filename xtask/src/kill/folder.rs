//! A folder with a `pq run` in it: configuration, inputs that grow, a start that may be killed, and what its sinks got.
//!
//! ```text
//!   inputs ──▶ pq run ──▶ a file per stream (exactly once)  and  an HTTP receiver (at least once)
//! ```

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::found::Found;
use super::points::{Program, Trial};
use super::{End, Place, Running};
use crate::pipeline::{Random, Summary};
use crate::receiver::{Arrival, Receiver, number_of};

/// No start takes longer.
pub(super) const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Sizes of the queue's parts.
pub(super) struct Sizes {
    pub(super) segment: &'static str,
    pub(super) batch: &'static str,
    pub(super) cursor_save: &'static str,
}

/// Such a folder.
pub(super) struct Folder<'a> {
    pub(super) place: Place,
    pub(super) receiver: &'a Receiver,
    pub(super) streams: Vec<String>,
    pub(super) appended: u64,
}

impl<'a> Folder<'a> {
    /// Makes the configuration; the folder is there and empty.
    pub(super) fn new(
        place: Place,
        receiver: &'a Receiver,
        streams: Vec<String>,
        sizes: &Sizes,
    ) -> Result<Self> {
        let text = format!(
            r#"
[queue]
dir = "queue"
cursor_save_interval = "{}"
turn_bytes_max = "64 KiB"
segment_bytes_max = "{}"
batch_bytes_max = "{}"

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
            sizes.cursor_save,
            sizes.segment,
            sizes.batch,
            receiver.url()
        );
        fs::write(place.folder.join("kill.toml"), text)?;
        Ok(Self { place, receiver, streams, appended: 0 })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    /// Each stream's input gets that many more lines: a number, then bytes of a random length.
    pub(super) fn grow_inputs(&mut self, lines: u64, random: &mut Random) -> Result<()> {
        let first = self.appended / self.streams.len() as u64;
        for stream in &self.streams {
            let mut text = String::new();
            for number in first..first + lines {
                let length = usize::try_from(random.below(200))?;
                writeln!(text, "{number} {:.<length$}", stream)?;
            }
            let path = self.path(&format!("{stream}.in"));
            OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())?;
        }
        self.appended += lines * self.streams.len() as u64;
        Ok(())
    }

    /// The program, ready to start.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.place.program);
        command.args(["run", "kill.toml", "--summary-json", "summary.json"]).current_dir(&self.place.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// One start that is to be killed at a named point, or else at a moment.
    pub(super) fn start_to_be_killed(&self, point: Option<&str>, moment: Duration) -> Result<End> {
        let mut command = self.command();
        command.stderr(fs::File::create(self.path("stderr"))?);
        if let Some(point) = point {
            command.env("PQ_CRASH", point);
        }
        let limit = if point.is_some() { RUN_LIMIT } else { moment };
        let shown = point.unwrap_or("a random moment");
        let mut child = Running::start(&mut command)?;
        let Some(status) = child.wait_until(Instant::now() + limit)? else {
            ensure!(point.is_none(), "{shown}: the program hangs");
            child.kill()?;
            return Ok(End::AtMoment);
        };
        if status.signal() == Some(9) {
            return Ok(End::AtPoint);
        }
        if !status.success() {
            let said = fs::read_to_string(self.path("stderr"))?;
            bail!("{shown}: the program ended with {status}: {said}");
        }
        Ok(End::Itself)
    }

    /// Nobody kills this one: it delivers what is left, and writes down the calls it makes.
    pub(super) fn last_run(&self, census: Option<&Path>) -> Result<Summary> {
        let mut command = self.command();
        command.stderr(fs::File::create(self.path("stderr"))?);
        if let Some(census) = census {
            command.env("PQ_CRASH_CENSUS", census);
        }
        let status = Running::start(&mut command)?.wait(RUN_LIMIT)?;
        if !status.success() {
            bail!("the last run ended with {status}: {}", fs::read_to_string(self.path("stderr"))?);
        }
        Summary::read(&self.path("summary.json"))
    }

    /// What the sinks got, held against the inputs.
    pub(super) fn compare(&self) -> Result<Found> {
        let mut found = Found::default();
        let lines = self.appended / self.streams.len() as u64;
        for stream in &self.streams {
            found.add(&format!("{stream} at the receiver"), &self.receiver.arrived(stream), lines);
            found.add(&format!("{stream}.out"), &self.read_output(stream)?, lines);
        }
        Ok(found)
    }

    /// The file sink's lines: seq, tab, record.
    fn read_output(&self, stream: &str) -> Result<Vec<Arrival>> {
        let path = self.path(&format!("{stream}.out"));
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

/// Small enough that a run rotates, saves cursors and retires several times.
const SMALL: Sizes = Sizes { segment: "16 KiB", batch: "4 KiB", cursor_save: "1ms" };
const LINES_A_START: u64 = 200;

/// Trials of `pq run`, each in a folder of its own.
pub(super) struct Trials<'a> {
    program: PathBuf,
    scratch: PathBuf,
    receiver: &'a Receiver,
    random: Random,
    count: u64,
}

impl<'a> Trials<'a> {
    /// Nothing is started yet.
    pub(super) fn new(program: PathBuf, scratch: &Path, receiver: &'a Receiver, seed: u64) -> Self {
        Self { program, scratch: scratch.to_owned(), receiver, random: Random::new(seed), count: 0 }
    }

    /// Streams have a name of their own in each trial: the receiver is one for all.
    fn folder(&mut self) -> Result<Folder<'a>> {
        self.count += 1;
        let folder = self.scratch.join("run");
        renew(&folder)?;
        let place = Place { program: self.program.clone(), folder };
        let streams = ["a", "b"].map(|name| format!("{name}{}", self.count)).to_vec();
        Folder::new(place, self.receiver, streams, &SMALL)
    }
}

/// An empty folder.
pub(super) fn renew(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The lines of a census; none if no call was met.
pub(super) fn read_census(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

impl Program for Trials<'_> {
    fn name(&self) -> &'static str {
        "pq run"
    }

    fn census(&mut self) -> Result<Vec<String>> {
        let mut folder = self.folder()?;
        let census = folder.path("census");
        for _ in 0..2 {
            folder.grow_inputs(LINES_A_START, &mut self.random)?;
            folder.last_run(Some(&census))?;
        }
        Ok(read_census(&census))
    }

    fn trial(&mut self, points: &[String]) -> Result<Trial> {
        let mut folder = self.folder()?;
        let mut reached = Vec::new();
        for point in points {
            folder.grow_inputs(LINES_A_START, &mut self.random)?;
            reached.push(folder.start_to_be_killed(Some(point), Duration::ZERO)? == End::AtPoint);
        }
        folder.grow_inputs(LINES_A_START, &mut self.random)?;
        let census = folder.path("census");
        let summary = folder.last_run(Some(&census))?;
        let found = folder.compare()?;
        let killed = reached.iter().filter(|reached| **reached).count() as u64;
        let bound = killed * folder.streams.len() as u64 * summary.turn_records_max;
        let mut broken = found.broken;
        if found.again > bound {
            broken.push(format!("{} records were delivered twice, the bound is {bound}", found.again));
        }
        Ok(Trial { reached, restart: read_census(&census), lost: found.lost, broken })
    }
}
