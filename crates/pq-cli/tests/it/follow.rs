//! Following files as tail -F does, with a place that survives.

use std::fs;

use crate::support::Bench;

fn follow(bench: &Bench, patterns: &str) {
    bench.config(&format!(
        "commit_interval = \"1ms\"\n[[source.file]]\npaths = [{patterns}]\nstream = \"app\"\nfollow = true\n\
         poll_interval = \"5ms\"\n[[sink.file]]\npath = \"out.log\"\n"
    ));
}

#[test]
fn lines_written_later_arrive_and_unfinished_ones_wait() {
    let bench = Bench::new();
    bench.write("in/app.log", "one\n");
    follow(&bench, "\"in/app.log\"");
    let running = bench.start();
    bench.until_holds("out.log", b"one\n");
    bench.append("in/app.log", "tw");
    bench.append("in/app.log", "o\nthree");
    bench.until_holds("out.log", b"one\ntwo\n");
    bench.append("in/app.log", "\n");
    bench.until_holds("out.log", b"one\ntwo\nthree\n");
    running.stop();
}

#[test]
fn rotation_by_renaming_loses_nothing() {
    let bench = Bench::new();
    bench.write("in/app.log", "1\n");
    follow(&bench, "\"in/app.log\"");
    let running = bench.start();
    let mut expected = b"1\n".to_vec();
    bench.until_holds("out.log", &expected);
    for n in 2..6 {
        // The last line of the old file comes after the rename, as from a program that did not reopen yet.
        fs::rename(bench.path("in/app.log"), bench.path(&format!("in/app.log.{n}"))).unwrap();
        bench.append(&format!("in/app.log.{n}"), format!("late {n}\n"));
        bench.write("in/app.log", format!("{n}\n"));
        expected.extend_from_slice(format!("late {n}\n{n}\n").as_bytes());
        bench.until_holds("out.log", &expected);
    }
    running.stop();
}

#[test]
fn rotated_names_that_match_the_pattern_are_known_again() {
    let bench = Bench::new();
    bench.write("in/app.log", "1\n");
    follow(&bench, "\"in/app.log*\"");
    let running = bench.start();
    bench.until_holds("out.log", b"1\n");
    fs::rename(bench.path("in/app.log"), bench.path("in/app.log.1")).unwrap();
    bench.write("in/app.log", "2\n");
    bench.until_holds("out.log", b"1\n2\n");
    running.stop();
    fs::rename(bench.path("in/app.log.1"), bench.path("in/app.log.2")).unwrap();
    fs::rename(bench.path("in/app.log"), bench.path("in/app.log.1")).unwrap();
    bench.write("in/app.log", "3\n");
    let running = bench.start();
    bench.until_holds("out.log", b"1\n2\n3\n");
    running.stop();
}

#[test]
fn truncation_starts_over_at_the_beginning() {
    let bench = Bench::new();
    bench.write("in/app.log", "a long first line\n");
    follow(&bench, "\"in/app.log\"");
    let running = bench.start();
    bench.until_holds("out.log", b"a long first line\n");
    bench.write("in/app.log", "x\n");
    bench.until_holds("out.log", b"a long first line\nx\n");
    // Written anew and longer than before, between two looks: known by its beginning.
    bench.write("in/app.log", "y is another line that is longer than what was there\n");
    bench.until_holds(
        "out.log",
        b"a long first line\nx\ny is another line that is longer than what was there\n",
    );
    running.stop();
}

#[test]
fn a_file_that_comes_later_is_found() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("in")).unwrap();
    follow(&bench, "\"in/**/*.log\"");
    let running = bench.start();
    bench.write("in/deep/app.log", "hello\n");
    bench.until_holds("out.log", b"hello\n");
    running.stop();
}

#[test]
fn a_file_removed_after_it_was_read_is_let_go() {
    let bench = Bench::new();
    bench.write("in/app.log", "1\n");
    follow(&bench, "\"in/app.log\"");
    let running = bench.start();
    bench.until_holds("out.log", b"1\n");
    fs::remove_file(bench.path("in/app.log")).unwrap();
    bench.write("in/app.log", "2\n");
    bench.until_holds("out.log", b"1\n2\n");
    running.stop();
}
