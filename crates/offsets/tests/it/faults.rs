//! An error at every call, once and for a while: memory says what is durable, and work goes on by itself.

use std::sync::Arc;

use disk::{ErrorClass, Op};
use offsets::{AckedRange, CursorMove, Floor, Offsets, OpenError, Save, SaveError, sites};
use sim_disk::{Fault, On, SimDisk, Survival};
use wal_format::{ConsumerId, SegmentId, Seq};

use crate::support::{QUEUE, SMALL, Step, floor, open, run, script, stream, view, views};

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

// S12, S34, S37: EIO, ENOSPC, EMFILE at every call, once; what failed is done again and works.
#[test]
fn one_error_at_any_call_costs_one_error_and_nothing_else() {
    let (steps, views) = (script(), views(&script()));
    for errno in [EIO, ENOSPC, EMFILE] {
        for k in 1.. {
            let disk = SimDisk::new();
            disk.plan(Fault::once(On::Any, k, errno));
            let mut offsets = match Offsets::open_with(Arc::new(disk.clone()), QUEUE, SMALL) {
                Ok((offsets, _)) => offsets,
                Err(_) => open(&disk),
            };
            let mut errors = 0;
            for (step, pair) in steps.iter().zip(views.windows(2)) {
                if let Err(error) = run(&mut offsets, step) {
                    errors += 1;
                    let SaveError::Journal(_) = error else { panic!("call {k}: {error}") };
                    assert_eq!(Some(&view(&offsets)), pair.first(), "call {k}: memory keeps what is durable");
                    run(&mut offsets, step).expect("the second attempt");
                }
                assert_eq!(Some(&view(&offsets)), pair.last(), "call {k}");
            }
            assert!(errors <= 1, "errno {errno}, call {k}: {errors} errors");
            let (calls, end) = (disk.call_count(), disk.snapshot());
            for survival in [Survival::Nothing, Survival::Seed(k)] {
                let after = SimDisk::from_snapshot(&end).power_cut(&survival);
                assert_eq!(Some(&view(&open(&after))), views.last(), "errno {errno}, call {k}");
            }
            if calls < k {
                break;
            }
        }
    }
}

// S34: from some call on there is no space; then there is.
#[test]
fn a_time_without_space_leaves_nothing_that_open_trips_over() {
    let (steps, views) = (script(), views(&script()));
    for k in 1.. {
        let disk = SimDisk::new();
        let mut offsets = open(&disk);
        disk.plan(Fault::forever(On::Any, k, ENOSPC));
        let done = steps.iter().take_while(|step| run(&mut offsets, step).is_ok()).count();
        if done == steps.len() {
            break;
        }
        let step = steps.get(done).expect("one failed");
        for _ in 0..3 {
            let error = run(&mut offsets, step).expect_err("still full");
            assert!(error.is_retryable(), "{error}");
            assert_eq!(Some(&view(&offsets)), views.get(done));
        }
        disk.clear_faults();
        let found = view(&open(&disk.kill()));
        assert!(views.get(done..done + 2).expect("in range").contains(&found), "call {k}");
    }
}

#[test]
fn work_goes_on_by_itself_once_the_cause_is_gone() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    for errno in [ENOSPC, EIO, EROFS] {
        disk.plan(Fault::forever(On::Any, 1, errno));
        for _ in 0..5 {
            run(&mut offsets, &Step::Seek { consumer: 1, to: 50 }).expect_err("the disk refuses");
        }
        disk.clear_faults();
        run(&mut offsets, &Step::Seek { consumer: 1, to: 60 }).expect("the disk is back");
    }
    let saved = view(&offsets);
    assert_eq!(view(&open(&disk.power_cut(&Survival::Nothing))), saved);
}

