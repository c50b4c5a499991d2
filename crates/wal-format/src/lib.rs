//! The bytes of a pq queue: identities, checksums, segment and batch headers, frames, scanning. no_std.
