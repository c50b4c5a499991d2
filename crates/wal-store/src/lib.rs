//! A group-commit log of append-only segments for one stream: commit, rotation, reading, recovery, retirement.
