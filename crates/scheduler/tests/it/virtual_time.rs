//! Long stories under virtual time: what each record's delay is, and how often the process wakes.

use std::collections::BTreeMap;
use std::time::Duration;

use scheduler::{Backoff, Key, Lease, Mode, Outcome, Phase, Policy, WalState};
use wal_format::{Instant, Seq, StreamId};

use crate::world::{World, backoff, key};

const SIGNAL: Policy = Policy::Signal;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// The most records a turn hands over.
const TURN: u64 = 50;

/// Chance for the stories: splitmix64, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 31)) % n
    }
}

fn dice(seed: u64) -> Dice {
    println!("seed {seed}");
    Dice(seed)
}

/// A world in which sinks answer at once: a healthy one takes a turn's worth of records, a dead one fails.
struct Story {
    world: World,
    appended: BTreeMap<(StreamId, u64), Instant>,
    /// The next record of each consumer; what it gets must start there.
    next: BTreeMap<Key, u64>,
    dead: Vec<Key>,
    delays: BTreeMap<Key, Vec<Duration>>,
    turn_count: BTreeMap<Key, u64>,
    wake_count: u64,
}

impl Story {
    fn new(policy: Policy, backoff: Backoff) -> Self {
        Self {
            world: World::new(policy, backoff),
            appended: BTreeMap::new(),
            next: BTreeMap::new(),
            dead: Vec::new(),
            delays: BTreeMap::new(),
            turn_count: BTreeMap::new(),
            wake_count: 0,
        }
    }

    fn attach(&mut self, key: Key) {
        self.next.insert(key, 1);
        let _ = self.world.attach(key, 1, Mode::Pool);
    }

    fn append(&mut self, stream: u64) {
        let id = StreamId::new(stream);
        let seq = self.world.readable_end(id).get();
        self.appended.insert((id, seq), self.world.now);
        let _ = self.world.commit(stream, 1);
    }

    /// Hands over what the lease covers, as far as a turn goes.
    fn deliver(&mut self, lease: &Lease) -> Outcome {
        let key = lease.key;
        *self.turn_count.entry(key).or_default() += 1;
        assert_eq!(Some(&lease.from.get()), self.next.get(&key), "{key} goes on where it was");
        if self.dead.contains(&key) && !lease.is_empty() {
            return Outcome::Failed { at: lease.from, wait_min: Duration::ZERO };
        }
        let bound = lease.bound.end().get();
        let to = bound.min(lease.from.get() + TURN);
        for seq in lease.from.get()..to {
            let appended = self.appended.get(&(key.stream, seq)).copied().unwrap_or(Instant::ZERO);
            self.delays.entry(key).or_default().push(self.world.now.saturating_since(appended));
        }
        self.next.insert(key, to.max(lease.from.get()));
        if to < bound { Outcome::MoreToRead { at: Seq::new(to) } } else { Outcome::AtBound }
    }

    /// All turns that are due, at this instant.
    fn run_due(&mut self) {
        let mut turns = 0;
        while let Some(lease) = self.world.lease() {
            let outcome = self.deliver(&lease);
            let _ = self.world.end(lease, outcome);
            turns += 1;
            assert!(turns < 1_000_000, "spins");
        }
    }

    /// Lets time go on to `until`, waking as the timer says.
    fn run_until(&mut self, until: Instant) {
        self.run_due();
        while let Some(due) = self.world.cache.next_due().filter(|&due| due <= until) {
            self.world.now = self.world.now.max(due);
            self.wake_count += 1;
            let _ = self.world.cache.wake_due(due);
            self.run_due();
        }
        self.world.now = until;
    }

    fn run_for(&mut self, time: Duration) {
        self.run_until(self.world.now.saturating_add(time));
    }

    fn worst(&self, key: Key) -> Duration {
        self.delays[&key].iter().copied().max().unwrap_or_default()
    }
}

