//! What is seen of a frame ([`Frame`]), and what becomes known of it ([`Seen`]).

use super::ports::Bridged;
use packet::Headers;
use std::net::IpAddr;

/// A frame that left may be recorded so much before the arrival that it explains, and a device so much from the one
/// above it, in nanoseconds.
pub(super) const JITTER: u64 = 10_000_000;

/// A packet does not wait longer in the host, in nanoseconds.
pub(super) const LONGEST: u64 = 4_000_000_000;

/// Which way a frame passed its device, as the capture says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Way {
    /// Nothing says.
    #[default]
    Unknown,
    /// It came in, for this host or for all.
    In,
    /// It came in with another host's link address.
    OtherHost,
    /// The host sent it.
    Out,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sighting {
    /// Nothing tells; its addresses have to.
    #[default]
    Unknown,
    /// A packet as it came in.
    Arrival,
    /// A packet of the host's own.
    Own,
    /// A packet that another frame showed before: it left, arrived on `lo`, or is what a bridge made of it as it arrived.
    Second {
        /// That frame's number; none where it is not remembered which.
        of: Option<u64>,
    },
    /// A packet at a device below the one that shows it, too.
    Lower {
        /// The frame of the device above; none where nothing above did send it, as what a bridge sends by itself and
        /// what a packet socket sends.
        of: Option<u64>,
    },
    /// Another host's: nothing here looks at it.
    OtherHost,
}

impl Sighting {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Arrival => "arrival",
            Self::Own => "own",
            Self::Second { .. } => "second",
            Self::Lower { .. } => "lower",
            Self::OtherHost => "other_host",
        }
    }
}

/// Addresses and ports of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// Ports, or the identifier of an ICMP query twice; none where it has none, or they were not captured.
    pub ports: Option<[u16; 2]>,
}

impl Ends {
    /// Those of what goes the other way.
    pub(super) fn turned(self) -> Self {
        let Self { source, destination, ports, .. } = self;
        let ports = ports.map(|[one, other]| [other, one]);
        Self { source: destination, destination: source, ports, ..self }
    }
}

/// A packet as it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Number of that frame.
    pub number: u64,
    /// The device by which it left, as the rules see it.
    pub device: u32,
    /// Its ends then.
    pub ends: Ends,
    /// Its time to live is what it came with: a bridge passed it on.
    pub bridged: bool,
}

/// What became known of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// What it is.
    pub sighting: Sighting,
    /// How the packet left, where another frame showed that and no other packet may be meant.
    pub left: Option<Left>,
    /// The device as the rules see it, which may be one above that which showed it; 0 is not known.
    pub device: u32,
    /// It is a fragment.
    pub is_fragment: bool,
    /// What a bridge did with it.
    pub bridged: Bridged,
    /// It is an ICMP error that went by `lo`, about a packet that no frame before it showed.
    pub quotes_unseen: bool,
    /// It is a copy that a rule had the host send.
    pub is_copy: bool,
    /// It may as well show a packet leaving that came: which one is not known.
    pub may_have_come: bool,
    /// See [`Frame::is_joined`].
    pub is_joined: bool,
}

/// A frame that was read.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its number in the captures.
    pub number: u64,
    /// When, in nanoseconds.
    pub time: u64,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Where its headers are.
    pub headers: &'a Headers,
    /// Which way it went.
    pub way: Way,
    /// The capture says that, not the addresses of own links.
    pub is_told: bool,
    /// The device that showed it (`Devices::named`, `Devices::at`); 0 is not known.
    pub device: u32,
    /// Whether it is a copy that a rule had the host send.
    pub copied: Copied,
    /// It is for a group that the host was seen joining.
    pub is_joined: bool,
}

/// Whether a frame is a copy of a packet that a rule had the host send (`-j TEE`), as far as its addresses say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Copied {
    /// No rule sends copies out of the device that it left by, or a route leads its packet there.
    #[default]
    No,
    /// Routes do not say where its packet goes.
    Maybe,
    /// Routes lead its packet elsewhere.
    Yes,
}
