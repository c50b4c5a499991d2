//! The catalog's journal: what it remembers, how its bodies look, and that any bytes decode to something or nothing.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sim_disk::{SimDisk, Survival};

use super::*;
use crate::{GapReason, Limits, OnFull, ReadLevel, SyncSetting};

const QUEUE: QueueId = QueueId::new(7);

fn open(disk: &SimDisk) -> Catalog {
    Catalog::open(Arc::new(disk.clone()), QUEUE).unwrap().0
}

fn create(catalog: &mut Catalog, name: &str) -> Entry {
    let incarnation = Incarnation::new(u128::from(catalog.state.next_id) + 100);
    catalog.create(name, incarnation, WallTime::from_nanos(5), &StreamSettings::default()).unwrap()
}

#[test]
fn what_is_saved_is_found_after_a_power_cut() {
    let disk = SimDisk::new();
    let mut catalog = open(&disk);
    let a = create(&mut catalog, "a");
    let b = create(&mut catalog, "b");
    let settings = StreamSettings { segment_age_max: None, ..StreamSettings::default() };
    catalog.set_settings(b.id, &settings).unwrap();
    catalog.delete(a.id).unwrap();
    let again = create(&mut catalog, "a");
    let gap = Gap { from: Seq::new(3), to: Seq::new(5), reason: GapReason::NotDurable };
    let now = WallTime::from_nanos(77);
    assert_eq!(catalog.add_losses(b.id, &[gap, gap], now).unwrap(), [gap], "once, also within one call");
    assert_eq!(catalog.add_losses(b.id, &[gap], WallTime::from_nanos(88)).unwrap(), [], "counted once");
    let state = catalog.state.clone();
    drop(catalog);

    let found = open(&disk.power_cut(&Survival::Nothing));
    assert_eq!(found.state, state);
    assert_eq!(found.named("a").unwrap().id, again.id);
    assert_eq!(found.named("b").unwrap().settings, settings);
    let losses: Vec<_> = found.named("b").unwrap().losses.of("b").collect();
    assert_eq!((losses.len(), losses[0].from, losses[0].to), (1, gap.from, gap.to));
    assert_eq!((losses[0].reason, losses[0].found_at), (gap.reason, Some(now)));
    assert!(found.entries().any(|entry| entry.id == a.id && entry.deleted));
    assert_eq!(found.living().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn the_journal_stays_short_however_many_losses_there_are() {
    let disk = SimDisk::new();
    let mut catalog = open(&disk);
    let id = create(&mut catalog, "a").id;
    let count = crate::losses::LOSSES_MAX as u64 + 50;
    let gap = |n: u64| Gap { from: Seq::new(2 * n + 1), to: Seq::new(2 * n + 2), reason: GapReason::Lost };
    let gaps: Vec<Gap> = (0..count).map(gap).collect();
    for some in gaps.chunks(1000) {
        assert_eq!(catalog.add_losses(id, some, WallTime::EPOCH).unwrap(), some);
    }
    assert_eq!(catalog.add_losses(id, &gaps, WallTime::EPOCH).unwrap(), []);
    catalog.compact().unwrap();
    let state = catalog.state.clone();
    drop(catalog);
    let found = open(&disk.power_cut(&Survival::Nothing));
    assert_eq!(found.state, state);
    assert_eq!(found.named("a").unwrap().losses.records_count(), count);
}

#[test]
fn an_id_whose_files_are_there_is_given_to_nobody_else() {
    let disk = SimDisk::new();
    let mut catalog = open(&disk);
    catalog.spend([StreamId::new(7)]);
    assert_eq!(create(&mut catalog, "a").id.get(), 8);
    let orphan = Entry { id: StreamId::new(5), name: "b".to_owned(), ..catalog.named("a").unwrap().clone() };
    catalog.adopt(&orphan).unwrap();
    let found = open(&disk.power_cut(&Survival::Nothing));
    assert_eq!(found.named("b").unwrap().id.get(), 5);
}

#[test]
fn an_id_is_never_used_again() {
    let disk = SimDisk::new();
    let mut catalog = open(&disk);
    let first = create(&mut catalog, "a");
    catalog.delete(first.id).unwrap();
    catalog.forget(first.id).unwrap();
    drop(catalog);
    let mut catalog = open(&disk.power_cut(&Survival::Nothing));
    assert!(catalog.entries().next().is_none());
    assert!(create(&mut catalog, "a").id > first.id);
}

#[test]
fn a_failed_save_changes_nothing_in_memory_and_its_id_is_spent() {
    let disk = SimDisk::new();
    let mut catalog = open(&disk);
    let first = create(&mut catalog, "a");
    disk.plan(sim_disk::Fault::forever(sim_disk::On::Any, 1, sim_disk::errno::ENOSPC));
    let refused = catalog.create("b", Incarnation::new(9), WallTime::EPOCH, &StreamSettings::default());
    assert!(refused.is_err() && catalog.named("b").is_none());
    disk.clear_faults();
    assert_eq!(create(&mut catalog, "c").id.get(), first.id.get() + 2);
}

/// Bodies written by version 1, for ever.
#[test]
fn golden_bodies() {
    let create = Change::Create {
        id: 1,
        name: "a".to_owned(),
        incarnation: 5,
        created_at: 6,
        settings: (&settings()).into(),
    };
    let golden = [
        ("00000000 2a00000000000000", Change::NextId { id: 42 }),
        ("03000000 0700000000000000", Change::Tombstone { id: 7 }),
        ("04000000 0700000000000000", Change::Forget { id: 7 }),
        (
            "05000000 0700000000000000 0300000000000000 0500000000000000 02",
            Change::Loss { id: 7, from: 3, to: 5, reason: 2 },
        ),
        (
            "08000000 0700000000000000 0300000000000000 0500000000000000 02 0900000000000000",
            Change::LossAt { id: 7, from: 3, to: 5, reason: 2, found_at: 9 },
        ),
        (
            "09000000 0700000000000000 0500000000000000 0200000000000000 0300000000000000",
            Change::LossesFolded { id: 7, below: 5, ranges_count: 2, records_count: 3 },
        ),
        (GOLDEN_CREATE, create),
    ];
    for (hex, change) in golden {
        let bytes = change.encode();
        let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, hex.replace(char::is_whitespace, ""), "{change:?}");
        assert_eq!(Change::decode(&bytes), Some(change));
    }
}

const GOLDEN_CREATE: &str = "01000000 0100000000000000 0100000000000000 61 05000000000000000000000000000000
    0600000000000000 0000000400000000 01 00a0b83046030000 0000a00000000000 a0860100 002d310100000000 03000000 00
    0000100000000000 0000000400000000 8096980000000000 00ca9a3b00000000";

/// Not the defaults: those may change, the bytes may not.
fn settings() -> StreamSettings {
    StreamSettings {
        segment_bytes_max: 64 << 20,
        segment_age_max: Some(Duration::from_secs(3600)),
        batch_bytes_max: 10 << 20,
        batch_records_max: 100_000,
        commit_interval: Duration::from_millis(20),
        sync: SyncSetting::EachBatch,
        read_level: ReadLevel::Durable,
        record_bytes_max: 1 << 20,
        unsynced_bytes_max: 64 << 20,
        retry_after: Duration::from_millis(10),
        probe_after: Duration::from_secs(1),
        limits: Limits::default(),
    }
}

/// Bodies of streams with limits, which the first version did not know.
#[test]
fn golden_bodies_with_limits() {
    let limits = Limits {
        bytes_max: Some(1 << 30),
        on_full: OnFull::DropOldest,
        age_max: Some(Duration::from_secs(60)),
    };
    let settings = StreamSettings { limits, ..settings() };
    let settings_hex = GOLDEN_CREATE.split_once("0600000000000000").unwrap().1.to_owned();
    let hex = format!("07000000 0700000000000000 {settings_hex} 01 0000004000000000 02 01 005847f80d000000");
    let change = Change::settings(StreamId::new(7), &settings);
    let written: String = change.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, hex.replace(char::is_whitespace, ""));
    assert_eq!(Change::decode(&change.encode()), Some(change));

    let disk = SimDisk::new();
    let mut catalog = open(&disk);
    catalog.create("limited", Incarnation::new(5), WallTime::from_nanos(6), &settings).unwrap();
    let plain = create(&mut catalog, "plain");
    catalog.set_settings(plain.id, &settings).unwrap();
    catalog.set_settings(plain.id, &StreamSettings::default()).unwrap();
    let found = open(&disk.power_cut(&Survival::Nothing));
    assert_eq!(found.named("limited").unwrap().settings, settings);
    assert_eq!(found.named("plain").unwrap().settings, StreamSettings::default());
}

proptest! {
    #[test]
    fn any_bytes_decode_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(change) = Change::decode(&bytes) {
            prop_assert_eq!(change.encode(), bytes);
        }
    }

    #[test]
    fn a_cut_body_is_nothing(cut in 0_usize..150) {
        let entry = Entry {
            id: StreamId::new(1),
            name: "name".to_owned(),
            incarnation: Incarnation::new(2),
            created_at: WallTime::EPOCH,
            settings: StreamSettings::default(),
            deleted: false,
            losses: Losses::default(),
        };
        let bytes = Change::create(&entry).encode();
        prop_assert_eq!(Change::decode(&bytes).and_then(|c| c.entry()), Some(entry));
        if cut < bytes.len() {
            prop_assert_eq!(Change::decode(&bytes[..cut]), None);
        }
    }
}
