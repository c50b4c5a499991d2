//! A file system on a loop file whose power can be cut: the shutdown ioctl drops what was not synced, as a power cut does with the
//! pages of the cache. What the loop file got stays, so a device that loses its own cache is not part of this.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::shell::must;

/// Sparse; room for a crate that allocates a gigabyte ahead.
const IMAGE_BYTES: u64 = 3 << 30;

/// Which file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    /// All of them, in the order of the table.
    pub(super) const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    fn make(self) -> Command {
        let mut command = Command::new(format!("mkfs.{}", self.name()));
        command.args(match self {
            Self::Ext4 => ["-q", "-F"],
            Self::Xfs => ["-q", "-f"],
        });
        command
    }
}

/// Why this machine cannot do it; `None`: it can.
pub(super) fn unavailable(kind: Kind) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some(format!("{}: needs root", kind.name()));
    }
    for program in [format!("mkfs.{}", kind.name()), "xfs_io".to_owned(), "mount".to_owned()] {
        let found = Command::new(&program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err() {
            return Some(format!("{}: no {program} here", kind.name()));
        }
    }
    None
}

/// A mounted one; unmounted when dropped.
pub(super) struct Mounted {
    kind: Kind,
    image: PathBuf,
    path: PathBuf,
}

impl Mounted {
    /// Makes and mounts it.
    pub(super) fn new(kind: Kind, scratch: &Path) -> Result<Self> {
        let image = scratch.join(format!("{}.image", kind.name()));
        let file = fs::File::create(&image)?;
        file.set_len(IMAGE_BYTES)?;
        must(kind.make().arg(&image))?;
        let path = scratch.join(format!("{}.mounted", kind.name()));
        fs::create_dir_all(&path)?;
        let mounted = Self { kind, image, path };
        mounted.mount()?;
        Ok(mounted)
    }

    fn mount(&self) -> Result<()> {
        must(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.path))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The power is gone: nothing gets to the medium any more.
    pub(super) fn cut(&self) -> Result<()> {
        let mut command = Command::new("xfs_io");
        command.args(["-x", "-c", "shutdown"]).arg(&self.path);
        must(&mut command).with_context(|| format!("cannot shut down {}", self.kind.name()))
    }

    /// Unmounted and mounted again: the journal is replayed, the cache is empty.
    pub(super) fn again(&self) -> Result<()> {
        self.unmount()?;
        self.mount()
    }

    /// Unmounts and removes it.
    pub(super) fn end(self) -> Result<()> {
        self.unmount()?;
        fs::remove_file(&self.image)?;
        Ok(())
    }

    fn unmount(&self) -> Result<()> {
        must(Command::new("umount").arg(&self.path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let path = self.path.to_string_lossy();
        if mounts.lines().any(|line| line.split(' ').nth(1) == Some(path.as_ref()))
            && let Err(error) = self.unmount()
        {
            eprintln!("still mounted: {path}: {error:#}");
        }
    }
}
