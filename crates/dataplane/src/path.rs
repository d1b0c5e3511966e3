//! Which way a packet takes through the host, and whose rules judge it.
//!
//! Where a capture says that a frame came in, or that the host sent it, that decides first, else whether its source
//! is the host's own. What came in goes to the host or on: as routing decides, else by the host's own addresses. With
//! nothing said, rules that stand only on one way are meant for it; with rules on both the packet may take either.

use std::net::IpAddr;

use host::Host;
use packet::{L3, Link, Packet, Read};
use rules::Iface;
use rules::model::{Family, Hook, Ruleset};

use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::interfaces;

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

/// A path, and the interfaces on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way<'a> {
    pub(crate) path: Path,
    pub(crate) input: Iface<'a>,
    pub(crate) output: Iface<'a>,
    /// Nobody said whether it goes to the host or on.
    pub(crate) open: bool,
}

/// What is known of a packet's way before its interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) path: Path,
    /// See [`Way::open`].
    pub(crate) open: bool,
}

impl Course {
    pub(crate) fn sure(path: Path) -> Self {
        Self { path, open: false }
    }

    /// With the interfaces of a packet.
    pub(crate) fn by<'a>(
        self,
        packet: &Packet<'_>,
        arrival: &Arrival<'a>,
        config: &'a Config,
    ) -> Way<'a> {
        let Self { path, open } = self;
        let (input, output) = interfaces::of(packet, arrival, path, None, config);
        Way { path, input, output, open }
    }

    /// Where packets go that came in, when nothing is said of the host. One that has no rules for what it forwards is
    /// taken to forward nothing, whatever the policy there.
    pub(crate) fn of_rules(ruleset: &Ruleset) -> Self {
        let has_rules = |hook| {
            ruleset
                .tables
                .iter()
                .filter_map(|table| Some(&table.chains[table.base_chain(hook)?]))
                .any(|chain| !chain.rules.is_empty())
        };
        match (has_rules(Hook::Forward), has_rules(Hook::Input)) {
            (false, true) => Self::sure(Path::Input),
            (forward, input) => {
                Self { path: Path::Forward, open: forward && input && ruleset.family.is_ip() }
            }
        }
    }
}

/// The way of an IP packet: `None` if it hangs on address bytes that are not known.
pub(crate) fn course_of(
    packet: &Packet<'_>,
    addresses: Option<(IpAddr, IpAddr)>,
    (arrival, origin): (&Arrival<'_>, Origin),
    config: &Config,
    of_rules: Course,
) -> Option<Course> {
    let host = &config.host;
    if interfaces::is_on_loopback(packet, arrival) {
        return Some(Course::sure(Path::Loopback));
    }
    let Some((source, destination)) = addresses else {
        return match origin {
            Origin::Host => Some(Course::sure(Path::Output)),
            _ => host.local.is_none().then_some(of_rules),
        };
    };
    let is_own = match origin {
        Origin::Host => true,
        Origin::Wire => false,
        Origin::Addresses => host.local.is_some() && is_local(source, host) == Some(true),
    };
    let to_host = is_local(destination, host);
    Some(match (is_own, to_host) {
        (true, Some(true)) => Course::sure(Path::Loopback),
        (true, _) => Course::sure(Path::Output),
        (false, _) => arrived(destination, to_host, arrival, config, of_rules),
    })
}

/// The way of a packet that came in.
pub(crate) fn arrived(
    destination: IpAddr,
    to_host: Option<bool>,
    arrival: &Arrival<'_>,
    config: &Config,
    of_rules: Course,
) -> Course {
    if arrival.left.is_some() {
        return Course::sure(Path::Forward);
    }
    let never_forwarded = match destination {
        IpAddr::V4(v4) => v4.is_broadcast() || v4.octets() == [224, 0, 0, 1],
        IpAddr::V6(v6) => v6.segments() == [0xff02, 0, 0, 0, 0, 0, 0, 1],
    };
    match to_host {
        _ if never_forwarded => Course::sure(Path::Input),
        Some(true) => Course::sure(Path::Input),
        Some(false) => Course::sure(Path::Forward),
        None if !of_rules.open => of_rules,
        None => Course { open: !is_told_forward(destination, arrival, config), ..of_rules },
    }
}

/// Whether what is said of interfaces sends a packet on: by one that it goes out by, or towards a network that is
/// not where it came from.
fn is_told_forward(destination: IpAddr, arrival: &Arrival<'_>, config: &Config) -> bool {
    arrival.output.is_some()
        || config.output.is_some()
        || interfaces::behind(&config.nets, destination).is_some()
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
