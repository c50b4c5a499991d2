//! Placeholder until the table is filled in.
