//! Random runs of append, commit, rotate, read, acknowledge, save and crash, against what a user may rely on.
//!
//! The model knows only what a user saw: what was accepted, up to where it was told durable, what each consumer was given and
//! acknowledged, up to where a save succeeded.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sim_disk::Survival;

use super::rig::Rig;
use crate::core::{ConsumerState, StreamState};
use crate::{Options, StreamSettings};

#[derive(Debug, Clone)]
enum Op {
    Append(u8),
    Commit,
    Rotate,
    Read { who: usize, bytes: usize },
    Ack { who: usize, back: u64 },
    Tick,
    Seek { who: usize, to: u64 },
    Reopen { who: usize },
    PowerCut(Survival),
    Kill,
    Restart,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let who = 0..2_usize;
    let op = prop_oneof![
        8 => (1..6_u8).prop_map(Op::Append),
        5 => Just(Op::Commit),
        2 => Just(Op::Rotate),
        8 => (who.clone(), 1..400_usize).prop_map(|(who, bytes)| Op::Read { who, bytes }),
        6 => (who.clone(), 0..3_u64).prop_map(|(who, back)| Op::Ack { who, back }),
        4 => Just(Op::Tick),
        1 => (who.clone(), 1..30_u64).prop_map(|(who, to)| Op::Seek { who, to }),
        1 => who.prop_map(|who| Op::Reopen { who }),
        1 => prop_oneof![Just(Survival::Nothing), Just(Survival::Everything), any::<u64>().prop_map(Survival::Seed)]
            .prop_map(Op::PowerCut),
        1 => Just(Op::Kill),
        1 => Just(Op::Restart),
    ];
    proptest::collection::vec(op, 1..80)
}

/// What a user knows of one consumer.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The next seq it must be given.
    next: u64,
    /// What it acknowledged up to.
    acked: u64,
    /// What a save that succeeded covered.
    saved: u64,
}

struct World {
    rig: Option<Rig>,
    stream: Option<Arc<StreamState>>,
    consumers: Vec<Arc<ConsumerState>>,
    seen: [Seen; 2],
    /// Payload of each seq from 1 on.
    appended: Vec<Vec<u8>>,
    /// End of what was told durable.
    durable: u64,
    count: u64,
}

const NAMES: [&str; 2] = ["a", "b"];

impl World {
    fn new() -> Self {
        let start = Seen { next: 1, acked: 1, saved: 1 };
        let mut world = Self {
            rig: Some(Rig::new(Options::default())),
            stream: None,
            consumers: Vec::new(),
            seen: [start; 2],
            appended: Vec::new(),
            durable: 1,
            count: 0,
        };
        world.open();
        world
    }

    fn rig(&self) -> &Rig {
        self.rig.as_ref().unwrap()
    }

    fn stream(&self) -> &Arc<StreamState> {
        self.stream.as_ref().unwrap()
    }

    fn open(&mut self) {
        let settings = StreamSettings {
            segment_bytes_max: 8 << 10,
            batch_bytes_max: 2 << 10,
            record_bytes_max: 1 << 10,
            ..StreamSettings::default()
        };
        let stream = self.rig().stream_with("s", &settings);
        self.consumers = NAMES.iter().map(|name| self.rig().consumer(&stream, name)).collect();
        self.stream = Some(stream);
    }

