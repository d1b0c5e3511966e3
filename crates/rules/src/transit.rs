//! [`Transit`]: one packet at one hook, as matches see it and targets change it.
//!
//! Everything in it may be unknown: the capture may lack bytes, interfaces or the connection's state.
//! Changes made on a branch that may not have been taken ([`Transit::certain`] is false) join the old
//! value and the new one, so what is known afterwards holds on either branch.

use std::net::IpAddr;

use crate::backend::Backend;
use crate::connection::Connection;
use crate::family::{Family, Hook};
use crate::ipset::Sets;
use conntrack::Chance;
use host::{Change, Host, Outgoing, Routed};
use packet::ipv6_ext::{AUTH, Find};
use packet::{L3, L4, Mark, Packet, Read, Upper, ipv4, ipv6, ipv6_ext};

/// Packets to this host, to all and to many, and sent by it, as the link layer has them (`linux/if_packet.h`).
const PACKET_HOST: u8 = 0;
const PACKET_BROADCAST: u8 = 1;
const PACKET_MULTICAST: u8 = 2;
const PACKET_OUTGOING: u8 = 4;

/// One packet at one hook.
#[derive(Debug)]
pub struct Transit<'p, 'b> {
    /// The packet's bytes and headers.
    pub packet: &'p mut Packet<'b>,
    /// Family of the rules it is passing.
    pub family: Family,
    /// Where it is.
    pub hook: Hook,
    /// The input interface.
    pub input: Iface<'p>,
    /// The output interface.
    pub output: Iface<'p>,
    /// The ports of a bridge that it passes.
    pub bridge: BridgeNote<'p>,
    /// The implementation whose evaluation is followed.
    pub backend: Backend,
    /// `skb->mark`.
    pub mark: Mark,
    /// The host that the rules stand on.
    pub host: &'p Host,
    /// Arrival time in nanoseconds since the Unix epoch, if the capture has one.
    pub time: Option<u64>,
    /// The connection that it is part of.
    pub ct: Connection<'p>,
    /// Whether its way ends in this host; `None` where that is not known.
    pub to_host: Option<bool>,
    /// The longest packet that its way carries, in bytes, if that is known.
    pub mtu: Option<u32>,
    /// The longest that its way and the way back carry, where something else than routes tells.
    pub path_mtu: Option<u32>,
    /// The host's sets, if they are known.
    pub sets: Option<&'p mut Sets>,
    /// What random numbers are drawn from; `None` where the kernel drew them, and nobody knows which.
    pub chance: Option<&'p Chance>,
    /// Whether the walk certainly got to the current rule; set by the walk.
    pub certain: bool,
    /// A target has put all of it into one piece (`skb_ensure_writable`), whatever fragments it came in.
    pub one_piece: bool,
    /// A program (NFQUEUE) had it, or may have had it: a superframe goes on as its segments.
    pub queued: bool,
}

/// An interface as a hook knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iface<'p> {
    /// The interface's name.
    Named(&'p str),
    /// This hook has no such interface: tests see the empty name.
    Absent,
    /// There is such an interface, but nothing says which.
    Unknown,
}

/// What the kernel notes on a packet that a bridge hands to the rules of its family (`struct nf_bridge_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BridgeNote<'p> {
    /// Whether there is a note is not known.
    #[default]
    Unknown,
    /// There is none: no bridge received the packet, or the bridge hands nothing over (`bridge-nf-call-iptables`).
    Nothing,
    /// A port of a bridge received the packet.
    Ports {
        /// The input port.
        input: Iface<'p>,
        /// The output port, where the packet is passed on between ports; [`Iface::Absent`] where not, and before
        /// FORWARD.
        output: Iface<'p>,
    },
}

impl<'p, 'b> Transit<'p, 'b> {
    /// A packet certainly at a hook, with nothing else known of it: no interfaces, no mark, no time, and
    /// any connection.
    pub fn new(packet: &'p mut Packet<'b>, family: Family, hook: Hook, host: &'p Host) -> Self {
        Self {
            packet,
            family,
            hook,
            input: Iface::Unknown,
            output: Iface::Unknown,
            bridge: BridgeNote::default(),
            backend: Backend::default(),
            mark: Mark::default(),
            host,
            time: None,
            ct: Connection::default(),
            to_host: None,
            mtu: None,
            path_mtu: None,
            sets: None,
            chance: None,
            certain: true,
            one_piece: false,
            queued: false,
        }
    }
}