// S41
#[test]
fn a_hundred_rotations_each_racing_with_a_reader_that_just_caught_up() {
    let push_back = 200 * MILLISECOND;
    for (policy, allowed) in [(SIGNAL, Duration::ZERO), (Policy::Poll { push_back }, 2 * push_back)] {
        let reader = key(1, 1);
        let mut story = Story::new(policy, Backoff::default());
        story.world.open(1, &[], 1, 1);
        story.attach(reader);
        for rotation in 0..100 {
            // Steady load over the age limit of a second.
            for _ in 0..100 {
                story.append(1);
                story.run_for(10 * MILLISECOND);
            }
            story.append(1);
            // Under `Poll` the race needs the instant at which the reader looks.
            let looks = story.world.cache.next_due().expect("due, or caught up and polling");
            story.world.now = story.world.now.max(looks);
            let turn = story.world.lease_key(reader);
            assert!(turn.is_some());
            match (rotation % 4, turn) {
                // The rotation falls after the turn's last read, and before its end.
                (0, Some(lease)) => {
                    let outcome = story.deliver(&lease);
                    let _ = story.world.rotate(1);
                    let _ = story.world.end(lease, outcome);
                }
                // A last commit and the rotation fall into the turn.
                (1, Some(lease)) => {
                    let outcome = story.deliver(&lease);
                    story.append(1);
                    let _ = story.world.rotate(1);
                    let _ = story.world.end(lease, outcome);
                }
                // The new segment's first record is there too.
                (2, Some(lease)) => {
                    let outcome = story.deliver(&lease);
                    let _ = story.world.rotate(1);
                    story.append(1);
                    let _ = story.world.end(lease, outcome);
                }
                // The reader has just fallen asleep, or is not due.
                (_, turn) => {
                    if let Some(lease) = turn {
                        let outcome = story.deliver(&lease);
                        let _ = story.world.end(lease, outcome);
                    }
                    let _ = story.world.rotate(1);
                }
            }
        }
        story.run_for(2 * push_back);
        let end = story.world.readable_end(StreamId::new(1)).get();
        assert_eq!(story.next[&reader], end, "every record arrives");
        assert!(end > 10_000);
        assert!(story.worst(reader) <= allowed, "{policy:?}: {:?} > {allowed:?}", story.worst(reader));
        assert_eq!(story.world.cache.counters().completed_count, 100);
    }
}

// S48
#[test]
fn a_lone_record_is_delivered_at_once_by_signal_and_within_push_back_by_poll() {
    let push_back = 700 * MILLISECOND;
    for (policy, allowed) in [(SIGNAL, Duration::ZERO), (Policy::Poll { push_back }, push_back)] {
        let mut dice = dice(48);
        let mut story = Story::new(policy, Backoff::default());
        story.world.open(1, &[], 1, 1);
        let reader = key(1, 1);
        story.attach(reader);
        for _ in 0..2_000 {
            story.run_for(Duration::from_micros(dice.below(5_000_000)));
            story.append(1);
            story.run_due();
        }
        story.run_for(push_back);
        assert_eq!(story.delays[&reader].len(), 2_000);
        assert!(story.worst(reader) <= allowed, "{policy:?}: {:?}", story.worst(reader));
    }
}

/// One healthy consumer among `dead` dead ones of 100 segments each, an hour long; its delays and those of its turns.
fn healthy_among(policy: Policy, dead: u64) -> (Vec<Duration>, Story) {
    let mut dice = dice(49);
    let mut story = Story::new(policy, Backoff { jitter_percent: 20, ..backoff(SECOND, 60 * SECOND) });
    let backlog: Vec<(u64, u64)> = (1..=100).map(|id| (id, 1 + id * 1_000)).collect();
    for stream in 2..2 + dead {
        story.world.open(stream, &backlog, 101, 100_001);
        story.attach(key(stream, stream));
        story.dead.push(key(stream, stream));
    }
    story.world.open(1, &[], 1, 1);
    let healthy = key(1, 1);
    story.attach(healthy);
    for _ in 0..3_600 {
        story.run_for(Duration::from_millis(dice.below(2_000)));
        story.append(1);
        story.run_due();
    }
    story.run_for(10 * SECOND);
    (story.delays[&healthy].clone(), story)
}

// S49
#[test]
fn twenty_nine_dead_sinks_do_not_change_the_healthy_ones_delay() {
    for policy in [SIGNAL, Policy::Poll { push_back: SECOND }] {
        let (alone, _) = healthy_among(policy, 0);
        let (among, story) = healthy_among(policy, 29);
        assert_eq!(alone, among, "{policy:?}");
        let dead_turns: u64 = story.dead.iter().map(|key| story.turn_count[key]).sum();
        // Six doublings to a minute, then a turn every 48 s or more.
        let hour = story.world.now.saturating_since(Instant::ZERO).as_secs();
        assert!(dead_turns <= 29 * (7 + hour / 48), "{policy:?}: {dead_turns} turns of dead sinks");
    }
}