    fn end(&self) -> u64 {
        self.appended.len() as u64 + 1
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Append(records) => {
                for _ in 0..*records {
                    self.count += 1;
                    let payload = vec![self.count as u8; 1 + (self.count as usize * 37) % 300];
                    let seq = self.rig().append(self.stream(), &payload);
                    assert_eq!(seq.get(), self.end(), "seqs are dense");
                    self.appended.push(payload);
                }
            }
            Op::Commit => self.durable = self.rig().commit(self.stream()).get(),
            Op::Rotate => {
                self.stream().log.rotate(self.rig().now).unwrap();
                self.durable = self.stream().ends().durable.get();
            }
            Op::Read { who, bytes } => self.read(*who, *bytes),
            Op::Ack { who, back } => {
                let seen = &mut self.seen[*who];
                let to = seen.next.saturating_sub(*back).max(seen.acked);
                seen.acked = to;
                let consumer = &self.consumers[*who];
                self.rig.as_ref().unwrap().ack(consumer, to);
            }
            Op::Tick => {
                self.rig().core.tick(self.rig().now).unwrap();
                self.seen.iter_mut().for_each(|seen| seen.saved = seen.acked);
            }
            Op::Seek { who, to } => self.seek(*who, *to),
            Op::Reopen { who } => {
                let consumer = &self.consumers[*who];
                self.rig().core.give_back(consumer);
                let again = self.rig().consumer(self.stream(), NAMES[*who]);
                self.consumers[*who] = again;
                self.seen[*who].next = self.seen[*who].acked;
            }
            Op::PowerCut(survival) => self.crash(|rig| rig.power_cut(survival)),
            Op::Kill => self.crash(Rig::kill),
            Op::Restart => {
                self.crash(|rig| {
                    let rig = rig.restart();
                    assert!(rig.core.report().clean);
                    rig
                });
            }
        }
    }

    fn read(&mut self, who: usize, bytes: usize) {
        let Some(delivery) = self.rig().next(self.stream(), &self.consumers[who], bytes) else {
            // Everything durable was given: nobody is left behind.
            assert!(self.seen[who].next >= self.durable, "reader {who} got nothing at {:?}", self.seen[who]);
            return;
        };
        assert_eq!(delivery.first().get(), self.seen[who].next);
        assert_eq!(delivery.gaps().count(), 0);
        for record in delivery.records() {
            assert_eq!(record.seq.get(), self.seen[who].next);
            assert_eq!(record.payload, self.appended[record.seq.get() as usize - 1]);
            self.seen[who].next += 1;
        }
        assert!(self.seen[who].next <= self.stream().ends().readable.get());
    }

    fn seek(&mut self, who: usize, to: u64) {
        let (rig, consumer) = (self.rig(), &self.consumers[who]);
        let sought = rig.core.seek(
            self.stream(),
            consumer,
            crate::Start::Seq(wal_format::Seq::new(to)),
            rig.now.instant,
        );
        match sought {
            Ok(at) => {
                let at = at.get();
                assert!(at >= to && (at == to || at == self.stream().first().get()));
                self.seen[who] = Seen { next: at, acked: at, saved: at };
            }
            Err(error) => assert!(to > self.stream().ends().durable.get(), "{error}"),
        }
    }

    fn crash(&mut self, how: impl FnOnce(Rig) -> Rig) {
        self.stream = None;
        self.consumers.clear();
        self.rig = self.rig.take().map(how);
        self.open();
        let end = self.stream().ends().durable.get();
        assert!(end >= self.durable, "told durable up to {}, recovered up to {end}", self.durable);
        assert!(end <= self.end(), "never-written records came");
        self.appended.truncate(end as usize - 1);
        self.durable = end;
        let losses = &self.rig().core.report().streams[0].gaps;
        assert!(losses.is_empty(), "a crash is no damage: {losses:?}");
        for (seen, consumer) in self.seen.iter_mut().zip(&self.consumers) {
            let cursor = consumer.cursor().get();
            assert!((seen.saved..=seen.acked.max(seen.saved)).contains(&cursor), "cursor {cursor}: {seen:?}");
            *seen = Seen { next: cursor, acked: cursor, saved: cursor };
        }
    }

    /// A sound disk always gets everything delivered.
    fn finish(&mut self) {
        self.run(&Op::Commit);
        assert_eq!(self.durable, self.end());
        for who in 0..2 {
            while self.seen[who].next < self.durable {
                self.read(who, 1 << 20);
            }
            self.run(&Op::Ack { who, back: 0 });
        }
        self.run(&Op::Rotate);
        self.run(&Op::Tick);
        self.run(&Op::Tick);
        assert!(self.stream().log.segments().is_empty(), "everything delivered is unlinked");
        let rig = self.rig.as_mut().unwrap();
        rig.pass(Duration::from_secs(10));
        rig.core.run_timers(rig.now.instant);
        rig.core.commit_due(rig.now);
        rig.core.tick_if_due(rig.now).unwrap();
        assert_eq!(rig.core.next_due(rig.now.instant), None, "an idle queue has nothing due");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_told_durable_is_lost_and_order_holds(ops in ops()) {
        let mut world = World::new();
        for op in &ops {
            world.run(op);
        }
        world.finish();
    }
}
