//! Feeds bytes to the record decoder: `cargo +nightly fuzz run record -- -max_total_time=60`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wal_format::fuzz_record(data));
