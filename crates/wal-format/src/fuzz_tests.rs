//! The fuzzing entry point over random and structured bytes; the kept corpus is replayed by `tests/corpus.rs`.

use super::*;
use proptest::prelude::*;

#[test]
fn the_shortest_inputs_hold() {
    for length in 0..130 {
        for fill in [0, 1, 16, 255] {
            fuzz_record(&vec![fill; length]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz_record(&bytes);
    }
}
