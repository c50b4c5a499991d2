//! Crash-safe cursors and floors of any number of streams and consumers in one compacted journal.
