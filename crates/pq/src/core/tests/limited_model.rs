//! Random runs under limits, with crashes: whatever is dropped is told, nothing else is missing, every record is counted once.
//!
//! The model knows what a user saw: what was accepted and told durable, what each consumer was given, in order, records and gaps.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sim_disk::Survival;
use wal_format::Seq;

use super::limits::{append, settings};
use super::rig::Rig;
use crate::core::{ConsumerState, StreamState};
use crate::{AppendError, GapReason, Item, Limits, OnFull, Options};

#[derive(Debug, Clone)]
enum Op {
    Append { count: u8, bytes: usize },
    Commit,
    Rotate,
    Read { who: usize, bytes: usize },
    Ack { who: usize },
    Tick,
    Pass { seconds: u64 },
    Limit(Limits),
    Crash(Survival),
    Kill,
    Restart,
}

fn limits() -> impl Strategy<Value = Limits> {
    let on_full = prop_oneof![
        Just(OnFull::Block),
        Just(OnFull::Reject),
        Just(OnFull::DropNewest),
        Just(OnFull::DropOldest)
    ];
    let bytes_max = prop::option::weighted(0.8, 6_000..40_000_u64);
    let age_max = prop::option::weighted(0.4, (100..2_000_u64).prop_map(Duration::from_secs));
    (bytes_max, on_full, age_max).prop_map(|(bytes_max, on_full, age_max)| Limits {
        bytes_max,
        on_full,
        age_max,
    })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let who = 0..2_usize;
    let op = prop_oneof![
        10 => (1..6_u8, 1..600_usize).prop_map(|(count, bytes)| Op::Append { count, bytes }),
        6 => Just(Op::Commit),
        1 => Just(Op::Rotate),
        5 => (who.clone(), 1..3000_usize).prop_map(|(who, bytes)| Op::Read { who, bytes }),
        4 => who.prop_map(|who| Op::Ack { who }),
        6 => Just(Op::Tick),
        3 => (1..900_u64).prop_map(|seconds| Op::Pass { seconds }),
        2 => limits().prop_map(Op::Limit),
        1 => prop_oneof![Just(Survival::Nothing), any::<u64>().prop_map(Survival::Seed)].prop_map(Op::Crash),
        1 => Just(Op::Kill),
        1 => Just(Op::Restart),
    ];
    proptest::collection::vec(op, 1..120)
}

/// What one consumer saw.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The next seq it must be told of.
    next: u64,
    acked: u64,
    saved: u64,
    /// Records and dropped seqs passed by acknowledgements, since this run began.
    begun: u64,
}

struct World {
    rig: Option<Rig>,
    stream: Option<Arc<StreamState>>,
    consumers: Vec<Arc<ConsumerState>>,
    seen: [Seen; 2],
    end: u64,
    durable: u64,
    /// Bytes that were held when the limit was lowered: what is over it may stay.
    over: u64,
}

