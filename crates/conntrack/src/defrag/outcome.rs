//! What becomes of a fragment ([`Defragged`]), what goes with it, and the limits of what waits.

use std::ops::Range;

use packet::Mark;

/// How long fragments wait and how much of them is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Lifetime of an incomplete IPv4 packet in nanoseconds (`net.ipv4.ipfrag_time`).
    pub v4_lifetime: u64,
    /// Lifetime of an incomplete IPv6 packet in nanoseconds (`nf_conntrack_frag6_timeout`).
    pub v6_lifetime: u64,
    /// Bytes held for each family (`ipfrag_high_thresh`): beyond it new fragments are dropped. They are
    /// counted with what the kernel would spend on them.
    pub memory: usize,
    /// Fragments of one IPv4 source that may come between two of one packet (`ipfrag_max_dist`); 0 is no
    /// limit.
    pub max_distance: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            v4_lifetime: 30_000_000_000,
            v6_lifetime: 60_000_000_000,
            memory: 4 << 20,
            max_distance: 64,
        }
    }
}

/// What goes with a fragment besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// The packet mark of the fragment.
    pub mark: Mark,
    /// Whether the fragment certainly got here.
    pub is_certain: bool,
}

impl Default for Carried {
    /// A fragment before any rule.
    fn default() -> Self {
        Self { mark: Mark::default(), is_certain: true }
    }
}

/// A packet put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// The frame: the link header of the first fragment, then the packet. Bytes that were not captured
    /// are 0.
    pub frame: Vec<u8>,
    /// Ranges of the frame that were not captured: to be forgotten once it is parsed.
    pub unknown: Vec<Range<usize>>,
    /// Bytes of payload of the fragments that it was made of, from the first to the last.
    pub pieces: Vec<u32>,
    /// Length of the longest one, from the network header on.
    pub longest: u32,
    /// Length of the largest fragment with DF set, from the network header on; 0 if all may be fragmented further.
    pub largest: u32,
    /// Their identification.
    pub id: u32,
    /// The mark of the first fragment, and whether all of them certainly got here.
    pub carried: Carried,
}

/// Why a fragment was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The fragment contradicts others: it overlaps, or lies past the end. They are dropped with it, except where IPv6
    /// only ends there.
    Inconsistent,
    /// The fragment is malformed.
    Malformed,
    /// The fragment came twice.
    Duplicate,
    /// Too much is held already.
    Memory,
    /// The packet would be longer than IP allows, or its ECN bits contradict each other.
    Impossible,
}

/// What to do with a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defragged {
    /// The packet goes on as it is: it is no fragment, or IPv6 leaves it alone.
    Pass,
    /// The packet is a fragment and waits for others.
    Held,
    /// The fragment completed this packet, which goes on in its place.
    Whole(Whole),
    /// The fragment was dropped.
    Dropped(Refusal),
    /// The header that tells was not captured.
    Unknown,
}
