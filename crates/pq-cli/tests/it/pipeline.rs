//! Sources to sinks: bytes, order, restarts.

use std::fs;
use std::process::Stdio;

use crate::support::{Bench, awkward, finish, listed, pq, text, until};

const FILES: &str = "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n[[sink.file]]\npath = \"out/{stream}.log\"\n";

#[test]
fn every_byte_arrives_and_a_second_run_delivers_nothing_twice() {
    let bench = Bench::new();
    let inputs: &[(&str, Vec<u8>)] = &[
        ("a", awkward()),
        ("b", b"".to_vec()),
        ("c", b"\n".to_vec()),
        ("d", b"one".to_vec()),
        ("e", b"\r\n".to_vec()),
    ];
    for (name, bytes) in inputs {
        bench.write(&format!("in/{name}.log"), bytes);
    }
    bench.config(FILES);
    let first = bench.run().success();
    for (name, bytes) in inputs {
        assert_eq!(&bench.read(&format!("out/{name}.log")), bytes, "{name}");
    }
    assert_eq!(first.figure("records_appended"), first.figure("records_delivered"));
    assert_eq!((first.figure("lag"), first.figure("lost")), (0, 0));
    assert!(first.stderr().contains("records"), "a summary: {}", first.stderr());
    assert!(first.output.stdout.is_empty(), "stdout is for records");

    // S61
    let second = bench.run().success();
    assert_eq!((second.figure("records_appended"), second.figure("records_delivered")), (0, 0));
    for (name, bytes) in inputs {
        assert_eq!(&bench.read(&format!("out/{name}.log")), bytes, "{name}");
    }
}

// S31
#[test]
fn what_opening_noticed_is_told() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\n");
    bench.config(FILES);
    let fresh = bench.run().success();
    assert!(!fresh.stderr().contains("ignored"), "nothing to tell of a sound queue: {}", fresh.stderr());
    bench.write("q/notes.bak", "mine");
    let told = bench.run().success();
    assert!(told.stderr().contains("notes.bak is not the queue's, ignored"), "{}", told.stderr());
    assert_eq!(text(&bench.read("q/notes.bak")), "mine");
}

#[test]
fn a_file_that_grew_between_runs_is_gone_on_with() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\ntw");
    bench.config(FILES);
    bench.run().success();
    assert_eq!(text(&bench.read("out/a.log")), "one\ntw");
    bench.append("in/a.log", "o\nthree\n");
    bench.run().success();
    assert_eq!(text(&bench.read("out/a.log")), "one\ntwo\nthree\n");
}

#[test]
fn several_files_in_one_stream_keep_their_order_and_their_places() {
    let bench = Bench::new();
    for name in ["1", "2", "3"] {
        bench.write(&format!("in/{name}.log"), format!("{name}a\n{name}b\n"));
    }
    bench.config(
        "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"all\"\n[[sink.file]]\npath = \"out.log\"\n",
    );
    bench.run().success();
    assert_eq!(text(&bench.read("out.log")), "1a\n1b\n2a\n2b\n3a\n3b\n");
    bench.append("in/2.log", "2c\n");
    fs::remove_file(bench.path("in/1.log")).unwrap();
    bench.write("in/4.log", "4a\n");
    bench.run().success();
    assert_eq!(text(&bench.read("out.log")), "1a\n1b\n2a\n2b\n3a\n3b\n2c\n4a\n");
}

#[test]
fn a_file_renamed_between_runs_is_neither_read_again_nor_left_unfinished() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\n");
    bench.config(FILES);
    bench.run().success();
    bench.append("in/a.log", "two\n");
    fs::rename(bench.path("in/a.log"), bench.path("in/a.log.1")).unwrap();
    bench.write("in/a.log", "three\n");
    bench.run().success();
    assert_eq!(text(&bench.read("out/a.log")), "one\ntwo\nthree\n");
}

// S57
#[test]
fn lines_longer_than_a_record_are_split_and_come_out_whole() {
    let bench = Bench::new();
    let mut bytes = "y".repeat(100_000);
    bytes.push_str("\nshort\n");
    bytes.push_str(&"z".repeat(8192));
    bench.write("in/a.log", &bytes);
    bench.config(&format!("record_bytes_max = 4096\n{FILES}"));
    let ran = bench.run().success();
    assert_eq!(text(&bench.read("out/a.log")), bytes);
    assert_eq!(ran.figure("records_appended"), 25 + 1 + 2);
}

#[test]
fn small_segments_are_rotated_delivered_and_retired() {
    let bench = Bench::new();
    let bytes = awkward();
    bench.write("in/a.log", &bytes);
    bench.config(&format!("segment_bytes_max = \"64KiB\"\n{FILES}"));
    let ran = bench.run().success();
    assert_eq!(bench.read("out/a.log"), bytes);
    assert!(ran.figure("segments_created") > 2, "{}", ran.summary);
    assert!(ran.figure("segments_retired") > 0, "{}", ran.summary);
}

