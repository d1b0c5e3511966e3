//! Addresses of datagrams as the kernel has them: `sockaddr_in` and `sockaddr_in6`, as bytes.
//!
//! Contract: pure. A socket of both families knows IPv4 addresses as mapped ones (`::ffff:192.0.2.1`); outside of
//! this module nobody does. The flow label that an IPv6 address may carry is left out: it is none of who a peer is.
//!
//! Source: `ip(7)`, `ipv6(7)`, RFC 4291, 2.5.5.2.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Length of a `sockaddr_in6`, the longer one.
pub(super) const ROOM: usize = 28;
const V4_LENGTH: usize = 16;

const FAMILY_V4: u16 = libc::AF_INET as u16;
const FAMILY_V6: u16 = libc::AF_INET6 as u16;

/// An address in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) bytes: [u8; ROOM],
    /// Bytes of the address.
    pub(super) length: usize,
}

impl Address {
    pub(super) const EMPTY: Self = Self { bytes: [0; ROOM], length: 0 };
    /// Of no family (`AF_UNSPEC`): connecting a socket to it disconnects the socket.
    pub(super) const NOBODY: Self = Self { bytes: [0; ROOM], length: V4_LENGTH };

    /// As a socket of both families takes it, or one of IPv4 alone.
    pub(super) fn new(address: SocketAddr, is_both: bool) -> Self {
        match address {
            SocketAddr::V4(v4) if !is_both => Self::v4(v4),
            SocketAddr::V4(v4) => {
                Self::v6(SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0))
            }
            SocketAddr::V6(v6) => Self::v6(v6),
        }
    }

    fn v4(address: SocketAddrV4) -> Self {
        let mut bytes = [0; ROOM];
        bytes[..2].copy_from_slice(&FAMILY_V4.to_ne_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&address.ip().octets());
        Self { bytes, length: V4_LENGTH }
    }

    fn v6(address: SocketAddrV6) -> Self {
        let mut bytes = [0; ROOM];
        bytes[..2].copy_from_slice(&FAMILY_V6.to_ne_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        bytes[8..24].copy_from_slice(&address.ip().octets());
        bytes[24..].copy_from_slice(&address.scope_id().to_ne_bytes());
        Self { bytes, length: ROOM }
    }

    /// What it says; `None` for any other family, and for what is too short.
    pub(super) fn read(&self) -> Option<SocketAddr> {
        let bytes = self.bytes.get(..self.length)?;
        let family = u16::from_ne_bytes(*bytes.first_chunk()?);
        let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
        match family {
            FAMILY_V4 => {
                let ip: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
                Some(SocketAddr::new(ip.into(), port))
            }
            FAMILY_V6 => {
                let ip: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
                let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
                Some(match unmapped(ip) {
                    IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
                    IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
                })
            }
            _ => None,
        }
    }
}

/// The IPv4 address that is mapped into one of IPv6, or that one.
pub(super) fn unmapped(octets: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_lie_as_the_kernel_has_them() {
        let v4 = Address::new(address("192.0.2.9:51900"), false);
        assert_eq!(v4.length, 16);
        assert_eq!(v4.bytes[2..8], [0xca, 0xbc, 192, 0, 2, 9]);
        let mapped = Address::new(address("192.0.2.9:51900"), true);
        assert_eq!(mapped.length, 28);
        assert_eq!(mapped.bytes[8..24], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 9]);
    }

    #[test]
    fn a_flow_label_is_passed_over_and_a_scope_is_not() {
        let mut link_local = Address::new(address("[fe80::1%3]:9"), true);
        link_local.bytes[4..8].copy_from_slice(&[0, 1, 2, 3]);
        assert_eq!(link_local.read(), Some(address("[fe80::1%3]:9")));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(
            ip in any::<IpAddr>(), port in any::<u16>(), scope in any::<u32>(), is_both: bool,
        ) {
            let given = match ip.to_canonical() {
                IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
                IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
            };
            prop_assert_eq!(Address::new(given, is_both).read(), Some(given));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes: [u8; ROOM], length in 0..60_usize, family in 0..12_u16) {
            let mut odd = Address { bytes, length };
            odd.bytes[..2].copy_from_slice(&family.to_ne_bytes());
            let shortest = match family {
                FAMILY_V4 => 8,
                FAMILY_V6 => ROOM,
                _ => usize::MAX,
            };
            prop_assert_eq!(odd.read().is_some(), (shortest..=ROOM).contains(&length));
        }
    }
}
