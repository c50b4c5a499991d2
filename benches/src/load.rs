//! How much work a benchmark does, and the records it does it with.

/// Bytes of every record's payload.
pub(crate) const PAYLOAD_BYTES: usize = 256;

/// The counts of one size of run.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Rounds that count, after one that does not.
    pub(crate) rounds: usize,
    /// Records of the single-producer benchmark, one sync each.
    pub(crate) appends: u64,
    /// Durable batches.
    pub(crate) batches: u64,
    /// Records of a durable batch.
    pub(crate) batch_records: u64,
    /// Producers that wait for their own record.
    pub(crate) group_threads: u64,
    /// Records of each of them.
    pub(crate) group_appends: u64,
    /// Records put without waiting.
    pub(crate) puts: u64,
    /// Records read back.
    pub(crate) drains: u64,
    /// Durable batches with a reader at their heels.
    pub(crate) tail_batches: u64,
    /// Records of each of those.
    pub(crate) tail_batch_records: u64,
}

impl Load {
    /// Shows that everything runs; its figures mean nothing.
    pub(crate) const TINY: Self = Self {
        rounds: 1,
        appends: 50,
        batches: 5,
        batch_records: 1000,
        group_threads: 64,
        group_appends: 10,
        puts: 20_000,
        drains: 20_000,
        tail_batches: 20,
        tail_batch_records: 100,
    };

    /// About two minutes.
    pub(crate) const QUICK: Self = Self {
        rounds: 7,
        appends: 1000,
        batches: 200,
        batch_records: 1000,
        group_threads: 64,
        group_appends: 300,
        puts: 1_000_000,
        drains: 1_000_000,
        tail_batches: 1500,
        tail_batch_records: 100,
    };

    /// As quick, with rounds enough to see small differences.
    pub(crate) const FULL: Self = Self { rounds: 25, ..Self::QUICK };

    /// Payload bytes of so many records.
    pub(crate) fn payload_bytes(&self, records: u64) -> f64 {
        records as f64 * PAYLOAD_BYTES as f64
    }

    /// What the first bytes of the first `records` payloads add up to.
    pub(crate) fn sum_of_first_bytes(&self, records: u64) -> u64 {
        (0..records).map(|number| number & 0xff).sum()
    }
}

/// The payload of record `number`: its number, then bytes that no compression makes short.
pub(crate) fn payload(number: u64) -> [u8; PAYLOAD_BYTES] {
    let mut bytes = FILLER;
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

const FILLER: [u8; PAYLOAD_BYTES] = {
    let mut bytes = [0u8; PAYLOAD_BYTES];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut index = 0;
    while index < PAYLOAD_BYTES {
        // xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[index] = state.to_le_bytes()[7];
        index += 1;
    }
    bytes
};
