//! [`Defrag`]: fragments are held back and put together: before the first hook where connections are tracked, else
//! where IPv4 gives them to the host.
//!
//! [`Defrag::push`] takes every packet; what is no fragment costs one comparison. The fragment that
//! completes a packet releases it; the others end here.
//!
//! Contract: no clock (times are passed in and never run backwards), no panic, memory bounded by
//! [`Limits::memory`] for each family. A fragment of which not all bytes were captured leaves a gap in the
//! packet, which is told, never guessed.
//!
//! Source: Linux 6.18 `net/ipv4/ip_fragment.c`, `net/ipv4/inet_fragment.c`,
//! `net/ipv6/netfilter/nf_conntrack_reasm.c`; RFC 791, RFC 5722, RFC 8200 section 4.5, RFC 3168 section 5.3.

mod queue;
mod v4;
mod v6;

use packet::{L3, Mark, Packet};
use queue::Queues;
use std::ops::Range;

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
    /// Its mark.
    pub mark: Mark,
    /// It certainly got here.
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
    /// Length of the largest one that must not be fragmented further, from the network header on; 0 if all may be.
    pub largest: u32,
    /// Their identification.
    pub id: u32,
    /// The mark of the first fragment, and whether all of them certainly got here.
    pub carried: Carried,
}

/// Why a fragment was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It contradicts others: it overlaps, or lies past the end. They are dropped with it, except where
    /// IPv6 only ends there.
    Inconsistent,
    /// It is malformed.
    Malformed,
    /// It came twice.
    Duplicate,
    /// Too much is held already.
    Memory,
    /// The packet would be longer than IP allows, or its ECN bits contradict each other.
    Impossible,
}

/// What to do with a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defragged {
    /// It goes on as it is: no fragment, or one that IPv6 leaves alone.
    Pass,
    /// It is a fragment and waits for others.
    Held,
    /// It completed this packet, which goes on in its place.
    Whole(Whole),
    /// It was dropped.
    Dropped(Refusal),
    /// The header that tells was not captured.
    Unknown,
}

/// The fragments that wait.
#[derive(Debug)]
pub struct Defrag {
    limits: Limits,
    v4: Queues<v4::Key>,
    v6: Queues<v6::Key>,
    distances: v4::Distances,
}

impl Defrag {
    /// Nothing waits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            v4: Queues::new(limits.v4_lifetime, limits.memory),
            v6: Queues::new(limits.v6_lifetime, limits.memory),
            distances: v4::Distances::default(),
            limits,
        }
    }

    /// Takes a packet at `now`, in nanoseconds. Fragments of different `zone`s are kept apart
    /// (`-j CT --zone` cannot set one before: it is 0 but for devices of their own).
    pub fn push(&mut self, packet: &Packet<'_>, now: u64, zone: u16) -> Defragged {
        self.push_with(packet, now, zone, Carried::default())
    }

    /// The same of a packet that rules have seen.
    pub fn push_with(
        &mut self,
        packet: &Packet<'_>,
        now: u64,
        zone: u16,
        carried: Carried,
    ) -> Defragged {
        match packet.headers().l3 {
            L3::Ipv4 { header_len } => self.push_v4(packet, header_len, now, zone, carried),
            L3::Ipv6 => self.push_v6(packet, now, zone, carried),
            L3::Unknown => Defragged::Unknown,
            L3::Arp | L3::Other | L3::Fault(_) => Defragged::Pass,
        }
    }

    /// Bytes held for both families, as the kernel counts them.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }

    /// Incomplete packets, those included that died and were not met yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.v4.len() + self.v6.len()
    }
}

/// What ECN bits of all fragments together give: `None` where they contradict each other. `seen` has bit
/// n where one has the value n.
fn ecn(seen: u8) -> Option<u8> {
    const NOT_ECT: u8 = 1;
    const CE: u8 = 8;
    let marked = seen & CE != 0;
    if seen & NOT_ECT != 0 && seen != NOT_ECT {
        return None;
    }
    Some(if marked && seen != CE { 3 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::ecn;

    #[test]
    fn congestion_marks_add_up_unless_one_fragment_is_not_capable() {
        let values = |values: &[u8]| ecn(values.iter().fold(0, |seen, value| seen | 1 << value));
        assert_eq!(values(&[0]), Some(0));
        assert_eq!(values(&[1, 2]), Some(0));
        assert_eq!(values(&[1, 3]), Some(3));
        assert_eq!(values(&[3]), Some(0), "all of them carry it already");
        assert_eq!(values(&[0, 1]), None);
        assert_eq!(values(&[0, 3]), None);
    }
}
