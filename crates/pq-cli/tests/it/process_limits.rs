//! Limits of the process, set from outside: open files, file sizes. Nothing dies of them, and what is said names them.

use std::process::Command;

use crate::support::{Bench, Running, finish, pq, text};

/// The program under limits of the shell: `-n 12` open files, `-f 64` blocks of 512 bytes.
fn limited(limit: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).arg(pq().get_program());
    command
}

// S37
#[test]
fn too_few_descriptors_are_refused_by_name_before_anything_is_changed() {
    for limit in ["-n 25", "-n 20", "-n 12", "-n 8"] {
        let bench = Bench::new();
        let output = finish(limited(limit).arg("append").arg(bench.path("q")).arg("s"), b"one\n");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{limit}: {output:?}");
        assert!(said.contains("open files") || said.contains("`ulimit -n`"), "{limit}: {said}");
        assert!(!bench.path("q").exists(), "{limit}: {said}");
    }
    let bench = Bench::new();
    let output = finish(limited("-n 26").arg("append").arg(bench.path("q")).arg("s"), b"one\n");
    assert!(output.status.success(), "{output:?}");
}

// S33
#[test]
fn a_limit_of_file_sizes_is_a_full_disk_and_no_death() {
    let bench = Bench::new();
    let line = [&b"x".repeat(100_000)[..], b"\n"].concat();
    let output = finish(limited("-f 64").arg("append").arg(bench.path("q")).arg("s"), &line);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("File too large") || said.contains("no storage space"), "{said}");
    let output = finish(limited("-f 0").arg("append").arg(bench.path("new")).arg("s"), b"one\n");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("`ulimit -f`"), "{output:?}");
    let output = bench.tool_with("append", &["s"], b"one\n");
    assert!(output.status.success(), "{output:?}");
    assert!(text(&bench.tool("read", &["s"]).stdout).ends_with("one\n"));
}

#[test]
fn a_segment_that_would_grow_beyond_the_limit_is_followed_by_a_new_one() {
    let bench = Bench::new();
    let lines = b"a line of some length, to fill files with\n".repeat(250_000);
    let output = finish(limited("-f 8192").arg("append").arg(bench.path("q")).arg("s"), &lines);
    assert!(output.status.success(), "{output:?}");
    assert!(bench.tool("read", &["s"]).stdout == lines);
}

#[test]
fn an_output_at_the_limit_is_waited_for_and_a_signal_ends_the_run() {
    let bench = Bench::new();
    bench.write("in/a.log", b"a line of some length, to fill files with\n".repeat(250_000));
    bench.config("[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n");
    bench.run().success();
    let config = bench.config("[[sink.file]]\npath = \"out.log\"\n");
    let mut command = limited("-f 8192");
    let mut running = Running::start(command.args(["run", "--drain"]).arg(&config));
    running.until_says("File too large");
    running.signal("-TERM");
    let output = running.end();
    assert!(output.status.code().is_some(), "no signal ended it: {output:?}");
    let output = finish(pq().args(["run", "--drain"]).arg(&config), b"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bench.read("out.log"), bench.read("in/a.log"));
}

#[test]
fn what_stands_in_the_place_of_the_queues_own_files_is_named_with_what_to_do() {
    for name in ["LOCK", "streams"] {
        let bench = Bench::new();
        if name == "LOCK" {
            std::fs::create_dir_all(bench.path("q/LOCK")).unwrap();
        } else {
            bench.write("q/streams", "mine");
        }
        let output = bench.tool_with("append", &["s"], b"one\n");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("help:") && said.contains("away") && said.contains(name), "{said}");
    }
}