// S49: behind however many that are due, a consumer waits for one turn of each, not for their backlog.
#[test]
fn a_backlog_takes_turns() {
    let mut world = World::new(SIGNAL, Backoff::default());
    for stream in 1..=30 {
        world.open(stream, &[], 1, if stream == 30 { 2 } else { 1_000_000 });
        let _ = world.attach(key(stream, stream), 1, Mode::Pool);
    }
    let mut turns_before = 0;
    loop {
        let lease = world.lease().expect("due");
        if lease.key == key(30, 30) {
            break;
        }
        turns_before += 1;
        let at = Seq::new(lease.from.get() + TURN);
        let _ = world.end(lease, Outcome::MoreToRead { at });
    }
    assert_eq!(turns_before, 29);
}

// S66
#[test]
fn two_sinks_on_one_stream_one_failing() {
    let mut story = Story::new(SIGNAL, Backoff::default());
    story.world.open(1, &[], 1, 1);
    let (good, bad) = (key(1, 1), key(1, 2));
    story.attach(good);
    story.attach(bad);
    story.dead.push(bad);
    for n in 0..1_000 {
        story.append(1);
        if n % 100 == 99 {
            let _ = story.world.rotate(1);
        }
        story.run_for(100 * MILLISECOND);
    }
    assert_eq!((story.worst(good), story.delays[&good].len()), (Duration::ZERO, 1_000));
    assert!(!story.delays.contains_key(&bad));
    story.dead.clear();
    story.run_for(30 * SECOND);
    assert_eq!(story.delays[&bad].len(), 1_000, "nothing is lost, and nothing came twice");
}

// S63, as far as the scheduler carries it
#[test]
fn a_destination_down_for_four_days_costs_a_turn_a_minute_and_loses_nothing() {
    let mut story = Story::new(SIGNAL, backoff(SECOND, 60 * SECOND));
    story.world.open(1, &[], 1, 1);
    let sink = key(1, 1);
    story.attach(sink);
    story.dead.push(sink);
    for n in 0..4 * 24 {
        story.append(1);
        if n % 10 == 0 {
            let _ = story.world.rotate(1);
        }
        story.run_for(3_600 * SECOND);
    }
    assert!(story.turn_count[&sink] <= 4 * 24 * 60 + 7);
    story.dead.clear();
    story.run_for(60 * SECOND);
    assert_eq!(story.delays[&sink].len(), 96);
    assert_eq!(story.world.cache.next_due(), None);
}

#[test]
fn ten_thousand_idle_consumers_need_no_timer_with_signal() {
    let mut story = Story::new(SIGNAL, Backoff::default());
    for stream in 0..10_000 {
        story.world.open(stream, &[], 1, 1);
        story.attach(key(stream, stream));
    }
    story.run_for(3_600 * SECOND);
    assert_eq!((story.wake_count, story.world.cache.next_due()), (0, None));
    assert_eq!(story.world.cache.counters().lease_count, 10_000, "each looked once");
}

#[test]
fn a_thousand_idle_consumers_wake_the_process_once_a_push_back_with_poll() {
    let mut dice = dice(3);
    let mut story = Story::new(Policy::Poll { push_back: 500 * MILLISECOND }, Backoff::default());
    for stream in 0..1_000 {
        story.world.open(stream, &[], 1, 1);
        story.attach(key(stream, stream));
        story.run_for(Duration::from_micros(dice.below(3_000)));
    }
    let (wakes, leases) = (story.wake_count, story.world.cache.counters().lease_count);
    story.run_for(100 * SECOND);
    assert_eq!(story.wake_count - wakes, 200);
    assert_eq!(story.world.cache.counters().lease_count - leases, 200 * 1_000);
}

#[test]
fn a_thousand_streams_with_one_sink_in_ten_dead_wake_a_few_times_a_second() {
    let mut story = Story::new(SIGNAL, Backoff::default());
    for stream in 0..1_000 {
        story.world.open(stream, &[], 1, 2);
        story.attach(key(stream, stream));
        if stream % 10 == 0 {
            story.dead.push(key(stream, stream));
        }
    }
    story.run_for(300 * SECOND);
    let before = story.wake_count;
    story.run_for(300 * SECOND);
    // Delays lie between 24 s and 30 s.
    let wakes = story.wake_count - before;
    assert!(wakes <= 100 * 300 / 24 + 100, "{wakes} wake-ups in 300 s");
}

#[test]
fn the_state_of_the_log_is_computed() {
    let mut story = Story::new(SIGNAL, Backoff::default());
    story.world.open(1, &[(1, 5)], 2, 7);
    let reader = key(1, 1);
    story.attach(reader);
    assert_eq!(story.world.cache.state(reader), Some(WalState::Rotated));
    story.run_due();
    assert_eq!(story.world.cache.state(reader), Some(WalState::NextReadAt(None)));
    assert_eq!(story.world.cache.view(reader).map(|view| view.phase), Some(Phase::CaughtUp(None)));
}
