//! Scripts under virtual time: `testdata/*.txt`. A block is commands, a line `----`, what they print, an empty line.
//!
//! | command | |
//! |---|---|
//! | `policy signal`, `policy signal safety 1s`, `policy poll 1s` | first line, once |
//! | `backoff FIRST MAX` | second line, optional |
//! | `open STREAM ID:END … open ID readable END` | rotated segments, the open one, the readable end |
//! | `attach KEY pool\|pull at SEQ`, `detach KEY`, `seek KEY SEQ`, `kick KEY` | `KEY` is `STREAM/CONSUMER` |
//! | `commit STREAM COUNT`, `rotate STREAM`, `retire STREAM below ID`, `close STREAM` | the writer and the tick |
//! | `publish STREAM COUNT`, `swap STREAM` | the two halves of a commit |
//! | `lease`, `lease KEY` | the oldest due pool turn, or that of one consumer |
//! | `bound KEY`, `more KEY at SEQ`, `fail KEY [at SEQ] [wait TIME]` | the turn ends |
//! | `bound KEY while committing COUNT` | the writer publishes inside the wake-up cell's two steps |
//! | `advance TIME`, `wake`, `show`, `finds` | the clock; what time made due; everybody; the safety poll's finds |

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use scheduler::{
    Backoff, Bound, Cache, Detached, Key, Lease, Mode, Outcome, Phase, Policy, TurnEnd, WalState, Woken,
};
use wal_format::{Instant, SegmentId, Seq, StreamId};

use crate::world::{World, backoff, key};

macro_rules! scripts {
    ($($name:ident),* $(,)?) => { $(
        #[test]
        fn $name() {
            run(stringify!($name), include_str!(concat!("../../testdata/", stringify!($name), ".txt")));
        }
    )* };
}

scripts!(
    a_busy_stream_never_takes_the_lock,
    a_commit_inside_the_wake_up_cell_is_seen,
    a_failing_sink_is_left_alone_and_comes_back,
    a_rotation_during_a_turn_is_seen_at_its_end,
    a_seek_voids_the_lease_that_is_out,
    a_stream_is_deleted_and_created_again,
    late_caught_up_does_not_undo_rotated,
    polls_coalesce,
    pull_consumers_are_notified,
    removal_during_a_turn,
    segments_are_read_in_order_and_retired,
    the_safety_poll_finds_a_lost_signal,
);

struct Script {
    world: World,
    names: BTreeMap<String, u64>,
    keys: BTreeMap<Key, String>,
    leases: BTreeMap<Key, Lease>,
    out: String,
}

fn run(name: &str, text: &str) {
    let mut script: Option<Script> = None;
    let mut actual = String::new();
    let mut expected = false;
    let mut policy = Policy::Signal;
    let mut safety = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => expected = false,
            ["----"] => {
                expected = true;
                actual.push_str("----\n");
                actual.push_str(&std::mem::take(&mut script.as_mut().expect("commands").out));
                continue;
            }
            _ if expected => continue,
            ["policy", rest @ ..] => (policy, safety) = parse_policy(rest),
            [comment, ..] if comment.starts_with('#') => {}
            ["backoff", first, max] => {
                script = Some(Script::new(policy, safety, backoff(time(first), time(max))));
            }
            command => script
                .get_or_insert_with(|| {
                    Script::new(policy, safety, backoff(Duration::from_secs(1), Duration::from_secs(8)))
                })
                .command(command),
        }
        actual.push_str(line);
        actual.push('\n');
    }
    assert!(actual == text, "{name} went otherwise than written:\n{actual}");
}

