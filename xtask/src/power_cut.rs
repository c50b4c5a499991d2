//! Power cuts under a working queue, on real file systems; then what was promised before is held against what is there.
//!
//! ```text
//!   round: mount ─> witness opens, reports, works ─> cut at a random moment ─> kill, unmount ─> next round: mount, …
//! ```
//! Two switches. *shutdown*: the file system is told by ioctl to stop where it is; what it had not given to its device is gone.
//! *disk*: a disk of our own loses everything that was not flushed, or all but a random part of it, sector by sector.
//! The witness writes down what it was promised on another disk. Now and then it is killed first, and another one begins in the same
//! boot; the moment of the cut may lie in its recovery.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::judge::{Counts, Judge};
use crate::loop_disk::{self, LoopDisk};
use crate::mounted::{Kind, Mounted, Place, enter, memory_folder, missing};
use crate::pipeline::{Random, Scratch, build_for_tests};
use crate::shell::{skipped, verdict};
use crate::witness::Witness;

/// A queue is used for so many rounds, then a new one is begun.
const ROUNDS_OF_A_QUEUE: u64 = 10;
/// The cut comes at most so long after the witness has opened the queue.
const MOMENT_MAX_US: u64 = 60_000;
/// In a quarter of the rounds it comes at most so long after the witness was started: while it opens.
const EARLY_MAX_US: u64 = 25_000;

/// How the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// The shutdown ioctl of ext4 and XFS.
    Shutdown,
    /// A disk of our own that loses what was not flushed.
    Disk,
}

/// How often, and where.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Power cuts on each file system.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Only this file system; default: all.
    #[arg(long)]
    fs: Option<Kind>,
    /// Only this switch; default: both, where the file system has them.
    #[arg(long)]
    switch: Option<Switch>,
    /// What the moments, the work and the losses follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    match enter()? {
        Place::Inside => {}
        Place::Done => return Ok(()),
        Place::Skipped(reason) => {
            skipped("power-cut", &reason);
            return Ok(());
        }
    }
    let scratch = Scratch::new("power-cut")?;
    let images = scratch.path().join("images");
    let memory = memory_folder(&images)?;
    let programs = Programs::build(&[])?;
    println!("power-cut: seed {}", arguments.seed);
    let (mut counts, mut found, mut skips, mut cuts) = (Counts::default(), Vec::new(), 0, 0);
    for (kind, switch) in wanted(arguments) {
        let name = format!("{} by {}", kind.name(), if switch == Switch::Disk { "disk" } else { "shutdown" });
        if let Some(reason) = lacking(kind, switch) {
            println!("{name}: SKIPPED {reason}");
            skips += 1;
            continue;
        }
        let folder = scratch.path().join(name.replace(' ', "-"));
        std::fs::create_dir_all(&folder)?;
        let mut check = Check {
            kind,
            switch,
            programs: &programs,
            image: images.join(&name),
            random: Random::new(arguments.seed),
            folder,
            counts: Counts::default(),
            broken: Vec::new(),
            lost_sectors: 0,
        };
        check.run(arguments.rounds).with_context(|| format!("{name}, seed {}", arguments.seed))?;
        println!("{name}: {}", check.figures(arguments.rounds));
        counts.add(check.counts);
        cuts += arguments.rounds;
        found.extend(check.broken.iter().map(|what| format!("{name}, {what}")));
    }
    let skipped = if skips > 0 { format!(", {skips} SKIPPED") } else { String::new() };
    let figures = format!(
        "{cuts} power cuts, {} records acknowledged, {} lost, {} ghosts{skipped}",
        counts.acked, counts.lost, counts.ghosts
    );
    if cuts > 0 && counts.acked == 0 {
        found.push("nothing was acknowledged: nothing was shown".to_owned());
    }
    memory.unmount()?;
    verdict("power-cut", &figures, &found)?;
    scratch.passed();
    Ok(())
}

