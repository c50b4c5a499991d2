//! Children that are told a line and answer a line: the witness and the loop disk.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Nothing that is asked here takes longer, unless it hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A child with a line each way; killed and reaped when dropped.
pub(crate) struct Talking {
    name: String,
    child: Child,
    to: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Talking {
    /// Starts it. Its first answer says that it is ready.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("could not start {name}"))?;
        let from = child.stdout.take().context("no pipe from the child")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let to = child.stdin.take();
        Ok(Self { name: name.to_owned(), child, to, answers })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells it a line; the answer is due later. A child that is gone says so with its answer.
    pub(crate) fn tell(&mut self, line: &str) {
        if let Some(to) = &mut self.to {
            writeln!(to, "{line}").and_then(|()| to.flush()).ok();
        }
    }

    /// Its next answer.
    pub(crate) fn answer(&mut self) -> Result<String> {
        match self.answers.recv_timeout(ANSWER_LIMIT) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => bail!("{} has not answered for {ANSWER_LIMIT:?}", self.name),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().context("cannot wait for the child")?;
                bail!("{} ended with {status}", self.name)
            }
        }
    }

    /// The first answer so far that is a failure, without waiting; nobody else gets the others.
    pub(crate) fn failed_so_far(&mut self) -> Option<String> {
        self.answers.try_iter().find(|answer| !answer.starts_with("ok"))
    }

    /// Tells it a line and waits for the answer, which must begin with `ok`.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        let answer = self.try_ask(line)?;
        match answer.strip_prefix("ok") {
            Some(rest) => Ok(rest.trim_start().to_owned()),
            None => bail!("{}: {line}: {answer}", self.name),
        }
    }

    /// Tells it a line and waits for the answer, whatever it is.
    pub(crate) fn try_ask(&mut self, line: &str) -> Result<String> {
        self.tell(line);
        self.answer()
    }

    /// SIGKILL, now.
    pub(crate) fn kill(&mut self) -> Result<()> {
        // One that ended before is as dead.
        self.child.kill().ok();
        self.child.wait().context("cannot wait for the child")?;
        Ok(())
    }

    /// Closes its standard input, at which it ends by itself.
    pub(crate) fn hang_up(&mut self) -> Result<()> {
        self.to = None;
        self.child.wait().context("cannot wait for the child")?;
        Ok(())
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        self.kill().ok();
    }
}
