//! kill -9 in the middle: outputs are byte for byte what the inputs are.

use crate::support::{Bench, awkward, until};

#[test]
fn killed_at_any_time_the_output_is_the_input_once() {
    let bench = Bench::new();
    let mut bytes = Vec::new();
    for _ in 0..6 {
        bytes.extend_from_slice(&awkward());
        bytes.push(b'\n');
    }
    bench.write("in/a.log", &bytes);
    bench.write("in/b.log", &bytes);
    bench.config(
        "segment_bytes_max = \"128KiB\"\nbatch_bytes_max = \"16KiB\"\ncursor_save_interval = \"5ms\"\n\
         [[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n[[sink.file]]\npath = \"out/{stream}.log\"\n",
    );
    let length = |name: &str| bench.read(name).len();
    for round in 1..8 {
        let before = length("out/a.log");
        let running = bench.start();
        // Killed after some progress, a different amount each time.
        until("progress", || {
            length("out/a.log") > before + round * 7_000 || bench.read("out/a.log") == bytes
        });
        running.signal("-KILL");
        assert!(!running.end().status.success());
    }
    let last = bench.run().success();
    assert_eq!(last.figure("lag"), 0);
    assert!(bench.read("out/a.log") == bytes, "a: {} of {} bytes", length("out/a.log"), bytes.len());
    assert!(bench.read("out/b.log") == bytes, "b: {} of {} bytes", length("out/b.log"), bytes.len());
    let verify = bench.tool("verify", &[]);
    assert!(verify.status.success(), "{verify:?}");
}

// S51: a stop that is asked for while the queue recovers is a clean stop, and costs nothing.
#[test]
fn a_stop_during_recovery_ends_it_in_order() {
    let bench = Bench::new();
    bench.write("in/a.log", awkward());
    let files = "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\nfollow = true\n";
    let sink = "[[sink.file]]\npath = \"out/{stream}.log\"\n";
    bench.config(&format!("segment_bytes_max = \"16KiB\"\nbatch_bytes_max = \"4KiB\"\n{files}{sink}"));
    let running = bench.start();
    until("progress", || !bench.read("out/a.log").is_empty());
    running.signal("-KILL");
    running.end();
    for _ in 0..3 {
        // Opening makes it again first: from then on it recovers.
        std::fs::remove_file(bench.path("q/LOCK")).unwrap();
        let running = bench.start();
        while !bench.path("q/LOCK").exists() {
            std::thread::yield_now();
        }
        running.stop();
    }
    bench.append("in/a.log", b"\n");
    bench.config(&format!("{}{sink}", files.replace("follow = true\n", "")));
    bench.run().success();
    assert_eq!(bench.read("out/a.log"), [awkward(), b"\n".to_vec()].concat());
}
