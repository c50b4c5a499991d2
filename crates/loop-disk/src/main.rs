//! `pq-loop-disk`: a block device of our own making, so that flushes, lost writes and errors are exact.
//!
//! It serves one file over FUSE; `losetup` makes a block device of it, `mkfs` and `mount` a file system. It is a tool of
//! `cargo xtask power-cut`, `failed-sync` and `faults`, and nothing a queue should live on.
//!
//! ```text
//!   file system ── loop device ── FOLDER/disk ── this program: durable blocks | pending writes | faults
//!                                                     ^ commands on stdin, an answer a line on stdout
//! ```
//! It ends with its standard input: whoever started it, and died, leaves no mount behind.

mod commands;
mod faults;
mod medium;
mod served;

use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use fuser::{Config, MountOption};

use medium::{BLOCK_BYTES, Medium};
use served::{Served, Shared};

/// Serves a disk that loses exactly what was not flushed.
#[derive(Parser)]
struct Arguments {
    /// An empty folder; the disk is the file `disk` in it
    folder: PathBuf,
    /// What the disk holds at first; never written to
    #[arg(long)]
    image: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let shared = Shared::new(load(&arguments.image)?);
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("pq-loop-disk".to_owned())];
    let session = fuser::spawn_mount(Served(shared.clone()), &arguments.folder, &config)
        .with_context(|| format!("cannot mount on {}", arguments.folder.display()))?;
    answer("ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line.context("stdin cannot be read")?;
        answer(&commands::obey(&shared, &line).unwrap_or_else(|error| format!("error {error:#}")))?;
    }
    // Not unmounted: with a file system still on top, that would wait for answers of this very program. The kernel ends the connection
    // with the process, and whoever started it takes the mount away.
    std::mem::forget(session);
    std::process::exit(0)
}

fn answer(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("nobody reads the answers")
}

fn load(image: &Path) -> Result<Medium> {
    let cannot = || format!("cannot read {}", image.display());
    let mut file = File::open(image).with_context(cannot)?;
    let mut disk = Medium::new(file.metadata().with_context(cannot)?.len());
    let mut chunk = vec![0; 256 * BLOCK_BYTES];
    let mut index = 0;
    loop {
        let mut filled = 0;
        while filled < chunk.len() {
            match file.read(&mut chunk[filled..]).with_context(cannot)? {
                0 => break,
                n => filled += n,
            }
        }
        if filled == 0 {
            return Ok(disk);
        }
        for block in chunk[..filled].chunks(BLOCK_BYTES) {
            disk.load(index, block);
            index += 1;
        }
    }
}
