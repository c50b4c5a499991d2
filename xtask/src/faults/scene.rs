//! What the cases share: a stage with a file system on it, a witness at work, faults injected from outside, and the judgement.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::judge::Judge;
use crate::mounted::{Kind, Mounted, memory_folder, missing};
use crate::pipeline::Running;
use crate::power_cut::Programs;
use crate::witness::Witness;

/// A name, and what is done under it.
pub(super) type Case = (&'static str, fn(&Stage<'_>) -> Result<Outcome>);

/// How a case ended.
pub(super) enum Outcome {
    /// This machine cannot.
    Skipped(String),
    /// What was seen, and what was wrong.
    Ran { figures: String, broken: Vec<String> },
}

/// Where a case plays.
pub(super) struct Stage<'a> {
    pub(super) programs: &'a Programs,
    folder: PathBuf,
    _images: Mounted,
}

impl<'a> Stage<'a> {
    pub(super) fn new(programs: &'a Programs, scratch: &Path, name: &str) -> Result<Self> {
        let folder = scratch.join(name.replace(' ', "-"));
        let images = memory_folder(&folder.join("images"))?;
        Ok(Self { programs, folder, _images: images })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn image(&self) -> PathBuf {
        self.folder.join("images/image")
    }

    /// A new file system of that size, mounted.
    pub(super) fn mount(&self, kind: Kind, bytes: u64, mkfs: &[&str]) -> Result<Mounted> {
        kind.make_with(&self.image(), bytes, mkfs)?;
        self.mount_again(kind, "")
    }

    pub(super) fn mount_again(&self, kind: Kind, options: &str) -> Result<Mounted> {
        Mounted::new(kind, &self.image(), &self.path("mnt"), options)
    }

    /// A witness with its queue on the stage's file system, open.
    pub(super) fn witness(&self, life: &str) -> Result<Witness> {
        let mut witness = self.start_by(&mut Command::new(&self.programs.witness), life)?;
        witness.ready()?;
        Ok(witness)
    }

    /// A witness that may refuse to start.
    pub(super) fn start_by(&self, command: &mut Command, life: &str) -> Result<Witness> {
        Witness::start_by(command, &self.path("mnt/queue"), &self.path("testimony"), life)
    }

    /// Ends a case: closes the queue in order, mounts anew, and holds what is there against what was promised.
    pub(super) fn judge(
        &self,
        mut witness: Witness,
        mounted: Mounted,
        kind: Kind,
        broken: &mut Vec<String>,
    ) -> Result<String> {
        witness.ask("report")?;
        witness.ask("close")?;
        drop(witness);
        mounted.unmount()?;
        let mounted = self.mount_again(kind, "")?;
        let figures = self.judge_next(broken)?;
        mounted.unmount()?;
        Ok(figures)
    }

    /// Another life on what is mounted, and the judgement over all of them.
    pub(super) fn judge_next(&self, broken: &mut Vec<String>) -> Result<String> {
        let mut witness = self.witness("last")?;
        witness.ask("append each 1 100 10000")?;
        witness.ask("close")?;
        let mut judge = Judge::default();
        judge.hear(&std::fs::read_to_string(self.path("testimony"))?)?;
        broken.append(&mut judge.broken);
        Ok(format!("{} records acknowledged, {} lost", judge.counts.acked, judge.counts.lost))
    }
}

/// A step that must fail, and say this.
pub(super) fn must_fail(
    witness: &mut Witness,
    step: &str,
    because: &str,
    broken: &mut Vec<String>,
) -> Result<()> {
    let said = witness.try_ask(step)?;
    if said.starts_with("ok") || !said.contains(because) {
        broken.push(format!("{step} under the fault: {said}; expected a failure with {because:?}"));
    }
    Ok(())
}

/// A step that must succeed.
pub(super) fn must_work(
    witness: &mut Witness,
    step: &str,
    when: &str,
    broken: &mut Vec<String>,
) -> Result<()> {
    let said = witness.try_ask(step)?;
    if !said.starts_with("ok") {
        broken.push(format!("{step} {when}: {said}"));
    }
    Ok(())
}

/// Writes a file until nothing more fits.
pub(super) fn fill(path: &Path) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    for bytes in [1 << 16, 4096, 512] {
        let chunk = vec![0x55; bytes];
        while file.write_all(&chunk).is_ok() {}
        file.sync_all().ok();
    }
    Ok(())
}

/// System calls of a running process that fail, from outside, until this is dropped.
pub(super) struct Injected(Running);

impl Injected {
    /// Why it cannot be done here.
    pub(super) fn lacking() -> Option<String> {
        missing(&["strace"])
    }

    /// `what` as strace's `inject` takes it, for example `openat2:error=EMFILE`.
    pub(super) fn attach(process: u32, what: &[&str]) -> Result<Self> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-q", "-o", "/dev/null", "-p", &process.to_string()]);
        for what in what {
            strace.arg("-e").arg(format!("inject={what}"));
        }
        let mut running = Running::start(&mut strace)?;
        let until = Instant::now() + Duration::from_secs(10);
        while !is_traced(process)? {
            if running.wait_until(Instant::now() + Duration::from_millis(5))?.is_some()
                || Instant::now() > until
            {
                bail!("strace does not attach: is tracing allowed here?");
            }
        }
        Ok(Self(running))
    }

    /// Ends the fault.
    pub(super) fn detach(mut self, process: u32) -> Result<()> {
        // Told to end, it leaves the process as it was; killed, too, but only once the kernel noticed.
        self.0.kill()?;
        let until = Instant::now() + Duration::from_secs(10);
        while is_traced(process)? {
            if Instant::now() > until {
                bail!("the process is still traced");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// Whether all threads of a process are traced.
fn is_traced(process: u32) -> Result<bool> {
    let mut all = true;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        all &= !status.contains("TracerPid:\t0");
    }
    Ok(all)
}
