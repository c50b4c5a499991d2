//! Starting the witness: see `crates/witness`.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::talking::Talking;

/// A running witness; killed when dropped.
pub(crate) struct Witness(Talking);

impl Witness {
    /// Starts it; it opens the queue and says what is there before it obeys.
    pub(crate) fn start(program: &Path, dir: &Path, testimony: &Path, life: &str) -> Result<Self> {
        Self::start_by(&mut Command::new(program), dir, testimony, life)
    }

    /// [`Witness::start`] through another program, which ends in the witness's own.
    pub(crate) fn start_by(command: &mut Command, dir: &Path, testimony: &Path, life: &str) -> Result<Self> {
        command.arg(dir).arg("--testimony").arg(testimony).args(["--life", life]);
        Ok(Self(Talking::start("the witness", command)?))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until the queue is open.
    pub(crate) fn ready(&mut self) -> Result<()> {
        match self.opened()?.as_str() {
            "ok" => Ok(()),
            said => bail!("the queue does not open: {said}"),
        }
    }

    /// Waits until the queue is open, or what it said instead.
    pub(crate) fn opened(&mut self) -> Result<String> {
        self.0.answer()
    }

    pub(crate) fn tell(&mut self, line: &str) {
        self.0.tell(line);
    }

    /// A step that must succeed.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        self.0.ask(line)
    }

    /// A step that may fail; the answer.
    pub(crate) fn try_ask(&mut self, line: &str) -> Result<String> {
        self.0.try_ask(line)
    }

    /// The first failure it told so far, without waiting.
    pub(crate) fn failed_so_far(&mut self) -> Option<String> {
        self.0.failed_so_far()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.0.kill()
    }
}
