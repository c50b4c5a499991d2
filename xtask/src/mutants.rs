//! Seeded bugs against the crash suite: does it find what it must? Two kinds.
//!
//! ```text
//!   a sync site   SimDisk ignores it: the product as if that sync had been forgotten     no build
//!   a rule        a find/replace patch of a copy of the sources, then a build of `pq-sim`
//!       └────> pq-sim hunt --seeds N ─> caught by a seed, or not
//! ```
//!
//! The sites are read from the sources, so that no new one is forgotten. A site that nothing rests on alone is named in
//! `crates/sim/mutants/survivors.toml` with the reason, a rule in its own entry; being caught after all is as wrong there as surviving is
//! elsewhere. A few rules cannot be seen in a single-threaded core on a simulated disk: their entry names the test that sees them.
//!
//! What is caught counts only beside what is not: the sources as they are must survive every seed that caught a bug, a planted bug must
//! change the program that is run, and no two may give the same program.

mod plant;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use crate::shell::{command, output, root, verdict};
use plant::{Build, Copy, Found};

/// Where the seeded bugs stand.
const FOLDER: &str = "crates/sim/mutants";
/// Crates whose sync sites are the product's.
const PRODUCT: [&str; 3] = ["crates/wal-store", "crates/offsets", "crates/pq"];

/// How long to look, and for which.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seeds to try before a bug counts as not caught.
    #[arg(long, default_value_t = 20_000)]
    seeds: u64,
    /// Seeds for those that are named as defence in depth: no seed is expected to find them, so that all of these are always run.
    #[arg(long, default_value_t = 3_000)]
    seeds_in_depth: u64,
    /// Only those whose name contains this; may be given more than once.
    #[arg(long)]
    only: Vec<String>,
}

/// One seeded bug of a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    breaks: String,
    patch: Vec<Patch>,
    /// What the simulated core cannot show is caught by this test.
    test: Option<Test>,
    /// Why nothing rests on this rule alone, if nothing does.
    in_depth: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    file: PathBuf,
    find: String,
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    package: String,
    name: String,
}

#[derive(Deserialize)]
struct Rules {
    mutant: Vec<Mutant>,
}

#[derive(Deserialize)]
struct Survivors {
    site: Vec<Survivor>,
}

/// A site that nothing rests on alone.
#[derive(Deserialize)]
struct Survivor {
    name: String,
    reason: String,
}

/// What is said of one seeded bug.
enum Judged {
    Caught(String),
    Survived,
}

/// Of one kind of bugs.
#[derive(Default)]
struct Count {
    wanted: u64,
    caught: u64,
    in_depth: u64,
}

/// What was counted, and what is wrong.
#[derive(Default)]
struct Tally {
    sites: Count,
    rules: Count,
    /// Rules that a test caught, not a seed.
    by_test: u64,
    /// The highest seed that was needed.
    seed_max: u64,
    wrong: Vec<String>,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let begun = Instant::now();
    let is_wanted =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part));
    let copy = Copy::new()?;
    let sound = copy.build()?;
    println!("the suite without a bug is build {sound}, made in {:.0} s", begun.elapsed().as_secs_f64());
    let mut tally = Tally::default();
    ignore_sites(arguments, &copy, &mut tally, &is_wanted)?;
    plant_rules(arguments, &copy, sound, &mut tally, &is_wanted)?;
    // What is found where nothing is wrong would say nothing where something is.
    let again = copy.build()?;
    ensure!(again == sound, "the sources as they are were build {sound} and are {again} now");
    if let Some(found) = copy.hunt(tally.seed_max, None)? {
        tally.wrong.push(format!("without any bug seed {} finds: {}", found.seed, found.what));
    }
    println!("the suite without a bug finds nothing with the seeds up to {}", tally.seed_max);
    println!(
        "{} rules were caught by seeds, {} by a test; each by one of at most {} seeds; what is named as defence in depth survived {}; {:.0} s",
        tally.rules.caught - tally.by_test,
        tally.by_test,
        arguments.seeds,
        arguments.seeds_in_depth,
        begun.elapsed().as_secs_f64()
    );
    verdict("sync-mutants", &tally.figures(), &tally.wrong)
}

