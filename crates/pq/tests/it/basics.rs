//! Open, append, consume, acknowledge, close.

use std::time::Duration;

use pq::{Options, Queue, Seq};

const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn what_is_appended_is_delivered_in_order_and_acked_once() {
    let dir = tempfile::tempdir().unwrap();
    {
        let queue = Queue::open(dir.path(), Options::default()).unwrap();
        assert!(queue.recovery().created);
        let stream = queue.stream("orders").unwrap();
        for n in 0..100_u32 {
            let _ = stream.append(n.to_string()).unwrap();
        }
        assert_eq!(stream.commit_blocking().unwrap(), Seq::new(101));
        let mut consumer = stream.consumer("mailer").unwrap();
        let mut seen = 0;
        while seen < 60 {
            let delivery = consumer.next_timeout(DEADLINE).unwrap().unwrap();
            for record in delivery.records() {
                assert_eq!(record.payload, seen.to_string().as_bytes());
                seen += 1;
                assert_eq!(record.seq, Seq::new(seen));
            }
        }
        consumer.ack_to(Seq::new(51)).unwrap().wait().unwrap();
        drop(consumer);
        queue.close(DEADLINE).unwrap();
    }
    let queue = Queue::open(dir.path(), Options::default()).unwrap();
    assert!(queue.recovery().clean);
    let stream = queue.stream("orders").unwrap();
    let mut consumer = stream.consumer("mailer").unwrap();
    let delivery = consumer.next_blocking().unwrap().unwrap();
    assert_eq!(delivery.first(), Seq::new(51));
    assert_eq!(delivery.records().next().unwrap().payload, b"50");
}
