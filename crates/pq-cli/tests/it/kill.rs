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
