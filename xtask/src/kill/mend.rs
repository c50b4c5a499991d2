//! Trials of `pq repair --apply`: a folder with damage of every kind that a repair mends, repaired by programs that are killed, then by
//! one that nobody kills.
//!
//! ```text
//!   once    append ─▶ sound ─▶ damage ─▶ damaged;  what `pq export` prints of it could be read before
//!   trial   copy of the damaged ─▶ repair, killed ─▶ (repair, killed) ─▶ repair ─▶ compare:
//!             nothing is left to mend │ `pq verify` is content │ a record can be appended │ every line exported before is exported again
//! ```
//! Damage: payloads, a batch header, a segment header, a cut file, another segment under a wrong name, one bit in catalog and cursors,
//! the queue's own file, and a stream that the catalog does not know, which is adopted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::folder::{read_census, renew};
use super::points::{Program, Trial};

/// The streams; the third is the one that the catalog forgets.
const STREAMS: [&str; 3] = ["alpha", "beta", "gamma"];
const ADOPT: &str = "0000000000000003=gamma";
/// Each run of `pq append` makes a segment.
const SEGMENTS: u64 = 4;
const LINES: u64 = 40;
/// The exit code of a program that looked, and found something wrong.
const WRONG: i32 = 1;
/// The exit code of a program that could not do what it was asked for.
const CANNOT: i32 = 2;

/// Such trials.
pub(super) struct Trials {
    program: PathBuf,
    damaged: PathBuf,
    folder: PathBuf,
    /// Every record that could be read of the damaged folder, and all of the stream that is adopted.
    before: BTreeSet<String>,
}

impl Trials {
    /// Makes the damaged folder.
    pub(super) fn new(program: PathBuf, scratch: &Path) -> Result<Self> {
        let folder = scratch.join("mend");
        let mut trials = Self { program, damaged: scratch.join("damaged"), folder, before: BTreeSet::new() };
        trials.prepare()?;
        Ok(trials)
    }

    fn queue(&self) -> PathBuf {
        self.folder.join("queue")
    }

