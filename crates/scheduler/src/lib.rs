//! Who reads when: due times, leases and back-off of (stream, consumer) pairs. No I/O, no clock, no threads, no locks.
