//! Limits of the process: descriptors, file sizes; and calls that are interrupted.

use std::process::Command;

use anyhow::Result;

use super::scene::{Injected, Outcome, Stage, must_fail, must_work};
use crate::mounted::{Kind, missing};
use crate::shell::quiet;

/// S37, S54: below what a queue needs it does not open, and names the limit; from there on it works.
pub(super) fn few_descriptors(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = missing(&["prlimit"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 64 << 20, &[])?;
    let (mut refused, mut worked) = (0, 0);
    for limit in [10, 12, 16, 20, 25, 26, 32, 64, 256] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}")).arg(&stage.programs.witness);
        let mut witness = stage.start_by(&mut command, &limit.to_string())?;
        let said = witness.opened()?;
        if said != "ok" {
            refused += 1;
            if limit >= 26 || !said.contains("ulimit -n") {
                broken.push(format!("limit {limit}: {said}"));
            }
            continue;
        }
        worked += 1;
        for stream in 0..40 {
            must_work(
                &mut witness,
                &format!("append s{stream} 5 300 20000"),
                &format!("under {limit}"),
                &mut broken,
            )?;
        }
        must_work(&mut witness, "close", &format!("under {limit}"), &mut broken)?;
    }
    let figures = stage.judge_next(&mut broken)?;
    mounted.unmount()?;
    Ok(Outcome::Ran {
        figures: format!("{refused} limits refused, {worked} worked with 40 streams, {figures}"),
        broken,
    })
}

/// S37: every open answers EMFILE, then ENFILE, for a while.
pub(super) fn no_descriptors_for_a_while(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = Injected::lacking() {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 64 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    let process = witness.id();
    for (error, text) in [("EMFILE", "Too many open files"), ("ENFILE", "Too many open files in system")] {
        witness.ask("rotate each")?;
        let fault = Injected::attach(process, &[&format!("openat,openat2:error={error}")])?;
        must_fail(&mut witness, "append each 2 500 400", text, &mut broken)?;
        fault.detach(process)?;
        must_work(&mut witness, "append each 20 500 10000", "with descriptors again", &mut broken)?;
        must_work(&mut witness, "consume each", "with descriptors again", &mut broken)?;
    }
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// S40: every second call of each kind is interrupted; nobody notices.
pub(super) fn interruptions(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = Injected::lacking() {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 64 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    let process = witness.id();
    // A call that is tried again and interrupted each time would never end: every second one.
    let calls = ["pwritev", "pread64", "fdatasync", "fsync", "openat2"];
    let interrupted: Vec<_> = calls.iter().map(|call| format!("{call}:error=EINTR:when=2+2")).collect();
    let fault = Injected::attach(process, &interrupted.iter().map(String::as_str).collect::<Vec<_>>())?;
    for step in
        ["append each 60 2000 30000", "rotate each", "append each 20 500 30000", "consume each", "save 10000"]
    {
        must_work(&mut witness, step, "with interruptions", &mut broken)?;
    }
    fault.detach(process)?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}

/// EFBIG, without the signal that comes with it; then the limit is raised.
pub(super) fn file_size_limit(stage: &Stage<'_>) -> Result<Outcome> {
    if let Some(reason) = missing(&["prlimit"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut broken = Vec::new();
    let mounted = stage.mount(Kind::Ext4, 64 << 20, &[])?;
    let mut witness = stage.witness("first")?;
    witness.ask("append each 20 500 30000")?;
    let process = witness.id();
    let limit = |bytes: &str| {
        quiet(Command::new("prlimit").args(["--pid", &process.to_string()]).arg(format!("--fsize={bytes}")))
    };
    limit("40000:unlimited")?;
    // Segments may grow to 96 KiB, files to 40,000 bytes: new ones are begun earlier.
    must_work(&mut witness, "append each 100 500 20000", "with room in new files", &mut broken)?;
    // What the witness writes down is a file, too, and shorter.
    limit("30000:unlimited")?;
    must_fail(&mut witness, "batch each 2 15000 400", "File too large", &mut broken)?;
    must_work(&mut witness, "consume each", "under the limit", &mut broken)?;
    limit("unlimited:unlimited")?;
    must_work(&mut witness, "append each 20 500 10000", "without the limit", &mut broken)?;
    let figures = stage.judge(witness, mounted, Kind::Ext4, &mut broken)?;
    Ok(Outcome::Ran { figures, broken })
}
