//! Short and interrupted calls are invisible.

use super::*;

/// A file in memory whose calls transfer at most `step` bytes, and are interrupted every other time.
struct Choppy {
    bytes: Vec<u8>,
    step: usize,
    call_count: usize,
    slices_max: usize,
}

impl Choppy {
    fn new(step: usize) -> Self {
        Self { bytes: Vec::new(), step, call_count: 0, slices_max: 0 }
    }

    fn write(&mut self, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        self.call_count += 1;
        self.slices_max = self.slices_max.max(bufs.len());
        assert!(bufs.len() <= IOV_MAX);
        if self.call_count % 2 == 1 {
            return Err(Errno::INTR);
        }
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let n = all.len().min(self.step);
        assert_eq!(offset as usize, self.bytes.len());
        self.bytes.extend(&all[..n]);
        Ok(n)
    }
}

// S40
#[test]
fn short_writes_and_interruptions_are_invisible() {
    let parts: Vec<Vec<u8>> =
        vec![vec![], b"abc".to_vec(), vec![], b"d".to_vec(), b"efghijk".to_vec(), vec![]];
    for step in 1..=12 {
        let mut file = Choppy::new(step);
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        write_full(&slices, 0, |bufs, at| file.write(bufs, at)).unwrap();
        assert_eq!(file.bytes, b"abcdefghijk", "step {step}");
    }
}

#[test]
fn more_slices_than_one_call_takes_are_split() {
    let bytes: Vec<u8> = (0..2500).map(|i| (i % 251) as u8).collect();
    let slices: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
    let mut file = Choppy::new(usize::MAX);
    write_full(&slices, 0, |bufs, at| file.write(bufs, at)).unwrap();
    assert_eq!(file.bytes, bytes);
    assert_eq!(file.slices_max, IOV_MAX);
}

// S33
#[test]
fn a_failed_write_tells_where_it_stopped() {
    let mut budget = 5;
    let error = write_full(&[IoSlice::new(b"abc"), IoSlice::new(b"defg")], 100, |bufs, _| {
        let wanted: usize = bufs.iter().map(|buf| buf.len()).sum();
        let n = wanted.min(budget);
        budget -= n;
        if n == 0 { Err(Errno::NOSPC) } else { Ok(n) }
    });
    assert_eq!(error, Err((Errno::NOSPC, 105)));
    assert_eq!(write_full(&[IoSlice::new(b"a")], 0, |_, _| Ok(0)), Err((Errno::IO, 0)));
    assert_eq!(write_full(&[IoSlice::new(b"")], 0, |_, _| panic!("nothing to write")), Ok(()));
}

// S40
#[test]
fn short_reads_and_interruptions_are_invisible() {
    let file = b"hello world";
    for step in 1..=12 {
        let mut calls = 0;
        let mut buf = [0; 16];
        let n = read_full(&mut buf, 2, |buf, at| {
            calls += 1;
            if calls % 2 == 1 {
                return Err(Errno::INTR);
            }
            let rest = &file[at as usize..];
            let n = rest.len().min(buf.len()).min(step);
            buf[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        });
        assert_eq!(n, Ok(9));
        assert_eq!(&buf[..9], b"llo world");
    }
}
