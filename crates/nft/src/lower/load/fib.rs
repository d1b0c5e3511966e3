//! `fib`: what the host's routes say of an address of the packet.
//!
//! `type` is that of the address; `oif`, `oifname` and `check` ask for the way there: by the input device, or by any. An
//! address of the host itself has none. Source: kernel `net/ipv4/netfilter/nft_fib_ipv4.c`,
//! `net/ipv6/netfilter/nft_fib_ipv6.c`.

use std::net::IpAddr;

use super::Load;
use super::meta::name_number;
use crate::lower::word::{Loaded, Word};
use host::{Incoming, WayBack};
use packet::{L4, ipv4, ipv6};
use rules::model::{Family, Hook};
use rules::predicate::possible_types;
use rules::{Iface, Transit};

/// The type of addresses of everybody on a link, as a bit.
const BROADCAST: u16 = 1 << 3;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Result {
    /// The type of the address.
    Type,
    /// The device of the route, by its name.
    Device,
    /// Whether there is a route.
    Check,
}

/// A question to the routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fib {
    pub result: Result,
    /// The source is asked for, rather than the destination.
    pub source: bool,
    pub mark: bool,
    pub input: bool,
    pub output: bool,
}

impl Fib {
    /// Makes a question; `None` if it is not evaluated.
    pub(crate) fn new(result: &str, flags: &[&str]) -> Option<Self> {
        let has = |flag| flags.contains(&flag);
        let result = match result {
            "type" => Result::Type,
            "oif" | "oifname" => Result::Device,
            _ => Result::Check,
        };
        let fib = Self {
            result,
            source: has("saddr"),
            mark: has("mark"),
            input: has("iif"),
            output: has("oif"),
        };
        let is_type = result == Result::Type;
        let is_way = !is_type && !fib.output;
        (is_type && !fib.mark || is_way).then_some(fib)
    }

    fn kind(&self, transit: &Transit<'_, '_>) -> Loaded {
        let Some((source, destination)) = addresses(transit) else { return Loaded::unknown(32) };
        let address = if self.source { source } else { destination };
        let device = match (self.input, self.output) {
            (true, _) => Some(transit.input),
            (_, true) => Some(transit.output),
            _ => None,
        };
        let passed = matches!(transit.hook, Hook::Forward | Hook::Postrouting);
        let forwarded = !self.source && passed && transit.to_host == Some(false);
        let types = possible_types(transit.host, address, device, forwarded);
        let possible = (0..16).filter(|kind| types >> kind & 1 == 1);
        Loaded { words: possible.map(Word::known).collect(), breaks: false }
    }

    /// The device of the way to the address, and `Some(None)` if there is no way; `None` where that is not known. Where only the way
    /// is asked for, and that by any device, the name may be empty.
    fn way<'t>(&self, transit: &Transit<'t, '_>) -> Option<Option<&'t str>> {
        if transit.hook != Hook::Prerouting {
            return None;
        }
        let (source, destination) = addresses(transit)?;
        let input = match transit.input {
            Iface::Named(name) => Some(name),
            Iface::Absent | Iface::Unknown => None,
        };
        if source.is_unspecified() && source.is_ipv6() {
            return is_solicitation(transit, destination).then_some(input)?.map(Some);
        }
        let asked = if self.source { source } else { destination };
        // A route to everybody on a link is one, and by which device is not asked of it.
        let is_of_all = possible_types(transit.host, asked, None, false) & BROADCAST != 0;
        if is_of_all || !self.source && asked.is_multicast() {
            return None;
        }
        let mark = transit.mark;
        let next = || transit.net::<1>(ipv6::NEXT_HEADER.start).known().map(|[next]| next);
        let packet = Incoming {
            tos: transit.tos().known(),
            mark: if self.mark { (mark.unknown == 0).then_some(mark.value) } else { Some(0) },
            protocol: if transit.family == Family::Ipv6 { next() } else { None },
            ..Incoming::new(source, destination, input)
        };
        let wanted = WayBack { loose: !self.input, accepts_local: false, onward: !self.source };
        let is_found = transit.host.way_back(&packet, wanted).ok()?;
        match (is_found, self.input, self.result) {
            (false, ..) => Some(None),
            (true, true, _) => input.map(Some),
            (true, false, Result::Device) => transit.host.device_back(&packet, wanted).ok(),
            (true, false, _) => Some(Some("")),
        }
    }
}

/// Whether a packet of IPv6 without a source is ICMPv6 to a neighbour, which is let through without a route; of others the
/// answer is that of the route to the unspecified address.
fn is_solicitation(transit: &Transit<'_, '_>, destination: IpAddr) -> bool {
    let IpAddr::V6(to) = destination else { return false };
    let near = to.is_unicast_link_local() || to.is_multicast() && to.octets()[1] & 0xf == 2;
    let icmp = matches!(transit.upper_layer(), L4::Upper(upper) if upper.protocol == 58);
    near && icmp
}