/// The programs the checks on real file systems start.
pub(crate) struct Programs {
    pub(crate) witness: PathBuf,
    pub(crate) disk: PathBuf,
    /// There only if asked for.
    pub(crate) pq: PathBuf,
}

impl Programs {
    /// Builds the witness and the loop disk, and these packages.
    pub(crate) fn build(more: &[&str]) -> Result<Self> {
        let folder = build_for_tests(&[&["witness", "loop-disk"], more].concat())?;
        Ok(Self {
            witness: folder.join("pq-witness"),
            disk: folder.join("pq-loop-disk"),
            pq: folder.join("pq"),
        })
    }
}

fn wanted(arguments: &Arguments) -> Vec<(Kind, Switch)> {
    let is_wanted = |(kind, switch): &(Kind, Switch)| {
        arguments.fs.is_none_or(|fs| fs == *kind) && arguments.switch.is_none_or(|wanted| wanted == *switch)
    };
    let all = Kind::ALL.into_iter().flat_map(|kind| [(kind, Switch::Shutdown), (kind, Switch::Disk)]);
    // btrfs has no such ioctl; that is no lack of this machine.
    all.filter(|pair| *pair != (Kind::Btrfs, Switch::Shutdown)).filter(is_wanted).collect()
}

fn lacking(kind: Kind, switch: Switch) -> Option<String> {
    let switch_lacks = match switch {
        Switch::Shutdown => missing(&["xfs_io"]),
        Switch::Disk => loop_disk::lacking(),
    };
    kind.lacking().or(switch_lacks)
}

/// One file system with one switch.
struct Check<'a> {
    kind: Kind,
    switch: Switch,
    programs: &'a Programs,
    image: PathBuf,
    folder: PathBuf,
    random: Random,
    counts: Counts,
    broken: Vec<String>,
    lost_sectors: u64,
}

