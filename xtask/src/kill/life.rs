//! Trials of `pq-bench life`: a queue's whole life, with what no configuration of `pq run` does. The program checks at every start
//! what earlier starts wrote down as durable in a log beside the queue; here it is only started, killed and asked.
//!
//! Damaged: before each start that is to be killed the two oldest segments of each stream are overwritten and cut, so that recovery
//! has losses to remember and files to link into quarantine, and can be killed there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Running;
use super::folder::{RUN_LIMIT, read_census, renew};
use super::points::{Program, Trial};

/// What happens to the files between a kill and the restart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sound,
    Damaged,
}

/// The exit code of a life that found something missing or wrong.
const VIOLATED: i32 = 3;

/// Such trials.
pub(super) struct Trials {
    program: PathBuf,
    folder: PathBuf,
    kind: Kind,
}

impl Trials {
    /// Nothing is started yet.
    pub(super) fn new(program: PathBuf, scratch: &Path, kind: Kind) -> Self {
        Self { program, folder: scratch.join("life"), kind }
    }

    /// One start; `true`: it was killed at the point.
    fn start(&self, point: Option<&str>, census: Option<&Path>, broken: &mut Vec<String>) -> Result<bool> {
        let mut command = Command::new(&self.program);
        command.arg("life").arg(self.folder.join("queue")).arg(self.folder.join("log"));
        if self.kind == Kind::Damaged {
            command.arg("--damaged");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(self.folder.join("stderr"))?);
        if let Some(point) = point {
            command.env("PQ_CRASH", point);
        }
        if let Some(census) = census {
            command.env("PQ_CRASH_CENSUS", census);
        }
        let status = Running::start(&mut command)?.wait(RUN_LIMIT)?;
        if status.signal() == Some(9) {
            return Ok(true);
        }
        let said = fs::read_to_string(self.folder.join("stderr"))?;
        match status.code() {
            Some(0) => Ok(false),
            Some(VIOLATED) => {
                broken.extend(said.lines().map(str::to_owned));
                Ok(false)
            }
            _ => bail!("life ended with {status} ({point:?}): {said}"),
        }
    }

    /// Overwrites bytes in the header and in a record of the oldest segment of each stream, and cuts the next; the newest stays.
    fn damage(&self) -> Result<()> {
        if self.kind == Kind::Sound {
            return Ok(());
        }
        let Ok(streams) = fs::read_dir(self.folder.join("queue/streams")) else { return Ok(()) };
        for stream in streams {
            let mut segments: Vec<_> = fs::read_dir(stream?.path())?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.extension() == Some(OsStr::new("seg")))
                .collect();
            segments.sort();
            segments.pop();
            if let Some(oldest) = segments.first() {
                overwrite(oldest, 100)?;
                overwrite(oldest, 4096 + 200)?;
            }
            if let Some(next) = segments.get(1) {
                let file = fs::OpenOptions::new().write(true).open(next)?;
                file.set_len(file.metadata()?.len().saturating_sub(1000))?;
            }
        }
        Ok(())
    }
}

fn overwrite(path: &Path, at: usize) -> Result<()> {
    let mut bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let len = bytes.len();
    if let Some(bytes) = bytes.get_mut(at.min(len)..(at + 64).min(len)) {
        bytes.fill(0xee);
    }
    fs::write(path, bytes)?;
    Ok(())
}

impl Program for Trials {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sound => "life",
            Kind::Damaged => "damaged life",
        }
    }

    fn census(&mut self) -> Result<Vec<String>> {
        renew(&self.folder)?;
        let census = self.folder.join("census");
        let mut broken = Vec::new();
        for _ in 0..3 {
            self.start(None, Some(&census), &mut broken)?;
            self.damage()?;
        }
        if let Some(what) = broken.first() {
            bail!("life without a kill: {what}");
        }
        Ok(read_census(&census))
    }

    fn trial(&mut self, points: &[String]) -> Result<Trial> {
        renew(&self.folder)?;
        let mut broken = Vec::new();
        let mut reached = Vec::new();
        if self.kind == Kind::Damaged {
            self.start(None, None, &mut broken)?;
        }
        for point in points {
            // What is done to an older stream comes in a later life only.
            let mut killed = false;
            for _ in 0..2 {
                if !killed {
                    self.damage()?;
                    killed = self.start(Some(point), None, &mut broken)?;
                }
            }
            reached.push(killed);
        }
        let census = self.folder.join("census");
        self.start(None, Some(&census), &mut broken)?;
        self.start(None, None, &mut broken)?;
        let lost = broken.len() as u64;
        Ok(Trial { reached, restart: read_census(&census), lost, broken })
    }
}
