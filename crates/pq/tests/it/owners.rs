//! One owner at a time, and what its end leaves. Children are this very program, told by the environment what to do.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pq::{OpenError, Options, Queue};

use crate::{DEADLINE, take};

const DIR: &str = "PQ_IT_DIR";

/// Runs one of this file's children and waits until it says `ready`, or has ended.
fn child(test: &str, dir: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program)
        .args(["--exact", &format!("owners::{test}"), "--nocapture"])
        .env(DIR, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _ = lines.by_ref().find(|line| line.as_ref().is_ok_and(|line| line.contains("ready")));
    child
}

/// The directory, if this process is a child.
fn dir_of_child() -> Option<std::path::PathBuf> {
    std::env::var_os(DIR).map(Into::into)
}

#[test]
fn child_appends_durably_and_exits_at_once() {
    let Some(dir) = dir_of_child() else { return };
    let queue = Queue::open(dir, Options::default()).unwrap();
    queue.stream("s").unwrap().append_durable("from the child").unwrap();
    std::process::exit(0);
}

#[test]
fn child_owns_the_queue_until_killed() {
    let Some(dir) = dir_of_child() else { return };
    let queue = Queue::open(dir, Options::default()).unwrap();
    queue.stream("s").unwrap().append_durable("from the child").unwrap();
    println!("ready");
    // Ends with the pipe, should the parent die.
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(queue);
}

// S09: append, wait for durable, exit at once: the record is there.
#[test]
fn a_durable_record_survives_an_exit_without_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let status = child("child_appends_durably_and_exits_at_once", dir.path()).wait().unwrap();
    assert!(status.success());
    let queue = Queue::open(dir.path(), Options::default()).unwrap();
    assert!(!queue.recovery().clean);
    assert_eq!(take(&mut queue.stream("s").unwrap().consumer("c").unwrap(), 1), ["from the child"]);
}

// S53: refused at once while another process owns it; after its kill -9 the next one opens.
#[test]
fn a_second_process_is_refused_and_a_kill_leaves_nothing_stale() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = child("child_owns_the_queue_until_killed", dir.path());
    let refused = Queue::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.is_retryable());
    assert!(refused.to_string().contains("in use"), "{refused}");
    // Looking is allowed meanwhile.
    let seen = pq::inspect::Inspection::open(dir.path()).unwrap();
    assert_eq!(seen.streams().unwrap()[0].end, 2);
    assert!(!seen.verify().unwrap().is_damaged());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let queue = Queue::open(dir.path(), Options::default()).unwrap();
    assert_eq!(take(&mut queue.stream("s").unwrap().consumer("c").unwrap(), 1), ["from the child"]);
}

// S53: the same within a process, and once the lock file was deleted.
#[test]
fn a_second_handle_is_refused_even_without_the_lock_file() {
    let dir = tempfile::tempdir().unwrap();
    let queue = Queue::open(dir.path(), Options::default()).unwrap();
    let in_use = || matches!(Queue::open(dir.path(), Options::default()), Err(OpenError::InUse { .. }));
    assert!(in_use());
    #[expect(clippy::disallowed_methods, reason = "it plays the user who deletes what is not his")]
    std::fs::remove_file(dir.path().join("LOCK")).unwrap();
    assert!(in_use());
    queue.close(DEADLINE).unwrap();
    Queue::open(dir.path(), Options::default()).unwrap();
}
