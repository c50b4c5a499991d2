//! A file system on the loop disk of our own: see `crates/loop-disk`.
//!
//! ```text
//!   witness ── file system ── loop device ── pq-loop-disk: durable blocks | pending writes | faults
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::mounted::{Kind, Mounted, missing};
use crate::shell::quiet;
use crate::talking::Talking;

/// Why no loop disk can be served here.
pub(crate) fn lacking() -> Option<String> {
    if !Path::new("/dev/fuse").exists() {
        return Some("there is no /dev/fuse".to_owned());
    }
    missing(&["losetup"])
}

/// A disk that is being served.
pub(crate) struct LoopDisk {
    process: Talking,
    folder: PathBuf,
}

impl LoopDisk {
    /// Serves a disk that begins as a copy of the image.
    pub(crate) fn start(program: &Path, image: &Path, folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut command = Command::new(program);
        command.arg(folder).arg("--image").arg(image);
        let mut process = Talking::start("pq-loop-disk", &mut command)?;
        process.answer()?;
        Ok(Self { process, folder: folder.to_owned() })
    }

    pub(crate) fn mount(&self, kind: Kind, point: &Path, options: &str) -> Result<Mounted> {
        Mounted::new(kind, &self.folder.join("disk"), point, options)
    }

    /// Tells it a line of the table in `crates/loop-disk/src/commands.rs`.
    pub(crate) fn tell(&mut self, line: &str) -> Result<String> {
        self.process.ask(line)
    }

    /// Ends it; nothing may be mounted from it any more.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.process.hang_up()
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // One that was killed leaves its mount; one that ended in order does not.
        quiet(Command::new("umount").arg("--lazy").arg(&self.folder)).ok();
    }
}