impl Transit<'_, '_> {
    /// Changes the mark, or joins the change in when it is not certain to happen.
    pub fn set_mark(&mut self, mark: Mark) {
        self.mark = if self.certain { mark } else { self.mark.join(mark) };
    }

    /// Writes bytes at an offset from the network header, or forgets them when it is not certain that it
    /// happens or they were not captured. The IPv4 header checksum goes along.
    pub fn write_net(&mut self, offset: usize, bytes: &[u8]) {
        let start = self.packet.network_offset().saturating_add(offset);
        if self.packet.read_slice(start, bytes.len()) == Read::Known(bytes) {
            return;
        }
        if self.certain && self.packet.write_net(offset, bytes) {
            return;
        }
        self.forget_net(offset..offset.saturating_add(bytes.len()));
        if let L3::Ipv4 { header_len } = self.packet.headers().l3
            && offset < header_len
        {
            self.forget_net(ipv4::CHECKSUM);
        }
    }

    /// Writes bytes of the link header, or forgets them as [`Transit::write_net`] does.
    pub fn write_link(&mut self, offset: usize, bytes: &[u8]) {
        if self.packet.read_slice(offset, bytes.len()) == Read::Known(bytes) {
            return;
        }
        if !(self.certain && self.packet.write_link(offset, bytes)) {
            self.packet.forget(offset..offset.saturating_add(bytes.len()));
        }
    }

    /// The upper layer as the implementation finds it. Both skip extension headers of IPv6, but nf_tables
    /// stops at an authentication header: to it, AH is the protocol of the packet.
    #[inline]
    #[must_use]
    pub fn upper_layer(&self) -> L4 {
        match (self.backend, self.family) {
            (Backend::Nft, Family::Ipv6) => self.stopped_at_auth(),
            _ => self.end_of_chain(),
        }
    }

    /// The upper layer as it was parsed, where the implementation finds the same.
    #[inline]
    pub(crate) fn upper_layer_as_parsed(&self) -> Option<&L4> {
        let headers = self.packet.headers();
        let stops_at_auth = self.backend == Backend::Nft && self.family == Family::Ipv6;
        (!headers.overrun && !stops_at_auth).then_some(&headers.l4)
    }

    /// Where the chain of extension headers leads to, which may be beyond the end of the packet.
    #[inline]
    fn end_of_chain(&self) -> L4 {
        match self.breaks_off() {
            Some(false) => self.packet.headers().l4,
            Some(true) => L4::Broken { fragment: false },
            None => L4::Unknown,
        }
    }

    /// Whether a search along the extension headers fails that gets to the end of them, as it does on kernels that mind
    /// that the last one claims more bytes than there are.
    #[inline]
    pub(crate) fn breaks_off(&self) -> Option<bool> {
        match self.packet.headers().overrun {
            false => Some(false),
            true => self.host.has(Change::UpperLayerWithinPacket),
        }
    }

    /// The smaller MTU of the packet's way and of the way back to its source (`get_tcpmss`). No way back counts for none.
    #[must_use]
    pub fn least_mtu(&self) -> Option<u32> {
        if self.path_mtu.is_some() {
            return self.path_mtu;
        }
        let source = match self.family {
            Family::Ipv6 => IpAddr::from(self.net::<16>(ipv6::SOURCE.start).known()?),
            _ => IpAddr::from(self.net::<4>(ipv4::SOURCE.start).known()?),
        };
        let (mark, protocol, ports) = (Some(0), Some(0), Some([0; 2]));
        let back = Outgoing { tos: Some(0), mark, protocol, ports, ..Outgoing::to(source) };
        let there = self.mtu?;
        match self.host.route_out(&back) {
            Routed::Forward { mtu, .. } => Some(mtu?.min(there)),
            Routed::Refused(_) => Some(there),
            Routed::Input(_) | Routed::Unknown(_) => None,
        }
    }

