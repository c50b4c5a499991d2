//! append, read, stat, verify: alone, and beside a running owner.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Bench, finish, listed, pq, text, until};

#[test]
fn what_is_appended_can_be_read_and_its_seqs_are_printed() {
    let bench = Bench::new();
    let appended = bench.tool_with("append", &["s"], b"one\n\ntwo\r\nthree");
    assert!(appended.status.success(), "{appended:?}");
    assert_eq!(text(&appended.stdout), "1-3\n4\n");
    let appended = bench.tool_with("append", &["s", "--json"], b"five\n");
    assert_eq!(text(&appended.stdout), "{\"first\":5,\"last\":5,\"count\":1}\n");

    assert_eq!(text(&bench.tool("read", &["s"]).stdout), "one\n\ntwo\r\nthreefive\n");
    assert_eq!(text(&bench.tool("read", &["s", "--from", "3", "-n", "1"]).stdout), "two\r\n");
    let json = text(&bench.tool("read", &["s", "--from", "4", "--json"]).stdout);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["seq"].as_u64(), lines[0]["line"].as_str()), (Some(4), Some("three")));
    assert_eq!(lines[0]["line_feed"], serde_json::Value::Bool(false));
    assert_eq!((lines[1]["seq"].as_u64(), lines[1]["line"].as_str()), (Some(5), Some("five")));
}

#[test]
fn a_consumer_gets_each_record_once() {
    let bench = Bench::new();
    bench.tool_with("append", &["s"], b"1\n2\n3\n4\n");
    let read = |args: &[&str]| {
        let output = bench.tool("read", &[&["s", "--consumer", "c"], args].concat());
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    };
    assert_eq!(read(&["-n", "1"]), "1\n");
    assert_eq!(read(&["-n", "2"]), "2\n3\n");
    assert_eq!(read(&[]), "4\n");
    assert_eq!(read(&[]), "");
    let stat: serde_json::Value = serde_json::from_slice(&bench.tool("stat", &["--json"]).stdout).unwrap();
    assert_eq!(stat["streams"][0]["consumers"][0]["lag_records"], 0);
}

#[test]
fn appending_nothing_is_no_error() {
    let bench = Bench::new();
    let appended = bench.tool_with("append", &["s"], b"");
    assert_eq!((appended.status.code(), appended.stdout.len()), (Some(0), 0));
}

// S53
#[test]
fn a_second_owner_is_refused_and_looking_works_beside_the_first() {
    let bench = Bench::new();
    bench.write("in/a.log", "one\ntwo\n");
    bench.config(
        "[[source.file]]\npaths = [\"in/a.log\"]\nstream = \"a\"\nfollow = true\npoll_interval = \"5ms\"\n\
         [[sink.file]]\npath = \"out.log\"\n",
    );
    let running = bench.start();
    bench.until_holds("out.log", b"one\ntwo\n");

    let dir = bench.path("q").display().to_string();
    let second = finish(pq().arg("run").arg(bench.path("pipeline.toml")), b"");
    let refused = format!(
        "pq: error: {dir}: the queue is in use by another process\n  \
         help: stop that one first; `pq stat`, `pq verify` and `pq read` without --consumer work beside it\n"
    );
    assert_eq!((second.status.code(), text(&second.stderr)), (Some(2), refused.clone()));
    for (command, args) in [("append", &["a"][..]), ("read", &["a", "--consumer", "c"])] {
        let output = bench.tool(command, args);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), refused.clone()), "{command}");
    }

    assert_eq!(text(&bench.tool("read", &["a"]).stdout), "one\ntwo\n");
    let stat = bench.tool("stat", &[]);
    assert!(stat.status.success() && text(&stat.stdout).contains("1-2"), "{}", text(&stat.stdout));
    let verify = bench.tool("verify", &[]);
    assert!(verify.status.success() && text(&verify.stdout).contains("clean"), "{}", text(&verify.stdout));

    running.signal("-KILL");
    running.end();
    let third = finish(pq().arg("run").arg(bench.path("pipeline.toml")).arg("--drain"), b"");
    assert!(third.status.success(), "nothing is left of the killed owner: {}", text(&third.stderr));
}

