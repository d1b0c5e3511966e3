//! [`Translation`]: what a target makes of an end of a flow, before anything is chosen from it.
//!
//! Source: Linux 6.18 `nf_nat_masquerade.c`, `nf_nat_redirect.c`.

use super::range::Range;
use crate::family::{Family, Hook};
use crate::transit::{Iface, Transit};
use conntrack::Side;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a target makes of one end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// The end.
    pub side: Side,
    /// What its address and port are chosen from.
    pub range: Range,
    /// The range lacks its address, which nothing given tells.
    pub is_vague: bool,
    /// The packet is for this host then.
    pub redirects: bool,
}

/// What a target gives every flow that it translates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The end.
    pub side: Side,
    /// What its address and port are chosen from; where the address is that of an interface, it has none.
    pub range: Range,
    /// The packet is for this host then.
    pub redirects: bool,
}

impl Translation {
    /// To something in this range.
    #[must_use]
    pub fn to(side: Side, range: Range) -> Self {
        Self { side, range, is_vague: false, redirects: false }
    }

    /// To an address that is not known, and something else in this range.
    #[must_use]
    pub fn somewhere(side: Side, range: Range) -> Self {
        Self { is_vague: true, ..Self::to(side, range) }
    }

    /// Whether a flow that it translates may have this address and port at the end that is translated.
    #[must_use]
    pub fn may_give(&self, address: IpAddr, port: u16) -> bool {
        let Range { addresses, ports, .. } = self.range;
        let has_address = |[first, last]: [IpAddr; 2]| (first..=last).contains(&address);
        self.is_vague
            || addresses.is_none_or(has_address)
                && ports.is_none_or(|ports| (ports.first..=ports.last).contains(&port))
    }

    /// Whether there are ports to choose from, which may all be taken.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.range.ports.is_some()
    }

    fn of_interface(side: Side, range: Range, address: Option<IpAddr>) -> Self {
        match address {
            Some(address) => Self::to(side, Range { addresses: Some([address; 2]), ..range }),
            None => Self::somewhere(side, range),
        }
    }
}

/// `MASQUERADE`: to the address of the interface that the packet goes out by. A flow without a source address is left
/// alone.
#[must_use]
pub fn masquerade(transit: &Transit<'_, '_>, range: Range) -> Option<Translation> {
    let is_unspecified = match transit.family {
        Family::Ipv6 => false,
        _ => transit.net::<4>(12).known() == Some([0; 4]),
    };
    let address = || of_interface(transit, transit.output);
    (!is_unspecified).then(|| Translation::of_interface(Side::Source, range, address()))
}

/// `REDIRECT`: to the address of the packet's input interface, or loopback for the host's own packets.
#[must_use]
pub fn redirect(transit: &Transit<'_, '_>, range: Range) -> Translation {
    let address = match (transit.hook, transit.family) {
        (Hook::Output, Family::Ipv6) => Some(Ipv6Addr::LOCALHOST.into()),
        (Hook::Output, _) => Some(Ipv4Addr::LOCALHOST.into()),
        (_, Family::Ipv6) if !is_global(transit) => None,
        _ => of_interface(transit, transit.input),
    };
    Translation { redirects: true, ..Translation::of_interface(Side::Destination, range, address) }
}

/// Whether a destination is of global scope: other destinations are redirected to an address of their scope, or dropped
/// where there is none (`nf_nat_redirect_ipv6_usable`).
fn is_global(transit: &Transit<'_, '_>) -> bool {
    let destination = transit.net::<16>(24).known().map(Ipv6Addr::from);
    destination.is_some_and(|it| {
        let is_compatible = it.to_bits() >> 32 == 0 && !it.is_unspecified();
        let is_of_site = it.segments()[0] & 0xffc0 == 0xfec0;
        !is_compatible && !is_of_site
    })
}

/// The address of an interface. To a link-local destination IPv6 answers with a link-local address, which
/// nobody gives.
fn of_interface(transit: &Transit<'_, '_>, interface: Iface<'_>) -> Option<IpAddr> {
    let Iface::Named(name) = interface else { return None };
    if transit.family == Family::Ipv6 {
        let destination = Ipv6Addr::from(transit.net::<16>(24).known()?);
        if destination.is_unicast_link_local() || destination.is_multicast() {
            return None;
        }
    }
    transit.host.address_of(name, transit.family == Family::Ipv6)
}
