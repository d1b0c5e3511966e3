//! ARP packets for IPv4 over Ethernet.
//!
//! Source: RFC 826; what reaches the ARP hooks: Linux `net/ipv4/arp.c`, `arp_rcv`.

use crate::field::{array, be16, byte};
use std::net::Ipv4Addr;
use std::ops::Range;

/// Hardware type, big endian (1 is Ethernet).
pub const HARDWARE_TYPE: Range<usize> = 0..2;
/// Protocol type, big endian (an EtherType).
pub const PROTOCOL_TYPE: Range<usize> = 2..4;
/// Length of a hardware address in bytes.
pub const HARDWARE_LEN: Range<usize> = 4..5;
/// Length of a protocol address in bytes.
pub const PROTOCOL_LEN: Range<usize> = 5..6;
/// Operation, big endian.
pub const OPERATION: Range<usize> = 6..8;
/// Sender hardware address.
pub const SENDER_HARDWARE: Range<usize> = 8..14;
/// Sender protocol address.
pub const SENDER_PROTOCOL: Range<usize> = 14..18;
/// Target hardware address.
pub const TARGET_HARDWARE: Range<usize> = 18..24;
/// Target protocol address.
pub const TARGET_PROTOCOL: Range<usize> = 24..28;
/// Length of the header with its four addresses, in bytes.
pub const HEADER_LEN: usize = 28;

/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: this address is mine.
pub const REPLY: u16 = 2;

/// An ARP packet with 6-byte hardware and 4-byte protocol addresses.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The packet at the start of `bytes`, if they hold all 28 bytes and the address lengths are 6 and 4.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        let header = Self { fixed: bytes.first_chunk()? };
        has_ethernet_lengths(header.fixed).then_some(header)
    }

    /// Operation: [`REQUEST`], [`REPLY`], or another of RFC 5494.
    #[must_use]
    pub fn operation(&self) -> u16 {
        be16(self.fixed, OPERATION)
    }

    /// Sender hardware address.
    #[must_use]
    pub fn sender_hardware(&self) -> [u8; 6] {
        array(self.fixed, SENDER_HARDWARE)
    }

    /// Sender protocol address.
    #[must_use]
    pub fn sender(&self) -> Ipv4Addr {
        array::<4>(self.fixed, SENDER_PROTOCOL).into()
    }

    /// Target protocol address.
    #[must_use]
    pub fn target(&self) -> Ipv4Addr {
        array::<4>(self.fixed, TARGET_PROTOCOL).into()
    }
}

/// Whether the address lengths fit IPv4 over Ethernet.
#[inline]
#[must_use]
pub(crate) fn has_ethernet_lengths(header: &[u8; HEADER_LEN]) -> bool {
    byte(header, HARDWARE_LEN) == 6 && byte(header, PROTOCOL_LEN) == 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_only_with_ethernet_lengths() {
        let mut bytes = [0u8; 28];
        bytes[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
        bytes[SENDER_PROTOCOL].copy_from_slice(&[10, 0, 0, 2]);
        bytes[TARGET_PROTOCOL].copy_from_slice(&[10, 0, 0, 1]);
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!(header.operation(), REQUEST);
        assert_eq!(header.sender(), Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(header.target(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(header.sender_hardware(), [0; 6]);
        assert!(Header::new_checked(&bytes[..27]).is_none());
        bytes[5] = 16;
        assert!(Header::new_checked(&bytes).is_none());
    }
}