#[test]
fn read_follows_a_stream_that_somebody_else_writes() {
    let bench = Bench::new();
    bench.tool_with("append", &["s"], b"one\n");
    let child = pq()
        .arg("read")
        .arg(bench.path("q"))
        .args(["s", "--follow", "-n", "2"])
        .stdout(fs::File::create(bench.path("followed")).unwrap())
        .spawn()
        .unwrap();
    bench.until_holds("followed", b"one\n");
    assert!(bench.tool_with("append", &["s"], b"two\n").status.success());
    bench.until_holds("followed", b"one\ntwo\n");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_queue_that_is_not_there_is_named_and_not_created() {
    let bench = Bench::new();
    for (command, args) in [("stat", &[][..]), ("verify", &[]), ("read", &["s"])] {
        let output = bench.tool(command, args);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let stderr = text(&output.stderr);
        assert!(
            stderr.starts_with("pq: error: ") && stderr.contains(&bench.path("q").display().to_string()),
            "{stderr}"
        );
    }
    assert!(!bench.path("q").exists());
}

#[test]
fn a_stream_that_is_not_there_is_named() {
    let bench = Bench::new();
    bench.tool_with("append", &["s"], b"x\n");
    for args in [&["other"][..], &["other", "--consumer", "c"]] {
        let output = bench.tool("read", args);
        assert_eq!(output.status.code(), Some(2));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("other") && stderr.contains("pq stat"), "{stderr}");
    }
}

// S24
#[test]
fn verify_tells_damage_exactly_and_exits_with_one() {
    let bench = Bench::new();
    bench.tool_with("append", &["s"], b"first\nsecond is here\nthird\n");
    let clean = bench.tool("verify", &["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&clean.stdout).unwrap();
    assert_eq!((clean.status.code(), &report["damaged"]), (Some(0), &serde_json::Value::Bool(false)));

    let segment = newest_segment(&bench);
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.windows(6).position(|window| window == b"second").unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, &bytes).unwrap();

    let damaged = bench.tool("verify", &[]);
    let stdout = text(&damaged.stdout);
    assert_eq!(damaged.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("DAMAGED") && stdout.contains('2'), "{stdout}");
    assert_eq!(fs::read(&segment).unwrap(), bytes, "nothing is changed");
    let read = bench.tool("read", &["s"]);
    assert_eq!(text(&read.stdout), "first\nthird\n", "the neighbours are whole");
    assert_eq!(read.status.code(), Some(1));
    assert!(text(&read.stderr).contains("record 2 missing: lost"), "{}", text(&read.stderr));
}

// S27 S31
#[test]
fn verify_names_what_is_not_read() {
    let bench = Bench::new();
    bench.tool_with("append", &["s"], b"one\n");
    bench.tool_with("append", &["t"], b"other\n");
    let of_t = newest_segment(&bench);
    let dir = bench.path("q/streams/0000000000000001");
    fs::write(dir.join("notes.bak"), "x").unwrap();
    let noted = bench.tool("verify", &[]);
    assert_eq!(noted.status.code(), Some(0), "{}", text(&noted.stdout));
    assert!(text(&noted.stdout).contains("ignored: notes.bak"), "{}", text(&noted.stdout));

    fs::copy(&of_t, dir.join("0000000000000008.seg")).unwrap();
    let foreign = bench.tool("verify", &[]);
    assert_eq!(foreign.status.code(), Some(1), "{}", text(&foreign.stdout));
    assert!(text(&foreign.stdout).contains("0000000000000008.seg: another"), "{}", text(&foreign.stdout));
    fs::remove_file(dir.join("0000000000000008.seg")).unwrap();

    std::os::unix::fs::symlink(&of_t, dir.join("0000000000000009.seg")).unwrap();
    let link = bench.tool("verify", &[]);
    assert_eq!(link.status.code(), Some(1), "{}", text(&link.stdout));
    assert!(text(&link.stdout).contains("0000000000000009.seg: a segment's name"), "{}", text(&link.stdout));
}

fn newest_segment(bench: &Bench) -> PathBuf {
    let streams = bench.path("q/streams");
    let stream = streams.join(listed(&streams).last().expect("a stream"));
    let segments: Vec<String> = listed(&stream).into_iter().filter(|name| name.ends_with(".seg")).collect();
    stream.join(segments.last().expect("a segment"))
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new();
    let lines: String = (0..50_000).map(|n| format!("line {n}\n")).collect();
    bench.tool_with("append", &["s"], lines.as_bytes());
    let mut child = pq()
        .arg("read")
        .arg(bench.path("q"))
        .arg("s")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    until("the folder is there", || bench.path("q").exists());
}

#[test]
fn an_output_that_cannot_be_written_is_no_damage() {
    let bench = Bench::new();
    bench.tool_with("append", &["s"], b"one\n");
    for args in [&["verify"][..], &["stat"], &["repair"], &["export", "s"], &["read", "s"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = pq();
        command.arg(args[0]).arg(bench.path("q")).args(&args[1..]).stdout(full).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let told = text(&output.stderr);
        assert!(told.contains("stdout cannot be written: ") && told.contains("help: "), "{args:?}: {told}");
    }
}
