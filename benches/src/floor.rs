//! Where we measure, and what the device gives: the file system, the sync floor, and what `fio` makes of the same writes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::harness::median;
use crate::raw::RawLog;

/// File systems on which a sync says nothing about a device.
const NO_DEVICE: &[&str] = &["tmpfs", "ramfs", "overlay", "nfs", "nfs4", "9p"];

/// The type of the file system that holds `folder`, by the longest mount point above it.
pub(crate) fn file_system(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("cannot read the mount table")?;
    let on = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (_device, point, kind) = (words.next()?, PathBuf::from(words.next()?), words.next()?);
            folder.starts_with(&point).then(|| (point.components().count(), kind.to_owned()))
        })
        // A later mount over the same point hides the earlier one.
        .max_by_key(|(depth, _)| *depth);
    Ok(on.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind))
}

/// Refuses file systems on which a sync reaches no device.
pub(crate) fn refuse_without_device(kind: &str, folder: &Path) -> Result<()> {
    if NO_DEVICE.contains(&kind) {
        bail!(
            "{} is on {kind}, where a sync reaches no device: choose another with --dir, or --force",
            folder.display()
        );
    }
    Ok(())
}

/// The median time in microseconds of one 4 KiB write and its `fdatasync` at the end of a growing file.
pub(crate) fn sync_floor_us(folder: &Path) -> Result<f64> {
    let times = write_and_sync_us(folder, 4096, 200)?;
    Ok(median(times.into_iter().map(|(write, sync)| write + sync).collect()))
}

/// Times in microseconds of `count` writes of `bytes` bytes and of the `fdatasync` behind each, into a growing file.
fn write_and_sync_us(folder: &Path, bytes: usize, count: usize) -> Result<Vec<(f64, f64)>> {
    let path = folder.join("floor");
    let mut log = RawLog::create(&path)?;
    let block = vec![0x5a; bytes];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        log.write(&block)?;
        let written = Instant::now();
        log.sync()?;
        times.push(((written - begun).as_secs_f64() * 1e6, written.elapsed().as_secs_f64() * 1e6));
    }
    drop(log);
    std::fs::remove_file(&path)?;
    Ok(times)
}

/// What is written beside `fio`, how often.
pub(crate) struct FioLoad {
    /// Bytes of one write.
    pub(crate) bytes: usize,
    /// Writes of one round, each with its sync.
    pub(crate) writes: usize,
    /// Rounds of each contender.
    pub(crate) rounds: usize,
}

/// Our loop and `fio --fdatasync=1` in turn, by the median time of a write plus that of its sync; the ratio ours/fio.
///
/// Both run on the same core: a sync whose interrupt arrives at another core is faster by a quarter, and which core a new
/// process starts on is chance. `None` where there is no `fio`.
pub(crate) fn beside_fio(folder: &Path, load: &FioLoad) -> Result<Option<f64>> {
    if Command::new("fio").arg("--version").output().is_err() {
        return Ok(None);
    }
    let core = first_core()?;
    let mut ratios = Vec::new();
    for round in 0..load.rounds {
        let (ours, fio);
        if round % 2 == 0 {
            ours = ours_us(folder, load, core)?;
            fio = fio_us(folder, load, core)?;
        } else {
            fio = fio_us(folder, load, core)?;
            ours = ours_us(folder, load, core)?;
        }
        ratios.push(ours / fio);
    }
    Ok(Some(median(ratios)))
}

/// The first core this process may run on.
fn first_core() -> Result<usize> {
    let allowed = sched_getaffinity(None)?;
    (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).context("no core to run on")
}

/// The median time in microseconds of a write plus that of its sync, in a thread of its own on `core`.
fn ours_us(folder: &Path, load: &FioLoad, core: usize) -> Result<f64> {
    let measured = std::thread::scope(|scope| {
        let on_core = || {
            let mut cores = CpuSet::new();
            cores.set(core);
            sched_setaffinity(None, &cores)?;
            write_and_sync_us(folder, load.bytes, load.writes)
        };
        scope.spawn(on_core).join()
    });
    let times = measured.map_err(|_| anyhow!("the measuring thread panicked"))??;
    let (writes, syncs) = times.into_iter().unzip();
    Ok(median(writes) + median(syncs))
}

/// The same as `fio` reports it.
fn fio_us(folder: &Path, load: &FioLoad, core: usize) -> Result<f64> {
    let path = folder.join("fio");
    let output = Command::new("fio")
        .args(["--name=floor", "--rw=write", "--fdatasync=1", "--fallocate=none", "--ioengine=psync"])
        .args(["--output-format=json", "--thread"])
        .arg(format!("--cpus_allowed={core}"))
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--bs={}", load.bytes))
        .arg(format!("--size={}", load.bytes * load.writes))
        .output()
        .context("could not start fio")?;
    std::fs::remove_file(&path).ok();
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |section: &str, list: &str| -> Option<f64> {
        let text = &text[text.find(&format!("\"{section}\""))?..];
        let text = &text[text.find(&format!("\"{list}\""))?..];
        let text = &text[text.find("\"50.000000\"")?..];
        let value = text.split_once(':')?.1;
        value.split([',', '}', '\n']).next()?.trim().parse().ok()
    };
    match (number("write", "clat_ns"), number("sync", "lat_ns")) {
        (Some(write), Some(sync)) => Ok((write + sync) / 1e3),
        _ => bail!("fio's report is not as expected: {}", String::from_utf8_lossy(&output.stderr)),
    }
}
