//! Which way a packet takes through the host, and whose rules judge it.
//!
//! With the host's own addresses known, they decide; otherwise packets are forwarded, unless the ruleset
//! filters only what comes in. No other routing decision is modelled.

use std::net::IpAddr;

use host::Host;
use packet::{L3, Link, Packet, Read};
use rules::model::{Family, Hook, Ruleset};

/// A way through the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Path {
    /// From one interface to another.
    Forward,
    /// To the host itself.
    Input,
    /// From the host itself.
    Output,
    /// From the host to itself: out by `lo`, then in by it.
    Loopback,
}

impl Path {
    /// Its name, as `--path` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Input => "input",
            Self::Output => "output",
            Self::Loopback => "loopback",
        }
    }
}

/// The path that packets take when no address decides.
pub(crate) fn default_path(ruleset: &Ruleset) -> Path {
    let has_rules = |hook| {
        ruleset
            .tables
            .iter()
            .filter_map(|table| Some(&table.chains[table.base_chain(hook)?]))
            .any(|chain| !chain.rules.is_empty())
    };
    if !has_rules(Hook::Forward) && has_rules(Hook::Input) { Path::Input } else { Path::Forward }
}

/// The path of one packet: `None` if it hangs on address bytes that are not known.
pub(crate) fn path_of(packet: &Packet<'_>, host: &Host, default: Path) -> Option<Path> {
    if host.local.is_none() {
        return Some(default);
    }
    let (source, destination) = addresses(packet)?;
    let is_local = |addr| is_local(addr, host) == Some(true);
    Some(match (is_local(source), is_local(destination)) {
        (true, true) => Path::Loopback,
        (true, false) => Path::Output,
        (false, true) => Path::Input,
        (false, false) => Path::Forward,
    })
}

/// Whether an address is the host's own; `None` where nothing tells.
pub(crate) fn is_local(addr: IpAddr, host: &Host) -> Option<bool> {
    let given = host.addresses.iter().any(|(_, own)| *own == addr);
    if addr.is_loopback() || given { Some(true) } else { host.is_local(addr) }
}

/// Source and destination address, if both are known.
pub(crate) fn addresses(packet: &Packet<'_>) -> Option<(IpAddr, IpAddr)> {
    match packet.headers().l3 {
        L3::Ipv4 { .. } => match packet.net::<8>(12) {
            Read::Known([a, b, c, d, e, f, g, h]) => {
                Some((IpAddr::from([a, b, c, d]), IpAddr::from([e, f, g, h])))
            }
            _ => None,
        },
        L3::Ipv6 => {
            let at = |offset| match packet.net::<16>(offset) {
                Read::Known(addr) => Some(IpAddr::from(addr)),
                _ => None,
            };
            Some((at(8)?, at(24)?))
        }
        _ => None,
    }
}

/// The way of a frame that no bridge or router passes on.
pub(crate) fn of_host(outbound: bool) -> Path {
    if outbound { Path::Output } else { Path::Input }
}

/// What bridge rules judge: every frame, where there are frames.
pub(crate) fn bridged(link: Link) -> Option<Family> {
    (link == Link::Ethernet).then_some(Family::Bridge)
}

/// The family whose rules judge a packet.
pub(crate) fn family_of(packet: &Packet<'_>) -> Option<Family> {
    match packet.headers().link.ethertype {
        0x0800 => Some(Family::Ipv4),
        0x86dd => Some(Family::Ipv6),
        0x0806 => Some(Family::Arp),
        _ => None,
    }
}
