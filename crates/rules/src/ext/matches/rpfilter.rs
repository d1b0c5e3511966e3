//! `-m rpfilter`: a reply to the packet would leave through its input interface.
//!
//! The host's routes and policy rules answer; the mark counts with `--validmark` only. Source: iptables-extensions(8);
//! kernel `net/ipv4/netfilter/ipt_rpfilter.c`, `net/ipv6/netfilter/ip6t_rpfilter.c`.

use std::net::IpAddr;

use host::{Incoming, WayBack};
use packet::{ipv4, ipv6};

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::{Family, Hook, TableKind};
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};

/// Flags in printing order.
const FLAGS: [&str; 4] = ["loose", "validmark", "accept-local", "invert"];

/// Source and destination.
fn addresses(transit: &Transit<'_, '_>) -> Option<(IpAddr, IpAddr)> {
    Some(match transit.family {
        Family::Ipv6 => (
            transit.net::<16>(ipv6::SOURCE.start).known()?.into(),
            transit.net::<16>(ipv6::DESTINATION.start).known()?.into(),
        ),
        _ => (
            transit.net::<4>(ipv4::SOURCE.start).known()?.into(),
            transit.net::<4>(ipv4::DESTINATION.start).known()?.into(),
        ),
    })
}

pub(crate) static KIND: MatchKind = MatchKind {
    name: "rpfilter",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::flag("loose"),
        Opt::flag("validmark"),
        Opt::flag("accept-local"),
        Opt::flag("invert"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Rpfilter {
    /// Which of [`FLAGS`] are given.
    flags: [bool; FLAGS.len()],
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_table(&[TableKind::RAW, TableKind::MANGLE])?;
    args.needs_hook(&[Hook::Prerouting])?;
    Ok(Box::new(Rpfilter { flags: FLAGS.map(|name| args.has(name)) }))
}

impl Match for Rpfilter {
    fn print(&self, to: &mut Printer) {
        for (name, given) in FLAGS.into_iter().zip(self.flags) {
            if given {
                to.flag(false, name);
            }
        }
    }
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let [loose, valid_mark, accepts_local, invert] = self.flags;
        let Some((source, destination)) = addresses(transit) else { return Outcome::MAYBE };
        let input = match transit.input {
            Iface::Named(name) => Some(name),
            Iface::Absent | Iface::Unknown => None,
        };
        let mark = transit.mark;
        let first_header = || transit.net::<1>(ipv6::NEXT_HEADER.start).known();
        let packet = Incoming {
            tos: transit.tos().known(),
            mark: if valid_mark { (mark.unknown == 0).then_some(mark.value) } else { Some(0) },
            protocol: first_header().filter(|_| transit.family == Family::Ipv6).map(|[next]| next),
            ..Incoming::new(source, destination, input)
        };
        match transit.host.way_back(&packet, WayBack { loose, accepts_local, onward: false }) {
            Ok(has) => Outcome::from_bool(has != invert),
            Err(_) => Outcome::MAYBE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, read_in};
    use host::routes::Routes;
    use host::{Host, Links, Network, Policy};
    use packet::{Checksums, Link, Mark, Packet};
    use std::net::Ipv6Addr;

    const ROUTES: &str = "default via 10.0.0.254 dev eth0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5
10.1.0.0/24 dev eth1 proto kernel scope link src 10.1.0.5
10.2.0.0/24
	nexthop via 10.0.0.9 dev eth0 weight 1
	nexthop via 10.1.0.9 dev eth1 weight 1
blackhole 10.3.0.0/24
local 10.0.0.5 dev eth0 table local proto kernel scope host src 10.0.0.5
local 10.1.0.5 dev eth1 table local proto kernel scope host src 10.1.0.5
broadcast 10.0.0.255 dev eth0 table local proto kernel scope link src 10.0.0.5
local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1
10.1.0.0/24 dev eth0 table 100
2001:db8::/64 dev eth0 proto kernel metric 256
2001:db8:1::/64 dev eth1 proto kernel metric 256
2001:db8:2::/64 dev eth1 metric 10
2001:db8:2::/64 dev eth0 metric 20
fe80::/64 dev eth0 proto kernel metric 256
unreachable 2001:db8:3::/64 dev lo metric 1024
local 2001:db8::5 dev eth0 table local proto kernel metric 0
anycast 2001:db8:: dev eth0 table local proto kernel metric 0
";
    const RULES: &str = "0:\tfrom all lookup local
5:\tfrom all fwmark 0x1/0x1 lookup 100
32766:\tfrom all lookup main
32767:\tfrom all lookup default
";

    fn host() -> Host {
        let (routes, policy) = (Routes::parse(ROUTES).ok(), Policy::parse(RULES).ok());
        Host { routes, policy, ..Host::default() }
    }

    fn of(source: &str, destination: &str) -> Vec<u8> {
        match (source.parse().unwrap(), destination.parse().unwrap()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut packet = ipv4(17, &[]);
                packet[12..16].copy_from_slice(&source.octets());
                packet[16..20].copy_from_slice(&destination.octets());
                packet
            }
            (source, destination) => {
                let mut packet = ipv6(17, &[]);
                let bytes = |addr| match addr {
                    IpAddr::V6(v6) => Ipv6Addr::octets(&v6),
                    IpAddr::V4(_) => panic!("of one family"),
                };
                packet[8..24].copy_from_slice(&bytes(source));
                packet[24..40].copy_from_slice(&bytes(destination));
                packet
            }
        }
    }

    /// Returns the rule's answer for a packet with an input interface and a mark.
    fn ask(host: &Host, rule: &str, bytes: &[u8], input: Iface<'_>, mark: Mark) -> Outcome {
        let mut bytes = bytes.to_vec();
        let family = Frame::ip(&bytes).family;
        let rule = format!("-m rpfilter {rule}");
        let ruleset = read_in(family, "raw", "PREROUTING", &rule).unwrap();
        let len = bytes.len();
        let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
        let new = Transit::new(&mut packet, family, Hook::Prerouting, host);
        let transit = Transit { input, mark, ..new };
        ruleset.tables[0].chains[0].rules[0].matches[0].body.evaluate(&transit)
    }

    #[track_caller]
    fn check(host: &Host, rule: &str, source: &str, to: &str, input: &str, outcome: Outcome) {
        let input = if input.is_empty() { Iface::Unknown } else { Iface::Named(input) };
        let packet = of(source, to);
        let ours = ask(host, rule, &packet, input, Mark::default());
        assert_eq!(ours, outcome, "{rule} {source} {to} {input:?}");
        let inverted = ask(host, &format!("{rule} --invert"), &packet, input, Mark::default());
        assert_eq!(inverted, outcome.invert(true), "! {rule} {source} {to} {input:?}");
    }

    #[test]
    fn the_way_back_leads_by_the_input() {
        use Outcome as O;
        let host = host();
        for (rule, source, to, input, outcome) in [
            ("", "10.0.0.9", "10.0.0.5", "eth0", O::YES),
            ("", "10.1.0.9", "10.0.0.5", "eth0", O::NO),
            ("--loose", "10.1.0.9", "10.0.0.5", "eth0", O::YES),
            ("", "10.2.0.9", "10.0.0.5", "eth1", O::YES),
            ("", "10.2.0.9", "10.0.0.5", "eth2", O::NO),
            ("", "8.8.8.8", "10.0.0.5", "eth0", O::YES),
            ("--loose", "10.3.0.9", "10.0.0.5", "eth0", O::NO),
            // Own and broadcast addresses.
            ("--loose", "10.0.0.5", "10.0.0.5", "eth0", O::NO),
            ("--accept-local", "10.0.0.5", "10.0.0.5", "eth0", O::YES),
            ("--accept-local", "10.1.0.5", "10.0.0.5", "eth0", O::NO),
            ("--accept-local --loose", "10.1.0.5", "10.0.0.5", "eth0", O::YES),
            ("--accept-local --loose", "10.0.0.255", "10.0.0.5", "eth0", O::NO),
            // The loopback, and a host without an address yet.
            ("", "10.0.0.5", "10.0.0.5", "lo", O::YES),
            ("", "0.0.0.0", "255.255.255.255", "eth1", O::YES),
            ("", "0.0.0.0", "224.0.0.22", "eth1", O::YES),
            ("", "0.0.0.0", "224.0.1.22", "eth1", O::NO),
            ("", "10.1.0.9", "224.0.0.22", "eth1", O::YES),
            // Where it came in is not known.
            ("", "10.0.0.9", "10.0.0.5", "", O::MAYBE),
            ("--loose", "10.0.0.9", "10.0.0.5", "", O::YES),
            ("--loose", "10.3.0.9", "10.0.0.5", "", O::MAYBE),
            ("", "0.0.0.0", "255.255.255.255", "", O::YES),
        ] {
            check(&host, rule, source, to, input, outcome);
        }
    }

    #[test]
    fn ipv6_looks_for_a_route_by_the_input() {
        use Outcome as O;
        let host = host();
        for (rule, source, input, outcome) in [
            ("", "2001:db8::9", "eth0", O::YES),
            ("", "2001:db8:1::9", "eth0", O::NO),
            ("--loose", "2001:db8:1::9", "eth0", O::YES),
            // The greater metric, but by the input.
            ("", "2001:db8:2::9", "eth0", O::YES),
            ("--loose", "2001:db8:3::9", "eth0", O::NO),
            ("--loose", "2001:db8:9::9", "eth0", O::NO),
            ("", "fe80::9", "eth0", O::YES),
            ("--loose", "fe80::9", "eth1", O::NO),
            ("--loose", "fe80::9", "", O::MAYBE),
            ("", "::", "eth1", O::YES),
            ("--loose", "2001:db8::5", "eth1", O::NO),
            ("--accept-local", "2001:db8::5", "eth1", O::YES),
            ("--accept-local", "2001:db8::", "eth0", O::NO),
        ] {
            check(&host, rule, source, "2001:db8::5", input, outcome);
        }
    }

    #[test]
    fn the_mark_counts_when_it_is_asked_for() {
        let host = host();
        let packet = of("10.1.0.9", "10.0.0.5");
        let eth0 = Iface::Named("eth0");
        let marked = Mark { value: 1, unknown: 0 };
        let unknown = Mark { value: 0, unknown: 1 };
        assert_eq!(ask(&host, "", &packet, eth0, marked), Outcome::NO);
        assert_eq!(ask(&host, "--validmark", &packet, eth0, marked), Outcome::YES);
        assert_eq!(ask(&host, "", &packet, eth0, unknown), Outcome::NO);
        assert_eq!(ask(&host, "--validmark", &packet, eth0, unknown), Outcome::MAYBE);
    }

    #[test]
    fn what_the_host_does_not_say_stays_open() {
        check(&Host::default(), "", "10.0.0.9", "10.0.0.5", "eth0", Outcome::MAYBE);
        check(&Host::default(), "", "10.0.0.9", "10.0.0.5", "lo", Outcome::YES);
        // Tables that only policy rules ask, and no rules.
        let no_rules = Host { policy: None, ..host() };
        check(&no_rules, "", "10.0.0.9", "10.0.0.5", "eth0", Outcome::MAYBE);
        // No local table, and nothing in its stead.
        let main = Routes::parse("default dev eth0\n").unwrap();
        let main = Host { routes: Some(main), ..Host::default() };
        check(&main, "", "10.0.0.9", "10.0.0.5", "eth0", Outcome::MAYBE);
        let told = Host { local: Some(vec![Network::parse("10.0.0.5").unwrap()]), ..main };
        check(&told, "", "10.0.0.9", "10.0.0.5", "eth0", Outcome::YES);
        check(&told, "", "10.0.0.5", "10.0.0.5", "eth0", Outcome::NO);
        check(&told, "--accept-local", "10.0.0.5", "10.0.0.5", "eth0", Outcome::MAYBE);
        let links = "2: v0: <NOARP,MASTER,UP> mtu 1500\\    link/ether 02:00:00:00:00:01 \\    vrf table 100\n\
                     3: eth0: <UP> mtu 1500 master v0\\    link/ether 02:00:00:00:00:02\n";
        let domain = Host { links: Links::parse(links).unwrap(), ..host() };
        check(&domain, "", "10.0.0.9", "10.0.0.5", "eth0", Outcome::MAYBE);
        check(&domain, "", "10.1.0.9", "10.0.0.5", "eth1", Outcome::YES);
    }
}
