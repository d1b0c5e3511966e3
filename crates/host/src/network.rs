//! [`Network`]: an address and its prefix length.

use std::fmt;
use std::net::IpAddr;

/// An address and its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The address, masked.
    pub addr: IpAddr,
    /// Prefix length in bits.
    pub bits: u8,
}

impl Network {
    /// Reads `ADDRESS[/BITS]`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (addr, bits) = match text.split_once('/') {
            Some((addr, bits)) => (addr, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let addr: IpAddr = addr.parse().ok()?;
        let most = if addr.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then(|| Self { addr: mask(addr, bits), bits })
    }

    /// The address whose host bits are all ones.
    #[must_use]
    pub fn last(&self) -> IpAddr {
        match self.addr {
            IpAddr::V4(v4) => {
                let host = u32::MAX.checked_shr(self.bits.into()).unwrap_or(0);
                IpAddr::V4((u32::from(v4) | host).into())
            }
            IpAddr::V6(v6) => {
                let host = u128::MAX.checked_shr(self.bits.into()).unwrap_or(0);
                IpAddr::V6((u128::from(v6) | host).into())
            }
        }
    }

    /// Whether it holds an address.
    #[must_use]
    pub fn holds(&self, addr: IpAddr) -> bool {
        addr.is_ipv4() == self.addr.is_ipv4() && mask(addr, self.bits) == self.addr
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

pub(crate) fn mask(addr: IpAddr, bits: u8) -> IpAddr {
    match addr {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_addresses_of_their_family() {
        let net = Network::parse("10.1.2.3/8").unwrap();
        assert!(net.holds("10.255.0.1".parse().unwrap()));
        assert!(!net.holds("11.0.0.1".parse().unwrap()));
        assert!(!net.holds("::a".parse().unwrap()));
        assert!(Network::parse("::/0").unwrap().holds("2001:db8::1".parse().unwrap()));
        assert!(Network::parse("0.0.0.0/0").unwrap().holds("1.2.3.4".parse().unwrap()));
        assert_eq!(Network::parse("10.0.0.0/33"), None);
        assert_eq!(Network::parse("10.0.0.0/"), None);
    }

    #[test]
    fn the_last_address_has_all_host_bits() {
        let last = |text| Network::parse(text).unwrap().last().to_string();
        assert_eq!(last("10.1.2.0/24"), "10.1.2.255");
        assert_eq!(last("10.1.2.3"), "10.1.2.3");
        assert_eq!(last("0.0.0.0/0"), "255.255.255.255");
        assert_eq!(last("2001:db8::/112"), "2001:db8::ffff");
    }
}
