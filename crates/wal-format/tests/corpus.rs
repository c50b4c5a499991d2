//! Replays the kept fuzzing corpus, and every prefix of its small files, so that what a fuzzer once found stays found.
#![expect(clippy::disallowed_methods, reason = "the corpus is read from the source tree")]

use std::{fs, path::Path};

#[test]
fn the_kept_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/record");
    let mut count = 0;
    for file in fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display())) {
        let path = file.unwrap().path();
        let data = fs::read(&path).unwrap();
        wal_format::fuzz_record(&data);
        for length in (0..data.len().min(200)).step_by(3) {
            wal_format::fuzz_record(&data[..length]);
        }
        count += 1;
    }
    assert!(count > 0, "no file in {}", corpus.display());
}