impl Check<'_> {
    fn figures(&self, rounds: u64) -> String {
        let lost = match self.switch {
            Switch::Disk => format!(", {} sectors lost", self.lost_sectors),
            Switch::Shutdown => String::new(),
        };
        format!(
            "{rounds} cuts{lost}, {} records acknowledged, {} reports compared, {} redelivered, {} lost, {} ghosts",
            self.counts.acked, self.counts.reports, self.counts.again, self.counts.lost, self.counts.ghosts
        )
    }

    fn run(&mut self, rounds: u64) -> Result<()> {
        self.kind.make(&self.image)?;
        let mut disk = match self.switch {
            Switch::Shutdown => None,
            Switch::Disk => {
                Some(LoopDisk::start(&self.programs.disk, &self.image, &self.folder.join("disk"))?)
            }
        };
        for first in (0..rounds).step_by(usize::try_from(ROUNDS_OF_A_QUEUE)?) {
            let rounds = first..rounds.min(first + ROUNDS_OF_A_QUEUE);
            self.lives_of_a_queue(&mut disk, rounds)?;
        }
        disk.map_or(Ok(()), LoopDisk::stop)
    }

    fn lives_of_a_queue(&mut self, disk: &mut Option<LoopDisk>, rounds: std::ops::Range<u64>) -> Result<()> {
        let queue = format!("queue-{}", rounds.start);
        let mut judge = Judge::default();
        let last = format!("{}-last", rounds.end);
        for round in rounds {
            let mounted = self.mount(disk.as_ref())?;
            let dir = mounted.path().join(&queue);
            self.live(&round.to_string(), &dir, disk, &mounted)?;
            mounted.unmount()?;
            if let Some(disk) = disk {
                disk.tell("power")?;
            }
            append_line(&self.testimony(&round.to_string()), "power")?;
            self.hear(&mut judge, &round.to_string())?;
        }
        // Nobody cuts this life: what is there now is all there is.
        let mounted = self.mount(disk.as_ref())?;
        let dir = mounted.path().join(&queue);
        let mut witness = self.witness(&dir, &last, "last")?;
        witness.ready()?;
        witness.ask("close")?;
        drop(witness);
        self.hear(&mut judge, &last)?;
        std::fs::remove_dir_all(&dir).context("the queue cannot be removed")?;
        mounted.unmount()?;
        self.counts.add(judge.counts);
        Ok(())
    }

    fn mount(&self, disk: Option<&LoopDisk>) -> Result<Mounted> {
        let point = self.folder.join("mnt");
        let mounted = match disk {
            Some(disk) => disk.mount(self.kind, &point, ""),
            None => Mounted::new(self.kind, &self.image, &point, ""),
        };
        mounted.context("the file system itself did not survive")
    }

    fn testimony(&self, round: &str) -> PathBuf {
        self.folder.join(format!("{round}.testimony"))
    }

    fn witness(&self, dir: &Path, round: &str, life: &str) -> Result<Witness> {
        Witness::start(&self.programs.witness, dir, &self.testimony(round), &format!("{round}.{life}"))
    }

    /// A witness from its start to the cut; now and then a second one in the same boot.
    fn live(
        &mut self,
        round: &str,
        dir: &Path,
        disk: &mut Option<LoopDisk>,
        mounted: &Mounted,
    ) -> Result<()> {
        let mut lives = vec!["a"];
        if self.random.below(4) == 0 {
            lives.push("b");
        }
        let mut working: Option<Witness> = None;
        for life in lives {
            if let Some(before) = working.take() {
                before.kill()?;
            }
            let mut witness = self.witness(dir, round, life)?;
            witness.tell(&format!("work {}", self.random.below(1 << 32)));
            let moment = match self.random.below(4) {
                0 => self.random.below(EARLY_MAX_US),
                _ => {
                    witness.ready()?;
                    self.random.below(MOMENT_MAX_US)
                }
            };
            std::thread::sleep(Duration::from_micros(moment));
            if let Some(said) = witness.failed_so_far() {
                self.broken.push(format!("round {round}, before the cut: {said}"));
            }
            working = Some(witness);
        }
        match disk {
            None => {
                // A sync that is on its way while the file system is told to stop may answer Ok for bytes that are gone, on ext4
                // and on XFS. When the power goes nobody hears that answer: what is said from here on is not held against anybody.
                append_line(&self.testimony(round), "cut")?;
                mounted.shut_down()?;
            }
            Some(disk) => {
                let survival = ["none", "all", "prefix", "writes", "sectors"];
                let survival = survival[usize::try_from(self.random.below(5))?];
                let said = disk.tell(&format!("cut {survival} {}", self.random.below(1 << 32)))?;
                // Behind the cut: an Ok of this disk from here on would be a lie, and is looked for.
                append_line(&self.testimony(round), "cut")?;
                self.lost_sectors += lost_sectors(&said)?;
            }
        }
        working.map_or(Ok(()), Witness::kill)
    }

    fn hear(&mut self, judge: &mut Judge, round: &str) -> Result<()> {
        // A witness that was cut off at once has written nothing.
        let text = std::fs::read_to_string(self.testimony(round)).unwrap_or_default();
        judge.hear(&text)?;
        self.broken.extend(judge.broken.drain(..).map(|what| format!("round {round}: {what}")));
        Ok(())
    }
}

/// Says in a testimony what its witness cannot know.
pub(crate) fn append_line(testimony: &Path, line: &str) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(testimony)?;
    // In one call: the witness may be writing, too.
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

/// From `pending N survived M`.
fn lost_sectors(said: &str) -> Result<u64> {
    let words: Vec<&str> = said.split(' ').collect();
    match words.as_slice() {
        ["pending", pending, "survived", survived] => Ok(pending.parse::<u64>()? - survived.parse::<u64>()?),
        _ => anyhow::bail!("the disk said {said}"),
    }
}
