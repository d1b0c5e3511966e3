//! [`Message`]: the upper-layer header of a packet to build, and its checksum.

use super::addresses::Addresses;
use crate::tcp::Flags;
use crate::{checksum, icmpv4, icmpv6, tcp, udp};

/// The upper-layer header of a packet to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// TCP without options.
    Tcp {
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
        /// Flags.
        flags: Flags,
        /// Sequence number.
        sequence: u32,
        /// Acknowledgement number.
        acknowledgement: u32,
        /// Receive window.
        window: u16,
    },
    /// UDP.
    Udp {
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
    },
    /// ICMP, or ICMPv6 between IPv6 addresses.
    Icmp {
        /// Message type.
        kind: u8,
        /// Message code.
        code: u8,
        /// Bytes 4..6 of the header, the identifier of echo messages.
        id: u16,
        /// Bytes 6..8 of the header, the sequence number of echo messages.
        sequence: u16,
    },
    /// Any other protocol: its number and its header's bytes, whose checksum is not touched.
    Other {
        /// Protocol number.
        protocol: u8,
        /// Header bytes.
        header: Vec<u8>,
    },
}

impl Message {
    /// A TCP segment with sequence number 1 and a window of 65,535 bytes.
    #[must_use]
    pub fn tcp(source_port: u16, destination_port: u16, flags: Flags) -> Self {
        let acknowledgement = u32::from(flags.contains(Flags::ACK));
        let window = u16::MAX;
        Self::Tcp { source_port, destination_port, flags, sequence: 1, acknowledgement, window }
    }

    /// A UDP datagram.
    #[must_use]
    pub fn udp(source_port: u16, destination_port: u16) -> Self {
        Self::Udp { source_port, destination_port }
    }

    /// Protocol number between these addresses.
    pub(super) fn protocol(&self, addresses: Addresses) -> u8 {
        match (self, addresses) {
            (Self::Tcp { .. }, _) => tcp::PROTOCOL,
            (Self::Udp { .. }, _) => udp::PROTOCOL,
            (Self::Icmp { .. }, Addresses::V4 { .. }) => icmpv4::PROTOCOL,
            (Self::Icmp { .. }, Addresses::V6 { .. }) => icmpv6::PROTOCOL,
            (Self::Other { protocol, .. }, _) => *protocol,
        }
    }

    /// The header in front of `payload_len` bytes, its checksum 0.
    pub(super) fn header(&self, payload_len: usize) -> Vec<u8> {
        match self {
            Self::Tcp { .. } => self.tcp_header(),
            Self::Udp { source_port, destination_port } => {
                let len = (udp::HEADER_LEN + payload_len) as u16;
                let mut header = vec![0; udp::HEADER_LEN];
                header[udp::SOURCE_PORT].copy_from_slice(&source_port.to_be_bytes());
                header[udp::DESTINATION_PORT].copy_from_slice(&destination_port.to_be_bytes());
                header[udp::LENGTH].copy_from_slice(&len.to_be_bytes());
                header
            }
            Self::Icmp { kind, code, id, sequence } => {
                let mut header = vec![*kind, *code, 0, 0, 0, 0, 0, 0];
                header[icmpv4::ID].copy_from_slice(&id.to_be_bytes());
                header[icmpv4::SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
                header
            }
            Self::Other { header, .. } => header.clone(),
        }
    }

    fn tcp_header(&self) -> Vec<u8> {
        let Self::Tcp { source_port, destination_port, flags, sequence, acknowledgement, window } =
            self
        else {
            return Vec::new();
        };
        let mut header = vec![0; tcp::MIN_HEADER_LEN];
        header[tcp::SOURCE_PORT].copy_from_slice(&source_port.to_be_bytes());
        header[tcp::DESTINATION_PORT].copy_from_slice(&destination_port.to_be_bytes());
        header[tcp::SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
        header[tcp::ACKNOWLEDGEMENT].copy_from_slice(&acknowledgement.to_be_bytes());
        header[tcp::DATA_OFFSET].fill((tcp::MIN_HEADER_LEN as u8 / 4) << 4);
        header[tcp::FLAGS].fill(flags.0);
        header[tcp::WINDOW].copy_from_slice(&window.to_be_bytes());
        header
    }

    /// Fills in the checksum of a whole upper-layer packet whose checksum field is 0.
    pub(super) fn fill_checksum(&self, addresses: Addresses, upper: &mut [u8]) {
        let pseudo = addresses.pseudo_header(self.protocol(addresses), upper.len());
        let (field, pseudo) = match (self, addresses) {
            (Self::Tcp { .. }, _) => (tcp::CHECKSUM, pseudo),
            (Self::Udp { .. }, _) => (udp::CHECKSUM, pseudo),
            (Self::Icmp { .. }, Addresses::V4 { .. }) => (icmpv4::CHECKSUM, 0),
            (Self::Icmp { .. }, Addresses::V6 { .. }) => (icmpv6::CHECKSUM, pseudo),
            (Self::Other { .. }, _) => return,
        };
        let sum = !checksum::add(checksum::sum(upper), pseudo);
        // In UDP a stored 0 says that there is no checksum; 0xffff is the same number.
        let is_udp = matches!(self, Self::Udp { .. });
        let stored = if is_udp && sum == 0 { 0xffff } else { sum };
        if let Some(place) = upper.get_mut(field) {
            place.copy_from_slice(&stored.to_be_bytes());
        }
    }
}
