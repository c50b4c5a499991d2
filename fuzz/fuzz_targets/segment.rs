//! The files of one stream: `cargo +nightly fuzz run segment -- -max_total_time=60`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sim::fuzz_segment(data));