    /// `skb->pkt_type` at this hook, a number of `linux/if_packet.h`. A packet that this host sends is one to the host at
    /// every hook, and so is a packet without an Ethernet header; no hook sees the `outgoing` of a cooked capture.
    #[must_use]
    pub fn packet_type(&self) -> Option<u8> {
        match self.hook {
            _ if self.is_indeterminate() => return None,
            Hook::Output => return Some(PACKET_HOST),
            // A router forwards no others; a bridge does, and they stay what they were.
            Hook::Postrouting if self.to_host != Some(false) => return Some(PACKET_HOST),
            _ if self.packet.described().is_some() => return self.packet_type_by_address(),
            _ => {}
        }
        Some(match self.packet.headers().link.packet_type {
            None | Some(PACKET_OUTGOING) => PACKET_HOST,
            Some(kind) => kind,
        })
    }

    /// The type of a packet that somebody described without its frame, where its destination tells.
    fn packet_type_by_address(&self) -> Option<u8> {
        match self.packet.headers().l3 {
            L3::Ipv4 { .. } => match self.net::<4>(ipv4::DESTINATION.start).known()? {
                [255, 255, 255, 255] => Some(PACKET_BROADCAST),
                [224..=239, ..] => Some(PACKET_MULTICAST),
                _ => None,
            },
            L3::Ipv6 => match self.net::<1>(ipv6::DESTINATION.start).known()? {
                [0xff] => Some(PACKET_MULTICAST),
                _ => None,
            },
            _ => None,
        }
    }

    fn stopped_at_auth(&self) -> L4 {
        let network = self.packet.network_offset();
        match ipv6_ext::find(&*self.packet, network, Some(AUTH)) {
            Find::Found { offset, fragment_offset: 0, .. } => {
                L4::Upper(Upper { protocol: AUTH, offset })
            }
            // It may be there, and the parsed headers do not tell.
            Find::Unknown => L4::Unknown,
            _ => self.end_of_chain(),
        }
    }

    /// The IPv4 type of service or IPv6 traffic class.
    #[inline]
    pub fn tos(&self) -> Read<u8> {
        match self.family {
            Family::Ipv6 => self.net::<2>(0).map(|[first, second]| first << 4 | second >> 4),
            _ => self.net::<1>(ipv4::TOS.start).map(|[tos]| tos),
        }
    }

    /// Sets the type of service or traffic class. Where the old one is not known, neither is the new one.
    pub fn set_tos(&mut self, tos: u8) {
        match self.family {
            Family::Ipv6 => {
                if let Read::Known([first, second]) = self.net::<2>(0) {
                    self.write_net(0, &[first & 0xf0 | tos >> 4, tos << 4 | second & 0x0f]);
                }
            }
            _ => self.write_net(ipv4::TOS.start, &[tos]),
        }
    }

    /// The IPv4 time to live or IPv6 hop limit.
    #[inline]
    pub fn ttl(&self) -> Read<u8> {
        self.net::<1>(self.ttl_offset()).map(|[ttl]| ttl)
    }

    /// Sets the time to live or hop limit.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.write_net(self.ttl_offset(), &[ttl]);
    }

    fn ttl_offset(&self) -> usize {
        match self.family {
            Family::Ipv6 => ipv6::HOP_LIMIT.start,
            _ => ipv4::TTL.start,
        }
    }

    /// Makes bytes at these offsets from the network header unknown.
    pub fn forget_net(&mut self, range: std::ops::Range<usize>) {
        let at = |offset| self.packet.network_offset().saturating_add(offset);
        let range = at(range.start)..at(range.end);
        self.packet.forget(range);
    }

    /// Rules may have changed anything of the packet, of its connection and of the sets.
    pub fn make_indeterminate(&mut self) {
        self.mark = Mark { value: 0, unknown: u32::MAX };
        // Nothing rewrites the link header of a packet of IP.
        let start = if self.family.is_ip() { self.packet.network_offset() } else { 0 };
        self.packet.forget(start..usize::MAX);
        self.packet.open();
        self.ct.change(false, |_| {});
        self.certain = false;
        if let Some(sets) = &mut self.sets {
            sets.make_indeterminate();
        }
    }

    /// Whether nothing is known of the packet since [`Transit::make_indeterminate`].
    fn is_indeterminate(&self) -> bool {
        self.packet.is_open() && self.net::<1>(0).known().is_none()
    }

    /// Bytes at an offset from the network header.
    #[inline]
    pub fn net<const N: usize>(&self, offset: usize) -> Read<[u8; N]> {
        self.packet.net(offset)
    }
}
