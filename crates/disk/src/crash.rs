//! A disk that kills its own process at a named call, for tests that start the process again. Feature `crash-points`.
//!
//! The environment variable `PQ_CRASH` names the points, separated by commas:
//!
//! ```text
//!   PQ_CRASH="commit.batch:before:3"     SIGKILL instead of the third sync at the site commit.batch
//!   PQ_CRASH="write.seg:middle:10"       SIGKILL when half of the bytes of the tenth write to a segment are written
//!   PQ_CRASH="remove.seg:after:1"        SIGKILL right after the first segment was unlinked
//!              name     moment n-th call, counted from 1 over all threads
//! ```
//!
//! Names: a sync, of a file or a directory, answers to its [`SyncSite`]'s name. Every other call that changes the
//! disk answers to `<op>.<kind>`, where op is one of `create`, `create_dir`, `link`, `rename`, `replace`,
//! `remove`, `remove_dir`, `write`, `set_len`, `allocate`, and kind is the file name's extension (`seg`, `meta`), or without
//! one the part before its first `-` (`cursors`, `catalog`, `LOCK`), or `dir` for a directory whose name is a number.
//! A link or rename goes by its target. `middle` is for writes only; elsewhere it is refused.
//!
//! It is the kernel that kills: nothing is flushed, no destructor runs, the page cache survives.
//!
//! `PQ_CRASH_CENSUS=FILE` appends the name of each such call to a file, in order: whoever kills at every point learns there which
//! there are, and how often a run comes by.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{IoSlice, Write as _};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::process::{Signal, getpid, kill_process};

use crate::{
    Advice, Cached, DirEntry, Disk, DiskError, File, FileStat, FileSystem, Lock, Op, OpenMode, Space,
    SyncSite,
};

/// The environment variable that names the crash points.
pub const CRASH_VARIABLE: &str = "PQ_CRASH";

/// The environment variable that names the file for the names of all calls met.
pub const CENSUS_VARIABLE: &str = "PQ_CRASH_CENSUS";

/// When in a call the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashMoment {
    /// Nothing of the call happened.
    Before,
    /// Half of a write's bytes were written.
    Middle,
    /// The call did its work.
    After,
}

/// One crash point: a name, a moment, and the how-manieth call.
#[derive(Debug)]
pub struct CrashPoint {
    name: String,
    moment: CrashMoment,
    nth: u64,
    seen_count: AtomicU64,
}

/// Why a crash point cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("crash point {text:?}: expected NAME:before|middle|after:N, `middle` only for `write.…`, N from 1")]
pub struct BadCrashPoint {
    text: String,
}

impl FromStr for CrashPoint {
    type Err = BadCrashPoint;

    fn from_str(text: &str) -> Result<Self, BadCrashPoint> {
        let bad = || BadCrashPoint { text: text.to_owned() };
        let mut parts = text.trim().split(':');
        let (Some(name), Some(moment), Some(nth), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let moment = match moment {
            "before" => CrashMoment::Before,
            "middle" if name.starts_with("write.") => CrashMoment::Middle,
            "after" => CrashMoment::After,
            _ => return Err(bad()),
        };
        let nth = nth.parse().ok().filter(|nth| *nth > 0).ok_or_else(bad)?;
        if name.is_empty() {
            return Err(bad());
        }
        Ok(Self { name: name.to_owned(), moment, nth, seen_count: AtomicU64::new(0) })
    }
}

/// A disk that dies at its crash points and is transparent otherwise.
#[derive(Debug)]
pub struct KillAt {
    inner: Arc<dyn Disk>,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    points: Vec<CrashPoint>,
    census: Option<std::fs::File>,
    die: fn(),
}

impl KillAt {
    /// Wraps a disk.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, points: Vec<CrashPoint>) -> Self {
        Self { inner, plan: Arc::new(Plan { points, census: None, die }) }
    }

    /// Wraps a disk if [`CRASH_VARIABLE`] or [`CENSUS_VARIABLE`] is set and not empty; else gives it back as it is.
    ///
    /// # Errors
    /// If the points cannot be understood, or the census file cannot be opened.
    pub fn from_env(inner: Arc<dyn Disk>) -> Result<Arc<dyn Disk>, BadCrashPoint> {
        let set = |name| std::env::var_os(name).filter(|text| !text.is_empty());
        let (points, census) = (set(CRASH_VARIABLE), set(CENSUS_VARIABLE));
        if points.is_none() && census.is_none() {
            return Ok(inner);
        }
        let points = points.map_or(Ok(Vec::new()), |text| parse_crash_points(&text.to_string_lossy()))?;
        let open = |path: &_| OpenOptions::new().create(true).append(true).open(path);
        let census = match &census {
            Some(path) => {
                Some(open(path).map_err(|_| BadCrashPoint { text: path.to_string_lossy().into_owned() })?)
            }
            None => None,
        };
        Ok(Arc::new(Self { inner, plan: Arc::new(Plan { points, census, die }) }))
    }

