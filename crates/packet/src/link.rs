//! Link types and what each link header tells about a frame.
//!
//! Numbers follow the capture formats: <https://www.tcpdump.org/linktypes.html>.

/// The link type of a capture or port: how the first byte of a frame is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// Ethernet II or 802.3 (LINKTYPE 1).
    Ethernet,
    /// Ethernet between two ports that pass frames on: PPPoE sessions are looked into, and no address of IPv6 is
    /// refused, as a bridge refuses none.
    Wire,
    /// A bare IPv4 or IPv6 packet, told apart by its version nibble (LINKTYPE 101, DLT 12 and 14).
    Raw,
    /// A bare IPv4 packet (LINKTYPE 228).
    Ipv4,
    /// A bare IPv6 packet (LINKTYPE 229).
    Ipv6,
    /// Linux cooked capture, 16-byte header (LINKTYPE 113).
    Sll,
    /// Linux cooked capture version 2, 20-byte header (LINKTYPE 276).
    Sll2,
    /// BSD loopback: a 4-byte address family in the byte order of the capturing host (LINKTYPE 0).
    Null,
    /// OpenBSD loopback: a 4-byte address family in network byte order (LINKTYPE 108).
    Loop,
    /// A packet that a rule of the firewall handed on, with what the kernel knew of it (LINKTYPE 239).
    Nflog,
}

impl Link {
    /// Whether frames begin with an Ethernet header.
    #[inline]
    #[must_use]
    pub fn is_ethernet(self) -> bool {
        matches!(self, Self::Ethernet | Self::Wire)
    }
}

/// Which way a frame went through the interface that captured it, where the capture says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received by the capturing host.
    Inbound,
    /// Sent by the capturing host.
    Outbound,
}

/// What the link header of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkHeader {
    /// Offset of a 14-byte Ethernet header in the frame, where there is one.
    pub ethernet: Option<usize>,
    /// Offset of the sender's 6-byte address, where the device was Ethernet: in the Ethernet header, or in
    /// a cooked header that names such a device.
    pub source_mac: Option<usize>,
    /// EtherType of the network header after all VLAN tags, host byte order. 802.3 frames without SNAP
    /// have their LLC type mapped to [`LinkHeader::LLC`].
    pub ethertype: u16,
    /// Outermost VLAN tag control information (priority, DEI, id), if the frame is tagged.
    pub vlan: Option<u16>,
    /// Second VLAN tag (QinQ), if any.
    pub inner_vlan: Option<u16>,
    /// The kernel's `skb->pkt_type` as the capture tells it (SLL and SLL2 say it; Ethernet by the
    /// destination address: broadcast, multicast, else 0 for unicast to this host).
    pub packet_type: Option<u8>,
    /// Interface index of SLL2, if not 0.
    pub ifindex: Option<u32>,
    /// The frame was captured on a loopback interface: [`Link::Null`] and [`Link::Loop`], an Ethernet header whose
    /// addresses are both zero (Linux `lo`), SLL of ARPHRD_LOOPBACK; [`Link::Nflog`], which does not say. `::1` is
    /// legitimate there.
    pub loopback: bool,
}

impl LinkHeader {
    /// The pseudo EtherType for 802.3 frames with an LLC header (the kernel's `ETH_P_802_2`).
    pub const LLC: u16 = 0x0004;
}
