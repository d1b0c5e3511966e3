//! `-m addrtype`: what an address is to this host.
//!
//! IPv4 looks an address up in the local table and wants its type among the listed ones; so a route of another table
//! never shows. IPv6 wants all listed kinds that the address itself shows (UNSPEC, UNICAST, MULTICAST), and at least
//! one of the listed kinds that a route shows (LOCAL, ANYCAST, UNREACHABLE). What is not known of the host stays open.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_addrtype.c`.

pub(crate) mod types;

use std::net::Ipv6Addr;

use packet::{Read, ipv4, ipv6};

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::{Family, Hook};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::{Iface, Transit};
use types::{NAMES, NOT_IPV6, TOLD_BY_ROUTE, is_of_kinds, of_kinds, types_v4, types_v6};

pub(crate) static KIND: MatchKind = MatchKind {
    name: "addrtype",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("src-type").invertible(),
        Opt::value("dst-type").invertible(),
        Opt::flag("limit-iface-in"),
        Opt::flag("limit-iface-out"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct AddrType {
    source: Option<TypeTest>,
    destination: Option<TypeTest>,
    limit: Limit,
    family: Family,
}

#[derive(Debug, Clone, Copy)]
struct TypeTest {
    types: u16,
    invert: bool,
}

/// Whether only routes over the packet's interface count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    None,
    Input,
    Output,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["src-type", "dst-type"])?;
    args.one_of(&["limit-iface-in", "limit-iface-out"])?;
    let limit = if args.has("limit-iface-in") {
        args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
        Limit::Input
    } else if args.has("limit-iface-out") {
        args.needs_hook(&[Hook::Forward, Hook::Output, Hook::Postrouting])?;
        Limit::Output
    } else {
        Limit::None
    };
    let test = |name| args.get(name).map(|given| parse_types(given, args.family)).transpose();
    let (source, destination) = (test("src-type")?, test("dst-type")?);
    Ok(Box::new(AddrType { source, destination, limit, family: args.family }))
}

fn parse_types(given: &Given<'_>, family: Family) -> Result<TypeTest, What> {
    let bit = |word: &str| {
        let starts =
            |name: &&str| name.get(..word.len()).is_some_and(|s| s.eq_ignore_ascii_case(word));
        let place = if word.is_empty() { None } else { NAMES.iter().position(starts) };
        place.map(|place| 1 << place)
    };
    let types = given.text().split(',').try_fold(0, |types, word| Some(types | bit(word)?));
    let types =
        types.ok_or_else(|| given.expected(format!("a comma list of {}", NAMES.join(" "))))?;
    if family == Family::Ipv6 && types & NOT_IPV6 != 0 {
        let what = "types that IPv6 has: UNSPEC UNICAST LOCAL ANYCAST MULTICAST UNREACHABLE";
        return Err(given.expected(what));
    }
    Ok(TypeTest { types, invert: given.invert })
}

/// Whether routing has sent the packet on: where it goes is then no address of this host.
fn is_forwarded(transit: &Transit<'_, '_>) -> bool {
    transit.to_host == Some(false) && matches!(transit.hook, Hook::Forward | Hook::Postrouting)
}

impl TypeTest {
    fn evaluate_v4(
        self,
        transit: &Transit<'_, '_>,
        at: usize,
        device: Option<Iface<'_>>,
    ) -> Outcome {
        let Read::Known(addr) = transit.net::<4>(at) else { return Outcome::MAYBE };
        let mut known = types_v4(transit.host, addr.into(), device);
        if at == ipv4::DESTINATION.start && is_forwarded(transit) {
            known = known.of_forwarded();
        }
        known.evaluate(self.types, true).invert(self.invert)
    }

    fn evaluate_v6(
        self,
        transit: &Transit<'_, '_>,
        at: usize,
        device: Option<Iface<'_>>,
    ) -> Outcome {
        let Read::Known(addr) = transit.net::<16>(at) else { return Outcome::MAYBE };
        let addr = Ipv6Addr::from(addr);
        let by_route = self.types & TOLD_BY_ROUTE;
        let outcome = match is_of_kinds(addr, self.types) {
            false => Outcome::NO,
            true if by_route == 0 => Outcome::YES,
            true => {
                let mut known = types_v6(transit.host, addr, device);
                if at == ipv6::DESTINATION.start && is_forwarded(transit) {
                    known = known.of_forwarded();
                }
                known.evaluate(by_route, false)
            }
        };
        outcome.invert(self.invert)
    }

    /// Returns the test as a predicate on an address and its type.
    fn predicate(self, family: Family, address: Field, kind: Field) -> Predicate {
        let one_of = |types: u16| {
            let places = (0..NAMES.len()).filter(move |place| types >> place & 1 != 0);
            Predicate::Any(places.map(|place| Predicate::is(kind, place as u128)).collect())
        };
        let all = match family {
            Family::Ipv6 => {
                let mut all = of_kinds(self.types, address);
                let by_route = self.types & TOLD_BY_ROUTE;
                all.extend((by_route != 0).then(|| one_of(by_route)));
                Predicate::All(all)
            }
            _ => one_of(self.types),
        };
        all.inverted(self.invert)
    }

