//! Few descriptors, many streams.

use std::sync::Arc;

use pq::{Options, Queue, SinkSettings, StreamSettings};
use sim_disk::SimDisk;

use crate::sinks::Scripted;
use crate::{DEADLINE, until};

// S54 in small: more streams and segments than descriptors; all of it is delivered and retired, within the budget.
#[test]
fn many_streams_live_on_few_descriptors() {
    const STREAMS: u64 = 60;
    let fds_max = 24;
    let disk = SimDisk::new();
    disk.set_open_files_max(Some(fds_max));
    let options = Options { fds_max: Some(fds_max), ..Options::default() };
    let queue = Queue::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
    let settings = StreamSettings { segment_age_max: None, ..StreamSettings::default() };
    for round in 0..3 {
        for index in 0..STREAMS {
            let stream = queue.stream_with(&index.to_string(), settings.clone()).unwrap();
            stream.append_durable(format!("{index} {round}")).unwrap();
            stream.rotate().unwrap();
        }
    }
    assert!(disk.open_files_peak() <= fds_max, "{} open", disk.open_files_peak());
    queue.close(DEADLINE).unwrap();
    let queue = Queue::open_on(Arc::new(disk.clone()), options).unwrap();
    let mut attached = Vec::new();
    for index in 0..STREAMS {
        let stream = queue.stream(&index.to_string()).unwrap();
        let (sink, arrived) = Scripted::new([]);
        attached.push((queue.attach(&stream, "c", sink, SinkSettings::default()).unwrap(), arrived, stream));
    }
    for (attached, arrived, _) in &attached {
        assert!(attached.wait_drained(DEADLINE));
        assert_eq!(*arrived.lock().unwrap(), [1, 2, 3]);
    }
    queue.save_cursors().unwrap();
    // A save that began by itself unlinks what it allows behind ours.
    until(|| attached.iter().all(|(_, _, stream)| stream.stats().segments_count == 0));
    let stats = queue.stats();
    assert!(stats.fds.peak <= fds_max && disk.open_files_peak() <= fds_max);
    queue.close(DEADLINE).unwrap();
}