    fn run<T>(&self, name: &dyn fmt::Display, call: impl FnOnce() -> T) -> T {
        self.plan.run(name, call)
    }

    fn wrap(&self, file: Arc<dyn File>, path: &Path) -> Arc<dyn File> {
        Arc::new(KillAtFile { inner: file, path: path.to_owned(), plan: Arc::clone(&self.plan) })
    }
}

/// Reads a list of crash points, separated by commas.
///
/// # Errors
/// At the first that cannot be understood.
pub fn parse_crash_points(text: &str) -> Result<Vec<CrashPoint>, BadCrashPoint> {
    text.split(',').map(str::parse).collect()
}

impl Disk for KillAt {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError> {
        let file = self.run(&Named(Op::Create, path), || self.inner.create(path))?;
        Ok(self.wrap(file, path))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError> {
        Ok(self.wrap(self.inner.open(path, mode)?, path))
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.run(&Named(Op::CreateDir, path), || self.inner.create_dir(path))
    }

    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError> {
        self.run(&site, || self.inner.sync_dir(path, site))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(&Named(Op::Link, to), || self.inner.link(from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(&Named(Op::Rename, to), || self.inner.rename(from, to))
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(&Named(Op::Replace, to), || self.inner.replace(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.run(&Named(Op::RemoveFile, path), || self.inner.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.run(&Named(Op::RemoveDir, path), || self.inner.remove_dir(path))
    }

    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError> {
        self.inner.list(path, visit)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        self.inner.lock(path)
    }

    fn space(&self) -> Result<Space, DiskError> {
        self.inner.space()
    }

    fn stat(&self, path: &Path) -> Result<FileStat, DiskError> {
        self.inner.stat(path)
    }

    fn file_system(&self) -> Result<FileSystem, DiskError> {
        self.inner.file_system()
    }
}

#[derive(Debug)]
struct KillAtFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    plan: Arc<Plan>,
}

impl File for KillAtFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.inner.read_at(buf, offset)
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        let moment = self.plan.meet(&Named(Op::Write, &self.path));
        match moment {
            Some(CrashMoment::Before) => (self.plan.die)(),
            Some(CrashMoment::Middle) => {
                let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
                let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
                let _ = self.inner.write_all_at(&[IoSlice::new(half)], offset);
                (self.plan.die)();
            }
            Some(CrashMoment::After) | None => {}
        }
        let result = self.inner.write_all_at(bufs, offset);
        if moment == Some(CrashMoment::After) {
            (self.plan.die)();
        }
        result
    }

    fn sync_data(&self, site: SyncSite) -> Result<(), DiskError> {
        self.plan.run(&site, || self.inner.sync_data(site))
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.plan.run(&Named(Op::SetLen, &self.path), || self.inner.set_len(len))
    }

    fn allocate(&self, range: Range<u64>) -> Result<(), DiskError> {
        self.plan.run(&Named(Op::Allocate, &self.path), || self.inner.allocate(range))
    }

    fn advise(&self, advice: Advice, range: Range<u64>) -> Result<(), DiskError> {
        self.inner.advise(advice, range)
    }

    fn cached(&self, range: Range<u64>) -> Result<Cached, DiskError> {
        self.inner.cached(range)
    }

    fn map(&self, len: u64) -> Result<Option<Bytes>, DiskError> {
        self.inner.map(len)
    }
}

impl Plan {
    fn run<T>(&self, name: &dyn fmt::Display, call: impl FnOnce() -> T) -> T {
        let moment = self.meet(name);
        if moment == Some(CrashMoment::Before) {
            (self.die)();
        }
        let result = call();
        if moment == Some(CrashMoment::After) {
            (self.die)();
        }
        result
    }

    /// Counts a call; the moment if one of the points is reached.
    fn meet(&self, name: &dyn fmt::Display) -> Option<CrashMoment> {
        let name = name.to_string();
        if let Some(mut census) = self.census.as_ref() {
            // One write a line: what was met before a kill is there.
            let _ = census.write_all(format!("{name}\n").as_bytes());
        }
        let mut met = None;
        for point in self.points.iter().filter(|point| point.name == name) {
            let seen = point.seen_count.fetch_add(1, Ordering::Relaxed) + 1;
            if seen == point.nth {
                met = met.or(Some(point.moment));
            }
        }
        met
    }
}

/// The name a call other than a sync answers to.
struct Named<'a>(Op, &'a Path);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(op, path) = self;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let kind = match name.rsplit_once('.') {
            Some((_, extension)) => extension,
            None if is_number => "dir",
            None => name.split('-').next().unwrap_or_default(),
        };
        write!(f, "{op}.{kind}")
    }
}

/// Ends this process as `kill -9` does.
fn die() {
    let _ = kill_process(getpid(), Signal::KILL);
    // The signal is on its way; nothing after the point may run.
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests;
