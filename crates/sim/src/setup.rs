//! What a run starts from: how many streams with which settings, how many consumers, which syncs are ignored.
//!
//! Limits are small, so that a short run meets every edge: segments of a few batches, batches of a few records, little room.

use std::sync::Arc;
use std::time::Duration;

use disk::{Disk, SyncSite};
use pq::{Options, ReadLevel, StreamSettings, SyncSetting};
use sim_disk::SimDisk;

use crate::random::{Draw, Random, mix};

/// Puts something between the queue and its disk.
pub type Wrap = Arc<dyn Fn(SimDisk) -> Arc<dyn Disk> + Send + Sync>;

/// See the module.
#[derive(Clone)]
pub struct Setup {
    /// What identities, jitter and the sectors that survive a failed sync follow from.
    pub seed: u64,
    /// The streams' settings, one each.
    pub streams: Vec<StreamSettings>,
    /// Consumers of each stream that pull; one more is a sink.
    pub pulls_count: u8,
    /// Syncs at these sites do nothing and say they did.
    pub ignored_sites: Vec<SyncSite>,
    /// What stands between the queue and its disk; `None`: nothing.
    pub wrap: Option<Wrap>,
    /// The queue's options.
    pub options: Options,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("seed", &self.seed)
            .field("streams", &self.streams)
            .field("pulls_count", &self.pulls_count)
            .field("ignored_sites", &self.ignored_sites)
            .finish_non_exhaustive()
    }
}

/// The streams' small limits.
fn small() -> StreamSettings {
    StreamSettings {
        segment_bytes_max: 8 << 10,
        segment_age_max: None,
        batch_bytes_max: 3 << 10,
        batch_records_max: 64,
        commit_interval: Duration::from_millis(5),
        record_bytes_max: 1 << 10,
        unsynced_bytes_max: 4 << 10,
        // Some calls sleep through a back-off, in real time: nothing to speak of.
        retry_after: Duration::from_micros(1),
        probe_after: Duration::from_millis(100),
        ..StreamSettings::default()
    }
}

/// Every way of syncing and reading, and every limit at an edge.
#[must_use]
pub fn kinds_of_streams() -> Vec<StreamSettings> {
    let with = |sync, read_level| StreamSettings { sync, read_level, ..small() };
    vec![
        small(),
        with(SyncSetting::Never, ReadLevel::Written),
        with(SyncSetting::Every(Duration::from_millis(20)), ReadLevel::Durable),
        StreamSettings { batch_records_max: 3, ..with(SyncSetting::EachAppend, ReadLevel::Durable) },
        with(SyncSetting::Never, ReadLevel::Durable),
        StreamSettings {
            segment_age_max: Some(Duration::from_millis(500)),
            ..with(SyncSetting::OnRotate, ReadLevel::Written)
        },
        StreamSettings { segment_bytes_max: 5 << 10, unsynced_bytes_max: 1, ..small() },
        StreamSettings { segment_bytes_max: 64 << 10, ..with(SyncSetting::EachBatch, ReadLevel::Written) },
    ]
}

/// The queue's options in a simulation: nothing is asked of the machine it runs on.
#[must_use]
pub fn options() -> Options {
    Options {
        stream: small(),
        buffer_bytes_max: 24 << 10,
        fds_max: Some(64),
        cursor_interval: Duration::from_millis(50),
        backoff_first: Duration::from_millis(20),
        backoff_max: Duration::from_secs(1),
        ..Options::default()
    }
}

impl Setup {
    /// One stream as it is by default, one that never syncs, one that syncs at times; two consumers that pull and a sink each.
    #[must_use]
    pub fn usual(seed: u64) -> Self {
        let streams = kinds_of_streams().into_iter().take(3).collect();
        Self { seed, streams, pulls_count: 2, ignored_sites: Vec::new(), wrap: None, options: options() }
    }

    /// One to three streams of any kind.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let mut random = Random::new(mix(seed ^ 0x5e70));
        let kinds = kinds_of_streams();
        let count = random.between(1, 3);
        let one = |random: &mut Random| {
            let kind = usize::try_from(random.below(kinds.len() as u64)).unwrap_or(0);
            kinds.get(kind).cloned().unwrap_or_else(small)
        };
        let streams = (0..count).map(|_| one(&mut random)).collect();
        let pulls_count = if random.one_in(3) { 2 } else { 1 };
        let mut options = options();
        if random.one_in(4) {
            // Used up many times in a run, so that room that is not given back shows.
            options.buffer_bytes_max = 6 << 10;
        }
        Self { streams, pulls_count, options, ..Self::usual(seed) }
    }
}
