//! Where the benchmarks are willing to measure.

use std::process::{Command, Output};

/// A file system in memory that every Linux has.
const IN_MEMORY: &str = "/dev/shm";

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_pq-bench");
    Command::new(program).args(["--dir", IN_MEMORY]).args(arguments).output().expect("pq-bench starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

// S02: a file system whose syncs reach no device is refused by name, unless forced; what is measured on, and its floor, is printed.
#[test]
fn a_file_system_without_a_device_is_refused_unless_forced() {
    let refused = bench(&["--only", "none of them"]);
    assert!(!refused.status.success());
    assert!(said(&refused).contains("is on tmpfs, where a sync reaches no device"), "{refused:?}");
    let forced = bench(&["--force", "--only", "none of them"]);
    let text = said(&forced);
    assert!(text.contains("file system tmpfs") && text.contains("sync floor"), "{text}");
    assert!(text.contains("no benchmark is named like none of them"), "it measured: {text}");
}
