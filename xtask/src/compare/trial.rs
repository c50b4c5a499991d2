//! One crate as a program: started to write, read in a copy of its folder, asked what it saw.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::pipeline::Running;
use crate::shell::{must, output};

/// A reader that takes longer hangs.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// The exit code of a panic.
const PANICKED: i32 = 101;

/// A crate behind `pq-bench peer`.
pub(super) struct Peer {
    program: PathBuf,
    name: &'static str,
    scratch: PathBuf,
}

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Read,
    Refused,
    Panicked,
    Hung,
}

/// What a reader saw.
#[derive(Debug)]
pub(super) struct Saw {
    /// Numbers of the records that came as they were put in.
    pub(super) numbers: BTreeSet<u64>,
    /// Payloads that nobody wrote.
    pub(super) wrong: u64,
    /// Whether damage was reported.
    pub(super) reported: bool,
    pub(super) ended: Ended,
}

impl Peer {
    /// The crate of that name; its copies are made in `scratch`.
    pub(super) fn new(program: &Path, name: &'static str, scratch: &Path) -> Result<Self> {
        Ok(Self { program: program.to_owned(), name, scratch: scratch.to_owned() })
    }

    /// A folder for copies, logs and images.
    pub(super) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// The setting it says it runs at.
    pub(super) fn setting(&self) -> Result<String> {
        Ok(output(Command::new(&self.program).args(["peer", self.name, "setting"]))?.trim().to_owned())
    }

    fn command(&self, verb: &str, dir: &Path) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(["peer", self.name, verb]).arg(dir).env("WALRUS_DATA_DIR", dir).env("WALRUS_QUIET", "1");
        command.stdin(Stdio::null());
        command.stderr(fs::File::create(self.scratch.join(format!("{}.{verb}.stderr", self.name)))?);
        Ok(command)
    }

    /// A writer of records from a number on.
    pub(super) fn write(&self, dir: &Path, first: u64, count: u64) -> Result<Writer> {
        let mut command = self.command("write", dir)?;
        command.arg("--first").arg(first.to_string()).arg("--count").arg(count.to_string());
        Writer::start(command.stdout(Stdio::piped()))
    }

    /// What is in a folder, read in a copy of it, since reading may consume.
    pub(super) fn read(&self, dir: &Path) -> Result<Saw> {
        let copy = self.copy(dir)?;
        self.read_in(&copy)
    }

    /// A fresh copy of a folder.
    pub(super) fn copy(&self, dir: &Path) -> Result<PathBuf> {
        let copy = self.scratch.join("copy");
        if copy.exists() {
            fs::remove_dir_all(&copy)?;
        }
        fs::create_dir_all(&copy)?;
        if dir.exists() {
            must(Command::new("cp").args(["-a", "--sparse=always"]).arg(dir.join(".")).arg(&copy))?;
        }
        Ok(copy)
    }

    /// What is in a folder, which the reader may change.
    pub(super) fn read_in(&self, dir: &Path) -> Result<Saw> {
        let lines = self.scratch.join("read");
        let mut command = self.command("read", dir)?;
        command.stdout(fs::File::create(&lines)?);
        let mut child = Running::start(&mut command)?;
        let ended = match child.wait_until(std::time::Instant::now() + READ_LIMIT)? {
            None => {
                child.kill()?;
                Ended::Hung
            }
            Some(status) if status.success() => Ended::Read,
            Some(status) if status.code() == Some(PANICKED) || status.code().is_none() => Ended::Panicked,
            Some(_) => Ended::Refused,
        };
        let text = fs::read_to_string(&lines)?;
        let saw = parse(&text, ended);
        ensure!(
            ended != Ended::Read || text.ends_with("end\n"),
            "{}: the reader's last line is not `end`",
            self.name
        );
        Ok(saw)
    }
}

fn parse(text: &str, ended: Ended) -> Saw {
    let mut saw = Saw { numbers: BTreeSet::new(), wrong: 0, reported: false, ended };
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("r", number)) => saw.numbers.extend(number.parse::<u64>().ok()),
            Some(("w", _)) => saw.wrong += 1,
            Some(("g", _)) => saw.reported = true,
            _ => {}
        }
    }
    saw
}

/// A writer whose acknowledgements come through a pipe: what it said before it died is known.
pub(super) struct Writer {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    /// Records acknowledged, in order.
    pub(super) acknowledged: Vec<u64>,
}

impl Writer {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
        let said = BufReader::new(child.stdout.take().context("no pipe")?);
        Ok(Self { child, said, acknowledged: Vec::new() })
    }

    /// Takes acknowledgements until there are that many, or the writer ended.
    pub(super) fn until(&mut self, count: usize) -> Result<()> {
        let mut line = String::new();
        while self.acknowledged.len() < count {
            line.clear();
            if self.said.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                break;
            }
            // Some crates print lines of their own.
            let number = line.trim().strip_prefix("a ").and_then(|number| number.parse::<u64>().ok());
            self.acknowledged.extend(number);
        }
        Ok(())
    }

    /// SIGKILL, then what it had said until then.
    pub(super) fn kill(mut self) -> Result<Vec<u64>> {
        self.child.kill()?;
        self.until(usize::MAX)?;
        self.child.wait()?;
        Ok(std::mem::take(&mut self.acknowledged))
    }

    /// Waits for its own end; whether that was in order.
    pub(super) fn wait(mut self) -> Result<(Vec<u64>, bool)> {
        self.until(usize::MAX)?;
        let status = self.child.wait()?;
        Ok((std::mem::take(&mut self.acknowledged), status.success()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_says_is_counted_as_what_it_is() {
        let saw = parse("r 1\nr 3\nw 17 bytes\ng gap 2..3\nend\n", Ended::Read);
        assert_eq!(saw.numbers.into_iter().collect::<Vec<_>>(), [1, 3]);
        assert_eq!((saw.wrong, saw.reported), (1, true));
        assert!(!parse("end\n", Ended::Read).reported);
    }
}
