//! [`Addresses`] of a packet to build, and what depends on their family.

use std::net::IpAddr;

use crate::{checksum, ipv4, ipv6};

/// Source and destination, of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source address.
        source: [u8; 4],
        /// Destination address.
        destination: [u8; 4],
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: [u8; 16],
        /// Destination address.
        destination: [u8; 16],
    },
}

impl Addresses {
    /// The pair, if both are of one family.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Some(Self::V4 { source: source.octets(), destination: destination.octets() })
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Some(Self::V6 { source: source.octets(), destination: destination.octets() })
            }
            _ => None,
        }
    }

    pub(super) fn ip_header_len(&self) -> usize {
        match self {
            Self::V4 { .. } => ipv4::MIN_HEADER_LEN,
            Self::V6 { .. } => ipv6::HEADER_LEN,
        }
    }

    pub(super) fn pseudo_header(&self, protocol: u8, len: usize) -> u16 {
        match self {
            Self::V4 { source, destination } => {
                checksum::pseudo_v4(*source, *destination, protocol, len as u16)
            }
            Self::V6 { source, destination } => {
                checksum::pseudo_v6(*source, *destination, protocol, len as u32)
            }
        }
    }
}