impl World {
    fn new(limits: Limits) -> Self {
        let start = Seen { next: 1, acked: 1, saved: 1, begun: 1 };
        let rig = Rig::new(Options::default());
        let mut world = Self {
            rig: Some(rig),
            stream: None,
            consumers: Vec::new(),
            seen: [start; 2],
            end: 1,
            durable: 1,
            over: 0,
        };
        let stream = world.rig().stream_with("s", &settings(None, OnFull::Block));
        world.rig().core.set_limits(&stream, limits).unwrap();
        drop(stream);
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
        let stream = self.rig().stream("s");
        self.consumers = ["a", "b"].iter().map(|name| self.rig().consumer(&stream, name)).collect();
        self.over = stream.log.bytes_used();
        self.stream = Some(stream);
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Append { count, bytes } => {
                for _ in 0..*count {
                    match append(self.rig(), self.stream(), *bytes) {
                        Ok(seq) => {
                            assert_eq!(seq.get(), self.end, "seqs are dense, whatever was refused");
                            self.end += 1;
                        }
                        Err(AppendError::Full { needed, used, limit, .. }) => {
                            assert!(used + needed > limit && self.stream().log.limits().bytes_max.is_some());
                        }
                        Err(AppendError::Dropped { .. }) => {
                            assert_eq!(self.stream().log.limits().on_full, OnFull::DropNewest);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            Op::Commit => self.durable = self.rig().commit(self.stream()).get(),
            Op::Rotate => {
                self.stream().log.rotate(self.rig().now).unwrap();
                self.durable = self.stream().ends().durable.get();
            }
            Op::Read { who, bytes } => self.read(*who, *bytes),
            Op::Ack { who } => {
                let to = self.seen[*who].next;
                self.seen[*who].acked = to;
                self.rig().ack(&self.consumers[*who], to);
            }
            Op::Tick => self.tick(),
            Op::Pass { seconds } => {
                let rig = self.rig.as_mut().unwrap();
                rig.pass(Duration::from_secs(*seconds));
                rig.core.run_timers(rig.now.instant);
                self.rig().core.commit_due(self.rig().now);
                self.durable = self.stream().ends().durable.get();
            }
            Op::Limit(limits) => {
                self.over = self.stream().log.bytes_used();
                self.rig().core.set_limits(self.stream(), *limits).unwrap();
            }
            Op::Crash(survival) => self.crash(|rig| rig.power_cut(survival)),
            Op::Kill => self.crash(Rig::kill),
            Op::Restart => self.crash(Rig::restart),
        }
        let used = self.stream().log.bytes_used();
        let limit = self.stream().log.limits().bytes_max.unwrap_or(u64::MAX);
        assert!(used <= limit.max(self.over), "{used} of {limit}");
        self.over = if used <= limit { 0 } else { used };
    }

    fn tick(&mut self) {
        self.rig().core.tick(self.rig().now).unwrap();
        // A rotation to make space commits what is open.
        self.durable = self.stream().ends().durable.get();
        self.seen.iter_mut().for_each(|seen| seen.saved = seen.acked);
    }

    fn read(&mut self, who: usize, bytes: usize) {
        let Some(delivery) = self.rig().next(self.stream(), &self.consumers[who], bytes) else {
            assert!(self.seen[who].next >= self.durable, "reader {who} got nothing at {:?}", self.seen[who]);
            return;
        };
        for item in delivery.items() {
            let next = self.seen[who].next;
            match item {
                Item::Record(record) => {
                    assert_eq!((record.seq.get(), record.payload[0]), (next, next as u8));
                    self.seen[who].next += 1;
                }
                Item::Gap(gap) => {
                    assert_eq!(gap.from.get(), next, "in the place of its seqs");
                    assert!(matches!(gap.reason, GapReason::Trimmed | GapReason::Expired), "{gap:?}");
                    assert!(gap.to <= self.stream().floor(), "only what went");
                    self.seen[who].next = gap.to.get();
                }
            }
        }
    }

    fn crash(&mut self, how: impl FnOnce(Rig) -> Rig) {
        self.check_counts();
        self.stream = None;
        self.consumers.clear();
        self.rig = self.rig.take().map(how);
        self.open();
        let end = self.stream().ends().durable.get();
        assert!((self.durable..=self.end).contains(&end), "durable {} end {end}", self.durable);
        (self.end, self.durable) = (end, end);
        assert!(self.rig().core.report().streams[0].gaps.is_empty(), "a limit is no damage");
        for (seen, consumer) in self.seen.iter_mut().zip(&self.consumers) {
            let cursor = consumer.cursor().get();
            assert!((seen.saved..=seen.acked).contains(&cursor), "cursor {cursor}: {seen:?}");
            *seen = Seen { next: cursor, acked: cursor, saved: cursor, begun: cursor };
        }
    }

    /// I12: what a cursor passed in this run is the sum of what was counted.
    fn check_counts(&self) {
        for (seen, consumer) in self.seen.iter().zip(&self.consumers) {
            let counted = self.stream().consumer_stats(consumer);
            assert_eq!(counted.lost_count, 0);
            let sum = counted.acked_count + counted.trimmed_count + counted.expired_count;
            assert_eq!(sum, seen.acked - seen.begun, "{counted:?}");
        }
    }

    /// A sound disk always gets everything told, and everything unlinked.
    fn finish(&mut self) {
        self.run(&Op::Commit);
        for who in 0..2 {
            while self.seen[who].next < self.durable {
                self.read(who, 1 << 20);
            }
            self.run(&Op::Ack { who });
        }
        self.run(&Op::Rotate);
        self.tick();
        self.tick();
        self.check_counts();
        assert!(self.stream().log.segments().is_empty(), "everything told is unlinked");
        assert_eq!(self.stream().log.bytes_used(), 0);
        append(self.rig(), self.stream(), 600).unwrap();
        self.end += 1;
        self.run(&Op::Commit);
        assert_eq!(self.stream().ends().durable, Seq::new(self.end));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn limits_lose_and_repeat_nothing_and_count_everything_once(limits in limits(), ops in ops()) {
        let mut world = World::new(limits);
        for op in &ops {
            world.run(op);
        }
        world.finish();
    }
}
