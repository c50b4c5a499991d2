//! Limits as a configuration sets them, and as `pq stat` shows them.

use crate::support::{Bench, finish, pq, text};

const LINES: u64 = 20_000;
const CAP: u64 = 512 << 10;

/// Two megabytes of numbered lines in `in/s.log`, and a pipeline that feeds them to the stream `s` under a cap of half a mebibyte.
fn bench(on_full: &str, rest: &str) -> (Bench, String) {
    let bench = Bench::new();
    let lines: String = (1..=LINES).map(|n| format!("{n:>99}\n")).collect();
    bench.write("in/s.log", &lines);
    let source = "[[source.file]]\npaths = [\"in/*.log\"]\nstream = \"{stem}\"\n";
    bench.config(&format!(
        "stream_bytes_max = \"512KiB\"\non_full = \"{on_full}\"\ncursor_save_interval = \"5ms\"\n{source}{rest}"
    ));
    (bench, lines)
}

fn stat(bench: &Bench) -> serde_json::Value {
    serde_json::from_slice(&bench.tool("stat", &["--json"]).stdout).expect("JSON")
}

#[test]
fn a_stream_that_drops_its_oldest_keeps_the_newest_lines_within_its_cap() {
    let (bench, lines) = bench("drop-oldest", "");
    let ran = bench.run().success();
    assert_eq!(ran.figure("records_appended"), LINES);
    let stat = stat(&bench);
    let stream = &stat["streams"][0];
    assert!(stream["bytes"].as_u64().unwrap() <= CAP, "{stat}");
    let trimmed = stream["trimmed_records"].as_u64().unwrap();
    assert!(trimmed > LINES / 2 && stream["first"] == trimmed + 1, "{stat}");
    assert_eq!((&stream["bytes_max"], &stream["on_full"]), (&CAP.into(), &"drop-oldest".into()));
    assert!(stat["disk"]["bytes"].as_u64() > stream["bytes"].as_u64());
    let kept = text(&bench.tool("read", &["s"]).stdout);
    assert!(lines.ends_with(&kept) && kept.len() as u64 == 100 * (LINES - trimmed));
    let shown = text(&bench.tool("stat", &[]).stdout);
    assert!(shown.contains("drop-oldest") && shown.contains("on the disk in all"), "{shown}");
}

#[test]
fn seqs_that_were_asked_for_and_are_retired_are_a_gap_of_their_own() {
    let (bench, _) = bench("drop-oldest", "");
    bench.run().success();
    let first = stat(&bench)["streams"][0]["first"].as_u64().unwrap();
    let gap = |to: u64| {
        format!(
            "{{\"stream\":\"s\",\"gap\":{{\"from\":1,\"to\":{to},\"count\":{},\"reason\":\"retired\"}}}}\n",
            to - 1
        )
    };
    let all = bench.tool("export", &["s", "--from", "1"]);
    assert!(all.status.success() && text(&all.stdout).starts_with(&gap(first)), "{}", text(&all.stderr));
    let below = bench.tool("export", &["s", "--from", "1", "--to", "10"]);
    assert_eq!((below.status.code(), text(&below.stdout)), (Some(0), gap(11)), "policy, and no loss");
    let kept = bench.tool("export", &["s"]);
    assert!(text(&kept.stdout).starts_with(&format!("{{\"stream\":\"s\",\"seq\":{first},")), "not asked for");

    let read = bench.tool("read", &["s", "--from", "1", "-n", "1"]);
    assert_eq!(text(&read.stderr), format!("pq: records 1 to {} missing: retired\n", first - 1));
    assert!(read.status.success() && read.stdout.len() == 100);
    assert!(bench.tool("read", &["s", "-n", "1"]).stderr.is_empty());
}

#[test]
fn a_stream_that_drops_the_newest_counts_what_it_does_not_take() {
    let (bench, lines) = bench("drop-newest", "");
    let ran = bench.run().success();
    let (taken, dropped) = (ran.figure("records_appended"), ran.figure("dropped"));
    assert!(dropped > 0 && taken + dropped == LINES, "{taken} and {dropped}");
    assert!(ran.stderr().contains("dropped, the stream was full"), "{}", ran.stderr());
    let kept = text(&bench.tool("read", &["s"]).stdout);
    assert!(lines.starts_with(&kept[..1000]));
    assert!(stat(&bench)["streams"][0]["bytes"].as_u64().unwrap() <= CAP);
}

// S50: sources wait for the sink, and every line arrives.
#[test]
fn a_stream_that_blocks_waits_for_its_sink_and_loses_nothing() {
    let (bench, lines) = bench("block", "[[sink.file]]\npath = \"out/{stream}.log\"\n");
    let ran = bench.run().success();
    assert_eq!((ran.figure("records_delivered"), ran.figure("dropped")), (LINES, 0));
    assert!(bench.read("out/s.log") == lines.as_bytes());
    assert!(stat(&bench)["streams"][0]["bytes"].as_u64().unwrap() <= CAP);
}

#[test]
fn appending_to_a_full_stream_tells_both_numbers_and_what_was_taken() {
    let bench = Bench::new();
    bench.config("[[stream]]\nname = \"s\"\nbytes_max = \"256KiB\"\n");
    let made = finish(pq().args(["run", "--drain"]).arg(bench.path("pipeline.toml")), b"");
    assert!(made.status.success(), "{made:?}");
    let input: String = (0..10_000).map(|n| format!("{n:>99}\n")).collect();
    let appended = bench.tool_with("append", &["s"], input.as_bytes());
    assert_eq!(appended.status.code(), Some(1));
    let stderr = text(&appended.stderr);
    assert!(stderr.contains("the stream is full") && stderr.contains("of 262144"), "{stderr}");
    let taken = text(&appended.stdout);
    assert!(taken.starts_with("1-"), "{taken}");
    // A sink makes room, and the rest can be appended.
    bench.tool("read", &["s", "--consumer", "c"]);
    assert!(bench.tool_with("append", &["s"], b"more\n").status.success());
}

// S55
#[test]
fn a_cap_that_cannot_be_is_refused_by_its_name_in_the_configuration() {
    let bench = Bench::new();
    let error = |config: &str| {
        bench.config(config);
        let output = finish(pq().arg("run").arg(bench.path("pipeline.toml")), b"");
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let small = error("stream_bytes_max = \"1MiB\"\nsegment_bytes_max = \"2MiB\"\n");
    assert!(small.contains("field `queue.stream_bytes_max`: must hold a segment"), "{small}");
    let small = error("[[stream]]\nname = \"s\"\nbytes_max = \"1MiB\"\nsegment_bytes_max = \"2MiB\"\n");
    assert!(small.contains("pipeline.toml:5: field `stream.bytes_max`"), "{small}");
    let small = error("bytes_max = \"1MiB\"\n");
    assert!(small.contains("field `queue.bytes_max`"), "{small}");
    let never = error("age_max = \"0s\"\n");
    assert!(never.contains("field `queue.age_max`"), "{never}");
    let other = error("on_full = \"explode\"\n");
    assert!(other.contains("`drop-oldest`"), "{other}");
}
