//! Power cuts and kills before every call, with every kind of subset surviving.

use std::sync::Arc;

use disk::SyncSite;
use offsets::{Offsets, journal};
use sim_disk::{Fault, On, SimDisk, Survival};

use crate::support::{QUEUE, SMALL, Step, View, open, run, script, view, views};

const EIO: i32 = 5;

/// Runs the script until the disk stops answering at its `k`-th call; returns how many steps succeeded, or `None` if
/// the script ended before that call.
fn run_until(disk: &SimDisk, steps: &[Step], k: u64) -> Option<usize> {
    disk.plan(Fault::forever(On::Any, k, EIO));
    let Ok((mut offsets, _)) = Offsets::open_with(Arc::new(disk.clone()), QUEUE, SMALL) else {
        return Some(0);
    };
    let done = steps.iter().take_while(|step| run(&mut offsets, step).is_ok()).count();
    // Calls whose errors are put off (removals, spares) may have failed too: the cut still is at call k.
    (disk.call_count() >= k).then_some(done)
}

fn survivals() -> Vec<Survival> {
    let mut all = vec![Survival::Nothing, Survival::Everything];
    all.extend((0..5).map(Survival::Seed));
    all.extend([1, 2, 4].map(Survival::Prefix));
    all.extend([0, 1, 3].map(Survival::AllBut));
    all
}

fn check(after: &SimDisk, views: &[View], done: usize, what: &str) {
    let offsets = open(after);
    let found = view(&offsets);
    let may_be = views.get(done..(done + 2).min(views.len())).expect("in range");
    assert!(may_be.contains(&found), "{what}: after {done} steps found {found:#?}");
}

// S12, S13, S20
#[test]
fn a_power_cut_before_any_call_finds_the_last_save_or_the_one_under_way() {
    let (steps, views) = (script(), views(&script()));
    let mut cuts = 0;
    for k in 1.. {
        let base = SimDisk::new();
        let Some(done) = run_until(&base, &steps, k) else { break };
        for survival in survivals() {
            check(&base.power_cut(&survival), &views, done, &format!("call {k}, {survival:?}"));
            cuts += 1;
        }
    }
    assert!(cuts > 300, "only {cuts} cuts");
}

#[test]
fn a_kill_before_any_call_finds_the_last_save_or_the_one_under_way() {
    let (steps, views) = (script(), views(&script()));
    for k in 1.. {
        let disk = SimDisk::new();
        let Some(done) = run_until(&disk, &steps, k) else { break };
        check(&disk.kill(), &views, done, &format!("call {k}"));
    }
}

/// Kills before call `k`, opens, cuts the power: whether it says the same again, and so said what was durable.
fn killed_then_cut(k: u64, survival: &Survival, ignored: Option<SyncSite>) -> Option<bool> {
    let disk = SimDisk::new();
    run_until(&disk, &script(), k)?;
    let killed = disk.kill();
    if let Some(site) = ignored {
        killed.ignore_site(site);
    }
    let said = view(&open(&killed));
    Some(view(&open(&killed.power_cut(survival))) == said)
}

// FACTS 2 and 4, S13
#[test]
fn what_open_says_after_a_kill_survives_a_power_cut() {
    for k in 1.. {
        for survival in [Survival::Nothing, Survival::Seed(k), Survival::Seed(k + 1000)] {
            match killed_then_cut(k, &survival, None) {
                None => return,
                Some(same) => assert!(same, "call {k}, {survival:?}"),
            }
        }
    }
}

// The tests above see it when a sync is left out.
#[test]
fn every_sync_is_needed() {
    let (steps, views) = (script(), views(&script()));
    let lost = |site, k| {
        survivals().iter().any(|survival| {
            let disk = SimDisk::new();
            disk.ignore_site(site);
            let Some(done) = run_until(&disk, &steps, k) else { return false };
            let found = view(&open(&disk.power_cut(survival)));
            !views.get(done..(done + 2).min(views.len())).expect("in range").contains(&found)
        })
    };
    for site in
        [offsets::sites::SAVE, offsets::sites::CREATE, journal::sites::GENERATION, journal::sites::DIRECTORY]
    {
        assert!((1..200).any(|k| lost(site, k)), "{site} can be left out");
    }
    let said_too_much =
        |k| survivals().iter().any(|it| killed_then_cut(k, it, Some(journal::sites::OPEN)) == Some(false));
    assert!((1..200).any(said_too_much), "{} can be left out", journal::sites::OPEN);
}

// S13, S20, S23: the second life saves, and is cut too.
#[test]
fn two_power_cuts_in_a_row_lose_nothing_that_was_saved() {
    let (steps, views) = (script(), views(&script()));
    let more = [Step::Create(9, "x"), Step::Create(9, "y"), Step::Compact];
    for k in (1..).step_by(7) {
        let disk = SimDisk::new();
        let Some(done) = run_until(&disk, &steps, k) else { break };
        let first = disk.power_cut(&Survival::Seed(k)).snapshot();
        let undisturbed = SimDisk::from_snapshot(&first);
        check(&undisturbed, &views, done, &format!("call {k}"));
        let mut offsets = open(&undisturbed);
        let mut second_views = vec![view(&offsets)];
        for step in &more {
            run(&mut offsets, step).expect("undisturbed");
            second_views.push(view(&offsets));
        }
        for second_k in 1.. {
            let second = SimDisk::from_snapshot(&first);
            let Some(done) = run_until(&second, &more, second_k) else { break };
            let third = second.power_cut(&Survival::Seed(second_k + 1000));
            check(&third, &second_views, done, &format!("call {k}, then {second_k}"));
        }
    }
}

// I6, FACTS 1 and 2: the failed sync is told once, the next one lies.
#[test]
fn a_file_whose_sync_failed_is_never_used_again() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    let generation = offsets.generation().expect("one");
    let before = view(&offsets);
    disk.plan(Fault::once(On::Site(offsets::sites::SAVE), 1, EIO));
    run(&mut offsets, &Step::Move { consumer: 1, to: 10, of: 1 }).expect_err("the sync fails");
    assert_eq!(view(&offsets), before, "memory is not ahead of the disk");
    assert_eq!(offsets.generation(), None);
    run(&mut offsets, &Step::Move { consumer: 1, to: 20, of: 1 }).expect("a new generation");
    assert!(offsets.generation().expect("one") > generation);
    let (saved, end) = (view(&offsets), disk.snapshot());
    assert_eq!(view(&open(&disk.power_cut(&Survival::Nothing))), saved);
    assert_eq!(view(&open(&SimDisk::from_snapshot(&end).kill())), saved);
}

// FACTS 2: killed right behind the failed sync, the cache shows what the disk lacks.
#[test]
fn a_restart_behind_a_failed_sync_says_what_the_disk_has() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    disk.plan(Fault::once(On::Site(offsets::sites::SAVE), 1, EIO));
    run(&mut offsets, &Step::Move { consumer: 1, to: 10, of: 1 }).expect_err("the sync fails");
    let killed = disk.kill();
    let said = view(&open(&killed));
    assert_eq!(view(&open(&killed.power_cut(&Survival::Nothing))), said);
}
