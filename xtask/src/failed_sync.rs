//! A write or flush of the device that fails under one chosen operation, on real file systems: once, for ever at that place, or for
//! ever everywhere; and then the same process goes on, another one starts in the same boot, or the power goes.
//!
//! ```text
//!   {append, rotate, cursor save} × {write, flush} × {once, place, for ever} × {same, restart, cut} × file systems
//! ```
//! After one failed write the kernel says EIO once, then Ok, and shows bytes from memory that the device lacks. Whatever a cell does
//! in between, it ends with a power cut, and what is there then is held against every promise before. With a fault that ends, the
//! queue must go on by itself, unless the file system itself gave up.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::judge::{Counts, Judge};
use crate::loop_disk::{self, LoopDisk};
use crate::mounted::{Kind, Mounted, Place, enter, memory_folder};
use crate::pipeline::{Random, Scratch};
use crate::power_cut::{Programs, append_line};
use crate::shell::{skipped, verdict};
use crate::witness::Witness;

const OPERATIONS: [&str; 3] = ["append", "rotate", "save"];
const REQUESTS: [&str; 2] = ["write", "flush"];
const LASTS: [&str; 3] = ["once", "place", "forever"];
const THEN: [Then; 3] = [Then::Same, Then::Restart, Then::Cut];
const SURVIVALS: [&str; 5] = ["none", "all", "prefix", "writes", "sectors"];

/// Where.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only this file system; default: all.
    #[arg(long)]
    fs: Option<Kind>,
    /// What the losses of the cuts follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What happens after the operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Same,
    Restart,
    Cut,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    kind: Kind,
    operation: &'static str,
    request: &'static str,
    lasts: &'static str,
    then: Then,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match enter()? {
        Place::Inside => {}
        Place::Done => return Ok(()),
        Place::Skipped(reason) => {
            skipped("failed-sync", &reason);
            return Ok(());
        }
    }
    if let Some(reason) = loop_disk::lacking() {
        skipped("failed-sync", &reason);
        return Ok(());
    }
    let scratch = Scratch::new("failed-sync")?;
    let images = scratch.path().join("images");
    let memory = memory_folder(&images)?;
    let programs = Programs::build(&[])?;
    let random = Random::new(arguments.seed);
    let mut matrix =
        Matrix { programs, images, folder: scratch.path().to_owned(), random, sum: Sum::default() };
    println!("failed-sync: seed {}", arguments.seed);
    let mut skips = 0;
    for kind in Kind::ALL.into_iter().filter(|kind| arguments.fs.is_none_or(|fs| fs == *kind)) {
        if let Some(reason) = kind.lacking() {
            println!("{}: SKIPPED {reason}", kind.name());
            skips += 1;
            continue;
        }
        matrix.file_system(kind)?;
    }
    let sum = matrix.sum;
    let skipped = if skips > 0 { format!(", {skips} file systems SKIPPED") } else { String::new() };
    let figures = format!(
        "{} cells, {} hit their operation, {} went on by themselves, in {} the file system gave up, {} records acknowledged, {} lost, {} ghosts{skipped}",
        sum.cells, sum.hit, sum.went_on, sum.gave_up, sum.counts.acked, sum.counts.lost, sum.counts.ghosts
    );
    memory.unmount()?;
    verdict("failed-sync", &figures, &sum.broken)?;
    scratch.passed();
    Ok(())
}

#[derive(Default)]
struct Sum {
    cells: u64,
    /// Cells whose fault was met by the operation it was meant for.
    hit: u64,
    went_on: u64,
    gave_up: u64,
    counts: Counts,
    broken: Vec<String>,
}

struct Matrix {
    programs: Programs,
    images: PathBuf,
    folder: PathBuf,
    random: Random,
    sum: Sum,
}

impl Matrix {
    fn file_system(&mut self, kind: Kind) -> Result<()> {
        kind.make(&self.images.join(kind.name()))?;
        for request in REQUESTS {
            for lasts in LASTS {
                let (gave_up, went_on) = (self.sum.gave_up, self.sum.went_on);
                for operation in OPERATIONS {
                    for then in THEN {
                        let cell = Cell { kind, operation, request, lasts, then };
                        self.cell(cell).with_context(|| format!("{cell:?}"))?;
                    }
                }
                // Cells that end with a cut at once are neither.
                println!(
                    "{}, a {request} failed {lasts}: 9 cells; the queue went on in {} of 6, the file system gave up in {}",
                    kind.name(),
                    self.sum.went_on - went_on,
                    self.sum.gave_up - gave_up
                );
            }
        }
        Ok(())
    }

    fn cell(&mut self, cell: Cell) -> Result<()> {
        let disk = LoopDisk::start(
            &self.programs.disk,
            &self.images.join(cell.kind.name()),
            &self.folder.join("disk"),
        )?;
        let mut scene = Scene { cell, disk, folder: &self.folder, witness: &self.programs.witness };
        let survival = SURVIVALS[usize::try_from(self.random.below(5))?];
        let seed = self.random.below(1 << 32);
        std::fs::remove_file(scene.testimony()).ok();
        let ended = scene.play(survival, seed)?;
        scene.disk.stop()?;
        let mut judge = Judge::default();
        judge.hear(&std::fs::read_to_string(self.folder.join("testimony"))?)?;
        let sum = &mut self.sum;
        sum.cells += 1;
        sum.hit += u64::from(ended.failed > 0);
        sum.went_on += u64::from(ended.went_on);
        sum.gave_up += u64::from(ended.gave_up);
        sum.counts.add(judge.counts);
        let found = ended.broken.into_iter().chain(judge.broken);
        sum.broken.extend(found.map(|what| format!("{cell:?}, cut {survival} {seed}: {what}")));
        Ok(())
    }
}

