//! A persistent queue: durable streams of records, delivered in order until acknowledged.
