//! Random changes, faults, kills and power cuts against a plain model.

use std::sync::Arc;

use offsets::{CursorMove, DurableEnd, Floor, Offsets, Save, SaveError, sites};
use proptest::prelude::*;
use sim_disk::{Fault, On, SimDisk, Survival};
use wal_format::{ConsumerId, Seq, StreamId};

use crate::support::{QUEUE, SMALL, View, end, floor, new_consumer, stream, view};

#[derive(Debug, Clone)]
enum Act {
    Create(u64, usize),
    Remove(prop::sample::Index),
    Forget(u64),
    /// Moves some consumers by so much, back if they must; with floors and ends of some streams.
    Save {
        moves: Vec<(prop::sample::Index, i8)>,
        ends: Vec<(u64, u64)>,
        rise: Option<u64>,
    },
    CleanStop(u64),
    Void,
    Compact,
    /// The k-th call from now fails.
    Fault {
        k: u64,
        errno: i32,
    },
    PowerCut(u64),
    Kill,
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let moves = prop::collection::vec((any::<prop::sample::Index>(), -3..20i8), 0..6);
    let ends = prop::collection::vec((1..4u64, 1..1000u64), 0..3);
    prop_oneof![
        3 => (1..4u64, 0..3usize).prop_map(|(of, name)| Act::Create(of, name)),
        1 => any::<prop::sample::Index>().prop_map(Act::Remove),
        1 => (1..4u64).prop_map(Act::Forget),
        9 => (moves, ends, prop::option::of(1..4u64)).prop_map(|(moves, ends, rise)| Act::Save { moves, ends, rise }),
        1 => (1..900u64).prop_map(Act::CleanStop),
        1 => Just(Act::Void),
        1 => Just(Act::Compact),
        3 => (1..12u64, prop_oneof![Just(5), Just(28)]).prop_map(|(k, errno)| Act::Fault { k, errno }),
        2 => any::<u64>().prop_map(Act::PowerCut),
        1 => Just(Act::Kill),
        1 => Just(Act::Reopen),
    ]
}

/// The queue as the model sees it: what must be there, and what may be after a crash.
struct Model {
    disk: SimDisk,
    offsets: Option<Offsets>,
    durable: View,
    attempted: Vec<View>,
}

impl Model {
    fn new() -> Self {
        let disk = SimDisk::new();
        let offsets = Offsets::open_with(Arc::new(disk.clone()), QUEUE, SMALL).expect("opens").0;
        let durable = view(&offsets);
        Self { disk, offsets: Some(offsets), durable, attempted: Vec::new() }
    }

    fn try_open(&mut self) {
        if self.offsets.is_some() {
            return;
        }
        let opened = Offsets::open_with(Arc::new(self.disk.clone()), QUEUE, SMALL);
        // A planned fault may hit the opening; it does so once.
        let Ok((offsets, _)) = opened else { return };
        let found = view(&offsets);
        assert!(
            found == self.durable || self.attempted.contains(&found),
            "found {found:#?}\nsaved {:#?}\nattempted {:#?}",
            self.durable,
            self.attempted
        );
        self.durable = found;
        self.attempted.clear();
        self.offsets = Some(offsets);
    }

    fn change(&mut self, result: Result<(), SaveError>, after: View) {
        match result {
            Ok(()) => {
                self.durable = after;
                self.attempted.clear();
            }
            Err(SaveError::Journal(_)) => self.attempted.push(after),
            Err(error) => panic!("{error}"),
        }
    }

    fn step(&mut self, act: &Act) {
        self.try_open();
        let Some(mut offsets) = self.offsets.take() else { return };
        match act {
            Act::Fault { k, errno } => self.disk.plan(Fault::once(On::Any, *k, *errno)),
            Act::PowerCut(seed) => {
                self.disk = self.disk.power_cut(&Survival::Seed(*seed));
                return self.try_open();
            }
            Act::Kill => {
                self.disk = self.disk.kill();
                return self.try_open();
            }
            Act::Reopen => {
                drop(offsets);
                return self.try_open();
            }
            _ => {
                let (result, after) = apply(&mut offsets, act, &self.durable);
                if let Some(result) = result {
                    self.change(result, after);
                }
            }
        }
        assert_eq!(view(&offsets), self.durable, "memory is what is durable");
        self.offsets = Some(offsets);
    }
}