/// Hunts with one sync site ignored after the other.
fn ignore_sites(
    arguments: &Arguments,
    copy: &Copy,
    tally: &mut Tally,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let survivors: Survivors =
        toml::from_str(&fs::read_to_string(root().join(FOLDER).join("survivors.toml"))?)?;
    let sites = sites()?;
    for known in survivors.site.iter().filter(|known| !sites.contains(&known.name)) {
        tally.wrong.push(format!("survivors.toml names {}, which is no sync site", known.name));
    }
    let sites: Vec<&String> = sites.iter().filter(|site| is_wanted(site)).collect();
    for (number, site) in sites.iter().enumerate() {
        let reason = survivors.site.iter().find(|known| known.name == **site).map(|known| &known.reason);
        let begun = Instant::now();
        let found = copy.hunt(arguments.seeds_for(reason), Some(site))?;
        let judged = tally.seen(found);
        let title = format!("site {}/{} {site}", number + 1, sites.len());
        let how = format!("hunted {:.1} s", begun.elapsed().as_secs_f64());
        tally.judge(Kind::Site, &title, &how, judged, reason.map(String::as_str));
    }
    Ok(())
}

/// Plants one bug after the other.
fn plant_rules(
    arguments: &Arguments,
    copy: &Copy,
    sound: Build,
    tally: &mut Tally,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let mutants: Vec<Mutant> = rules()?.into_iter().filter(|mutant| is_wanted(&mutant.name)).collect();
    let mut builds = BTreeMap::from([(sound, "without a bug".to_owned())]);
    for (number, mutant) in mutants.iter().enumerate() {
        let title = format!("rule {}/{} {}", number + 1, mutants.len(), mutant.name);
        println!("{title}: {}", mutant.breaks);
        let begun = Instant::now();
        if let Some(test) = &mutant.test {
            ensure!(copy.passes(test)?, "{}: {} fails without a bug", mutant.name, test.name);
            let is_caught = !copy.with(mutant, || copy.passes(test))?;
            tally.by_test += u64::from(is_caught);
            let caught = || Judged::Caught(format!("caught by the test {} of {}", test.name, test.package));
            let judged = if is_caught { caught() } else { Judged::Survived };
            let how = format!("built and run in {:.1} s", begun.elapsed().as_secs_f64());
            tally.judge(Kind::Rule, &title, &how, judged, mutant.in_depth.as_deref());
            continue;
        }
        let (build, built, found) = copy.with(mutant, || {
            let build = copy.build()?;
            let built = begun.elapsed();
            Ok((build, built, copy.hunt(arguments.seeds_for(mutant.in_depth.as_ref()), None)?))
        })?;
        if let Some(same) = builds.insert(build, mutant.name.clone()) {
            tally.wrong.push(format!("{} gives the same program as {same}: {build}", mutant.name));
        }
        let judged = tally.seen(found);
        let hunted = (begun.elapsed() - built).as_secs_f64();
        let how = format!("build {build} in {:.1} s, hunted {hunted:.1} s", built.as_secs_f64());
        tally.judge(Kind::Rule, &title, &how, judged, mutant.in_depth.as_deref());
    }
    Ok(())
}

impl Arguments {
    /// How long to look for what has, or has not, a reason to survive.
    fn seeds_for(&self, reason: Option<&String>) -> u64 {
        if reason.is_some() { self.seeds_in_depth } else { self.seeds }
    }
}

/// Of what kind a seeded bug is.
#[derive(Clone, Copy)]
enum Kind {
    Site,
    Rule,
}

impl Tally {
    fn seen(&mut self, found: Option<Found>) -> Judged {
        match found {
            Some(found) => {
                self.seed_max = self.seed_max.max(found.seed);
                Judged::Caught(format!("caught by seed {}: {}", found.seed, found.what))
            }
            None => Judged::Survived,
        }
    }

