//! [`Defrag`]: the fragments that wait, of both families.

use packet::{L3, Packet};

use super::outcome::{Carried, Defragged, Limits};
use super::queue::Queues;
use super::{v4, v6};

/// The fragments that wait.
#[derive(Debug)]
pub struct Defrag {
    v4: v4::Waiting,
    v6: Queues<v6::Key>,
}

impl Defrag {
    /// Nothing waits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { v4: v4::Waiting::new(&limits), v6: Queues::new(limits.v6_lifetime, limits.memory) }
    }

    /// Takes a packet at `now`, in nanoseconds. Fragments of different `zone`s are kept apart
    /// (`-j CT --zone` cannot set one before: it is 0 but for devices of their own).
    pub fn push(&mut self, packet: &Packet<'_>, now: u64, zone: u16) -> Defragged {
        self.push_with(packet, now, zone, Carried::default())
    }

    /// Takes a packet as [`Self::push`] does, with the mark and the certainty that rules gave it.
    pub fn push_with(
        &mut self,
        packet: &Packet<'_>,
        now: u64,
        zone: u16,
        carried: Carried,
    ) -> Defragged {
        match packet.headers().l3 {
            L3::Ipv4 { header_len } => self.v4.push(packet, header_len, now, zone, carried),
            L3::Ipv6 => self.v6.push(packet, now, zone, carried),
            L3::Unknown => Defragged::Unknown,
            L3::Arp | L3::Other | L3::Fault(_) => Defragged::Pass,
        }
    }

    /// Bytes held for both families, as the kernel counts them.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.v4.queues.memory() + self.v6.memory()
    }

    /// Incomplete packets, those included that died and were not met yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.v4.queues.len() + self.v6.len()
    }
}
