//! Cursor and metadata files: `cargo +nightly fuzz run journals -- -max_total_time=60`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sim::fuzz_journals(data));
