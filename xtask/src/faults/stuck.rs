//! A disk that takes nothing, or takes its time: read-only in three ways, and slow.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::scene::{Injected, Outcome, Stage, must_fail, must_work};
use crate::loop_disk::{self, LoopDisk};
use crate::mounted::Kind;

const READ_ONLY: &str = "Read-only file system";

/// S36: a live queue keeps the mount from becoming read-only; on one that is, it does not open, and says what to do; who only looks
/// can.
pub(super) fn read_only_at_open(stage: &Stage<'_>) -> Result<Outcome> {
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 32 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    let remounted = mounted.remount("ro");
    if remounted.is_ok() {
        broken.push("remounted read-only under an open queue".to_owned());
    }
    must_work(&mut witness, "append each 2 500 10000", "after a remount that was refused", &mut broken)?;
    witness.kill()?;
    mounted.remount("ro")?;
    let queue = stage.path("mnt/queue");
    let opened = Command::new(&stage.programs.pq)
        .arg("append")
        .arg(&queue)
        .arg("each")
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&opened.stderr).into_owned();
    if opened.status.code() != Some(2) || !said.contains(READ_ONLY) || !said.contains("help:") {
        broken.push(format!("opened read-only: {}, {said}", opened.status));
    }
    for look in [&["stat"][..], &["verify"], &["read"]] {
        let stream = if look == ["read"] { &["each"][..] } else { &[] };
        let looked = Command::new(&stage.programs.pq).args(look).arg(&queue).args(stream).output()?;
        if !looked.status.success() {
            broken.push(format!("{look:?} read-only: {}", String::from_utf8_lossy(&looked.stderr)));
        }
    }
    mounted.remount("rw")?;
    let witness = stage.witness("second")?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// ext4 found an error of its own and takes no more writes: appends get the reason, reading goes on; mounted again, all is there.
pub(super) fn read_only_by_the_kernel(stage: &Stage<'_>) -> Result<Outcome> {
    let mut broken = Vec::new();
    Kind::Ext4.make_with(&stage.image(), 32 << 20, &[])?;
    let mounted = stage.mount_again(Kind::Ext4, "errors=remount-ro")?;
    let device = mounted.device()?;
    let name = device.rsplit('/').next().context("a device without a name")?;
    let trigger = format!("/sys/fs/ext4/{name}/trigger_fs_error");
    if !std::path::Path::new(&trigger).exists() {
        return Ok(Outcome::Skipped("this kernel cannot be told to find an error in ext4".to_owned()));
    }
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    // Registered now: a new consumer would need a write.
    witness.ask("consume each")?;
    witness.ask("append each 5 500 30000")?;
    std::fs::write(&trigger, "1")?;
    must_fail(&mut witness, "append each 2 500 400", READ_ONLY, &mut broken)?;
    must_work(&mut witness, "consume each", "on a file system that takes no writes", &mut broken)?;
    must_fail(&mut witness, "save 100", READ_ONLY, &mut broken)?;
    must_work(&mut witness, "report", "on a file system that takes no writes", &mut broken)?;
    witness.kill()?;
    mounted.unmount()?;
    let mounted = stage.mount_again(Kind::Ext4, "")?;
    let witness = stage.witness("second")?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// S39: every call that writes answers EROFS for a while; then the same process goes on.
pub(super) fn read_only_for_a_while(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = Injected::lacking() {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 32 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    // Registered now: a new consumer would need a write.
    witness.ask("consume each")?;
    witness.ask("append each 5 500 30000")?;
    let process = witness.id();
    let fault = Injected::attach(process, &["pwritev,pwritev2,pwrite64,fdatasync,fsync:error=EROFS"])?;
    must_fail(&mut witness, "append each 2 500 400", READ_ONLY, &mut broken)?;
    must_work(&mut witness, "consume each", "while nothing is written", &mut broken)?;
    must_fail(&mut witness, "save 100", READ_ONLY, &mut broken)?;
    fault.detach(process)?;
    must_work(&mut witness, "append each 20 500 10000", "when writing works again", &mut broken)?;
    must_work(&mut witness, "save 10000", "when writing works again", &mut broken)?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// S08: each flush takes 200 ms; whoever does not wait for the disk does not wait.
pub(super) fn slow_disk(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = loop_disk::lacking() {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    Kind::Ext4.make(&stage.image())?;
    let mut disk = LoopDisk::start(&stage.programs.disk, &stage.image(), &stage.path("disk"))?;
    let mounted = disk.mount(Kind::Ext4, &stage.path("mnt"), "")?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    disk.tell("delay flush 200")?;
    let begun = Instant::now();
    must_work(&mut witness, "append each 2 500 20000", "on a slow disk", &mut broken)?;
    let durable_ms = begun.elapsed().as_millis();
    let said = witness.ask("buffer each 200 300")?;
    let buffered_us: u64 = said.split(' ').next().unwrap_or_default().parse()?;
    if durable_ms < 400 {
        broken.push(format!("two durable appends took {durable_ms} ms: the disk is not slow"));
    }
    if buffered_us >= 100_000 {
        broken.push(format!("200 appends nobody waited for took {buffered_us} µs"));
    }
    must_work(&mut witness, "append each 1 500 20000", "on a slow disk", &mut broken)?;
    disk.tell("delay flush 0")?;
    witness.kill()?;
    let figures = stage.judge_next(&mut broken)?;
    mounted.unmount()?;
    disk.stop()?;
    Ok(Outcome::Ran {
        figures: format!("2 durable appends {durable_ms} ms, 200 buffered {buffered_us} µs, {figures}"),
        broken,
    })
}