    fn print(self, name: &str, to: &mut Printer) {
        let places = NAMES.iter().enumerate().filter(|(place, _)| self.types >> place & 1 != 0);
        let names: Vec<&str> = places.map(|(_, name)| *name).collect();
        to.option(self.invert, name, names.join(","));
    }
}

impl Match for AddrType {
    fn print(&self, to: &mut Printer) {
        if let Some(test) = self.source {
            test.print("src-type", to);
        }
        if let Some(test) = self.destination {
            test.print("dst-type", to);
        }
        match self.limit {
            Limit::None => {}
            Limit::Input => _ = to.flag(false, "limit-iface-in"),
            Limit::Output => _ = to.flag(false, "limit-iface-out"),
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let device = match self.limit {
            Limit::None => None,
            Limit::Input => Some(transit.input),
            Limit::Output => Some(transit.output),
        };
        let evaluate = |test: Option<TypeTest>, v4: usize, v6: usize| match (test, transit.family) {
            (None, _) => Outcome::YES,
            (Some(test), Family::Ipv6) => test.evaluate_v6(transit, v6, device),
            (Some(test), _) => test.evaluate_v4(transit, v4, device),
        };
        evaluate(self.source, ipv4::SOURCE.start, ipv6::SOURCE.start).and_then(|| {
            evaluate(self.destination, ipv4::DESTINATION.start, ipv6::DESTINATION.start)
        })
    }

    /// Over one interface it is another search.
    fn predicate(&self) -> Option<Predicate> {
        let predicate = |test: Option<TypeTest>, address, kind| {
            test.map(|test| test.predicate(self.family, address, kind))
        };
        let source = predicate(self.source, Field::Source, Field::SourceType);
        let destination = predicate(self.destination, Field::Destination, Field::DestinationType);
        (self.limit == Limit::None)
            .then(|| Predicate::All(source.into_iter().chain(destination).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print, read_in};
    use host::routes::Routes;
    use host::{Host, Network};

    #[test]
    fn types_print_by_number() {
        let text = print(Family::Ipv4, "-m addrtype ! --dst-type multi,LOCAL,u --limit-iface-in");
        assert_eq!(
            text.unwrap(),
            "-m addrtype ! --dst-type UNSPEC,LOCAL,MULTICAST --limit-iface-in"
        );
        for bad in ["", "--src-type LOCAL,", "--src-type wrong", "--limit-iface-in"] {
            assert!(print(Family::Ipv4, &format!("-m addrtype {bad}")).is_err(), "{bad}");
        }
        for kind in ["BROADCAST", "BLACKHOLE", "PROHIBIT", "XRESOLVE"] {
            assert!(print(Family::Ipv6, &format!("-m addrtype --src-type {kind}")).is_err());
            assert!(print(Family::Ipv4, &format!("-m addrtype --src-type {kind}")).is_ok());
        }
        let out = "-m addrtype --src-type LOCAL --limit-iface-out";
        assert!(read_in(Family::Ipv4, "filter", "INPUT", out).is_err());
        assert!(read_in(Family::Ipv4, "filter", "OUTPUT", out).is_ok());
    }

    fn to_v4(addr: [u8; 4]) -> Vec<u8> {
        let mut packet = ipv4(17, &[]);
        packet[16..20].copy_from_slice(&addr);
        packet
    }

    #[test]
    fn what_is_forwarded_goes_to_no_address_of_this_host() {
        let host = host(None, None);
        let packet = to_v4([10, 0, 0, 5]);
        let evaluate = |to_host, hook, rule: &str| {
            let frame = Frame { hook, to_host, ..Frame::ip(&packet) };
            frame.evaluate_in(&host, rule)
        };
        for (hook, kind, outcome) in [
            (Hook::Forward, "UNICAST", Outcome::YES),
            (Hook::Forward, "LOCAL,BROADCAST", Outcome::NO),
            (Hook::Postrouting, "UNICAST", Outcome::YES),
            (Hook::Prerouting, "UNICAST", Outcome::MAYBE),
        ] {
            let rule = format!("-m addrtype --dst-type {kind}");
            assert_eq!(evaluate(Some(false), hook, &rule), outcome, "{hook:?} {kind}");
        }
        let rule = "-m addrtype --dst-type UNICAST";
        assert_eq!(evaluate(None, Hook::Forward, rule), Outcome::MAYBE);
        let rule = "-m addrtype --src-type UNICAST";
        assert_eq!(evaluate(Some(false), Hook::Forward, rule), Outcome::MAYBE);
    }

    fn to_v6(addr: &str) -> Vec<u8> {
        let mut packet = ipv6(17, &[]);
        packet[24..40].copy_from_slice(&addr.parse::<Ipv6Addr>().unwrap().octets());
        packet
    }

    fn host(local: Option<&str>, routes: Option<&str>) -> Host {
        Host {
            local: local.map(|text| vec![Network::parse(text).unwrap()]),
            routes: routes.map(|text| Routes::parse(text).unwrap()),
            ..Host::default()
        }
    }

    const MAIN: &str = "10.0.0.0/24 dev eth1 proto kernel scope link src 10.0.0.5";
    const TABLE: &str = "local 10.0.0.5 dev eth0 table local\nbroadcast 10.0.0.255 dev eth0";

    #[test]
    fn ipv4_is_one_of_the_types() {
        use Outcome as O;
        let (none, local) = (host(None, None), host(Some("10.0.0.5"), None));
        let (main, table) = (host(Some("10.0.0.5"), Some(MAIN)), host(None, Some(TABLE)));
        for (host, addr, types, outcome) in [
            (&none, [0, 0, 0, 0], "BROADCAST", O::YES),
            (&none, [255, 255, 255, 255], "UNICAST,LOCAL", O::NO),
            (&none, [239, 1, 1, 1], "MULTICAST", O::YES),
            (&none, [127, 1, 1, 1], "LOCAL", O::YES),
            (&none, [127, 255, 255, 255], "BROADCAST", O::YES),
            (&none, [10, 0, 0, 5], "LOCAL", O::MAYBE),
            (&none, [10, 0, 0, 5], "LOCAL,UNICAST,BROADCAST", O::YES),
            (&none, [10, 0, 0, 5], "MULTICAST,BLACKHOLE,UNSPEC", O::NO),
            (&local, [10, 0, 0, 5], "LOCAL", O::YES),
            (&local, [10, 0, 0, 6], "LOCAL", O::NO),
            (&local, [10, 0, 0, 255], "BROADCAST", O::MAYBE),
            (&main, [10, 0, 0, 255], "BROADCAST", O::YES),
            (&main, [10, 0, 0, 6], "UNICAST", O::YES),
            (&table, [10, 0, 0, 5], "LOCAL", O::YES),
            (&table, [10, 0, 0, 255], "BROADCAST", O::YES),
            (&table, [10, 0, 0, 6], "UNICAST", O::YES),
        ] {
            let packet = to_v4(addr);
            let rule = format!("-m addrtype --dst-type {types}");
            assert_eq!(Frame::ip(&packet).evaluate_in(host, &rule), outcome, "{addr:?} {types}");
            let rule = format!("-m addrtype ! --dst-type {types}");
            let outcome = outcome.invert(true);
            assert_eq!(Frame::ip(&packet).evaluate_in(host, &rule), outcome, "{addr:?} ! {types}");
        }
    }

    #[test]
    fn a_limit_hides_what_is_local_elsewhere() {
        let table = host(None, Some(TABLE));
        let packet = to_v4([10, 0, 0, 5]);
        let evaluate = |host: &Host, rule: &str| Frame::ip(&packet).evaluate_in(host, rule);
        assert_eq!(evaluate(&table, "-m addrtype --dst-type LOCAL --limit-iface-in"), Outcome::YES);
        assert_eq!(evaluate(&table, "-m addrtype --dst-type LOCAL --limit-iface-out"), Outcome::NO);
        assert_eq!(
            evaluate(&table, "-m addrtype --dst-type UNICAST --limit-iface-out"),
            Outcome::YES
        );
        let local = host(Some("10.0.0.5"), None);
        assert_eq!(
            evaluate(&local, "-m addrtype --dst-type LOCAL --limit-iface-in"),
            Outcome::MAYBE
        );
    }

    #[test]
    fn ipv6_is_all_of_the_kinds_and_one_of_the_routes() {
        use Outcome as O;
        let (none, local) = (host(None, None), host(Some("2001:db8::5"), None));
        let text =
            "local 2001:db8::5 dev eth0\n2001:db8::/64 dev eth0\nunreachable 2001:db8:9::/48";
        let table = host(None, Some(text));
        for (host, addr, types, outcome) in [
            (&none, "ff02::1", "MULTICAST", O::YES),
            (&none, "ff02::1", "MULTICAST,UNICAST", O::NO),
            (&none, "::", "UNSPEC", O::YES),
            (&none, "::", "UNICAST", O::NO),
            (&none, "::ffff:1.2.3.4", "UNICAST", O::NO),
            (&none, "::1.2.3.4", "UNICAST", O::YES),
            (&none, "::1", "LOCAL,UNICAST", O::YES),
            (&none, "2001:db8::5", "LOCAL", O::MAYBE),
            (&local, "2001:db8::5", "LOCAL,UNICAST", O::YES),
            (&local, "2001:db8::5", "LOCAL,MULTICAST", O::NO),
            (&local, "2001:db8::6", "LOCAL", O::NO),
            (&local, "2001:db8::6", "UNREACHABLE", O::MAYBE),
            (&table, "2001:db8::5", "LOCAL", O::YES),
            (&table, "2001:db8::6", "UNREACHABLE,ANYCAST,LOCAL", O::NO),
            (&table, "2001:db8::", "ANYCAST", O::YES),
            (&table, "2001:db8:9::1", "UNREACHABLE", O::YES),
            (&table, "2001:db8:8::1", "UNREACHABLE", O::YES),
        ] {
            let packet = to_v6(addr);
            let rule = format!("-m addrtype --dst-type {types}");
            assert_eq!(Frame::ip(&packet).evaluate_in(host, &rule), outcome, "{addr} {types}");
        }
    }
}