/// How a cell ended.
#[derive(Default)]
struct Ended {
    /// Requests that failed under the operation.
    failed: u64,
    went_on: bool,
    gave_up: bool,
    broken: Vec<String>,
}

struct Scene<'a> {
    cell: Cell,
    disk: LoopDisk,
    folder: &'a Path,
    witness: &'a Path,
}

impl Scene<'_> {
    fn testimony(&self) -> PathBuf {
        self.folder.join("testimony")
    }

    fn mount(&self) -> Result<Mounted> {
        self.disk.mount(self.cell.kind, &self.folder.join("mnt"), "")
    }

    fn start(&self, mounted: &Mounted, life: &str) -> Result<Witness> {
        Witness::start(self.witness, &mounted.path().join("queue"), &self.testimony(), life)
    }

    fn play(&mut self, survival: &str, seed: u64) -> Result<Ended> {
        let mut ended = Ended::default();
        let mounted = self.mount()?;
        let mut witness = self.start(&mounted, "first")?;
        witness.ready()?;
        prepare(&mut witness)?;
        self.disk.tell(&format!("fail {} 0 {}", self.cell.request, self.cell.lasts))?;
        append_line(&self.testimony(), "failing")?;
        operate(&mut witness, self.cell.operation)?;
        ended.failed = self.failed_count()?;
        match self.cell.then {
            Then::Same => self.go_on(&mut witness, &mounted, &mut ended)?,
            Then::Restart => {
                witness.kill()?;
                witness = self.start(&mounted, "second")?;
                self.restarted(&mut witness, &mounted, &mut ended)?;
            }
            Then::Cut => {}
        }
        append_line(&self.testimony(), "cut")?;
        self.disk.tell(&format!("cut {survival} {seed}"))?;
        witness.kill()?;
        mounted.unmount()?;
        self.disk.tell("power")?;
        append_line(&self.testimony(), "power")?;
        let mounted = self.mount().context("the file system itself did not survive")?;
        let mut witness = self.start(&mounted, "last")?;
        match witness.opened()?.as_str() {
            "ok" => {
                witness.ask("append each 1 300 10000")?;
                witness.ask("consume each")?;
                witness.ask("close")?;
            }
            said => ended.broken.push(format!("the queue does not open on a sound disk: {said}")),
        }
        drop(witness);
        mounted.unmount()?;
        Ok(ended)
    }

    fn failed_count(&mut self) -> Result<u64> {
        let said = self.disk.tell("count")?;
        said.rsplit(' ').next().context("no count")?.parse().context("no count")
    }

    /// Whether the disk is sound again: one that stays bad at one place is not, if the file system keeps giving out that place.
    fn is_sound(&self) -> bool {
        match self.cell.lasts {
            "once" => true,
            "forever" => self.cell.then == Then::Same,
            _ => false,
        }
    }

    /// The same process, the fault over unless it is of one place.
    fn go_on(&mut self, witness: &mut Witness, mounted: &Mounted, ended: &mut Ended) -> Result<()> {
        if self.cell.lasts == "forever" {
            witness.try_ask("report")?;
            self.disk.tell("mend")?;
        }
        if self.is_sound() {
            append_line(&self.testimony(), "mended")?;
        }
        if !is_alive(mounted) {
            ended.gave_up = true;
            witness.try_ask("report")?;
            return Ok(());
        }
        ended.went_on = true;
        for step in ["append each 2 300 10000", "append lazy 1 300 10000", "save 10000", "report"] {
            let said = witness.try_ask(step)?;
            let is_ok = said.starts_with("ok");
            ended.went_on &= is_ok;
            if !is_ok && self.is_sound() && is_alive(mounted) {
                ended.broken.push(format!("the same process, {step}: {said}"));
            }
        }
        Ok(())
    }

    /// Another process in the same boot; a fault that lasts, lasts.
    fn restarted(&mut self, witness: &mut Witness, mounted: &Mounted, ended: &mut Ended) -> Result<()> {
        if self.is_sound() {
            append_line(&self.testimony(), "mended")?;
        }
        let said = match witness.opened()?.as_str() {
            "ok" => witness.try_ask("append each 2 300 3000")?,
            said => said.to_owned(),
        };
        let is_ok = said.starts_with("ok");
        ended.gave_up = !is_alive(mounted);
        ended.went_on = is_ok;
        if !is_ok && !ended.gave_up && self.is_sound() {
            ended.broken.push(format!("the second process: {said}"));
        }
        Ok(())
    }
}

/// Records of each kind: durable and delivered, durable and not, written and not synced.
fn prepare(witness: &mut Witness) -> Result<()> {
    for step in [
        "append each 4 300 10000",
        "append lazy 2 300 10000",
        "consume each",
        "save 10000",
        "append each 3 300 10000",
        "buffer lazy 6 300",
    ] {
        witness.ask(step)?;
    }
    Ok(())
}

/// The operation that meets the fault; it may fail.
fn operate(witness: &mut Witness, operation: &str) -> Result<()> {
    let steps: &[&str] = match operation {
        "append" => &["append each 2 300 1000", "batch each 5 2000 1000"],
        "rotate" => &["rotate lazy", "append lazy 1 300 1000"],
        _ => &["consume each", "save 1000"],
    };
    for step in steps {
        witness.try_ask(step)?;
    }
    Ok(())
}

/// Whether the file system still takes and syncs a file.
fn is_alive(mounted: &Mounted) -> bool {
    let probe = mounted.path().join("probe");
    let written = std::fs::File::create(&probe).and_then(|mut file| {
        file.write_all(b"probe")?;
        file.sync_all()
    });
    written.is_ok() && std::fs::remove_file(&probe).is_ok()
}
