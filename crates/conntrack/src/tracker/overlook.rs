//! Packets that are not looked up, and may begin flows all the same: bytes of their tuple were not captured, or may have been
//! rewritten, or it is not known whether they are tracked.
//!
//! Contract: what such a flow's packets may look like is [`Untraceable`](crate::untraceable::Untraceable), as far as addresses
//! are known. Where the flow may be translated, so are answers from, or to, any other end.

use std::net::IpAddr;

use packet::{L3, Packet, Read, icmpv4, icmpv6, ipv4, ipv6};

use super::flows::Tracker;
use crate::Side;
use crate::config::Mode;
use crate::dissect::{self, Unparsable};
use crate::untraceable::Pattern;

/// The addresses of a packet that was overlooked, where they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlooked([IpAddr; 2]);

impl Tracker {
    /// Notes a packet that was not looked up, and may begin a flow.
    #[cold]
    pub fn overlook(&mut self, packet: &Packet<'_>) {
        if self.config.mode == Mode::Off {
            return;
        }
        let protocol = match dissect::layer(packet) {
            Ok(layer) if is_error(packet, layer.protocol, layer.offset) => return,
            Ok(layer) => Some(layer.protocol),
            Err(Unparsable::Invalid) => return,
            Err(Unparsable::Unknown) => None,
        };
        let ends = addresses(packet);
        self.overlooked = ends.map(Overlooked);
        match (ends, protocol) {
            (Some([from, to]), Some(protocol)) => {
                self.untraceable.expect_once(Pattern::Between(protocol, from, Some(to)));
                self.untraceable.expect_once(Pattern::Between(protocol, to, Some(from)));
            }
            (Some([from, _]), None) => self.untraceable.expect_once(Pattern::With(from)),
            (None, _) => self.untraceable.expect_once(Pattern::Whatever),
        }
    }

    /// The packet under way was overlooked, and this end of it may be translated: answers come from, or go to, who knows whom.
    pub fn lose_overlooked(&mut self, side: Side) {
        let Some(Overlooked([from, to])) = self.overlooked else { return };
        let known = if side == Side::Source { to } else { from };
        self.untraceable.expect_once(Pattern::With(known));
    }
}

/// Whether the packet is certainly an ICMP message that begins no flow.
fn is_error(packet: &Packet<'_>, protocol: u8, offset: usize) -> bool {
    match (protocol, packet.read::<1>(offset)) {
        (icmpv4::PROTOCOL, Read::Known([kind])) => matches!(kind, 3 | 4 | 5 | 11 | 12),
        (icmpv6::PROTOCOL, Read::Known([kind])) => !matches!(kind, 128 | 129),
        _ => false,
    }
}

fn addresses(packet: &Packet<'_>) -> Option<[IpAddr; 2]> {
    match packet.headers().l3 {
        L3::Ipv4 { .. } => {
            let from = packet.net::<4>(ipv4::SOURCE.start).known()?;
            let to = packet.net::<4>(ipv4::DESTINATION.start).known()?;
            Some([from.into(), to.into()])
        }
        L3::Ipv6 => {
            let from = packet.net::<16>(ipv6::SOURCE.start).known()?;
            let to = packet.net::<16>(ipv6::DESTINATION.start).known()?;
            Some([from.into(), to.into()])
        }
        _ => None,
    }
}
