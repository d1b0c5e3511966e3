//! The addresses of a host's interfaces, as `ip -o addr` and `ip addr` print them.

use crate::Network;
use crate::text::{Line, TextError, index, records};
use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

/// The addresses of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    all: Vec<Address>,
    own: HashSet<IpAddr>,
    /// Broadcast addresses of the interfaces.
    broadcasts: BTreeSet<IpAddr>,
    /// Bits that are 0 in some of those.
    varying: u32,
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The interface's name.
    pub interface: Box<str>,
    /// The address.
    pub addr: IpAddr,
    /// The address's subnet; with a peer, the peer's.
    pub subnet: Network,
    /// The broadcast address that it was given.
    pub broadcast: Option<IpAddr>,
    /// Whether the address serves a single link or the host alone.
    pub narrow: bool,
    /// Another address of its subnet came first.
    pub secondary: bool,
}

impl Addresses {
    /// Reads them.
    ///
    /// # Errors
    /// A line that begins no record of ip(8), or an address that is none, with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut addresses = Self::default();
        for record in records(text) {
            index(&record.head)?;
            let interface = record.head.at(1);
            let name = interface.text.trim_end_matches(':').split('@').next();
            let name = name.filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| interface.not("the name of an interface"))?;
            for line in std::iter::once(&record.head).chain(&record.rest) {
                addresses.add(name, line)?;
            }
        }
        Ok(addresses)
    }

    fn add(&mut self, interface: &str, line: &Line<'_>) -> Result<(), TextError> {
        let families = ["inet", "inet6"];
        let Some(word) = families.into_iter().find_map(|family| line.after(family)) else {
            return Ok(());
        };
        let wrong = || word.not("an address");
        let (addr, own_bits) =
            word.text.split_once('/').map_or((word.text, None), |(addr, bits)| (addr, Some(bits)));
        let addr: IpAddr = addr.parse().map_err(|_| wrong())?;
        let subnet = match (line.after("peer"), own_bits) {
            (Some(peer), _) => Network::parse(peer.text),
            (None, Some(_)) => Network::parse(word.text),
            (None, None) => Network::parse(&addr.to_string()),
        };
        let subnet = subnet.ok_or_else(wrong)?;
        let broadcast = line.after("brd").and_then(|word| word.text.parse().ok());
        let last = Some(subnet.last()).filter(|_| subnet.bits < 31);
        for broadcast in [broadcast, last].into_iter().flatten() {
            if let (true, IpAddr::V4(all)) = (addr.is_ipv4(), broadcast) {
                self.varying |= !all.to_bits();
                self.broadcasts.insert(broadcast);
            }
        }
        self.own.insert(addr);
        self.all.push(Address {
            interface: interface.into(),
            addr,
            subnet,
            broadcast,
            narrow: matches!(line.after("scope").map(|word| word.text), Some("link" | "host")),
            secondary: line.has("secondary"),
        });
        Ok(())
    }

    /// All of them, in the order of the text.
    #[must_use]
    pub fn all(&self) -> &[Address] {
        &self.all
    }

    /// Whether an interface has this address.
    #[must_use]
    pub fn has(&self, addr: IpAddr) -> bool {
        self.own.contains(&addr)
    }

    /// Whether an address is the broadcast address of an interface.
    pub(crate) fn broadcasts(&self, addr: IpAddr) -> bool {
        // Most addresses lack a bit that all of those have.
        matches!(addr, IpAddr::V4(v4) if !v4.to_bits() & !self.varying == 0)
            && self.broadcasts.contains(&addr)
    }

    /// Returns the source address that the host gives to packets that leave through an interface without one:
    /// `Some(None)` where that depends on the destination.
    pub(crate) fn source_for(&self, interface: &str, is_v6: bool) -> Option<Option<IpAddr>> {
        let fits = |address: &&Address| {
            let wide = !address.narrow && !address.secondary;
            &*address.interface == interface && address.addr.is_ipv6() == is_v6 && wide
        };
        only(self.all.iter().filter(fits).map(|address| address.addr))
    }
}

/// The only one of several values: `None` where there is none at all, `Some(None)` where they differ.
pub(crate) fn only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<Option<T>> {
    let first = values.next()?;
    let is_only = values.all(|other| other == first);
    Some(is_only.then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r"1: lo    inet 127.0.0.1/8 scope host lo\       valid_lft forever preferred_lft forever
2: br0    inet 10.0.0.1/24 brd 10.0.0.255 scope global br0\       valid_lft forever preferred_lft forever
2: br0    inet 10.0.0.2/24 brd 10.0.0.255 scope global secondary br0\       valid_lft forever
2: br0    inet6 2001:db8::1/64 scope global nodad \       valid_lft forever preferred_lft forever
3: v1    inet 10.1.0.1 peer 10.1.0.2/32 scope global v1\       valid_lft forever preferred_lft forever
";

    #[test]
    fn addresses_of_both_forms() {
        let long = "2: br0@x: <UP> mtu 1500 qdisc noqueue\n    link/ether 52:25:fc:45:3d:be brd ff:ff:ff:ff:ff:ff\n    \
                    inet 10.0.0.1/24 brd 10.0.0.255 scope global br0\n       valid_lft forever\n";
        let long = Addresses::parse(long).unwrap();
        let addresses = Addresses::parse(LINES).unwrap();
        assert_eq!(addresses.all().len(), 5);
        assert_eq!(long.all()[0], addresses.all()[1]);
        let peer = &addresses.all()[4];
        assert_eq!(
            (peer.addr.to_string(), peer.subnet.to_string()),
            ("10.1.0.1".into(), "10.1.0.2/32".into())
        );
        assert!(addresses.has("10.0.0.2".parse().unwrap()));
        assert!(!addresses.has("10.1.0.2".parse().unwrap()));
        assert_eq!(addresses.source_for("br0", false), Some("10.0.0.1".parse().ok()));
        assert_eq!(addresses.source_for("br0", true), Some("2001:db8::1".parse().ok()));
        assert_eq!(addresses.source_for("lo", false), None);
    }

    #[test]
    fn broadcast_addresses_are_those_of_the_networks_and_those_given() {
        let text = "2: a    inet 10.0.0.1/24 brd 10.0.0.255 scope global a\n\
                    3: b    inet 10.1.0.1/25 scope global b\n4: c    inet 10.2.0.1/24 brd 10.2.0.0 scope global c\n";
        let addresses = Addresses::parse(text).unwrap();
        let broadcasts = |addr: &str| addresses.broadcasts(addr.parse().unwrap());
        assert!(
            ["10.0.0.255", "10.1.0.127", "10.2.0.0", "10.2.0.255"].iter().all(|a| broadcasts(a))
        );
        assert!(
            !["10.0.0.254", "10.1.0.255", "11.0.0.255", "::a00:ff"].iter().any(|a| broadcasts(a))
        );
        assert!(!Addresses::default().broadcasts("10.0.0.255".parse().unwrap()));
    }

    #[test]
    fn what_is_no_address_is_told() {
        let error = Addresses::parse("2: br0    inet 10.0.0/24 scope global br0").unwrap_err();
        assert_eq!((error.line, error.column, &*error.found), (1, 16, "10.0.0/24"));
        assert!(Addresses::parse("ip: command not found").is_err());
    }
}