/// Does it; `None` if there was nothing to ask for.
fn apply(offsets: &mut Offsets, act: &Act, before: &View) -> (Option<Result<(), SaveError>>, View) {
    let mut after = before.clone();
    let result = match act {
        Act::Create(of, name) => {
            let name = ["a", "b", "c"].get(*name).copied().expect("three");
            let taken = before.consumers.iter().any(|it| it.stream == stream(*of) && it.name == name);
            match offsets.create_consumer(new_consumer(*of, name)) {
                Err(SaveError::NameTaken { .. }) if taken => return (None, after),
                result => {
                    assert!(!taken);
                    let new = new_consumer(*of, name);
                    after.consumers.push(offsets::ConsumerEntry {
                        stream: new.stream,
                        incarnation: new.incarnation,
                        consumer: before.next,
                        name: new.name,
                        created_at: new.created_at,
                        cursor: new.cursor,
                        hint: None,
                        acked_above: Vec::new(),
                        note: Vec::new(),
                    });
                    after.next = ConsumerId::new(before.next.get() + 1);
                    result.map(|id| assert_eq!(id, before.next))
                }
            }
        }
        Act::Remove(index) if !before.consumers.is_empty() => {
            let at = index.index(before.consumers.len());
            let id = after.consumers.remove(at).consumer;
            offsets.remove_consumer(id)
        }
        Act::Remove(_) => return (None, after),
        Act::Forget(of) => {
            let of = stream(*of);
            after.consumers.retain(|entry| entry.stream != of);
            after.floors.retain(|&(id, _)| id != of);
            after.ends.retain(|&(id, _)| id != of);
            if let Some(clean) = &mut after.clean {
                clean.retain(|&(id, _)| id != of);
            }
            offsets.forget_stream(of)
        }
        Act::Save { moves, ends, rise } => save(offsets, moves, ends, *rise, &mut after),
        Act::CleanStop(to) => {
            let ends = vec![(stream(1), end(*to)), (stream(3), end(*to + 1))];
            ends.iter().for_each(|&(id, end)| put(&mut after.ends, id, end));
            after.clean = Some(ends.clone());
            offsets.clean_stop(&ends)
        }
        Act::Void => {
            after.clean = None;
            offsets.void_clean_stop()
        }
        _ => offsets.compact(),
    };
    (Some(result), after)
}

fn save(
    offsets: &mut Offsets,
    moves: &[(prop::sample::Index, i8)],
    ends: &[(u64, u64)],
    rise: Option<u64>,
    after: &mut View,
) -> Result<(), SaveError> {
    let mut cursors = Vec::new();
    if !after.consumers.is_empty() {
        for (index, by) in moves {
            let at = index.index(after.consumers.len());
            let entry = after.consumers.get_mut(at).expect("in range");
            let to = Seq::new(entry.cursor.get().saturating_add_signed(i64::from(*by)).max(1));
            let mut to = CursorMove::seek(entry.consumer, to);
            to.note = (by % 2 == 0).then(|| vec![*by as u8; 3]);
            entry.cursor = to.cursor;
            if let Some(note) = &to.note {
                entry.note.clone_from(note);
            }
            cursors.push(to);
        }
    }
    let durable_ends: Vec<(StreamId, DurableEnd)> =
        ends.iter().map(|&(of, to)| (stream(of), end(to))).collect();
    durable_ends.iter().for_each(|&(id, end)| put(&mut after.ends, id, end));
    if !durable_ends.is_empty() {
        after.clean = None;
    }
    let floors: Vec<(StreamId, Floor)> = rise
        .map(|of| {
            let before =
                after.floors.iter().find(|&&(id, _)| id == stream(of)).map_or(1, |(_, at)| at.seq.get());
            (stream(of), floor(before + 5))
        })
        .into_iter()
        .collect();
    floors.iter().for_each(|(id, floor)| put(&mut after.floors, *id, floor.clone()));
    let save = Save { cursors: &cursors, floors: &floors, durable_ends: &durable_ends, ..Save::default() };
    offsets.save(&save, sites::SAVE)
}

fn put<T>(list: &mut Vec<(StreamId, T)>, id: StreamId, value: T) {
    match list.iter_mut().find(|(of, _)| *of == id) {
        Some((_, old)) => *old = value,
        None => {
            list.push((id, value));
            list.sort_by_key(|&(of, _)| of);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_run_finds_what_was_saved_or_what_was_being_saved(acts in prop::collection::vec(act(), 1..60)) {
        let mut model = Model::new();
        for act in &acts {
            model.step(act);
        }
        model.disk.clear_faults();
        model.disk = model.disk.power_cut(&Survival::Nothing);
        model.offsets = None;
        model.try_open();
        prop_assert!(model.offsets.is_some());
    }
}
