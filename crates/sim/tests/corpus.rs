//! Replays the kept fuzzing corpora, and some prefixes of each input, so that what a fuzzer once found stays found.

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for file in fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display())) {
        let data = fs::read(file.expect("a readable directory").path()).expect("a readable file");
        run(&data);
        for length in (0..data.len()).step_by(data.len() / 4 + 1) {
            run(&data[..length]);
        }
        count += 1;
    }
    assert!(count > 0, "no file in {}", corpus.display());
}

#[test]
fn the_kept_segments_hold() {
    replay("segment", sim::fuzz_segment);
}

#[test]
fn the_kept_journals_hold() {
    replay("journals", sim::fuzz_journals);
}

#[test]
fn the_kept_directories_hold() {
    replay("directory", sim::fuzz_directory);
}

#[test]
fn the_kept_operations_hold() {
    replay("operations", sim::fuzz_operations);
}
