//! Ids print as people read them and stop at the top of their types.

use super::*;

#[test]
fn ids_print_as_people_read_them() {
    assert_eq!(Seq::new(12).to_string(), "12");
    assert_eq!(format!("{:?}", SegmentId::new(7)), "SegmentId(7)");
    assert_eq!(QueueId::new(255).to_string(), "000000000000000000000000000000ff");
    let identity =
        StreamIdentity { queue: QueueId::new(1), stream: StreamId::new(2), incarnation: Incarnation::new(3) };
    assert_eq!(
        identity.to_string(),
        "queue 00000000000000000000000000000001 stream 2 incarnation 00000000000000000000000000000003"
    );
}

#[test]
fn numbers_never_wrap() {
    // S45
    assert_eq!(Seq::FIRST.checked_next(), Some(Seq::new(2)));
    assert_eq!(Seq::MAX.checked_next(), None);
    assert_eq!(Seq::new(u64::MAX - 1).checked_next(), Some(Seq::MAX));
    assert_eq!(Seq::new(5).checked_add(u64::MAX), None);
    assert_eq!(Seq::new(5).saturating_add(u64::MAX), Seq::MAX);
    assert_eq!(SegmentId::new(u64::MAX).checked_next(), None);
    assert_eq!(SegmentId::FIRST.checked_next(), Some(SegmentId::new(2)));
}

#[test]
fn a_distance_counts_the_seqs_between() {
    assert_eq!(Seq::new(3).distance_to(Seq::new(7)), 4);
    assert_eq!(Seq::new(3).distance_to(Seq::new(3)), 0);
    assert_eq!(Seq::new(7).distance_to(Seq::new(3)), 0);
    assert_eq!(Seq::new(0).distance_to(Seq::MAX), u64::MAX);
}
