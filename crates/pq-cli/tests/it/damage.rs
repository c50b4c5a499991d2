//! What `verify`, `stat` and `repair` say of a queue of which something is gone or spoilt: which file, and what mends it; and that one
//! damaged stream hides no other.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::support::{Bench, finish, listed, pq, text};

/// Of the stream `orders`.
const ORDERS: &str = "streams/0000000000000001";

/// Two streams: `orders` with three segments, seqs 1-3, 4-5 and 6; `other` with two records.
fn bench() -> Bench {
    let bench = Bench::new();
    for (stream, lines) in [
        ("orders", "one\ntwo\nthree\n"),
        ("orders", "four\nfive\n"),
        ("orders", "six\n"),
        ("other", "a\nb\n"),
    ] {
        assert!(bench.tool_with("append", &[stream], lines.as_bytes()).status.success());
    }
    bench
}

fn in_queue(bench: &Bench, path: &str) -> PathBuf {
    bench.path("q").join(path)
}

fn segment(id: u64) -> String {
    format!("{ORDERS}/{id:016x}.seg")
}

fn flip(path: &PathBuf, at: usize) {
    let mut bytes = fs::read(path).expect("a file of the queue");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

fn remove_catalog(bench: &Bench) {
    for name in listed(&bench.path("q")) {
        if name.starts_with("catalog-") {
            fs::remove_file(in_queue(bench, &name)).expect("removed");
        }
    }
}

/// Ends with 1, and says all of this.
#[track_caller]
fn assert_tells(output: &Output, parts: &[&str]) {
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}{}", text(&output.stderr));
    for part in parts {
        assert!(told.contains(part), "{part:?} is in {told}");
    }
}

#[test]
fn verify_sees_what_a_repair_would_mend_of_the_queues_own_files() {
    let meta = bench();
    flip(&in_queue(&meta, "queue.meta"), 20);
    assert_tells(&meta.tool("verify", &[]), &["damage: queue.meta: damaged", "DAMAGED", "pq repair"]);
    assert_eq!(meta.tool("repair", &["--apply"]).status.code(), Some(0), "all of it is mended");
    assert_eq!(meta.tool("verify", &[]).status.code(), Some(0));

    let gone = bench();
    fs::remove_file(in_queue(&gone, "queue.meta")).unwrap();
    assert_tells(&gone.tool("verify", &[]), &["damage: queue.meta: missing", "pq repair"]);

    for prefix in ["catalog-", "cursors-"] {
        let bench = bench();
        let names = listed(&bench.path("q"));
        // The newest that is not only prepared.
        let holds = |name: &&String| {
            name.starts_with(prefix)
                && fs::read(in_queue(&bench, name)).unwrap().iter().any(|byte| *byte != 0)
        };
        let name = names.iter().rev().find(holds).unwrap();
        flip(&in_queue(&bench, name), 90);
        assert_tells(&bench.tool("verify", &[]), &[&format!("damage: {name}: "), "pq repair"]);
        let json = bench.tool("verify", &["--json"]);
        let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        assert_eq!((json.status.code(), &report["damaged"]), (Some(1), &true.into()));
    }
}

// S28
#[test]
fn a_lost_catalog_is_damage_and_a_repair_says_what_it_cannot_mend_and_which_flag_does() {
    let bench = bench();
    remove_catalog(&bench);
    assert_tells(
        &bench.tool("verify", &[]),
        &["damage: catalog: missing", "damage: streams/0000000000000001: ", "3 segments", "pq repair"],
    );
    assert_tells(&bench.tool("stat", &[]), &[ORDERS, "no stream stands for it", "pq repair"]);
    let adopt = ["NOT MENDED: the catalog", "--apply --adopt 0000000000000001=NAME"];
    assert_tells(&bench.tool("repair", &[]), &adopt);
    let applied = bench.tool("repair", &["--apply"]);
    assert_tells(&applied, &adopt);
    assert!(!text(&applied.stdout).contains("REPAIRED"), "{}", text(&applied.stdout));

    let first = bench.tool("repair", &["--apply", "--adopt", "1=orders"]);
    assert_tells(&first, &["1 stream adopted", "NOT MENDED", "--adopt 0000000000000002=NAME"]);
    let second = bench.tool("repair", &["--apply", "--adopt", "2=other"]);
    assert_eq!(second.status.code(), Some(0), "{}", text(&second.stdout));
    assert_eq!(bench.tool("verify", &[]).status.code(), Some(0));
    assert_eq!(text(&bench.tool("read", &["orders"]).stdout), "one\ntwo\nthree\nfour\nfive\nsix\n");
}

