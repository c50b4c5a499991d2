//! Every named point, once and twice in a row.
//!
//! ```text
//!   census: runs that nobody kills write down each call that changes the disk  ─▶ names and counts
//!   once:   for each name × moment × {first, middle call}:  start, killed there │ start, not killed │ compare
//!                                                                                └─ census of this restart ─▶ its names
//!   twice:  for each of those × {the same point, each name the restart came by}: killed │ killed │ not killed │ compare
//! ```
//! A point that no run reached is named, and so is every sync site of the sources that no run came by.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};

use crate::shell::{command, output, root};

/// Sync sites that need what no kill brings about, and what covers them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("probe.file", "only behind a device that refuses again and again; killed there under simulation"),
    (
        "cursors.void",
        "an open voids a clean stop by the first save of its run, which is always a new generation: the kills at journal.generation and \
         journal.directory are at that save",
    ),
];

/// A program with its inputs, and the comparison of what it left.
pub(super) trait Program {
    /// Its name in the list.
    fn name(&self) -> &'static str;

    /// The names of all calls that change the disk, in order, of a run that nobody kills on a new queue, and of one after it.
    fn census(&mut self) -> Result<Vec<String>>;

    /// On a new queue: started once for each point, to be killed there; then started until it ends by itself, and compared.
    fn trial(&mut self, points: &[String]) -> Result<Trial>;
}

/// What came of a trial.
pub(super) struct Trial {
    /// Whether each point was reached.
    pub(super) reached: Vec<bool>,
    /// The names of all calls of the last start.
    pub(super) restart: Vec<String>,
    /// Records lost.
    pub(super) lost: u64,
    /// What else is wrong.
    pub(super) broken: Vec<String>,
}

/// Where a kill may come, without the number of the call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    name: String,
    moment: &'static str,
}

/// All that was reached.
#[derive(Default)]
pub(super) struct Reached {
    points: BTreeMap<Point, Counts>,
    programs: BTreeMap<&'static str, BTreeSet<Point>>,
    names: BTreeSet<String>,
    trials: u64,
    lost: u64,
    pub(super) broken: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    once: u64,
    twice: u64,
}

/// Kills a program at every point of its census.
pub(super) fn kill_at_each(program: &mut dyn Program, every: usize, reached: &mut Reached) -> Result<()> {
    let census = counted(&program.census()?);
    reached.names.extend(census.keys().cloned());
    let mut pairs = Vec::new();
    for (name, count) in &census {
        for moment in moments(name) {
            let point = Point { name: name.clone(), moment };
            reached.points.entry(point.clone()).or_default();
            let mut restarts = BTreeSet::new();
            for nth in BTreeSet::from([1, count.div_ceil(2)]) {
                let text = format!("{name}:{moment}:{nth}");
                let trial = program.trial(std::slice::from_ref(&text))?;
                reached.add(program.name(), &text, &trial);
                if trial.reached[0] {
                    reached.once(program.name(), &point);
                    restarts.extend(trial.restart);
                }
            }
            reached.names.extend(restarts.iter().cloned());
            pairs.extend(seconds(&point, restarts).map(|second| (point.clone(), *count, second)));
        }
    }
    println!("kill-points: {}: {} names, {} pairs", program.name(), census.len(), pairs.len());
    for (index, (point, count, second)) in pairs.iter().enumerate() {
        if point != second && index % every != 0 {
            continue;
        }
        let nth = if index % 2 == 0 { 1 } else { count.div_ceil(2) };
        let texts = [
            format!("{}:{}:{nth}", point.name, point.moment),
            format!("{}:{}:1", second.name, second.moment),
        ];
        let trial = program.trial(&texts)?;
        reached.add(program.name(), &texts.join(", then "), &trial);
        if trial.reached == [true, true] {
            reached.twice(program.name(), second);
        }
    }
    Ok(())
}

/// The second kills after one: the same point, and one moment of each name the restart came by; over all first kills, all moments.
fn seconds(first: &Point, restart: BTreeSet<String>) -> impl Iterator<Item = Point> {
    let turn = first.name.len() + first.moment.len();
    let again = (!restart.is_empty()).then(|| first.clone());
    let others = restart.into_iter().enumerate().map(move |(index, name)| {
        let moments = moments(&name);
        let moment = moments[(index + turn) % moments.len()];
        Point { name, moment }
    });
    again.into_iter().chain(others)
}

fn moments(name: &str) -> &'static [&'static str] {
    if name.starts_with("write.") { &["before", "middle", "after"] } else { &["before", "after"] }
}

fn counted(names: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_insert(0) += 1;
    }
    counts
}

impl Reached {
    fn add(&mut self, program: &str, kills: &str, trial: &Trial) {
        self.trials += 1;
        self.lost += trial.lost;
        let broken = trial.broken.iter().map(|what| format!("{program} killed at {kills}: {what}"));
        self.broken.extend(broken);
    }

