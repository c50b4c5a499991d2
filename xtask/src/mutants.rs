//! Seeded bugs against the crash suite: does it find what it must? Two kinds.
//!
//! ```text
//!   a sync site   SimDisk ignores it: the product as if that sync had been forgotten     no build
//!   a rule        a find/replace patch of a copy of the sources, then a build of `pq-sim`
//!       └────> pq-sim hunt --seeds N ─> caught by a seed, or not
//! ```
//!
//! The sites are read from the sources, so that no new one is forgotten. A site that nothing rests on alone is named in
//! `crates/sim/mutants/survivors.toml` with the reason; being caught after all is as wrong there as surviving is elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Deserialize;

use crate::pipeline::{CrashPoints, build, target_folder};
use crate::shell::{command, must, output, root, verdict};

/// Where the seeded bugs stand.
const FOLDER: &str = "crates/sim/mutants";
/// Crates whose sync sites are the product's.
const PRODUCT: [&str; 3] = ["crates/wal-store", "crates/offsets", "crates/pq"];

/// How long to look, and for which.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seeds to try before a mutant counts as not caught.
    #[arg(long, default_value_t = 20_000)]
    seeds: u64,
    /// Only those whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// One seeded bug of a rule.
#[derive(Deserialize)]
struct Mutant {
    name: String,
    breaks: String,
    patch: Vec<Patch>,
    /// What the simulated core cannot show is caught by this test.
    test: Option<Test>,
}

#[derive(Deserialize)]
struct Patch {
    file: PathBuf,
    find: String,
    replace: String,
}

#[derive(Deserialize)]
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

/// What was counted, and what is wrong.
#[derive(Default)]
struct Tally {
    sites: u64,
    sites_caught: u64,
    in_depth: u64,
    rules: u64,
    rules_caught: u64,
    wrong: Vec<String>,
}

/// Runs the check.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|part| name.contains(part));
    let survivors: Survivors =
        toml::from_str(&fs::read_to_string(root().join(FOLDER).join("survivors.toml"))?)?;
    let mut tally = Tally::default();
    let program = build("sim", "pq-sim", CrashPoints::Absent)?;
    let sites = sites()?;
    for known in survivors.site.iter().filter(|known| !sites.contains(&known.name)) {
        tally.wrong.push(format!("survivors.toml names {}, which is no sync site", known.name));
    }
    for site in sites.iter().filter(|site| wanted(site)) {
        let found = hunt(&program, arguments.seeds, Some(site))?;
        tally.site(site, found, survivors.site.iter().find(|known| known.name == *site));
    }
    let mutants: Vec<Mutant> = rules()?.into_iter().filter(|mutant| wanted(&mutant.name)).collect();
    let copy = Copy::new()?;
    for mutant in &mutants {
        let found = copy.with(mutant, |copy| copy.judge(mutant, arguments.seeds))?;
        tally.rule(mutant, found);
    }
    let figures = format!(
        "{} of {} sites caught, {} of {} rules caught",
        tally.sites_caught, tally.sites, tally.rules_caught, tally.rules
    );
    println!("sync-mutants: {} more sites are defence in depth, see {FOLDER}/survivors.toml", tally.in_depth);
    verdict("sync-mutants", &figures, &tally.wrong)
}

impl Tally {
    fn site(&mut self, site: &str, found: Option<String>, survivor: Option<&Survivor>) {
        match (found, survivor) {
            (Some(found), None) => {
                (self.sites, self.sites_caught) = (self.sites + 1, self.sites_caught + 1);
                println!("site {site}: {found}");
            }
            (None, Some(survivor)) => {
                self.in_depth += 1;
                println!("site {site}: defence in depth. {}", survivor.reason);
            }
            (None, None) => {
                self.sites += 1;
                self.wrong.push(format!("site {site}: not caught"));
            }
            (Some(found), Some(_)) => {
                self.wrong.push(format!("site {site} is called defence in depth, and yet: {found}"));
            }
        }
    }

