//! No room: blocks, inodes, quota, a thin disk.

use std::fs::{self, File};
use std::process::Command;

use anyhow::Result;

use super::scene::{Outcome, Stage, fill, must_fail, must_work};
use crate::loop_disk::{self, LoopDisk};
use crate::mounted::{Kind, missing};
use crate::shell::quiet;

const NO_SPACE: &str = "No space left on device";

/// S33, S35: appends wait, reading, acknowledging, saving and deleting go on; with room again so do appends, in the same process.
pub(super) fn full_disk(stage: &Stage<'_>) -> Result<Outcome> {
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 16 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 400 500 30000")?;
    witness.ask("append solo 20 500 30000")?;
    let filler = mounted.path().join("filler");
    fill(&filler)?;
    must_fail(&mut witness, "append each 300 2000 400", NO_SPACE, &mut broken)?;
    must_fail(&mut witness, "append solo 100 2000 400", NO_SPACE, &mut broken)?;
    must_work(&mut witness, "consume each", "on a full disk", &mut broken)?;
    must_work(&mut witness, "save 2000", "on a full disk", &mut broken)?;
    fs::remove_file(filler)?;
    must_work(&mut witness, "append each 20 500 10000", "with room again", &mut broken)?;
    must_work(&mut witness, "append solo 20 500 10000", "with room again", &mut broken)?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// S36: it opens for reading, or says what is wrong; nothing half-made is left that the next open trips over.
pub(super) fn full_at_open(stage: &Stage<'_>) -> Result<Outcome> {
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 16 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 40 500 30000")?;
    witness.ask("consume each")?;
    witness.ask("append each 10 500 30000")?;
    witness.kill()?;
    let filler = mounted.path().join("filler");
    fill(&filler)?;
    let mut witness = stage.start_by(&mut Command::new(&stage.programs.witness), "second")?;
    let said = witness.opened()?;
    if said == "ok" {
        must_fail(&mut witness, "append each 300 2000 400", NO_SPACE, &mut broken)?;
    } else if !said.contains(NO_SPACE) {
        broken.push(format!("opened on a full disk: {said}"));
    }
    witness.kill()?;
    // A queue that does not exist yet.
    let new = mounted.path().join("new");
    let output = Command::new(&stage.programs.pq)
        .arg("append")
        .arg(&new)
        .arg("s")
        .stdin(std::process::Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(2) || !text.contains("help:") {
        broken.push(format!("a new queue on a full disk: {}, {text}", output.status));
    }
    fs::remove_file(filler)?;
    let again = Command::new(&stage.programs.pq)
        .arg("append")
        .arg(&new)
        .arg("s")
        .stdin(std::process::Stdio::null())
        .output()?;
    if !again.status.success() {
        broken.push(format!("the new queue with room again: {}", String::from_utf8_lossy(&again.stderr)));
    }
    let figures = stage.judge_next(&mut broken)?;
    mounted.unmount()?;
    Ok(Outcome::Ran { figures: format!("opened: {said}; {figures}"), broken })
}

/// S34: no segment can be made, and the one there is goes on until it is full.
pub(super) fn no_inodes(stage: &Stage<'_>) -> Result<Outcome> {
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 32 << 20, &["-N", "64"])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 50 500 30000")?;
    let folder = mounted.path().join("files");
    fs::create_dir(&folder)?;
    let files = (0..).take_while(|number| File::create(folder.join(number.to_string())).is_ok()).count();
    witness.ask("append each 1 500 10000")?;
    must_fail(&mut witness, "append each 400 2000 400", NO_SPACE, &mut broken)?;
    must_work(&mut witness, "consume each", "without inodes", &mut broken)?;
    fs::remove_dir_all(folder)?;
    must_work(&mut witness, "append each 100 2000 10000", "with inodes again", &mut broken)?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures: format!("{files} inodes taken, {figures}"), broken })
}

/// EDQUOT, by a btrfs quota group.
pub(super) fn quota(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = Kind::Btrfs.lacking().or_else(|| missing(&["btrfs"])) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Btrfs, 192 << 20, &[])?;
    let volume = mounted.path().join("queue");
    quiet(Command::new("btrfs").args(["subvolume", "create"]).arg(&volume))?;
    quiet(Command::new("btrfs").args(["quota", "enable"]).arg(mounted.path()))?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    let limit = |bytes: &str| quiet(Command::new("btrfs").args(["qgroup", "limit", bytes]).arg(&volume));
    limit("2M")?;
    must_fail(&mut witness, "append each 4000 4000 1000", "quota", &mut broken)?;
    limit("none")?;
    must_work(&mut witness, "append each 20 500 10000", "with quota again", &mut broken)?;
    let figures = stage.judge(witness, mounted, Kind::Btrfs, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// A disk that has less than it says: `write` is Ok and `fdatasync` answers EIO.
pub(super) fn thin_disk(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = loop_disk::lacking() {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    Kind::Ext4.make(&stage.image())?;
    let mut disk = LoopDisk::start(&stage.programs.disk, &stage.image(), &stage.path("disk"))?;
    let mounted = disk.mount(Kind::Ext4, &stage.path("mnt"), "")?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    disk.tell("thin 40")?;
    must_fail(&mut witness, "append each 300 4000 2000", "", &mut broken)?;
    let refused = disk.tell("count")?;
    disk.tell("mend")?;
    let said = witness.try_ask("append each 20 500 10000")?;
    witness.kill()?;
    // A journal that met the end of the disk stops the file system; then only mounting helps.
    mounted.unmount()?;
    let mounted = disk.mount(Kind::Ext4, &stage.path("mnt"), "")?;
    let figures = stage.judge_next(&mut broken)?;
    mounted.unmount()?;
    disk.stop()?;
    Ok(Outcome::Ran { figures: format!("{refused}; with room again: {said}; {figures}"), broken })
}
