//! What is known about a frame besides its bytes: when, where, which way, how long it was, and what the kernel or
//! the hardware took out of it or left unfinished.
//!
//! Contract: plain values, copied freely, in host byte order; units are in the item's text. What captures know, too,
//! is the [`FrameMeta`] of every frame. The rest is the [`LiveMeta`] of a frame that has its memory with it: every
//! record of a capture would be 24 bytes longer for it, and go from one core to another.
//!
//! Source of the latter: `struct virtio_net_hdr` (virtio 1.2, 5.1.6.1), `struct tpacket3_hdr` and `PACKET_AUXDATA`
//! (`packet(7)`), `struct rte_mbuf` of DPDK.

use std::num::NonZeroU32;

use crate::link::LinkType;
use crate::timestamp::Timestamp;

/// Which way a frame passed its interface, where the capture says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The capture does not say.
    #[default]
    Unknown,
    /// Received by the capturing host.
    Inbound,
    /// Sent by the capturing host.
    Outbound,
}

/// How far the checksum of a frame's transport header can be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumState {
    /// Nothing is known of it: it is as the bytes say.
    #[default]
    NotKnown,
    /// The checksum may still have to be computed, and nobody said: where the field holds the sum of the pseudo header
    /// alone.
    MaybeUnfinished,
    /// The hardware, or the kernel, found it right.
    Verified,
    /// The checksum is still to be computed: the field holds the sum of the pseudo header alone.
    Unfinished {
        /// Byte of the frame at which summing begins: the transport header.
        start: u16,
        /// Bytes from `start` to the field.
        offset: u16,
    },
}

/// What a frame is to be cut to segments of that is longer than its link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// One UDP datagram, to be cut to IP fragments.
    UdpFragments,
    /// Several UDP datagrams with one header.
    UdpDatagrams,
}

/// A frame that stands for several (a superframe).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segments {
    /// Bytes that each of them carries after the transport header; the last may carry less.
    pub size: u16,
    /// What they are.
    pub kind: SegmentKind,
}

/// A VLAN tag that is not among the bytes: the kernel or the hardware took it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// Tag control information: priority (3 bits), drop eligible (1), VLAN (12).
    pub tci: u16,
    /// The tag's EtherType: 0x8100, or 0x88a8 for a service tag.
    pub tpid: u16,
}

/// What a port knows about a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameMeta {
    /// Position in the capture or on the port, counting from 1.
    pub number: u64,
    /// When the frame was captured; `None` where the file has no time for it (a simple packet block).
    pub timestamp: Option<Timestamp>,
    /// Bytes that the frame had on the wire. May exceed the captured bytes (a snapshot length), and in
    /// odd files may be less.
    pub wire_length: u32,
    /// How the first header is to be read.
    pub link_type: LinkType,
    /// Index into the port's interfaces ([`CaptureReader::interfaces`](crate::CaptureReader::interfaces)).
    pub interface: u32,
    /// Which way the frame passed that interface.
    pub direction: Direction,
}

/// What only a live port knows of a frame, and a capture does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveMeta {
    /// The kernel's index of the interface that the frame passed.
    pub ifindex: Option<NonZeroU32>,
    /// The port's queue that received it, counting from 0.
    pub queue: u16,
    /// How far its transport checksum can be believed.
    pub checksum: ChecksumState,
    /// The frames that this superframe stands for, if it is one.
    pub segments: Option<Segments>,
    /// The VLAN tag that was taken out of it.
    pub vlan: Option<VlanTag>,
}

impl LiveMeta {
    /// Whether the bytes are what they were on the link, as far as anybody knows: no tag was taken out, and no checksum
    /// may be unfinished.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.vlan.is_none()
            && matches!(self.checksum, ChecksumState::NotKnown | ChecksumState::Verified)
    }
}

/// A frame lent by a burst, to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// What is known about them.
    pub meta: &'a FrameMeta,
}

/// A frame lent by a burst, to read and to rewrite in place.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameMut<'a> {
    /// The captured bytes.
    pub bytes: &'a mut [u8],
    /// What is known about them.
    pub meta: &'a FrameMeta,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts hold many; captures write one for each frame.
    #[test]
    fn frames_of_a_capture_pay_for_nothing_live() {
        assert_eq!((size_of::<FrameMeta>(), size_of::<LiveMeta>()), (40, 24));
    }
}