    fn once(&mut self, program: &'static str, point: &Point) {
        self.points.entry(point.clone()).or_default().once += 1;
        self.programs.entry(program).or_default().insert(point.clone());
    }

    fn twice(&mut self, program: &'static str, point: &Point) {
        self.points.entry(point.clone()).or_default().twice += 1;
        self.programs.entry(program).or_default().insert(point.clone());
    }

    /// The list, and what was not reached.
    pub(super) fn print(&mut self, seed: u64) {
        println!(
            "kill-points: seed {seed}; each point, how often a first and a second kill came there, and in which program"
        );
        for (point, counts) in &self.points {
            let programs = self.programs.iter().filter(|(_, points)| points.contains(point));
            let programs: Vec<_> = programs.map(|(name, _)| *name).collect();
            let shown = format!("{}:{}", point.name, point.moment);
            println!("{shown:32} {:4} {:5}  {}", counts.once, counts.twice, programs.join(", "));
        }
        for (point, counts) in &self.points {
            if counts.once + counts.twice == 0 {
                self.broken.push(format!("{}:{} was never reached", point.name, point.moment));
            }
        }
        match sync_sites() {
            Ok(sites) => self.missed_sites(&sites),
            Err(error) => self.broken.push(format!("{error:#}")),
        }
    }

    fn missed_sites(&mut self, sites: &BTreeSet<String>) {
        for site in sites.difference(&self.names) {
            match ELSEWHERE.iter().find(|(name, _)| name == site) {
                Some((_, why)) => println!("not reached by any kill: {site}, {why}"),
                None => self.broken.push(format!("no run came by the sync site {site}")),
            }
        }
    }

    /// The figures of the last line.
    pub(super) fn figures(&self) -> String {
        let once = self.points.values().filter(|counts| counts.once > 0).count();
        let twice: u64 = self.points.values().map(|counts| counts.twice).sum();
        format!(
            "{} points of {} names, {once} killed once, {twice} second kills, {} trials, {} lost",
            self.points.len(),
            self.names.len(),
            self.trials,
            self.lost
        )
    }
}

/// The names of all sync sites that the sources of the queue define.
fn sync_sites() -> Result<BTreeSet<String>> {
    let listed = output(&mut command("git ls-files --cached --others --exclude-standard -- crates/*.rs"))?;
    let mut sites = BTreeSet::new();
    let product = |path: &&str| {
        ["wal-store/src", "offsets/src", "pq/src"].iter().any(|folder| path.contains(folder))
            && !path.ends_with("tests.rs")
            && !path.ends_with("build.rs")
    };
    for path in listed.lines().filter(product).filter(|path| root().join(path).is_file()) {
        let text = fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))?;
        sites.extend(sites_of(&text));
    }
    Ok(sites)
}

fn sites_of(text: &str) -> impl Iterator<Item = String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let sites = code.filter_map(|line| line.split_once("SyncSite::new(\"")?.1.split('"').next());
    sites.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, moment: &'static str) -> Point {
        Point { name: name.to_owned(), moment }
    }

    #[test]
    fn the_second_kill_comes_at_the_same_point_and_at_each_name_of_the_restart() {
        let restart = BTreeSet::from(["recover.file".to_owned(), "write.seg".to_owned()]);
        let found: Vec<_> = seconds(&point("commit.batch", "after"), restart).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], point("commit.batch", "after"));
        assert_eq!(found[1].name, "recover.file");
        assert_eq!(found[2].name, "write.seg");
        assert_eq!(
            seconds(&point("commit.batch", "after"), BTreeSet::new()).count(),
            0,
            "it was not reached"
        );
    }

    #[test]
    fn a_point_and_a_site_that_nobody_reached_are_named() {
        let mut reached = Reached::default();
        reached.points.insert(point("commit.batch", "before"), Counts { once: 1, twice: 0 });
        reached.points.insert(point("retire.dir", "after"), Counts::default());
        reached.names.insert("commit.batch".to_owned());
        reached.print(1);
        assert!(reached.broken.contains(&"retire.dir:after was never reached".to_owned()));
        reached.broken.clear();
        reached.missed_sites(&BTreeSet::from(["commit.batch".to_owned(), "meta.dir".to_owned()]));
        assert_eq!(reached.broken, ["no run came by the sync site meta.dir"]);
    }

    #[test]
    fn sites_are_read_from_code_and_not_from_comments() {
        let text = "//! SyncSite::new(\"example\");\nconst A: SyncSite = SyncSite::new(\"a.b\");\n";
        assert_eq!(sites_of(text).collect::<Vec<_>>(), ["a.b"]);
    }
}
