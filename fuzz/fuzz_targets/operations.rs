//! A client's calls and crashes, held against the oracle: `cargo +nightly fuzz run operations -- -max_total_time=60`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sim::fuzz_operations(data));