    fn rule(&mut self, mutant: &Mutant, found: Option<String>) {
        self.rules += 1;
        match found {
            Some(found) => {
                self.rules_caught += 1;
                println!("rule {}: {found}", mutant.name);
            }
            None => self.wrong.push(format!("rule {}: not caught. {}", mutant.name, mutant.breaks)),
        }
    }
}

/// Starts the crash suite until it finds something; `None`: it did not.
fn hunt(program: &Path, seeds: u64, ignored: Option<&str>) -> Result<Option<String>> {
    let mut hunt = Command::new(program);
    hunt.args(["hunt", "--seeds", &seeds.to_string()]);
    hunt.args(ignored.iter().flat_map(|site| ["--ignore-site", site]));
    let said = output(&mut hunt)?;
    let last = said.lines().last().unwrap_or_default();
    match last.strip_prefix("hunt: caught ") {
        Some(found) => Ok(Some(found.to_owned())),
        None if last.starts_with("hunt: survived ") => Ok(None),
        None => bail!("pq-sim hunt ended in {last:?}"),
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

fn tracked() -> Result<Vec<PathBuf>> {
    let listed = output(&mut command("git ls-files --cached --others --exclude-standard"))?;
    Ok(listed.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect())
}

/// A copy of the sources, with a build folder of its own, in which one bug at a time is planted.
struct Copy {
    sources: PathBuf,
    builds: PathBuf,
}

impl Copy {
    fn new() -> Result<Self> {
        let folder = target_folder()?.join("xtask-mutants");
        let copy = Self { sources: folder.join("sources"), builds: folder.join("builds") };
        for path in tracked()? {
            copy.put(&path, &fs::read(root().join(&path))?)?;
        }
        Ok(copy)
    }

    /// Writes a file if it differs: cargo builds again what is newer than its last build.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let to = self.sources.join(path);
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(&self.sources))?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))
    }

    /// Plants a bug, looks, takes it out again.
    fn with<T>(&self, mutant: &Mutant, look: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        for patch in &mutant.patch {
            let text = fs::read_to_string(self.sources.join(&patch.file))
                .with_context(|| format!("{}: no {}", mutant.name, patch.file.display()))?;
            let count = text.matches(&patch.find).count();
            ensure!(
                count == 1,
                "{}: what is to be replaced is found {count} times in {}",
                mutant.name,
                patch.file.display()
            );
            self.put(&patch.file, text.replace(&patch.find, &patch.replace).as_bytes())?;
        }
        let result = look(self);
        for patch in &mutant.patch {
            self.put(&patch.file, &fs::read(root().join(&patch.file))?)?;
        }
        result
    }

    fn cargo(&self, line: &str) -> Command {
        let mut cargo = command(line);
        cargo.current_dir(&self.sources).arg("--target-dir").arg(&self.builds);
        // Built often and run briefly; without debug assertions, so that it is the suite that finds the bug.
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true");
        cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false").env("RUSTFLAGS", "-Awarnings");
        cargo
    }

    /// What finds a planted bug; `None`: nothing does.
    fn judge(&self, mutant: &Mutant, seeds: u64) -> Result<Option<String>> {
        if let Some(test) = &mutant.test {
            let line = format!("cargo test --quiet --package {} --lib {}", test.package, test.name);
            must(self.cargo(&line).arg("--no-run"))?;
            let ran = self.cargo(&line).output().context("could not start cargo test")?;
            let said = String::from_utf8_lossy(&ran.stdout);
            ensure!(!said.contains("running 0 tests"), "{}: there is no test {}", mutant.name, test.name);
            return Ok((!ran.status.success()).then(|| format!("caught by the test {}", test.name)));
        }
        must(&mut self.cargo("cargo build --release --quiet --package sim --bin pq-sim"))?;
        hunt(&self.builds.join("release").join("pq-sim"), seeds, None)
    }
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