fn addresses(transit: &Transit<'_, '_>) -> Option<(IpAddr, IpAddr)> {
    let four = |at| transit.net::<4>(at).known().map(IpAddr::from);
    let six = |at| transit.net::<16>(at).known().map(IpAddr::from);
    match transit.family {
        Family::Ipv6 => Some((six(ipv6::SOURCE.start)?, six(ipv6::DESTINATION.start)?)),
        _ => Some((four(ipv4::SOURCE.start)?, four(ipv4::DESTINATION.start)?)),
    }
}

impl Load for Fib {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        match self.result {
            Result::Type => self.kind(transit),
            Result::Check => match self.way(transit) {
                Some(way) => Loaded::known(way.is_some().into()),
                None => Loaded::word(Word::between(0, 1)),
            },
            Result::Device => match self.way(transit) {
                Some(way) => Loaded::known(way.map_or(0, name_number)),
                None => Loaded::unknown(128),
            },
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some(
            "the addresses and routes of the host are not known (a folder of the host, or --routes)",
        )
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        let flags = [
            (self.source, "saddr"),
            (!self.source, "daddr"),
            (self.mark, "mark"),
            (self.input, "iif"),
            (self.output, "oif"),
        ];
        let flags: Vec<&str> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        let result = match self.result {
            Result::Type => "type",
            Result::Device => "oif",
            Result::Check => "oif present",
        };
        show(format!("fib {} {result}", flags.join(" . ")));
    }
}

#[cfg(test)]
mod tests {
    use crate::lower::probe::{Frame, craft};
    use host::routes::Routes;
    use host::{Host, Policy};
    use packet::craft::Message;
    use rules::Outcome as O;
    use rules::model::Hook;

    const ROUTES: &str = "default via 10.0.0.254 dev eth0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5
10.1.0.0/24 dev eth1 proto kernel scope link src 10.1.0.5
local 10.0.0.5 dev eth0 table local proto kernel scope host src 10.0.0.5
broadcast 10.0.0.255 dev eth0 table local proto kernel scope link src 10.0.0.5
";
    const RULES: &str = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n";

    #[test]
    fn types_and_ways_back_are_those_of_the_routes() {
        let (routes, policy) = (Routes::parse(ROUTES).ok(), Policy::parse(RULES).ok());
        let host = Host { routes, policy, ..Host::default() };
        for (source, destination, rule, says) in [
            ("10.0.0.9", "10.0.0.5", "fib daddr type local", O::YES),
            ("10.0.0.9", "10.0.0.7", "fib daddr type local", O::NO),
            ("10.0.0.9", "10.0.0.7", "fib daddr type { local, unicast }", O::YES),
            ("10.0.0.9", "10.0.0.255", "fib daddr type broadcast", O::YES),
            ("10.0.0.5", "10.0.0.7", "fib saddr type local", O::YES),
            ("10.0.0.9", "10.0.0.5", "fib saddr . iif oif exists", O::YES),
            ("10.1.0.9", "10.0.0.5", "fib saddr . iif oif missing", O::YES),
            ("10.1.0.9", "10.0.0.5", "fib saddr oif missing", O::NO),
            ("10.0.0.9", "10.0.0.5", "fib saddr . iif oifname \"eth0\"", O::YES),
            ("10.1.0.9", "10.0.0.5", "fib saddr oifname \"eth1\"", O::YES),
            ("10.1.0.9", "10.0.0.7", "fib saddr oifname \"eth0\"", O::NO),
            ("10.0.0.9", "10.1.0.7", "fib daddr oifname \"eth1\"", O::YES),
            ("10.0.0.9", "192.0.2.1", "fib daddr oifname \"eth0\"", O::YES),
            ("10.0.0.9", "10.1.0.7", "fib daddr . iif oif missing", O::YES),
            ("10.0.0.9", "10.0.0.7", "fib daddr . iif oifname \"eth0\"", O::YES),
            ("10.0.0.9", "10.0.0.5", "fib daddr oif exists", O::NO),
            ("10.0.0.9", "10.1.0.7", "fib daddr oif exists", O::YES),
        ] {
            let mut frame = Frame::of(&craft(source, destination, Message::udp(1, 2)));
            frame.hook = Hook::Prerouting;
            let unknown = frame.says(rule);
            frame.host = host.clone();
            assert_eq!(frame.says(rule), says, "{source} {destination} {rule}");
            assert_eq!(unknown.or(says), unknown, "{rule} without routes");
        }
    }
}
