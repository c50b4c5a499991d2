//! S29: whatever lengths and counts say, what is allocated is bounded by what is there. Alone in its program: it counts every byte.
#![expect(unsafe_code, reason = "an allocator that counts; it hands everything on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is the system allocator's, with the arguments it was called with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Buffers, windows and journals of a queue, two of each at times; inputs are some KiB. A single length believed is 1 GiB.
const PEAK_BYTES_MAX: usize = 24 << 20;

/// A fuzz target: the folder of its corpus, and its entry point.
type Target = (&'static str, fn(&[u8]));

fn peak_of(run: fn(&[u8]), data: &[u8]) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    run(data);
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}

/// Bytes that follow from a number.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn no_length_is_believed_before_the_bytes_are_there() {
    let segment: Target = ("segment", sim::fuzz_segment);
    for (target, run) in [segment, ("journals", sim::fuzz_journals), ("directory", sim::fuzz_directory)] {
        // What is made once, and kept, is none of an input's.
        run(&[]);
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let kept =
            fs::read_dir(&corpus).expect("a corpus").map(|file| file.expect("a readable directory").path());
        let inputs = kept.map(|path| fs::read(path).expect("a readable file"));
        let random = (0..80).map(|seed| noise(seed, 40 + usize::try_from(seed).unwrap_or(0) * 20));
        for data in inputs.chain(random) {
            let peak = peak_of(run, &data);
            assert!(peak <= PEAK_BYTES_MAX, "{target}: {peak} bytes for an input of {}", data.len());
        }
    }
}
