//! [`Network`]: the domain of a network, and its virtual addresses.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The number of the directory's own address; nodes have later ones.
const DIRECTORY: u32 = 1;

/// What a network is. Addresses are numbered: the one of a number is that much after the first of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The domain that names of nodes are below, in lower case.
    pub domain: String,
    /// The pool of virtual IPv4 addresses: its first one, and its prefix length, at most 30.
    pub v4: (Ipv4Addr, u8),
    /// The pool of virtual IPv6 addresses, with a prefix length of at most 96.
    pub v6: (Ipv6Addr, u8),
    /// The authority is another process than the directory, with addresses of its own, so the pool of IPv4 addresses has a prefix
    /// length of at most 29.
    pub is_apart: bool,
}

impl Network {
    /// The addresses of a number.
    #[must_use]
    pub fn addresses(&self, number: u32) -> (Ipv4Addr, Ipv6Addr) {
        let v4 = u32::from(self.v4.0).wrapping_add(number);
        let v6 = u128::from(self.v6.0).wrapping_add(number.into());
        (v4.into(), v6.into())
    }

    /// The directory's own addresses.
    #[must_use]
    pub fn directory(&self) -> (Ipv4Addr, Ipv6Addr) {
        self.addresses(DIRECTORY)
    }

    /// The authority's own addresses: the last ones, or the directory's.
    #[must_use]
    pub fn authority(&self) -> (Ipv4Addr, Ipv6Addr) {
        match self.is_apart {
            true => self.addresses(self.last()),
            false => self.directory(),
        }
    }

    /// The numbers that nodes may have: neither the servers' nor that of the broadcast address.
    #[must_use]
    pub fn numbers(&self) -> RangeInclusive<u32> {
        DIRECTORY + 1..=self.last() - u32::from(self.is_apart)
    }

    /// The number before that of the broadcast address.
    fn last(&self) -> u32 {
        let bits = 32 - u32::from(self.v4.1.min(30));
        1_u32.checked_shl(bits).unwrap_or(0).wrapping_sub(2)
    }
}

/// The address that a one-time key is used from, inside the tunnel: of the link alone, so nobody is given it.
#[must_use]
pub fn guest_address(key: &tunnel::PublicKey) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&key.as_bytes()[..8]);
    octets.into()
}

/// The directory's address for guests.
pub const GUESTS_DIRECTORY: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

#[cfg(test)]
mod tests {
    use super::*;

    fn network(v4: &str, bits: u8) -> Network {
        Network {
            domain: "home.example".to_owned(),
            v4: (v4.parse().unwrap(), bits),
            v6: ("fd00::".parse().unwrap(), 64),
            is_apart: false,
        }
    }

    #[test]
    fn nodes_have_neither_the_first_nor_the_last_addresses() {
        assert_eq!(network("10.9.0.0", 30).numbers(), 2..=2);
        assert_eq!(network("10.9.0.0", 16).numbers(), 2..=65_534);
        assert_eq!(*network("0.0.0.0", 0).numbers().end(), u32::MAX - 1);
        let apart = Network { is_apart: true, ..network("10.9.0.0", 29) };
        assert_eq!(apart.numbers(), 2..=5);
        assert_eq!(apart.authority().0.to_string(), "10.9.0.6");
        let (v4, v6) = network("10.9.0.0", 16).addresses(258);
        assert_eq!((v4.to_string(), v6.to_string()), ("10.9.1.2".into(), "fd00::102".into()));
    }
}
