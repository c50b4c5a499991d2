//! `export` and `repair` at a real queue with real damage, and what `stat` and `verify` say then.

use std::fs;
use std::path::PathBuf;

use crate::support::{Bench, finish, pq, text};

const ORDERS: &str = "q/streams/0000000000000001";

/// Two segments: four records, one of them not UTF-8, and two more.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.tool_with("append", &["orders"], b"first\nsecond is here\n\xff\xfe\nfourth\n");
    bench.tool_with("append", &["orders"], b"fifth\nsixth\n");
    bench
}

fn segment(bench: &Bench, id: u64) -> PathBuf {
    bench.path(&format!("{ORDERS}/{id:016x}.seg"))
}

/// Two bits of a payload: no checksum mends that.
fn spoil(bench: &Bench, id: u64, payload: &[u8]) {
    let path = segment(bench, id);
    let mut bytes = fs::read(&path).expect("a queue that can be read");
    let at =
        bytes.windows(payload.len()).position(|window| window == payload).expect("a queue that can be read");
    bytes[at] ^= 0x21;
    fs::write(&path, &bytes).expect("a queue that can be read");
}

fn lines(stdout: &[u8]) -> Vec<serde_json::Value> {
    text(stdout).lines().map(|line| serde_json::from_str(line).expect("a queue that can be read")).collect()
}