    fn judge(&mut self, kind: Kind, title: &str, how: &str, judged: Judged, in_depth: Option<&str>) {
        let count = match kind {
            Kind::Site => &mut self.sites,
            Kind::Rule => &mut self.rules,
        };
        let said = match (judged, in_depth) {
            (Judged::Caught(found), None) => {
                count.wanted += 1;
                count.caught += 1;
                found
            }
            (Judged::Survived, Some(reason)) => {
                count.in_depth += 1;
                format!("defence in depth. {reason}")
            }
            (Judged::Survived, None) => {
                count.wanted += 1;
                self.wrong.push(format!("{title}: not caught"));
                "NOT CAUGHT".to_owned()
            }
            (Judged::Caught(found), Some(_)) => {
                self.wrong.push(format!("{title} is named as defence in depth, and yet: {found}"));
                format!("CAUGHT AFTER ALL: {found}")
            }
        };
        println!("{title}: {said} [{how}]");
    }

    /// Those that nothing rests on alone are no part of what must be caught, and are told beside it.
    fn figures(&self) -> String {
        let Self { sites, rules, .. } = self;
        let mut figures = format!(
            "{} of {} sites caught, {} of {} rules caught",
            sites.caught, sites.wanted, rules.caught, rules.wanted
        );
        let more: Vec<String> = [(sites.in_depth, "site"), (rules.in_depth, "rule")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} more {what}{}", if count == 1 { "" } else { "s" }))
            .collect();
        if !more.is_empty() {
            figures += &format!(", {} named as defence in depth", more.join(" and "));
        }
        figures
    }
}

/// The names of all sync sites in the product's sources.
fn sites() -> Result<BTreeSet<String>> {
    let mark = "SyncSite::new(\"";
    let mut sites = BTreeSet::new();
    for path in
        tracked()?.iter().filter(|path| PRODUCT.iter().any(|of| path.starts_with(Path::new(of).join("src"))))
    {
        let name = path.to_string_lossy();
        if !name.ends_with(".rs") || name.contains("test") || name.ends_with("build.rs") {
            continue;
        }
        let text = fs::read_to_string(root().join(path))?;
        for part in text.split(mark).skip(1) {
            sites.insert(part.split('"').next().unwrap_or_default().to_owned());
        }
    }
    ensure!(!sites.is_empty(), "no sync site was found in the sources");
    Ok(sites)
}

/// All seeded bugs, in the order of the files.
fn rules() -> Result<Vec<Mutant>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join(FOLDER))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| !path.ends_with("survivors.toml"));
    files.sort();
    let mut all: Vec<Mutant> = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let rules: Rules = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
        all.extend(rules.mutant);
    }
    Ok(all)
}

/// Every file git tracks or would track, from the root.
fn tracked() -> Result<Vec<PathBuf>> {
    let listed = output(&mut command("git ls-files --cached --others --exclude-standard"))?;
    Ok(listed.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seeded_bug_fits_the_sources() {
        for mutant in rules().expect("the files are there") {
            for patch in &mutant.patch {
                let text = fs::read_to_string(root().join(&patch.file)).expect("the file is there");
                assert_eq!(text.matches(&patch.find).count(), 1, "{}: {}", mutant.name, patch.file.display());
                assert_ne!(patch.find, patch.replace, "{}", mutant.name);
            }
        }
    }

    #[test]
    fn every_survivor_is_a_sync_site() {
        let text = fs::read_to_string(root().join(FOLDER).join("survivors.toml")).expect("it is there");
        let survivors: Survivors = toml::from_str(&text).expect("it is well formed");
        let sites = sites().expect("the sources are there");
        assert!(survivors.site.iter().all(|known| sites.contains(&known.name)));
        assert!(sites.contains("commit.batch") && sites.len() >= 29, "{sites:?}");
    }
}
