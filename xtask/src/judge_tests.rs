//! Each kind of broken promise is found, and a kept one is not.

use super::*;

fn judged(text: &str) -> Judge {
    let mut judge = Judge::default();
    judge.hear(text).unwrap_or_else(|error| judge.broken.push(format!("{error:#}")));
    judge
}

/// Three records acknowledged; the consumer is done with one, and that was saved. Then a new life.
const LIFE: &str = "open unclean created\nreported\nput s a\nput s b\nput s c\nput s d\nack s 1 a\nack s 2 b\nack s 3 c\n\
     got s 1 a\ndone s 2\nsaved s 2\nopen unclean existing\n";

#[test]
fn a_kept_promise_is_no_finding() {
    for report in [
        "stream s 1 4\ncursor s 2\nrecord s 1 a\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\ndeliver s 3 c\nreported\n",
        // The first record was done with: its segment may be gone.
        "stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\ndeliver s 3 c\nreported\n",
        // The fourth was never acknowledged: it may be there all the same.
        "stream s 2 5\ncursor s 2\nrecord s 2 b\nrecord s 3 c\nrecord s 4 d\ndeliver s 2 b\ndeliver s 3 c\ndeliver s 4 d\nreported\n",
        // Seqs that were never durable may be skipped.
        "stream s 2 6\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ngap s 4 6 not durable\n\
         deliver s 2 b\ndeliver s 3 c\ndelivergap s 4 6 not durable\nreported\n",
        // What was seen after the cut means nothing.
        "cut\nstream s 1 2\nreported\npower\nopen unclean existing\n\
         stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\ndeliver s 3 c\nreported\n",
        // A report that the power cut says nothing.
        "stream s 2 4\ncursor s 2\nrecord s 2",
        // Nor does what was promised then.
        "cut\nput s e\nack s 4 e\nsaved s 4\npower\nopen unclean existing\n\
         stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\ndeliver s 3 c\nreported\n",
    ] {
        let judge = judged(&format!("{LIFE}{report}"));
        assert_eq!(judge.broken, Vec::<String>::new(), "{report}");
        assert_eq!(judge.counts.acked, 3);
    }
}

#[test]
fn each_broken_promise_is_found() {
    for (what, report) in [
        (
            "lost at the end",
            "stream s 1 3\ncursor s 2\nrecord s 1 a\nrecord s 2 b\ndeliver s 2 b\nreported\n",
        ),
        (
            "retired before it was done with",
            "stream s 3 4\ncursor s 3\nrecord s 3 c\ndeliver s 3 c\nreported\n",
        ),
        ("a stream is gone", "reported\n"),
        (
            "nobody appended it",
            "stream s 2 5\ncursor s 2\nrecord s 2 b\nrecord s 3 c\nrecord s 4 e\ndeliver s 2 b\ndeliver s 3 c\ndeliver s 4 e\nreported\n",
        ),
        (
            "another record",
            "stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 d\ndeliver s 2 b\ndeliver s 3 d\nreported\n",
        ),
        (
            "a cursor behind what was saved",
            "stream s 1 4\ncursor s 1\nrecord s 1 a\nrecord s 2 b\nrecord s 3 c\ndeliver s 1 a\ndeliver s 2 b\ndeliver s 3 c\nreported\n",
        ),
        (
            "a cursor ahead of what was done",
            "stream s 1 4\ncursor s 3\nrecord s 1 a\nrecord s 2 b\nrecord s 3 c\ndeliver s 3 c\nreported\n",
        ),
        (
            "a gap over sure records",
            "stream s 2 4\ncursor s 2\nrecord s 2 b\ngap s 3 4 not durable\ndeliver s 2 b\ndelivergap s 3 4 not durable\nreported\n",
        ),
        (
            "damage is cried",
            "stream s 2 5\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ngap s 4 5 lost\ndeliver s 2 b\ndeliver s 3 c\ndelivergap s 4 5 lost\nreported\n",
        ),
        (
            "a silent hole",
            "stream s 2 5\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\ndeliver s 3 c\nreported\n",
        ),
        (
            "out of order",
            "stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 3 c\ndeliver s 2 b\nreported\n",
        ),
        (
            "not all is delivered",
            "stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\nreported\n",
        ),
        ("a stream is paused", "paused s device\nreported\n"),
    ] {
        assert!(!judged(&format!("{LIFE}{report}")).broken.is_empty(), "{what}");
    }
}

#[test]
fn what_was_given_up_or_absent_must_not_come_back() {
    let absent = "stream s 2 4\ncursor s 2\nrecord s 2 b\nrecord s 3 c\ndeliver s 2 b\ndeliver s 3 c\nreported\nopen unclean existing\n";
    let back = "stream s 2 5\ncursor s 2\nrecord s 2 b\nrecord s 3 c\nrecord s 4 d\ndeliver s 2 b\ndeliver s 3 c\ndeliver s 4 d\nreported\n";
    assert!(judged(&format!("{LIFE}{back}")).broken.is_empty());
    assert_eq!(judged(&format!("{LIFE}{absent}{back}")).counts.ghosts, 2, "read, and delivered");
    assert_eq!(judged(&format!("put s d\nrefused s d\n{LIFE}{back}")).counts.ghosts, 2);
}
