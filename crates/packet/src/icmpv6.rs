//! ICMPv6 headers and the names of their types.
//!
//! Source: RFC 4443, RFC 2710, RFC 4861; names as iptables' `--icmpv6-type` has them.

pub use crate::icmp::{CHECKSUM, CODE, HEADER_LEN, ID, SEQUENCE, TYPE};

/// Protocol number.
pub const PROTOCOL: u8 = 58;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_types() {
        for (kind, name) in TYPE_NAMES {
            assert_eq!((type_name(kind), type_named(name)), (Some(name), Some(kind)));
        }
        assert_eq!(type_name(ECHO_REQUEST), Some("echo-request"));
        assert_eq!((type_name(255), type_named("ping")), (None, None));
    }
}
