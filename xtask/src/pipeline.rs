//! Building and starting `pq` for the checks: scratch folders, configurations, children that never outlive the check.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shell::{command, must, output, root};

/// Builds a package's program for release and says where it is. Programs with crash points go to a folder of their own, so that
/// nobody runs one by mistake.
pub(crate) fn build(package: &str, program: &str, crash_points: CrashPoints) -> Result<PathBuf> {
    let mut folder = target_folder()?;
    let mut build = command(&format!("cargo build --release --quiet --package {package}"));
    if crash_points == CrashPoints::Compiled {
        folder = folder.join("crash-points");
        build.args(["--features", &format!("{package}/crash-points"), "--target-dir"]).arg(&folder);
    }
    must(&mut build)?;
    Ok(folder.join("release").join(program))
}

/// Builds a package's program for release with one of its features.
pub(crate) fn build_with(package: &str, program: &str, feature: &str) -> Result<PathBuf> {
    let line = format!("cargo build --release --quiet --package {package} --features {package}/{feature}");
    must(&mut command(&line))?;
    Ok(target_folder()?.join("release").join(program))
}

/// Builds packages with the settings of tests, so that assertions are on and what `cargo test` built is used; says where their
/// programs are.
pub(crate) fn build_for_tests(packages: &[&str]) -> Result<PathBuf> {
    let mut build = command("cargo build --quiet");
    for package in packages {
        build.args(["--package", package]);
    }
    must(&mut build)?;
    Ok(target_folder()?.join("debug"))
}

/// Whether a program can be told to kill itself at a named point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashPoints {
    Compiled,
    Absent,
}

pub(crate) fn target_folder() -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let text = output(&mut command("cargo metadata --format-version 1 --no-deps"))?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata is not as expected")?;
    Ok(metadata.target_directory)
}

/// A folder on the disk of the build, gone when dropped unless the check failed.
pub(crate) struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Makes it empty.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = target_folder().unwrap_or_else(|_| root().join("target")).join(format!("xtask-{name}"));
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, keep: true })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The check passed: nothing is left to look at.
    pub(crate) fn passed(mut self) {
        self.keep = false;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.keep {
            eprintln!("left for you to look at: {}", self.path.display());
        } else if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// A child that is killed and reaped when dropped.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
        Ok(Self(child))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL, now.
    pub(crate) fn kill(&mut self) -> Result<ExitStatus> {
        self.0.kill().context("cannot kill the child")?;
        self.0.wait().context("cannot wait for the child")
    }

    /// Waits for its end; after `limit` it is killed and that is an error.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        match self.wait_until(Instant::now() + limit)? {
            Some(status) => Ok(status),
            None => {
                self.kill()?;
                bail!("the program had not ended after {limit:?}")
            }
        }
    }

    /// Waits for its end until then.
    pub(crate) fn wait_until(&mut self, then: Instant) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.0.try_wait().context("cannot wait for the child")? {
                return Ok(Some(status));
            }
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(Duration::from_millis(2)));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.kill().ok();
        }
    }
}

/// What `pq run --summary-json` leaves behind, as far as checks look at it.
#[derive(Deserialize)]
pub(crate) struct Summary {
    pub(crate) records_appended: u64,
    pub(crate) records_delivered: u64,
    pub(crate) segments_created: u64,
    pub(crate) fds_max: u64,
    pub(crate) fds_peak: u64,
    pub(crate) turn_records_max: u64,
}

impl Summary {
    /// Reads it.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("no summary at {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
    }
}

/// Numbers that follow from a seed: xorshift64* (Vigna, 2016). Good enough to choose moments and lengths.
pub(crate) struct Random(u64);

impl Random {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From 0 up to but not `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end.max(1)
    }
}
