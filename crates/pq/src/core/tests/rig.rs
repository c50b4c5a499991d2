//! A core on a simulated disk, and its time.

use std::sync::Arc;
use std::time::Duration;

use scheduler::Mode;
use sim_disk::{SimDisk, Survival};
use wal_format::{Instant, Now, Seq, WallTime};
use wal_store::{ReadBuffers, Want};

use crate::core::{ConsumerState, Core, Seed, StreamState, TurnResult};
use crate::{Delivery, Options, Start, StreamSettings};

/// See the module.
pub(super) struct Rig {
    pub(super) disk: SimDisk,
    pub(super) core: Core,
    pub(super) now: Now,
    options: Options,
    seed: u64,
}

pub(super) fn second(n: u64) -> Duration {
    Duration::from_secs(n)
}

impl Rig {
    pub(super) fn new(options: Options) -> Self {
        Self::on(SimDisk::new(), options, 1)
    }

    pub(super) fn on(disk: SimDisk, options: Options, seed: u64) -> Self {
        let now = Now { instant: Instant::ZERO, wall: WallTime::from_nanos(1 << 60) };
        let core = Core::open(Arc::new(disk.clone()), options.clone(), Seed::Fixed(seed), now).unwrap();
        Self { disk, core, now, options, seed }
    }

    /// The power goes, and comes again.
    pub(super) fn power_cut(self, survival: &Survival) -> Self {
        let disk = self.disk.power_cut(survival);
        drop(self.core);
        Self::on(disk, self.options, self.seed + 1)
    }

    /// The process is killed, and started again.
    pub(super) fn kill(self) -> Self {
        let disk = self.disk.kill();
        drop(self.core);
        Self::on(disk, self.options, self.seed + 1)
    }

    /// A stop in order, and a start.
    pub(super) fn restart(self) -> Self {
        let now = self.now;
        self.core.close(|| now).unwrap();
        drop(self.core);
        Self::on(self.disk, self.options, self.seed + 1)
    }

    pub(super) fn pass(&mut self, by: Duration) {
        self.now.instant = self.now.instant.saturating_add(by);
        self.now.wall = WallTime::from_unix(self.now.wall.since_unix() + by);
    }

    pub(super) fn stream(&self, name: &str) -> Arc<StreamState> {
        self.core.stream(name, None, self.now).unwrap()
    }

    pub(super) fn stream_with(&self, name: &str, settings: &StreamSettings) -> Arc<StreamState> {
        self.core.stream(name, Some(settings), self.now).unwrap()
    }

    pub(super) fn append(&self, stream: &StreamState, payload: &[u8]) -> Seq {
        stream.log.append(payload, self.now).unwrap().seq()
    }

    /// Appends 0, 1, 2, … as payloads of one byte.
    pub(super) fn append_numbers(&self, stream: &StreamState, count: u8) {
        for n in 0..count {
            self.append(stream, &[n]);
        }
    }

    /// Makes everything durable.
    pub(super) fn commit(&self, stream: &StreamState) -> Seq {
        stream.log.commit(self.now, Want::Durable).unwrap().ends.durable
    }

    pub(super) fn consumer(&self, stream: &Arc<StreamState>, name: &str) -> Arc<ConsumerState> {
        self.core.take_consumer(stream, name, Start::Oldest, self.now).unwrap()
    }

    pub(super) fn sink(&self, stream: &Arc<StreamState>, name: &str) -> Arc<ConsumerState> {
        let consumer = self.core.register_consumer(stream, name, Start::Oldest, self.now).unwrap();
        self.core.attach(stream, &consumer, Mode::Pool, self.now.instant);
        consumer
    }

    /// The next delivery to a pull consumer, of about `bytes_max`, if there is one.
    pub(super) fn next(
        &self,
        stream: &Arc<StreamState>,
        consumer: &Arc<ConsumerState>,
        bytes_max: usize,
    ) -> Option<Delivery> {
        loop {
            let mut turn = self.core.lease_for(stream, consumer, self.now.instant)?;
            let delivery = turn.read(bytes_max, &mut ReadBuffers::default()).unwrap();
            turn.end(TurnResult::Handed, self.now.instant);
            if delivery.is_some() {
                return delivery;
            }
        }
    }

    /// Everything there is for a pull consumer now, as (seq, payload).
    pub(super) fn drain(
        &self,
        stream: &Arc<StreamState>,
        consumer: &Arc<ConsumerState>,
    ) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(delivery) = self.next(stream, consumer, 1 << 20) {
            assert_eq!(delivery.gaps().count(), 0, "no gap is expected here");
            all.extend(delivery.records().map(|r| (r.seq.get(), r.payload.to_vec())));
        }
        all
    }

    pub(super) fn ack(&self, consumer: &Arc<ConsumerState>, to: u64) {
        self.core.ack(consumer, Seq::new(to), None, None, None).unwrap();
    }
}
