//! Which tracker a packet goes to, by protocol.

use crate::config::Config;
use crate::dissect::{Layer, Unparsable};
use crate::flow::Flow;
pub(crate) use crate::key::is_icmp;
use crate::step::{Arrival, Step};
use crate::{others, sctp, tcp, udp, verify};
use packet::{Packet, Read, gre, icmpv4, icmpv6};

/// What a tracker reads of its layer, once.
#[derive(Debug)]
pub(crate) enum Upper<'p> {
    Tcp(tcp::Segment<'p>),
    Sctp(sctp::Message),
    /// Nothing beyond the tuple.
    Tuple,
}

impl<'p> Upper<'p> {
    /// Reads the layer, and tests whether it is well formed; with `verify` its checksum as well.
    #[inline]
    pub(crate) fn read(
        packet: &'p Packet<'_>,
        layer: &Layer,
        verify: bool,
    ) -> Result<Self, Unparsable> {
        match layer.protocol {
            packet::tcp::PROTOCOL => {
                let segment = tcp::Segment::read(packet, layer.offset)?;
                if verify {
                    match verify::whole(packet, layer) {
                        Read::Known(true) => {}
                        Read::Unknown => return Err(Unparsable::Unknown),
                        Read::Known(false) | Read::Absent => return Err(Unparsable::Invalid),
                    }
                }
                Ok(Self::Tcp(segment))
            }
            packet::udp::PROTOCOL | packet::udp::PROTOCOL_LITE => {
                udp::check(packet, layer, verify)?;
                Ok(Self::Tuple)
            }
            packet::sctp::PROTOCOL => Ok(Self::Sctp(sctp::Message::read(packet, layer, verify)?)),
            _ => Ok(Self::Tuple),
        }
    }

    /// A packet with which a flow begins, whatever went before.
    pub(crate) fn begins(&self) -> bool {
        match self {
            Self::Tcp(segment) => segment.kind == tcp::Kind::Syn,
            Self::Sctp(message) => message.begins(),
            Self::Tuple => false,
        }
    }

    /// A TCP segment that is neither SYN nor reset: of a flow in its middle.
    pub(crate) fn is_midstream(&self) -> bool {
        matches!(self, Self::Tcp(segment) if matches!(segment.kind, tcp::Kind::Fin | tcp::Kind::Ack))
    }
}

/// Hands a packet to its protocol's tracker.
#[inline]
pub(crate) fn track(
    flow: &mut Flow,
    protocol: u8,
    upper: &Upper<'_>,
    arrival: &Arrival,
    config: &Config,
) -> Step {
    let timeouts = &config.timeouts;
    match (upper, protocol) {
        (Upper::Tcp(segment), _) => tcp::track(flow, segment, arrival, config),
        (Upper::Sctp(message), _) => sctp::track(flow, message, arrival, timeouts),
        (_, packet::udp::PROTOCOL | packet::udp::PROTOCOL_LITE) => {
            udp::track(flow, arrival, timeouts)
        }
        (_, icmpv4::PROTOCOL) => others::icmp(flow, arrival, timeouts),
        (_, icmpv6::PROTOCOL) => others::icmpv6(flow, arrival, timeouts),
        (_, gre::PROTOCOL) => others::gre(flow, arrival, timeouts),
        _ => others::generic(flow, arrival, timeouts),
    }
}

/// Tracks a packet of a flow that is in no table; not inlined.
#[inline(never)]
pub(crate) fn track_apart(
    flow: &mut Flow,
    protocol: u8,
    upper: &Upper<'_>,
    arrival: &Arrival,
    config: &Config,
) -> Step {
    track(flow, protocol, upper, arrival, config)
}

/// Whether a protocol's tracker may call packets of a living flow INVALID.
pub(crate) fn has_states(protocol: u8) -> bool {
    matches!(protocol, packet::tcp::PROTOCOL | packet::sctp::PROTOCOL)
}
