//! [`Status`]: the bits of a flow, and [`Side`], the end of it that a translation is about.
//!
//! Source: Linux `include/uapi/linux/netfilter/nf_conntrack_common.h` (status bits).

use crate::key::Direction;

/// Bits of [`Flow::status`](crate::Flow::status), with the kernel's numbers, as `--ctstatus` compares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status(u32);

impl Status {
    /// The flow was expected.
    pub const EXPECTED: Self = Self(1);
    /// Packets went both ways.
    pub const SEEN_REPLY: Self = Self(1 << 1);
    /// The flow is not dropped early.
    pub const ASSURED: Self = Self(1 << 2);
    /// The flow's first packet survived.
    pub const CONFIRMED: Self = Self(1 << 3);
    /// The flow's source is translated.
    pub const SRC_NAT: Self = Self(1 << 4);
    /// The flow's destination is translated.
    pub const DST_NAT: Self = Self(1 << 5);
    /// The flow's payload was rewritten to another length: its TCP numbers are moved.
    pub const SEQ_ADJUST: Self = Self(1 << 6);
    /// Source translation was decided (also where it changes nothing).
    pub const SRC_NAT_DONE: Self = Self(1 << 7);
    /// Destination translation was decided.
    pub const DST_NAT_DONE: Self = Self(1 << 8);
    /// The flow is no longer in the table.
    pub const DYING: Self = Self(1 << 9);
    /// The flow's timeout is not renewed.
    pub const FIXED_TIMEOUT: Self = Self(1 << 10);

    /// The bits as the kernel numbers them (`enum ip_conntrack_status`).
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the bits that outlast the table: which flows are in it, it says itself.
    pub(crate) const fn kept(bits: u32) -> Self {
        let lasting = Self::EXPECTED.0
            | Self::SEEN_REPLY.0
            | Self::ASSURED.0
            | Self::SRC_NAT.0
            | Self::DST_NAT.0
            | Self::SEQ_ADJUST.0
            | Self::SRC_NAT_DONE.0
            | Self::DST_NAT_DONE.0
            | Self::FIXED_TIMEOUT.0;
        Self(bits & lasting)
    }

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the bits of `other`; false where they all were set before.
    #[inline]
    pub fn set(&mut self, other: Self) -> bool {
        let news = !self.contains(other);
        self.0 |= other.0;
        news
    }
}

/// An end of a flow that is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Source address and port.
    Source,
    /// Destination address and port.
    Destination,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Source => Self::Destination,
            Self::Destination => Self::Source,
        }
    }

    /// The bit of a flow of which this end is translated.
    #[must_use]
    pub fn translated(self) -> Status {
        match self {
            Self::Source => Status::SRC_NAT,
            Self::Destination => Status::DST_NAT,
        }
    }

    /// The bit of a flow for which it is decided whether this end is translated.
    #[must_use]
    pub fn decided(self) -> Status {
        match self {
            Self::Source => Status::SRC_NAT_DONE,
            Self::Destination => Status::DST_NAT_DONE,
        }
    }

    /// The end that a packet of a flow has to have rewritten where this end of the packet is.
    #[must_use]
    pub fn seen_from(self, direction: Direction) -> Self {
        if direction == Direction::Reply { self.opposite() } else { self }
    }
}
