//! A whole queue that somebody edited: `cargo +nightly fuzz run directory -- -max_total_time=60`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sim::fuzz_directory(data));