    fn pq(&self, args: &[&str], point: Option<&str>, census: Option<&Path>, input: &[u8]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.arg(args[0]).arg(self.queue()).args(&args[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(point.map(|point| ("PQ_CRASH", OsStr::new(point))));
        command.envs(census.map(|census| ("PQ_CRASH_CENSUS", census)));
        let mut child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
        child.stdin.take().context("no input")?.write_all(input).ok();
        Ok(child.wait_with_output()?)
    }

    /// Runs it with no kill in sight; the exit code must be one of these.
    fn must(&self, args: &[&str], codes: &[i32], input: &[u8]) -> Result<String> {
        let output = self.pq(args, None, None, input)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let as_asked = output.status.code().is_some_and(|code| codes.contains(&code));
        ensure!(as_asked, "pq {} ended with {}: {said}{printed}", args.join(" "), output.status);
        Ok(printed)
    }

    fn prepare(&mut self) -> Result<()> {
        renew(&self.folder)?;
        for (index, stream) in STREAMS.iter().enumerate() {
            let known = files(&self.queue(), "catalog-")?;
            let known: Vec<_> =
                known.into_iter().map(|path| Ok((fs::read(&path)?, path))).collect::<Result<_>>()?;
            for segment in 0..SEGMENTS {
                let lines =
                    (0..LINES).map(|line| format!("{stream} {:04} {:.<150}\n", segment * LINES + line, ""));
                self.must(&["append", stream], &[0], lines.collect::<String>().as_bytes())?;
            }
            self.must(&["read", stream, "--consumer", "reader", "-n", "10"], &[0], b"")?;
            if index + 1 == STREAMS.len() {
                self.before.extend(self.export(stream)?);
                // The catalog as it was before this stream.
                files(&self.queue(), "catalog-")?.iter().try_for_each(fs::remove_file)?;
                known.iter().try_for_each(|(bytes, path)| fs::write(path, bytes))?;
            }
        }
        self.damage()?;
        for stream in &STREAMS[..STREAMS.len() - 1] {
            let could_be_read = self.export(stream)?;
            self.before.extend(could_be_read);
        }
        copy(&self.queue(), &self.damaged)?;
        let planned = self.must(&["repair", "--adopt", ADOPT], &[WRONG], b"")?;
        let shown = planned.lines().find(|line| line.starts_with("DAMAGED")).unwrap_or("nothing is planned");
        println!("kill-points: pq repair: {} records can be read before it; {shown}", self.before.len());
        self.refuses_nonsense()
    }

    /// A crash point that means nothing must not be taken for none.
    fn refuses_nonsense(&self) -> Result<()> {
        let refused = self.pq(&["repair", "--apply"], Some("repair.dir:never:1"), None, b"")?;
        let said = String::from_utf8_lossy(&refused.stderr);
        ensure!(
            refused.status.code() == Some(CANNOT) && said.contains("PQ_CRASH"),
            "a crash point without a meaning was not refused: {}, {said}",
            refused.status
        );
        Ok(())
    }

    fn damage(&self) -> Result<()> {
        let segments = |stream: u64| files(&self.queue().join(format!("streams/{stream:016x}")), "");
        let (alpha, beta) = (segments(1)?, segments(2)?);
        ensure!(alpha.len() == 4 && beta.len() == 4, "segments: {alpha:?}, {beta:?}");
        edit(&alpha[0], |bytes| flip(bytes, b"alpha 0007", 0x21))?;
        edit(&alpha[1], |bytes| cut(bytes, 500))?;
        edit(&alpha[2], |bytes| fill(bytes, 4096..4160, 0))?;
        edit(&beta[0], |bytes| fill(bytes, 10..80, 0xee))?;
        edit(&beta[2], |bytes| flip(bytes, b"beta 0090", 0x21))?;
        fs::copy(&alpha[0], beta[3].with_file_name(format!("{:016x}.seg", 9)))?;
        edit(&newest(&self.queue(), "catalog-")?, |bytes| flip(bytes, b"beta", 1))?;
        edit(&newest(&self.queue(), "cursors-")?, |bytes| flip(bytes, b"reader", 1))?;
        edit(&self.queue().join("queue.meta"), |bytes| fill(bytes, 0..64, 0))
    }

    /// The records of a stream, a line each; gaps are left out.
    fn export(&self, stream: &str) -> Result<BTreeSet<String>> {
        let text = self.must(&["export", stream], &[0, WRONG], b"")?;
        Ok(text.lines().filter(|line| !line.contains("\"gap\"")).map(str::to_owned).collect())
    }

    /// A repair that is to be killed, or not; whether it was.
    fn repair(&self, point: Option<&str>, census: Option<&Path>) -> Result<bool> {
        let output = self.pq(&["repair", "--apply", "--adopt", ADOPT], point, census, b"")?;
        match output.status.code() {
            None if output.status.signal() == Some(9) => Ok(true),
            Some(0 | WRONG) => Ok(false),
            _ => bail!(
                "repair ({point:?}) ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    fn begin(&self) -> Result<PathBuf> {
        renew(&self.folder)?;
        copy(&self.damaged, &self.queue())?;
        Ok(self.folder.join("census"))
    }

    /// What is wrong behind a repair, and how many records are missing.
    fn compare(&self) -> (Vec<String>, u64) {
        let mut broken = Vec::new();
        for (args, input) in [
            (&["repair"][..], &b""[..]),
            (&["verify"], b""),
            (&["append", "alpha"], b"and on\n"),
            (&["verify"], b""),
        ] {
            broken.extend(self.must(args, &[0], input).err().map(|error| format!("{error:#}")));
        }
        let mut after = BTreeSet::new();
        for stream in STREAMS {
            match self.export(stream) {
                Ok(records) => after.extend(records),
                Err(error) => broken.push(format!("{error:#}")),
            }
        }
        let lost = self.before.difference(&after).count() as u64;
        if lost > 0 {
            broken.push(format!("{lost} records could be read before, and cannot be read now"));
        }
        let more = after.difference(&self.before).filter(|line| !line.contains("and on")).count();
        if more > 0 {
            broken.push(format!("{more} records that could not be read before"));
        }
        (broken, lost)
    }
}

impl Program for Trials {
    fn name(&self) -> &'static str {
        "pq repair"
    }

    fn census(&mut self) -> Result<Vec<String>> {
        let census = self.begin()?;
        self.repair(None, Some(&census))?;
        match self.compare().0.first() {
            Some(what) => bail!("a repair that nobody killed: {what}"),
            None => Ok(read_census(&census)),
        }
    }

    fn trial(&mut self, points: &[String]) -> Result<Trial> {
        let census = self.begin()?;
        let reached = points.iter().map(|point| self.repair(Some(point), None)).collect::<Result<_>>()?;
        self.repair(None, Some(&census))?;
        let (broken, lost) = self.compare();
        Ok(Trial { reached, restart: read_census(&census), lost, broken })
    }
}

/// The files of a folder whose names begin so, in the order of names; none if there is no folder.
fn files(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let Ok(listed) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The last one that holds anything: behind it stands one prepared for the next generation.
fn newest(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let mut holding = Vec::new();
    for path in files(folder, prefix)? {
        if fs::read(&path)?.iter().any(|byte| *byte != 0) {
            holding.push(path);
        }
    }
    holding.pop().with_context(|| format!("no {prefix}… in {}", folder.display()))
}

fn edit(path: &Path, edit: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Result<()> {
    let mut bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    edit(&mut bytes).with_context(|| format!("{} has nothing to damage", path.display()))?;
    Ok(fs::write(path, bytes)?)
}

/// Changes the first byte of what stands there.
fn flip(bytes: &mut [u8], what: &[u8], mask: u8) -> Option<()> {
    let at = bytes.windows(what.len()).position(|window| window == what)?;
    *bytes.get_mut(at)? ^= mask;
    Some(())
}

fn fill(bytes: &mut [u8], range: Range<usize>, byte: u8) -> Option<()> {
    bytes.get_mut(range)?.fill(byte);
    Some(())
}

/// Takes away its last bytes.
fn cut(bytes: &mut Vec<u8>, count: usize) -> Option<()> {
    bytes.truncate(bytes.len().checked_sub(count)?);
    Some(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    renew(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
