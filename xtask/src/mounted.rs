//! File systems on loop devices, for checks that break them, in a mount namespace of the check's own.
//!
//! ```text
//!   cargo xtask CHECK ── unshare --mount ──> cargo xtask CHECK, inside: tmpfs for images, loop devices, mounts
//! ```
//! However the check ends, also killed, the kernel takes the mounts down with the last process inside, and the loop devices, which
//! clear themselves, with their mounts: nothing is left behind, and nobody else ever saw them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::shell::{output, quiet};

/// Set inside the namespace.
const INSIDE: &str = "PQ_XTASK_OWN_MOUNTS";

/// Where a check runs.
pub(crate) enum Place {
    /// In its own namespace: go on.
    Inside,
    /// It was run in one, and has said how it ended.
    Done,
    /// This machine cannot.
    Skipped(String),
}

/// Starts this very command again in a mount namespace of its own, unless that was done.
pub(crate) fn enter() -> Result<Place> {
    if std::env::var_os(INSIDE).is_some() {
        // The parent may be killed: nobody would read what this check says.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        return Ok(Place::Inside);
    }
    if !rustix::process::geteuid().is_root() {
        return Ok(Place::Skipped("mounting needs root".to_owned()));
    }
    if let Some(reason) = missing(&["unshare", "mount", "umount", "losetup"]) {
        return Ok(Place::Skipped(reason));
    }
    let unshare = ["--mount", "--propagation", "private"];
    if quiet(Command::new("unshare").args(unshare).arg("true")).is_err() {
        return Ok(Place::Skipped("no mount namespace can be made here".to_owned()));
    }
    let program = std::env::current_exe().context("where is this program?")?;
    let mut inside = Command::new("unshare");
    inside.args(unshare).arg(program).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    let status = inside.status().context("could not start unshare")?;
    if !status.success() {
        bail!("the check failed");
    }
    Ok(Place::Done)
}

/// The first of these programs that is not installed, as a reason to skip.
pub(crate) fn missing(programs: &[&str]) -> Option<String> {
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    programs.iter().find(|program| !is_there(program)).map(|program| format!("{program} is not installed"))
}

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Why it cannot be used here.
    pub(crate) fn lacking(self) -> Option<String> {
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.split_whitespace().any(|word| word == self.name()) {
            return Some(format!("this kernel has no {}", self.name()));
        }
        missing(&[self.mkfs()])
    }

    fn mkfs(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
        }
    }

    /// Near the least each allows.
    fn image_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 64 << 20,
            Self::Xfs => 300 << 20,
            Self::Btrfs => 128 << 20,
        }
    }

    /// Makes an image with an empty file system.
    pub(crate) fn make(self, image: &Path) -> Result<()> {
        self.make_with(image, self.image_bytes(), &[])
    }

    /// [`Kind::make`] of another size, with more arguments for mkfs.
    pub(crate) fn make_with(self, image: &Path, bytes: u64, more: &[&str]) -> Result<()> {
        std::fs::File::create(image).and_then(|file| file.set_len(bytes)).with_context(|| cannot(image))?;
        let mut mkfs = Command::new(self.mkfs());
        match self {
            Self::Ext4 => mkfs.args(["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]),
            Self::Xfs | Self::Btrfs => mkfs.args(["-q", "-f", "-K"]),
        };
        quiet(mkfs.args(more).arg(image)).map(drop)
    }
}

fn cannot(path: &Path) -> String {
    format!("cannot make {}", path.display())
}

/// A folder in memory, for images.
pub(crate) fn memory_folder(folder: &Path) -> Result<Mounted> {
    std::fs::create_dir_all(folder).with_context(|| cannot(folder))?;
    quiet(Command::new("mount").args(["-t", "tmpfs", "-o", "size=2g", "tmpfs"]).arg(folder))?;
    Ok(Mounted { point: folder.to_owned() })
}

/// A mounted file system; unmounted when dropped.
pub(crate) struct Mounted {
    point: PathBuf,
}

impl Mounted {
    /// Mounts a file through a loop device that clears itself.
    pub(crate) fn new(kind: Kind, file: &Path, point: &Path, options: &str) -> Result<Self> {
        std::fs::create_dir_all(point).with_context(|| cannot(point))?;
        let options = if options.is_empty() { "loop".to_owned() } else { format!("loop,{options}") };
        let mut mount = Command::new("mount");
        mount.args(["-t", kind.name(), "-o", &options]).arg(file).arg(point);
        quiet(&mut mount)?;
        Ok(Self { point: point.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.point
    }

    /// What the power cut is on a disk without a switch: the file system stops where it is, and nothing in memory is written.
    pub(crate) fn shut_down(&self) -> Result<()> {
        quiet(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(&self.point)).map(drop)
    }

    pub(crate) fn remount(&self, options: &str) -> Result<()> {
        quiet(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.point)).map(drop)
    }

    /// The device it lies on.
    pub(crate) fn device(&self) -> Result<String> {
        let mut findmnt = Command::new("findmnt");
        Ok(output(findmnt.args(["-n", "-o", "SOURCE", "--target"]).arg(&self.point))?.trim().to_owned())
    }

    /// Unmounts it: all its files are closed, or that is an error.
    pub(crate) fn unmount(self) -> Result<()> {
        quiet(Command::new("umount").arg(&self.point))?;
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        quiet(Command::new("umount").arg("--lazy").arg(&self.point)).ok();
    }
}