fn parse_policy(words: &[&str]) -> (Policy, Option<Duration>) {
    match words {
        ["signal"] => (Policy::Signal, None),
        ["signal", "safety", every] => (Policy::Signal, Some(time(every))),
        ["poll", push_back] => (Policy::Poll { push_back: time(push_back) }, None),
        other => panic!("no policy: {other:?}"),
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}

fn time(word: &str) -> Duration {
    match word.strip_suffix("ms") {
        Some(ms) => Duration::from_millis(number(ms)),
        None => Duration::from_secs(number(word.strip_suffix('s').expect("a time ends in s or ms"))),
    }
}

fn since_start(at: Instant) -> Duration {
    at.saturating_since(Instant::ZERO)
}

impl Script {
    fn new(policy: Policy, safety: Option<Duration>, backoff: Backoff) -> Self {
        let cache = Cache::new(policy, backoff, 7);
        let cache = match safety {
            Some(every) => cache.with_safety_poll(every),
            None => cache,
        };
        let world = World::with(cache, policy);
        Self {
            world,
            names: BTreeMap::new(),
            keys: BTreeMap::new(),
            leases: BTreeMap::new(),
            out: String::new(),
        }
    }

    fn say(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
    }

    fn id(&mut self, name: &str) -> u64 {
        let next = self.names.len() as u64 + 1;
        *self.names.entry(name.to_owned()).or_insert(next)
    }

    fn key(&mut self, name: &str) -> Key {
        let (stream, consumer) = name.split_once('/').expect("STREAM/CONSUMER");
        let key = key(self.id(stream), self.id(consumer));
        self.keys.insert(key, name.to_owned());
        key
    }

    fn command(&mut self, words: &[&str]) {
        let now = self.world.now;
        match *words {
            ["open", stream, ref rotated @ .., "open", open, "readable", end] => {
                let rotated: Vec<_> = rotated.iter().filter_map(|pair| pair.split_once(':')).collect();
                let rotated: Vec<_> =
                    rotated.into_iter().map(|(id, end)| (number(id), number(end))).collect();
                let stream = self.id(stream);
                self.world.open(stream, &rotated, number(open), number(end));
            }
            ["close", stream] => {
                let stream = StreamId::new(self.id(stream));
                self.world.cache.close_stream(stream);
            }
            ["retire", stream, "below", id] => {
                let stream = StreamId::new(self.id(stream));
                self.world.cache.retired(stream, SegmentId::new(number(id)));
            }
            ["commit", stream, count] => {
                let stream = self.id(stream);
                let woken = self.world.commit(stream, number(count));
                self.woken(woken);
            }
            ["publish", stream, count] => {
                let stream = StreamId::new(self.id(stream));
                self.world.publish(stream, number(count));
            }
            ["swap", stream] => {
                let stream = StreamId::new(self.id(stream));
                let woken = self.world.swap_and_signal(stream);
                self.woken(woken);
            }
            ["rotate", stream] => {
                let stream = self.id(stream);
                let woken = self.world.rotate(stream);
                self.woken(Some(woken));
            }
            ["advance", by] => self.world.now = now.saturating_add(time(by)),
            ["wake"] => {
                let woken = self.world.cache.wake_due(now);
                self.woken(Some(woken));
            }
            ["show"] => self.show(),
            ["finds"] => self.say(&format!("{} finds", self.world.cache.counters().safety_find_count)),
            _ => self.consumer_command(words),
        }
    }

    fn consumer_command(&mut self, words: &[&str]) {
        let now = self.world.now;
        let key = words.get(1).map(|name| self.key(name));
        match (words, key) {
            (["lease"], None) => {
                let lease = self.world.lease();
                self.leased(lease);
            }
            (["lease", _], Some(key)) => {
                let lease = self.world.lease_key(key);
                self.leased(lease);
            }
            (["attach", _, mode, "at", at], Some(key)) => {
                let mode = if *mode == "pull" { Mode::Pull } else { Mode::Pool };
                let woken = self.world.attach(key, number(at), mode);
                self.woken(Some(woken));
            }
            (["detach", _], Some(key)) => {
                let line = match self.world.cache.detach(key) {
                    Detached::Unknown => "not attached",
                    Detached::Forgotten => "forgotten",
                    Detached::AfterTurn => "forgotten after the turn",
                };
                self.say(line);
            }
            (["seek", _, to], Some(key)) => {
                let woken = self.world.cache.seek(key, Seq::new(number(to)), now);
                self.woken(Some(woken));
            }
            (["kick", _], Some(key)) => {
                let woken = self.world.cache.kick(key, now);
                self.woken(Some(woken));
            }
            (["bound", _, "while", "committing", count], Some(key)) => {
                let lease = self.leases.remove(&key).expect("leased");
                let (end, woken) = self.world.end_while_committing(lease, Outcome::AtBound, number(count));
                self.ended(key, &end);
                self.woken(woken);
            }
            (["bound" | "more" | "fail", ..], Some(key)) => {
                let lease = self.leases.remove(&key).expect("leased");
                let outcome = outcome(words, lease.from);
                let end = self.world.end(lease, outcome);
                self.ended(key, &end);
            }
            other => panic!("no command: {other:?}"),
        }
    }

    fn woken(&mut self, woken: Option<Woken>) {
        let line = match woken {
            None => "no lock".to_owned(),
            Some(woken) if woken.is_empty() => "wake nobody".to_owned(),
            Some(woken) => {
                let mut whom = Vec::new();
                if woken.pool_count > 0 {
                    whom.push(format!("{} of the pool", woken.pool_count));
                }
                whom.extend(woken.pull.iter().map(|key| self.keys[key].clone()));
                format!("wake {}", whom.join(", "))
            }
        };
        self.say(&line);
    }

    fn leased(&mut self, lease: Option<Lease>) {
        let Some(lease) = lease else { return self.say("nothing due") };
        let bound = match lease.bound {
            Bound::Open { to } => format!("open to {to}"),
            Bound::Rotated { end } => format!("rotated at {end}"),
        };
        let empty = if lease.is_empty() { ", nothing to read" } else { "" };
        let name = self.keys[&lease.key].clone();
        self.say(&format!("{name} reads segment {} from {}, {bound}{empty}", lease.reading, lease.from));
        assert!(self.leases.insert(lease.key, lease).is_none(), "at most one lease per key");
    }

    fn ended(&mut self, key: Key, end: &TurnEnd) {
        let mut line = match (end.due, self.world.cache.view(key).map(|view| view.phase)) {
            (_, None) => "forgotten".to_owned(),
            (None, Some(_)) => "asleep".to_owned(),
            (Some(_), Some(Phase::Due(_))) => "due now".to_owned(),
            (Some(due), Some(_)) => format!("due at {:?}", since_start(due)),
        };
        if let Some(segment) = end.completed {
            let _ = write!(line, ", read complete {segment}");
        }
        let woken = end.woken.pool_count + end.woken.pull.len();
        assert_eq!(woken, usize::from(line.starts_with("due now")), "who is due is woken");
        self.say(&line);
    }

    fn show(&mut self) {
        for (key, name) in self.keys.clone() {
            let Some(view) = self.world.cache.view(key) else {
                self.say(&format!("{name}: not attached"));
                continue;
            };
            let phase = match view.phase {
                Phase::Due(at) => format!("due since {:?}", since_start(at)),
                Phase::CaughtUp(None) => "asleep".to_owned(),
                Phase::CaughtUp(Some(at)) => format!("caught up, next look at {:?}", since_start(at)),
                Phase::BackOff { until, failures } => {
                    format!("failed {failures} times, next try at {:?}", since_start(until))
                }
                Phase::Leased => "leased".to_owned(),
            };
            let state = if view.state == WalState::Rotated { ", Rotated" } else { "" };
            self.say(&format!("{name}: {phase}, segment {} at {}{state}", view.reading, view.at));
        }
        match self.world.cache.next_due() {
            None => self.say("no timer"),
            Some(at) => self.say(&format!("timer at {:?}", since_start(at))),
        }
    }
}

fn outcome(words: &[&str], from: Seq) -> Outcome {
    let after = |word: &str| words.iter().position(|&w| w == word).and_then(|at| words.get(at + 1).copied());
    let at = after("at").map_or(from, |at| Seq::new(number(at)));
    match words[0] {
        "bound" => Outcome::AtBound,
        "more" => Outcome::MoreToRead { at },
        _ => Outcome::Failed { at, wait_min: after("wait").map_or(Duration::ZERO, time) },
    }
}