#[test]
fn a_stream_whose_folder_is_gone_is_named_and_hides_no_other() {
    let bench = bench();
    fs::remove_dir_all(in_queue(&bench, ORDERS)).unwrap();
    let verify = bench.tool("verify", &[]);
    let missing = "streams/0000000000000001: the stream's directory is missing";
    assert_tells(&verify, &[missing, "records 1 to 6", "other: whole, 2 records", "pq repair"]);
    let stat = bench.tool("stat", &[]);
    assert_tells(&stat, &[missing, "1-2", "pq repair"]);
    let json: serde_json::Value = serde_json::from_slice(&bench.tool("stat", &["--json"]).stdout).unwrap();
    assert_eq!(json["streams"][0]["unreadable"], missing);
    assert!(json["streams"][1]["unreadable"].is_null(), "{json}");
    let export = bench.tool("export", &["orders"]);
    assert_eq!(export.status.code(), Some(2));
    assert!(text(&export.stderr).contains("pq repair"), "{}", text(&export.stderr));

    bench.config("[[sink.file]]\npath = \"out/{stream}.log\"\n");
    let run = finish(pq().args(["run", "--drain"]).arg(bench.path("pipeline.toml")), b"");
    let told = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{told}");
    assert!(told.contains("stream `orders`: records 1 to 6 missing: lost"), "{told}");
    assert_eq!(bench.read("out/other.log"), b"a\nb\n");
}

#[test]
fn a_stream_that_cannot_be_read_is_named_and_hides_no_other() {
    let bench = bench();
    // A file in the folder's place cannot be listed by anybody, root included.
    fs::remove_dir_all(in_queue(&bench, ORDERS)).unwrap();
    fs::write(in_queue(&bench, ORDERS), b"").unwrap();
    let why = "streams/0000000000000001: cannot be read";
    assert_tells(&bench.tool("verify", &[]), &[why, "other: whole, 2 records", "pq repair"]);
    assert_tells(&bench.tool("stat", &[]), &[why, "1-2"]);
    bench.config("[[sink.file]]\npath = \"out/{stream}.log\"\n");
    let run = finish(pq().args(["run", "--drain"]).arg(bench.path("pipeline.toml")), b"");
    let told = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{told}");
    assert!(told.contains("stream `orders` is paused") && told.contains(ORDERS), "{told}");
    assert!(told.contains("help: ") && told.contains("pq verify"), "{told}");
    assert_eq!(bench.read("out/other.log"), b"a\nb\n");
}

#[test]
fn a_segment_that_is_gone_or_zeroed_is_named() {
    for (id, lost) in [(1, "records 1 to 3"), (2, "records 4 to 5"), (3, "record 6")] {
        let path = segment(id);
        let gone = bench();
        fs::remove_file(in_queue(&gone, &path)).unwrap();
        assert_tells(
            &gone.tool("verify", &[]),
            &[&format!("{path}: missing; {lost} stood there"), "pq repair"],
        );
        let zeroed = bench();
        fs::write(in_queue(&zeroed, &path), vec![0; 8192]).unwrap();
        let told = format!("{path}: nothing of it can be read; {lost} stood there");
        assert_tells(&zeroed.tool("verify", &[]), &[&told]);
    }
}

#[test]
fn what_is_lost_is_exported_as_a_gap_even_if_no_segment_is_left() {
    let bench = bench();
    for id in 1..=3 {
        fs::remove_file(in_queue(&bench, &segment(id))).unwrap();
    }
    assert_tells(
        &bench.tool("export", &["orders"]),
        &["\"gap\":{\"from\":1,\"to\":7,\"count\":6,\"reason\":\"lost\"}"],
    );
    assert_tells(&bench.tool("verify", &[]), &[&segment(2)]);
    assert_eq!(bench.tool("read", &["orders"]).status.code(), Some(1));
}

#[test]
fn lost_seqs_are_no_records_that_wait() {
    let bench = bench();
    assert!(bench.tool("read", &["orders", "--consumer", "c", "-n", "1"]).status.success());
    fs::remove_file(in_queue(&bench, &segment(2))).unwrap();
    let figures = || {
        let json = bench.tool("stat", &["--json"]).stdout;
        let stat: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let orders = &stat["streams"][0];
        ["records", "first", "end"]
            .map(|name| orders[name].as_u64().unwrap())
            .into_iter()
            .chain([orders["consumers"][0]["lag_records"].as_u64().unwrap()])
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(), [4, 1, 7, 3], "found by looking");
    assert_eq!(bench.tool("repair", &["--apply"]).status.code(), Some(0));
    assert_eq!(figures(), [4, 1, 7, 3], "written down");
    let read = bench.tool("read", &["orders", "--consumer", "c"]);
    assert_eq!(text(&read.stdout), "two\nthree\nsix\n");
}
