//! What a client may expect of any directory, however hostile: an open that answers, deliveries without holes, and room to go on.

use std::sync::Arc;
use std::time::Duration;

use disk::Disk;
use pq::core::{Core, CoreConsumer, CoreStream, Seed};
use pq::{
    Instant, Item, Now, OpenError, Options, ReadError, SaveError, Start, StreamError, StreamSettings,
    WallTime,
};
use sim_disk::SimDisk;
use wal_store::{ReadBuffers, Want};

/// Most deliveries that are looked at: a hostile gap may be as wide as its type, but a delivery always moves on.
const DELIVERIES_MAX: usize = 100_000;

pub(crate) fn now() -> Now {
    Now { instant: Instant::ZERO, wall: WallTime::from_nanos(1 << 60) }
}

pub(crate) fn options() -> Options {
    let stream = StreamSettings { segment_bytes_max: 1 << 20, ..StreamSettings::default() };
    Options {
        stream,
        fds_max: Some(64),
        buffer_bytes_max: 2 << 20,
        cursor_interval: Duration::from_millis(1),
        ..Options::default()
    }
}

pub(crate) fn open(disk: &SimDisk, seed: u64) -> Result<Core, OpenError> {
    Core::open(Arc::new(disk.clone()) as Arc<dyn Disk>, options(), Seed::Fixed(seed), now())
}

/// How far a reader came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    ToTheEnd,
    /// To something that a newer program wrote, and nobody reads on behind that.
    ToNewer,
    /// Nobody registers any more: the cursors were forged to have the last number a generation can have.
    Nowhere,
    /// To another error.
    Elsewhere,
}

/// Reads everything there is, through a consumer of its own, and calls `see` with each record.
///
/// # Panics
/// If deliveries are not dense, or never end.
pub(crate) fn read_all(
    core: &Core,
    stream: &CoreStream,
    name: &str,
    see: &mut dyn FnMut(u64, &[u8]),
) -> Came {
    let consumer = match core.open_consumer(stream, name, Start::Oldest, now()) {
        Ok(consumer) => consumer,
        Err(StreamError::Save(SaveError::Disk { retryable: false, .. })) => return Came::Nowhere,
        Err(_) => return Came::Elsewhere,
    };
    let came = drain(core, stream, &consumer, see);
    core.release(&consumer);
    came
}

fn drain(core: &Core, stream: &CoreStream, consumer: &CoreConsumer, see: &mut dyn FnMut(u64, &[u8])) -> Came {
    let mut buffers = ReadBuffers::default();
    let mut expected = consumer.cursor().get();
    for _ in 0..DELIVERIES_MAX {
        let delivery = match core.next(stream, consumer, 1 << 20, &mut buffers, now()) {
            Ok(Some(delivery)) => delivery,
            Ok(None) => return Came::ToTheEnd,
            Err(ReadError::Read(wal_store::ReadError::NewerFormat { .. })) => return Came::ToNewer,
            Err(_) => return Came::Elsewhere,
        };
        assert_eq!(delivery.first().get(), expected, "a delivery begins where the one before ended");
        assert!(delivery.next().get() > expected, "a delivery moves on");
        for item in delivery.items() {
            match item {
                Item::Record(record) => {
                    // A batch under a right checksum may say that it holds more than it does; no honest program writes one.
                    assert!(record.seq.get() >= expected, "records ascend");
                    see(record.seq.get(), record.payload);
                    expected = record.seq.get() + 1;
                }
                Item::Gap(gap) => {
                    assert!(gap.from.get() >= expected && gap.to > gap.from, "gaps stand in their place");
                    expected = gap.to.get();
                }
                _ => {}
            }
        }
        assert!(expected <= delivery.next().get(), "a delivery ends where it says");
        expected = delivery.next().get();
    }
    panic!("the stream never ends");
}

/// Appends one record to a stream and finds it again, in this life and the next.
///
/// # Panics
/// If it was acknowledged as durable and does not come.
pub(crate) fn go_on(core: &Core, stream: &CoreStream, payload: &[u8]) -> Option<u64> {
    let ticket = stream.log().append(payload, now()).ok()?;
    stream.log().commit(now(), Want::Durable).ok()?;
    let seq = ticket.seq().get();
    let mut found = false;
    let came = read_all(core, stream, "go on", &mut |at, seen| {
        if at == seq {
            assert_eq!(seen, payload, "the new record is as it was appended");
            found = true;
        }
    });
    assert!(found || matches!(came, Came::ToNewer | Came::Nowhere), "a durable record is delivered");
    Some(seq)
}