// S36
#[test]
fn a_disk_that_takes_no_writes_opens_and_says_what_it_holds() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    for step in script() {
        run(&mut offsets, &step).expect("saved");
    }
    let (saved, disk) = (view(&offsets), disk.kill());
    for errno in [EROFS, ENOSPC] {
        for op in [Op::Create, Op::Write, Op::Allocate, Op::RemoveFile] {
            disk.plan(Fault::forever(On::Op(op), 1, errno));
        }
        let (mut offsets, _) = Offsets::open_with(Arc::new(disk.clone()), QUEUE, SMALL).expect("opens");
        assert_eq!(view(&offsets), saved);
        let error = run(&mut offsets, &Step::Seek { consumer: 1, to: 1 }).expect_err("cannot be saved");
        let SaveError::Journal(error) = error else { panic!("{error}") };
        let class = error.disk().expect("of the disk").class();
        assert!(matches!(class, ErrorClass::ReadOnly | ErrorClass::NoSpace), "{class:?}");
        disk.clear_faults();
    }
    assert_eq!(view(&open(&disk)), saved);
}

// S38, R8: what cannot be read now is not passed over for something older.
#[test]
fn an_unreadable_journal_is_an_error_and_not_an_empty_one() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    let saved = view(&offsets);
    let disk = disk.kill();
    disk.plan(Fault::forever(On::Op(Op::Read), 1, EIO));
    let error = Offsets::open(Arc::new(disk.clone()), QUEUE).expect_err("unreadable");
    assert!(matches!(error, OpenError::Journal(_)), "{error}");
    disk.clear_faults();
    assert_eq!(view(&open(&disk)), saved);
}

#[test]
fn a_refused_save_writes_nothing() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    run(&mut offsets, &Step::Move { consumer: 1, to: 10, of: 1 }).expect("saved");
    let before = (view(&offsets), disk.count(Op::Write), disk.count_at(sites::SAVE));
    let back = run(&mut offsets, &Step::Move { consumer: 1, to: 9, of: 1 });
    assert!(matches!(back, Err(SaveError::CursorBack { .. })), "{back:?}");
    let unknown = run(&mut offsets, &Step::Seek { consumer: 2, to: 9 });
    assert!(matches!(unknown, Err(SaveError::UnknownConsumer { .. })), "{unknown:?}");
    let taken = run(&mut offsets, &Step::Create(1, "a"));
    assert!(matches!(taken, Err(SaveError::NameTaken { .. })), "{taken:?}");
    let stranger = run(&mut offsets, &Step::Remove(2));
    assert!(matches!(stranger, Err(SaveError::UnknownConsumer { .. })), "{stranger:?}");
    // A floor that went back would bring back what was unlinked; by its seq, or by its segment.
    for floor in [floor(9), Floor { segment: SegmentId::new(0), ..floor(10) }] {
        let back = offsets.save(&Save { floors: &[(stream(1), floor)], ..Save::default() }, sites::SAVE);
        assert!(matches!(back, Err(SaveError::FloorBack { .. })), "{back:?}");
    }
    // Ranges that touch the cursor, are empty, or do not ascend.
    let range = |from, to| AckedRange { from: Seq::new(from), to: Seq::new(to) };
    for (ranges, bad) in
        [(vec![range(10, 12)], 0), (vec![range(12, 12)], 0), (vec![range(15, 17), range(12, 13)], 1)]
    {
        let ahead = CursorMove::forward(ConsumerId::new(1), Seq::new(10));
        let cursors = [CursorMove { acked_above: ranges, ..ahead }];
        let refused = offsets.save(&Save { cursors: &cursors, ..Save::default() }, sites::SAVE);
        assert!(matches!(refused, Err(SaveError::AckedOrder { index }) if index == bad), "{refused:?}");
    }
    assert_eq!((view(&offsets), disk.count(Op::Write), disk.count_at(sites::SAVE)), before);
    assert_eq!(view(&open(&disk.power_cut(&Survival::Nothing))), before.0);
}

#[test]
fn behind_a_refused_save_the_next_one_is_durable() {
    let disk = SimDisk::new();
    let mut offsets = open(&disk);
    run(&mut offsets, &Step::Create(1, "a")).expect("saved");
    run(&mut offsets, &Step::Move { consumer: 1, to: 10, of: 1 }).expect("saved");
    run(&mut offsets, &Step::Move { consumer: 1, to: 9, of: 1 }).expect_err("back");
    run(&mut offsets, &Step::Remove(2)).expect_err("unknown");
    run(&mut offsets, &Step::Seek { consumer: 1, to: 9 }).expect("a seek may go back");
    let saved = view(&offsets);
    assert_eq!(view(&open(&disk.power_cut(&Survival::Nothing))), saved);
}