#[test]
fn many_sources_streams_and_sinks_live_with_few_descriptors() {
    // S54 in small: the same with 1,000 streams is a check of its own.
    let bench = Bench::new();
    for n in 0..60 {
        bench.write(&format!("in/s{n}.log"), format!("hello from {n}\n"));
    }
    bench.config(&format!("fds_max = 24\n{FILES}"));
    let ran = bench.run().success();
    for n in 0..60 {
        assert_eq!(text(&bench.read(&format!("out/s{n}.log"))), format!("hello from {n}\n"));
    }
    let (peak, limit) = (ran.figure("fds_peak"), ran.figure("fds_max"));
    assert!(peak <= limit && limit == 24, "{peak} of {limit}");
}

#[test]
fn stdin_to_stdout_is_a_pipe_that_remembers() {
    let bench = Bench::new();
    let config = bench.config("[[source.stdin]]\nstream = \"in\"\n[[sink.stdout]]\n");
    let bytes = awkward();
    let output = finish(pq().arg("run").arg(&config), &bytes);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout, bytes);
}

#[test]
fn a_stdout_that_cannot_be_written_ends_the_run_with_a_word_and_what_was_not_written_is_kept() {
    let bench = Bench::new();
    bench.write("in/a.log", awkward());
    let config = bench.config("[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"a\"\n[[sink.stdout]]\n");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    for stdout in [Stdio::piped(), Stdio::from(full())] {
        let mut command = pq();
        command.args(["run", "--quiet"]).arg(&config).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A pipe that nobody reads.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("error: stdout cannot be written: ") && told.contains("help: "), "{told}");
        assert!(!told.contains("panicked"), "{told}");
    }
    let output = finish(pq().args(["run", "--quiet"]).arg(&config), b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout, awkward(), "nothing was acknowledged that was not written");
}

// S61
#[test]
fn a_signal_stops_cleanly_and_the_next_run_goes_on() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\n");
    let rest = FILES.replace("stream = ", "follow = true\npoll_interval = \"5ms\"\nstream = ");
    bench.config(&rest);
    let running = bench.start();
    bench.until_holds("out/a.log", b"one\n");
    running.stop();
    bench.append("in/a.log", "two\n");
    let running = bench.start();
    bench.until_holds("out/a.log", b"one\ntwo\n");
    running.signal("-INT");
    let output = running.end();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "", "nothing was wrong, and quiet was asked for");
}

#[test]
fn drain_ends_a_followed_pipeline_and_one_without_sources() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\n");
    bench.config(&FILES.replace("stream = ", "follow = true\nstream = "));
    let drain = || finish(pq().arg("run").arg(bench.path("pipeline.toml")).arg("--drain"), b"");
    let output = drain();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&bench.read("out/a.log")), "one\n");

    assert!(bench.tool_with("append", &["a"], b"by hand\n").status.success());
    bench.config("[[sink.file]]\npath = \"out/{stream}.log\"\n");
    let output = drain();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&bench.read("out/a.log")), "one\nby hand\n");
}

#[test]
fn a_named_file_that_is_not_there_is_an_error_and_the_others_are_delivered() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\n");
    bench.config(&format!("{FILES}[[source.file]]\npaths = [\"in/b.txt\"]\nstream = \"b\"\n"));
    let ran = bench.run();
    assert_eq!(ran.output.status.code(), Some(1));
    assert!(ran.stderr().contains("in/b.txt"), "{}", ran.stderr());
    assert_eq!(text(&bench.read("out/a.log")), "one\n");
}

#[test]
fn many_streams_are_declared_in_one_table() {
    let bench = Bench::new();
    bench.config("[[stream]]\nname = \"s-{number}\"\ncount = 20\n[[sink.null]]\n");
    let running = bench.start();
    until("20 streams", || {
        let stat = bench.tool("stat", &["--json"]);
        let stat: serde_json::Value = serde_json::from_slice(&stat.stdout).unwrap_or_default();
        stat["streams"].as_array().is_some_and(|streams| streams.len() == 20)
    });
    running.stop();
}

#[test]
fn stream_names_never_leave_the_output_folder() {
    // S58
    let bench = Bench::new();
    assert!(bench.tool_with("append", &["../../evil"], b"x\n").status.success());
    bench.config("[[sink.file]]\npath = \"out/{stream}.log\"\n");
    let output = finish(pq().arg("run").arg(bench.path("pipeline.toml")).arg("--drain"), b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(listed(&bench.path("out")), ["%2e.%2f..%2fevil.log"]);
}
