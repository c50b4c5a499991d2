//! Names never become paths.

use std::collections::BTreeSet;
use std::sync::Arc;

use pq::{NameError, Options, Queue, StreamError};

use crate::{DEADLINE, simulated, take};

// S58: refused, or safe, distinct and found again.
#[test]
fn names_are_distinct_and_leave_no_trace_in_the_file_system() {
    let (disk, queue) = simulated();
    for bad in ["", "a\0b", &"x".repeat(300)] {
        assert!(matches!(queue.stream(bad), Err(StreamError::Name(_))), "{bad:?}");
    }
    assert!(matches!(
        queue.stream("s").unwrap().consumer("\n"),
        Err(StreamError::Name(NameError::Control { .. }))
    ));
    let names = ["..", "/", "../../etc/passwd", "A", "a", "a.", "a..", "💡", "é", "e\u{301}", " "];
    for name in names {
        queue.stream(name).unwrap().append_durable(name).unwrap();
    }
    for path in disk.files() {
        let path = path.to_str().unwrap();
        assert!(path.is_ascii() && !path.contains(".."), "{path}");
    }
    queue.close(DEADLINE).unwrap();
    let queue = Queue::open_on(Arc::new(disk), Options::default()).unwrap();
    for name in names {
        let mut consumer = queue.stream(name).unwrap().consumer("c").unwrap();
        assert_eq!(take(&mut consumer, 1), [name]);
    }
    let found: BTreeSet<String> = queue.streams().into_iter().collect();
    assert_eq!(found, names.iter().chain(&["s"]).map(ToString::to_string).collect());
}

// S31: what is not the queue's is ignored and listed.
#[test]
fn strays_are_listed_and_left_alone() {
    use disk::Disk as _;
    let (disk, queue) = simulated();
    queue.stream("s").unwrap().append_durable("one").unwrap();
    queue.close(DEADLINE).unwrap();
    for path in ["notes.txt", "streams/12.bak", "streams/0000000000000001/0000000000000001.seg.tmp"] {
        disk.create(path.as_ref()).unwrap();
    }
    disk.create_dir("streams/00000000000000ff".as_ref()).unwrap();
    let queue = Queue::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    assert_eq!(queue.recovery().strays, ["notes.txt", "streams/00000000000000ff", "streams/12.bak"]);
    assert_eq!(queue.recovery().streams[0].notes.len(), 1);
    assert_eq!(queue.streams(), ["s"]);
    assert!(disk.stat("notes.txt".as_ref()).is_ok());
}
