//! A copy of the sources in which one bug at a time is planted, built, and taken out again.
//!
//! ```text
//!   sources ──copied──> <target>/xtask-mutants/sources ──built, incrementally──> …/builds
//! ```
//!
//! It writes nothing into the sources themselves. What an earlier run left in the copy, planted or not, is put right first: the builds
//! of earlier runs are used again, so that a bug costs the crates it changes and no more.
//!
//! Invariant: a file is written only where it differs, so that what cargo holds for changed was changed.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{Mutant, Test, tracked};
use crate::pipeline::{Running, target_folder};
use crate::shell::{command, must, root};

/// Many times what the longest hunt takes: a bug may make the suite loop.
const HUNT_MAX: Duration = Duration::from_secs(1200);

/// What a build of `pq-sim` is known by: programs built from equal sources are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Build(u64);

impl std::fmt::Display for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// See the module.
pub(crate) struct Copy {
    sources: PathBuf,
    builds: PathBuf,
    /// Held by one run at a time.
    _lock: fs::File,
}

impl Copy {
    /// Brings the copy up to the sources.
    pub(crate) fn new() -> Result<Self> {
        let folder = target_folder()?.join("xtask-mutants");
        fs::create_dir_all(&folder)?;
        let lock = fs::File::create(folder.join("lock"))?;
        if lock.try_lock().is_err() {
            bail!("another run plants its bugs in {}", folder.display());
        }
        let copy = Self { sources: folder.join("sources"), builds: folder.join("builds"), _lock: lock };
        let tracked = tracked()?;
        for path in &tracked {
            copy.put(path, &fs::read(root().join(path))?)?;
        }
        copy.remove_others(&copy.sources, &tracked.into_iter().collect())?;
        Ok(copy)
    }

    /// What was renamed or removed since the copy was made would be built, or tested, with the rest.
    fn remove_others(&self, folder: &Path, tracked: &BTreeSet<PathBuf>) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, tracked)?;
            } else if path.strip_prefix(&self.sources).is_ok_and(|path| !tracked.contains(path)) {
                fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let to = self.sources.join(path);
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(&self.sources))?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))
    }

    /// Plants a bug, looks, takes it out again.
    pub(crate) fn with<T>(&self, mutant: &Mutant, look: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = self.plant(mutant).and_then(|()| look());
        for patch in &mutant.patch {
            self.put(&patch.file, &fs::read(root().join(&patch.file))?)?;
        }
        result.with_context(|| format!("the bug {}", mutant.name))
    }

    fn plant(&self, mutant: &Mutant) -> Result<()> {
        for patch in &mutant.patch {
            let shown = patch.file.display();
            let text = fs::read_to_string(self.sources.join(&patch.file))
                .with_context(|| format!("there is no {shown}"))?;
            let count = text.matches(&patch.find).count();
            ensure!(count == 1, "what is to be replaced is found {count} times in {shown}");
            self.put(&patch.file, text.replace(&patch.find, &patch.replace).as_bytes())?;
        }
        Ok(())
    }

    fn cargo(&self, line: &str) -> Command {
        let mut cargo = command(line);
        cargo.current_dir(&self.sources).arg("--target-dir").arg(&self.builds);
        // Built often and run briefly; without debug assertions, so that it is the suite that finds the bug.
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true");
        cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false").env("RUSTFLAGS", "-Awarnings");
        // With it equal sources do not always give equal programs, and builds take longer.
        cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
        cargo
    }

    /// Builds the suite with whatever is planted now.
    pub(crate) fn build(&self) -> Result<Build> {
        must(&mut self.cargo("cargo build --release --quiet --package sim --bin pq-sim"))?;
        let mut hasher = DefaultHasher::new();
        fs::read(self.program())?.hash(&mut hasher);
        Ok(Build(hasher.finish()))
    }

    fn program(&self) -> PathBuf {
        self.builds.join("release").join("pq-sim")
    }

    /// Starts what was built last, until it finds something; `None`: it did not.
    pub(crate) fn hunt(&self, seeds: u64, ignored: Option<&str>) -> Result<Option<Found>> {
        let said = self.builds.join("hunt.txt");
        let mut hunt = Command::new(self.program());
        hunt.args(["hunt", "--seeds", &seeds.to_string()]).stdout(fs::File::create(&said)?);
        hunt.args(ignored.iter().flat_map(|site| ["--ignore-site", site]));
        let status = Running::start(&mut hunt)?.wait(HUNT_MAX).context("it hangs, or is slow")?;
        ensure!(status.success(), "pq-sim hunt: {status}");
        let said = fs::read_to_string(&said)?;
        let last = said.lines().last().unwrap_or_default();
        match last.strip_prefix("hunt: caught by seed ").and_then(|found| found.split_once(": ")) {
            Some((seed, what)) => Ok(Some(Found { seed: seed.parse()?, what: what.to_owned() })),
            None if last.starts_with("hunt: survived ") => Ok(None),
            None => bail!("pq-sim hunt ended in {last:?}"),
        }
    }

    /// Whether a test passes with whatever is planted now.
    pub(crate) fn passes(&self, test: &Test) -> Result<bool> {
        let line = format!("cargo test --quiet --package {} --lib {}", test.package, test.name);
        must(self.cargo(&line).arg("--no-run"))?;
        let ran = self.cargo(&line).output().context("could not start cargo test")?;
        let said = String::from_utf8_lossy(&ran.stdout);
        ensure!(!said.contains("running 0 tests"), "there is no test {}", test.name);
        Ok(ran.status.success())
    }
}

/// What a hunt found.
pub(crate) struct Found {
    /// The lowest seed that finds something.
    pub(crate) seed: u64,
    /// Which promise was broken, where and how.
    pub(crate) what: String,
}
