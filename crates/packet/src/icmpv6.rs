//! ICMPv6 headers and the names of their types.
//!
//! Source: RFC 4443, RFC 2710, RFC 4861; names as iptables' `--icmpv6-type` has them.

use crate::field::{be16, byte};
use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 58;

/// Message type.
pub const TYPE: Range<usize> = 0..1;
/// Message code.
pub const CODE: Range<usize> = 1..2;
/// Checksum, big endian.
pub const CHECKSUM: Range<usize> = 2..4;
/// Echo messages: identifier, big endian.
pub const ID: Range<usize> = 4..6;
/// Echo messages: sequence number, big endian.
pub const SEQUENCE: Range<usize> = 6..8;
/// Length of the header in bytes; error messages carry the packet they are about behind it.
pub const HEADER_LEN: usize = 8;

/// Type: echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Type: echo reply.
pub const ECHO_REPLY: u8 = 129;

/// Message types by name.
pub const TYPE_NAMES: [(u8, &str); 14] = [
    (1, "destination-unreachable"),
    (2, "packet-too-big"),
    (3, "time-exceeded"),
    (4, "parameter-problem"),
    (128, "echo-request"),
    (129, "echo-reply"),
    (130, "mld-listener-query"),
    (131, "mld-listener-report"),
    (132, "mld-listener-done"),
    (133, "router-solicitation"),
    (134, "router-advertisement"),
    (135, "neighbour-solicitation"),
    (136, "neighbour-advertisement"),
    (137, "redirect"),
];

/// Name of a message type.
#[must_use]
pub fn type_name(kind: u8) -> Option<&'static str> {
    TYPE_NAMES.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

/// Message type of a name in [`TYPE_NAMES`].
#[must_use]
pub fn type_named(name: &str) -> Option<u8> {
    TYPE_NAMES.iter().find(|(_, other)| *other == name).map(|(number, _)| *number)
}

/// Whether messages of this type are about another packet, whose start they carry.
#[must_use]
pub fn is_error(kind: u8) -> bool {
    kind < 128
}

/// An ICMPv6 header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 8 bytes of it.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(|fixed| Self { fixed })
    }

    /// Message type.
    #[must_use]
    pub fn kind(&self) -> u8 {
        byte(self.fixed, TYPE)
    }

    /// Message code.
    #[must_use]
    pub fn code(&self) -> u8 {
        byte(self.fixed, CODE)
    }

    /// Checksum as stored.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        be16(self.fixed, CHECKSUM)
    }

    /// Echo identifier; of no meaning in other messages.
    #[must_use]
    pub fn id(&self) -> u16 {
        be16(self.fixed, ID)
    }

    /// Echo sequence number; of no meaning in other messages.
    #[must_use]
    pub fn sequence(&self) -> u16 {
        be16(self.fixed, SEQUENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let header = Header::new_checked(&[ECHO_REQUEST, 1, 0xab, 0xcd, 0, 7, 0, 9]).unwrap();
        assert_eq!((header.kind(), header.code()), (ECHO_REQUEST, 1));
        assert_eq!((header.checksum(), header.id(), header.sequence()), (0xabcd, 7, 9));
        assert!(Header::new_checked(&[0; 7]).is_none());
    }

    #[test]
    fn names_lead_back_to_their_types() {
        for (kind, name) in TYPE_NAMES {
            assert_eq!((type_name(kind), type_named(name)), (Some(name), Some(kind)));
        }
        assert_eq!(type_name(ECHO_REQUEST), Some("echo-request"));
        assert_eq!((type_name(255), type_named("ping")), (None, None));
    }
}
