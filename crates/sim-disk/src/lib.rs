//! A disk in memory with a power switch and fault plans, for tests.
