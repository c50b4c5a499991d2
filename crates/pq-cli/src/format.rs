//! How records look at a destination.

use pq::{Delivery, RecordRef};

use crate::config::Format;
use crate::json::JsonRecord;
use crate::lines::join;

/// A delivery's records, one after the other.
pub(crate) fn encode(format: Format, stream: &str, delivery: &Delivery) -> Vec<u8> {
    let mut out = Vec::with_capacity(delivery.bytes());
    delivery.records().for_each(|record| encode_record(format, stream, &record, &mut out));
    out
}

/// Appends one record.
pub(crate) fn encode_record(format: Format, stream: &str, record: &RecordRef<'_>, out: &mut Vec<u8>) {
    match format {
        Format::Lines => join(record, out),
        Format::Json => JsonRecord::new(stream, record).write(out),
        Format::Seq => {
            out.extend_from_slice(record.seq.get().to_string().as_bytes());
            out.push(b'\t');
            out.extend_from_slice(record.payload);
            out.push(b'\n');
        }
    }
}