#[test]
fn export_prints_records_as_text_or_base64_and_gaps_as_lines_of_their_own() {
    let bench = bench();
    let all = bench.tool("export", &["orders"]);
    assert_eq!((all.status.code(), text(&all.stderr)), (Some(0), String::new()));
    let all = lines(&all.stdout);
    assert_eq!(all.len(), 6);
    assert_eq!((&all[1]["seq"], &all[1]["line"]), (&2.into(), &"second is here".into()));
    assert_eq!((&all[2]["seq"], &all[2]["base64"]), (&3.into(), &"//4=".into()));
    assert!(all[0]["appended_at"].as_u64().unwrap() > 1_000_000_000_000_000_000);
    let some = lines(&bench.tool("export", &["orders", "--from", "2", "--to", "4"]).stdout);
    assert_eq!(some.iter().map(|line| line["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3, 4]);

    spoil(&bench, 1, b"second");
    let holed = bench.tool("export", &["orders", "--to", "3"]);
    assert_eq!(holed.status.code(), Some(1), "{}", text(&holed.stderr));
    let gap = &lines(&holed.stdout)[1];
    assert_eq!(
        (&gap["gap"]["from"], &gap["gap"]["to"], &gap["gap"]["reason"]),
        (&2.into(), &3.into(), &"lost".into())
    );
    assert!(text(&holed.stderr).contains("1 record of"), "{}", text(&holed.stderr));
    assert_eq!(
        bench.tool("export", &["orders", "--from", "3"]).status.code(),
        Some(0),
        "nothing of that is lost"
    );

    let missing = bench.tool("export", &["nobody"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("nobody") && text(&missing.stderr).contains("pq stat"));
}

// S24
#[test]
fn repair_plans_first_then_mends_and_everything_says_so() {
    let bench = bench();
    assert_eq!(bench.tool("repair", &[]).status.code(), Some(0), "nothing to do");
    assert_eq!(bench.tool("repair", &["--apply"]).status.code(), Some(0));
    spoil(&bench, 1, b"second");
    let before = text(&bench.tool("read", &["orders"]).stdout);
    let bytes = fs::read(segment(&bench, 1)).unwrap();

    let plan = bench.tool("repair", &[]);
    let told = text(&plan.stdout);
    assert_eq!(plan.status.code(), Some(1), "{told}");
    for part in [
        "0000000000000001.seg",
        "frames damaged",
        "record 2",
        "nothing was changed",
        "--apply",
        "quarantine/",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(fs::read(segment(&bench, 1)).unwrap(), bytes, "a plan changes nothing");

    let done = bench.tool("repair", &["--apply", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (done.status.code(), &report["applied"], &report["lost_records"]),
        (Some(0), &true.into(), &1.into()),
        "done: what is lost is written down"
    );
    let verify = bench.tool("verify", &[]);
    assert_eq!(verify.status.code(), Some(0), "{}", text(&verify.stdout));
    assert!(text(&verify.stdout).contains("written down"), "{}", text(&verify.stdout));
    assert_eq!(text(&bench.tool("read", &["orders"]).stdout), before);
    assert_eq!(bench.tool("repair", &[]).status.code(), Some(0));
    assert_eq!(bench.tool("repair", &["--apply"]).status.code(), Some(0));

    let stat = text(&bench.tool("stat", &[]).stdout);
    for part in ["lost", "2-2", "quarantine", "mended.seg", "orders", "Only you remove them"] {
        assert!(stat.contains(part), "{part} in {stat}");
    }
    let stat: serde_json::Value = serde_json::from_slice(&bench.tool("stat", &["--json"]).stdout).unwrap();
    let loss = &stat["streams"][0]["losses"][0];
    assert_eq!((&loss["from"], &loss["to"], &loss["reason"]), (&2.into(), &3.into(), &"lost".into()));
    assert!(loss["found_at"].as_u64().is_some());
    let file = &stat["quarantine"]["files"][0];
    assert_eq!((&file["stream"], &file["segment"]), (&"orders".into(), &1.into()));
    assert!(stat["quarantine"]["own_bytes"].as_u64().unwrap() >= bytes.len() as u64);

    let name = file["name"].as_str().unwrap();
    let exported = bench.tool("export", &["--quarantine", name]);
    let exported_lines = lines(&exported.stdout);
    assert_eq!((exported.status.code(), exported_lines.len()), (Some(1), 4), "{}", text(&exported.stderr));
    assert_eq!(exported_lines[0]["stream"], "orders");
    let path = bench.path("q/quarantine").join(name);
    let by_path = finish(pq().arg("export").arg(bench.path("q")).arg("--quarantine").arg(path), b"");
    assert_eq!(by_path.stdout, exported.stdout);
}

#[test]
fn repair_beside_an_owner_only_plans() {
    let bench = bench();
    spoil(&bench, 1, b"second");
    bench.write("in.log", "live\n");
    let source = "[[source.file]]\npaths = [\"in.log\"]\nstream = \"live\"\nfollow = true\n";
    bench.config(&format!("{source}[[sink.file]]\npath = \"out.log\"\nstreams = [\"live\"]\n"));
    let owner = bench.start();
    bench.until_holds("out.log", b"live\n");
    let refused = bench.tool("repair", &["--apply"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("in use") && text(&refused.stderr).contains("help:"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(bench.tool("repair", &[]).status.code(), Some(1), "a plan works beside it");
    owner.stop();
}

// S28
#[test]
fn a_stream_without_its_catalog_comes_back_by_name() {
    let bench = bench();
    let before = bench.tool("read", &["orders"]).stdout;
    for name in crate::support::listed(&bench.path("q")) {
        if name.starts_with("catalog-") {
            fs::remove_file(bench.path("q").join(name)).unwrap();
        }
    }
    let told = bench.tool("repair", &[]);
    assert_eq!(told.status.code(), Some(1));
    assert!(text(&told.stdout).contains("--adopt 0000000000000001=NAME"), "{}", text(&told.stdout));
    let verify = text(&bench.tool("verify", &[]).stdout);
    assert!(verify.contains("damage: streams/0000000000000001"), "{verify}");
    let wrong = bench.tool("repair", &["--adopt", "orders"]);
    assert!(
        wrong.status.code() == Some(2) && text(&wrong.stderr).contains("ID=NAME"),
        "{}",
        text(&wrong.stderr)
    );
    let done = bench.tool("repair", &["--apply", "--adopt", "0000000000000001=orders"]);
    assert!(text(&done.stdout).contains("adopted as stream orders"), "{}", text(&done.stdout));
    assert_eq!(bench.tool("read", &["orders"]).stdout, before);
}

#[test]
fn where_there_is_no_queue_repair_and_export_say_so_and_make_none() {
    let bench = Bench::new();
    for args in [&["repair"][..], &["repair", "--apply"], &["export", "s"]] {
        let output = bench.tool(args[0], &args[1..]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(&bench.path("q").display().to_string()),
            "{}",
            text(&output.stderr)
        );
    }
    assert!(!bench.path("q").exists());
}
