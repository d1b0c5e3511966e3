//! A table of `-m hashlimit` as a rule declares it ([`TableConfig`]), and what rules ask of it: an entry ([`Key`]), by a
//! packet ([`Visit`]).

use conntrack::SECOND;

/// The longest tick of the kernel's clock (100 a second) and a tenth of it, for a tick that is late and for what the
/// kernel rounds off, in nanoseconds.
pub(super) const TICK: u64 = 11_000_000;
/// Buckets of a table at most, and entries.
pub(super) const MOST: u32 = 1 << 20;
/// Buckets that the kernel makes of its own on a machine with 64 MiB, and on one with more than 1 GiB.
const USUAL_SIZE: [u32; 2] = [512, 8192];

/// What of a packet tells entries apart.
pub(crate) mod by {
    pub(crate) const SOURCE: u8 = 1;
    pub(crate) const SOURCE_PORT: u8 = 2;
    pub(crate) const DESTINATION: u8 = 4;
    pub(crate) const DESTINATION_PORT: u8 = 8;
}

/// A table as the first rule says that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableConfig {
    /// What an entry holds.
    pub(crate) speed: Speed,
    /// Bits of [`by`].
    pub(crate) mode: u8,
    /// Prefix lengths of the addresses that count.
    pub(crate) source_bits: u8,
    pub(crate) destination_bits: u8,
    /// Buckets and entries; 0 lets the kernel choose.
    pub(crate) size: u32,
    pub(crate) max: u32,
    /// Time between two looks of the collector, and for which entries last, in milliseconds.
    pub(crate) gc_interval: u32,
    pub(crate) expire: u32,
    /// `--hashlimit-rate-match`, with its interval in seconds.
    pub(crate) rate_match: Option<u32>,
}

/// A rate and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Time between two packets in microseconds, and the burst in packets.
    Packets { period: u64, burst: u64 },
    /// Cost of 16 bytes, and the burst in units of the rate; 0 without a burst.
    Bytes { cost: u32, burst: u32 },
}

impl TableConfig {
    /// Whether two tables are of one sort: what one rule of the table counts, the other does.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_of_packets = |config: &Self| matches!(config.speed, Speed::Packets { .. });
        is_of_packets(self) == is_of_packets(other)
            && self.rate_match.is_some() == other.rate_match.is_some()
    }

    /// Entries that it holds at most: at least this number, and at most that.
    pub(super) fn room(&self) -> [usize; 2] {
        let sizes = if self.size == 0 { USUAL_SIZE } else { [self.size.min(MOST); 2] };
        sizes.map(|size| match self.max.min(MOST) {
            0 => 8 * size as usize,
            max => max.max(size) as usize,
        })
    }

    pub(super) fn lasts(&self) -> u64 {
        u64::from(self.expire) * 1_000_000
    }

    /// Age from which an entry has surely been removed. The collector's timer is deferrable: on a processor that sleeps
    /// it waits until something else wakes that up, which is taken to be within a minute.
    pub(super) fn collected(&self) -> u64 {
        let interval = u64::from(self.gc_interval) * 1_000_000;
        self.lasts() + interval + interval / 4 + 60 * SECOND
    }
}

/// What an entry is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Key {
    /// Masked; IPv4 uses the first 4 bytes.
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) ports: [u16; 2],
}

/// A packet that a rule asks about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    /// Nanoseconds.
    pub(crate) now: u64,
    /// In bytes, from its network header on.
    pub(crate) len: u64,
    /// Whether it surely reached the rule.
    pub(crate) certain: bool,
}
