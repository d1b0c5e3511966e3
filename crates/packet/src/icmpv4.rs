//! ICMP headers and the names of their types.
//!
//! Source: RFC 792, RFC 1256, RFC 950; names as iptables' `--icmp-type` has them.

pub use crate::icmp::{CHECKSUM, CODE, HEADER_LEN, ID, SEQUENCE, TYPE};

/// Protocol number.
pub const PROTOCOL: u8 = 1;

/// Type: echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type: echo reply.
pub const ECHO_REPLY: u8 = 0;

/// Message types by name.
pub const TYPE_NAMES: [(u8, &str); 13] = [
    (0, "echo-reply"),
    (3, "destination-unreachable"),
    (4, "source-quench"),
    (5, "redirect"),
    (8, "echo-request"),
    (9, "router-advertisement"),
    (10, "router-solicitation"),
    (11, "time-exceeded"),
    (12, "parameter-problem"),
    (13, "timestamp-request"),
    (14, "timestamp-reply"),
    (17, "address-mask-request"),
    (18, "address-mask-reply"),
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
    matches!(kind, 3 | 4 | 5 | 11 | 12)
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
