//! What is known of a packet from one hook to the next where addresses are translated.

use conntrack::Tuple;
use packet::{FlowKey, Packet, Read};
use std::net::{IpAddr, Ipv4Addr};

/// Whether `REDIRECT` sent a packet to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirected {
    /// No.
    #[default]
    No,
    /// It may have.
    Maybe,
    /// Yes.
    Certainly,
}

/// The ends of a packet as it was seen after all its translations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Ports, or the identifier of an ICMP query twice; none where it has none.
    pub ports: Option<[u16; 2]>,
}

impl Drawn {
    /// The ends of a packet as it is, as far as they are known.
    #[must_use]
    pub fn of(packet: &Packet<'_>) -> Self {
        let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        match FlowKey::of(packet) {
            Read::Known(FlowKey { source, destination, source_port, destination_port, .. }) => {
                Self { source, destination, ports: Some([source_port, destination_port]) }
            }
            Read::Unknown | Read::Absent => Self { source: none, destination: none, ports: None },
        }
    }

    /// As a tuple of a protocol.
    pub(super) fn tuple(&self, protocol: u8) -> Tuple {
        Tuple::new(self.source, self.destination, protocol, self.ports.unwrap_or_default())
    }
}
