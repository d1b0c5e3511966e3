//! Whether a forwarded packet fits the link that it leaves by.
//!
//! What a capture shows may be a superframe, which the network card or the kernel put together and takes apart
//! again: only its segments are measured, and they are no larger than the link they came by can carry.
//!
//! Source: Linux 6.18 `ip_exceeds_mtu` (`net/ipv4/ip_forward.c`), `ip6_pkt_too_big` (`net/ipv6/ip6_output.c`).

use packet::{L4, Read, tcp, udp};
use rules::Iface;
use rules::model::Family;

use super::packet_walk::Walk;
use crate::disposition::{DropReason, Why};
use crate::observer::Observer;

/// Bytes of the longest packet of a link of the usual size.
const USUAL_MTU: u32 = 1500;
/// Bytes of payload of the segments that no host makes smaller ones of TCP than.
const SHORTEST_SEGMENT: usize = 536;
/// Datagrams that the kernel puts together at most (`UDP_GRO_CNT_MAX`), however short.
const MOST_DATAGRAMS: usize = 64;

/// What is known of the link that a packet leaves by, and of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    /// A bridge passed it on: it was not routed.
    pub(crate) bridged: bool,
    /// Bytes that the link it leaves by carries.
    pub(crate) output: Option<u32>,
    /// The largest fragment that had to stay whole, where it was put together of fragments: 0 if none had to.
    pub(crate) fragment: Option<u32>,
    /// The longest packet that it stands for, if it is known to stand for several.
    pub(crate) segment: Option<u32>,
    /// It was received here, and stands for itself unless it says so.
    pub(crate) on_wire: bool,
    /// It was seen leaving.
    pub(crate) left: bool,
}

/// Whether it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    Unknown,
}

impl Walk<'_, '_, '_> {
    /// Drops what is too big, unless it may be fragmented.
    pub(crate) fn measure(
        &mut self,
        sizes: &Sizes,
        input: Iface<'_>,
        observer: &mut impl Observer,
    ) {
        let Some(output) = sizes.output else { return };
        if !self.progress.is_alive() || self.transit.packet.len() <= output as usize {
            return;
        }
        match self.fits(output, sizes, self.mtu_of(input)) {
            Fit::Yes => {}
            Fit::No => {
                self.progress.drop_as(DropReason::TooBig);
                self.restore_ttl();
            }
            Fit::Unknown => {
                self.progress.may_drop_as(DropReason::TooBig);
                observer.depends_on(Why::Size);
            }
        }
    }

    #[inline(always)]
    fn mtu_of(&self, link: Iface<'_>) -> Option<u32> {
        match link {
            Iface::Named(name) => self.transit.host.links.named(name)?.mtu,
            Iface::Absent | Iface::Unknown => None,
        }
    }

    /// Returns of how many segments it was made at most, which arrived on this link: 1 unless it is a superframe.
    pub(super) fn most_segments(&self, sizes: &Sizes, input: Iface<'_>) -> usize {
        let len = self.transit.packet.len();
        let mtu = self.mtu_of(input).unwrap_or(USUAL_MTU);
        let is_one = sizes.on_wire || sizes.fragment.is_some() || len <= mtu as usize;
        if is_one || !self.may_be_super() {
            return 1;
        }
        let is_tcp = matches!(self.transit.packet.headers().l4, L4::Upper(upper) if upper.protocol == tcp::PROTOCOL);
        let segments = len.div_ceil(SHORTEST_SEGMENT);
        if is_tcp { segments } else { segments.max(MOST_DATAGRAMS) }
    }

    /// Whether it is of a protocol whose packets are put together.
    #[inline(always)]
    fn may_be_super(&self) -> bool {
        match self.transit.packet.headers().l4 {
            L4::Upper(upper) => matches!(upper.protocol, tcp::PROTOCOL | udp::PROTOCOL),
            L4::Unknown => true,
            L4::Fragment { .. } | L4::Broken { .. } | L4::None => false,
        }
    }

    /// The kernel measures before it lowers the time to live, and quotes the packet as it was.
    fn restore_ttl(&mut self) {
        let offset = if self.transit.family == Family::Ipv6 { 7 } else { 8 };
        if let Read::Known([ttl]) = self.transit.net::<1>(offset) {
            self.transit.packet.set_ttl(ttl.saturating_add(1));
        }
    }

    /// Whether a packet longer than the link that it leaves by passes it.
    fn fits(&self, output: u32, sizes: &Sizes, input: Option<u32>) -> Fit {
        const DONT_FRAGMENT: u8 = 0x40;
        if sizes.left || sizes.segment.is_some_and(|segment| segment <= output) {
            return Fit::Yes;
        }
        if let Some(largest) = sizes.fragment {
            return if largest <= output { Fit::Yes } else { Fit::No };
        }
        if self.transit.family == Family::Ipv4 {
            match self.transit.net::<1>(6) {
                Read::Known([flags]) if flags & DONT_FRAGMENT == 0 => return Fit::Yes,
                Read::Known(_) => {}
                Read::Unknown | Read::Absent => return Fit::Unknown,
            }
        }
        let len = self.transit.packet.len();
        match input {
            _ if !self.may_be_super() || sizes.on_wire => Fit::No,
            Some(input) if len <= input as usize => Fit::No,
            Some(input) if input <= output => Fit::Yes,
            _ => Fit::Unknown,
        }
    }
}
