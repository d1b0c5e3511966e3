//! What the NAT targets share: the range that an address and a port are taken from.
//!
//! Source: iptables-extensions(8) DNAT, SNAT; kernel `net/netfilter/xt_nat.c`, `xt_MASQUERADE.c`,
//! `xt_REDIRECT.c`.

use crate::error::What;
use crate::ext::{Args, Effect, Given, Opt, Printer, Target};
use crate::family::Family;
use crate::nat::{Gives, Mapping, Ports, Range, Translation};
use crate::transit::Transit;
use crate::{nat, value};
use conntrack::Side;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `--random` as the NAT targets declare it.
pub(crate) const RANDOM: Opt = Opt::flag("random");
/// `--random-fully` as the NAT targets declare it.
pub(crate) const RANDOM_FULLY: Opt = Opt::flag("random-fully");
/// `--persistent` as the NAT targets declare it.
pub(crate) const PERSISTENT: Opt = Opt::flag("persistent");

/// Flags in printing order.
const FLAGS: [&str; 3] = ["random", "random-fully", "persistent"];
/// Protocols that a port may be given for: TCP, UDP, SCTP, DCCP, ICMP.
const WITH_PORTS: [u8; 5] = [6, 17, 132, 33, 1];

/// Where the address of a mapping comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The rule names it, for this end.
    Rule(Side),
    /// The interface that the packet goes out by; for the source.
    Output,
    /// The input interface of the packet; for the destination.
    Input,
}

/// A NAT target with its range.
#[derive(Debug)]
pub(crate) struct Nat {
    from: From,
    /// The option that the range is printed as.
    option: &'static str,
    family: Family,
    addresses: Option<[[u8; 16]; 2]>,
    ports: Option<Ports>,
    /// Which of [`FLAGS`].
    flags: [bool; 3],
}

impl Nat {
    /// A target whose `option`, which must be given, holds addresses and ports.
    pub(crate) fn with_addresses(
        args: &Args<'_>,
        option: &'static str,
        side: Side,
    ) -> Result<Self, What> {
        let given = args.required(option)?;
        let mut nat = Self::empty(args, option, From::Rule(side));
        let (addresses, ports) = split(given.text(), args.family)
            .ok_or_else(|| given.expected("[address[-address]][:port[-port]]"))?;
        if let Some(text) = addresses {
            nat.addresses = Some(parse_addresses(text, args.family).ok_or_else(|| {
                given.expected(format!("an {} address or a range of two", version(args.family)))
            })?);
        }
        if let Some(text) = ports {
            nat.ports = Some(parse_ports(args, given, text)?);
        }
        Ok(nat)
    }

    /// A target whose `--to-ports`, if given, holds ports.
    pub(crate) fn with_ports(args: &Args<'_>, from: From) -> Result<Self, What> {
        let mut nat = Self::empty(args, "to-ports", from);
        if let Some(given) = args.get("to-ports") {
            nat.ports = Some(parse_ports(args, given, given.text())?);
        }
        Ok(nat)
    }

    fn empty(args: &Args<'_>, option: &'static str, from: From) -> Self {
        let flags = FLAGS.map(|name| args.has(name));
        Self { from, option, family: args.family, addresses: None, ports: None, flags }
    }

    /// Refuses a port that the range is shifted to.
    pub(crate) fn without_shift(self, args: &Args<'_>) -> Result<Self, What> {
        if self.ports.is_some_and(|ports| ports.base.is_some()) {
            return Err(args.expected("a range without /port"));
        }
        Ok(self)
    }

    /// What the kernel chooses from.
    fn range(&self) -> Range {
        let address = |bytes: [u8; 16]| match (self.family, bytes) {
            (Family::Ipv6, bytes) => IpAddr::from(bytes),
            (_, [a, b, c, d, ..]) => IpAddr::from([a, b, c, d]),
        };
        let [random, random_fully, persistent] = self.flags;
        Range {
            addresses: self.addresses.map(|bounds| bounds.map(address)),
            ports: self.ports,
            random: random || random_fully,
            persistent,
        }
    }

    fn range_text(&self) -> String {
        let mut text = String::new();
        if let Some([low, high]) = &self.addresses {
            let len = self.family.addr_len();
            let low_text = value::address_text(low, len);
            text = match low == high {
                true => low_text,
                false => format!("{low_text}-{}", value::address_text(high, len)),
            };
            if self.family == Family::Ipv6 && self.ports.is_some() {
                text = format!("[{text}]");
            }
        }
        if let Some(ports) = self.ports {
            if self.option != "to-ports" {
                text.push(':');
            }
            text.push_str(&ports_text(ports));
        }
        text
    }
}

fn version(family: Family) -> &'static str {
    if family == Family::Ipv6 { "IPv6" } else { "IPv4" }
}

/// The parts before and after the colon of `addresses:ports`; IPv6 addresses with ports stand in brackets.
fn split(text: &str, family: Family) -> Option<(Option<&str>, Option<&str>)> {
    let some = |text: &'_ str| !text.is_empty();
    if let Some(inner) = text.strip_prefix('[') {
        let (addresses, rest) = inner.split_once(']').filter(|_| family == Family::Ipv6)?;
        let ports = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
        return Some((Some(addresses).filter(|a| some(a) || ports.is_none()), ports));
    }
    match text.split_once(':') {
        Some((addresses, ports)) if !ports.contains(':') => {
            Some((Some(addresses).filter(|a| some(a)), Some(ports)))
        }
        _ => Some((Some(text), None)),
    }
}

fn parse_addresses(text: &str, family: Family) -> Option<[[u8; 16]; 2]> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    Some([parse_address(low, family)?, parse_address(high, family)?])
}

/// An address in full: unlike `-s`, this option takes no shortened IPv4 address.
fn parse_address(text: &str, family: Family) -> Option<[u8; 16]> {
    if family == Family::Ipv6 {
        return text.parse::<Ipv6Addr>().ok().map(|addr| addr.octets());
    }
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&text.parse::<Ipv4Addr>().ok()?.octets());
    Some(bytes)
}

fn parse_ports(args: &Args<'_>, given: &Given<'_>, text: &str) -> Result<Ports, What> {
    // Unlike elsewhere, `! -p tcp` will do: the tool looks at the number alone.
    if !args.protocol.is_some_and(|test| WITH_PORTS.contains(&test.number)) {
        args.needs_protocol(&WITH_PORTS)?;
    }
    ports(text).ok_or_else(|| given.expected("a port, or a range of port numbers"))
}

/// A port number or service, or `first-last[/base]`, of which only the base may be a service.
fn ports(text: &str) -> Option<Ports> {
    if let Some(port) = value::port(text) {
        return Some(Ports { first: port, last: port, base: None });
    }
    let (range, base) = match text.split_once('/') {
        Some((range, base)) => (range, Some(value::port(base).filter(|port| *port > 0)?)),
        None => (text, None),
    };
    let (first, last) = range.split_once('-')?;
    let (first, last) = (value::u16(first)?, value::u16(last)?);
    (first <= last).then_some(Ports { first, last, base })
}

fn ports_text(ports: Ports) -> String {
    match ports.base {
        // One port with a base is printed as a range, too: a base is only read after a range.
        Some(base) => format!("{}-{}/{base}", ports.first, ports.last),
        None if ports.last == ports.first => ports.first.to_string(),
        None => format!("{}-{}", ports.first, ports.last),
    }
}

impl Target for Nat {
    fn print(&self, to: &mut Printer) {
        let range = self.range_text();
        if !range.is_empty() {
            to.option(false, self.option, range);
        }
        for (name, given) in FLAGS.into_iter().zip(self.flags) {
            if given {
                to.flag(false, name);
            }
        }
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Translate
    }

    fn translation(&self, transit: &Transit<'_, '_>) -> Option<Translation> {
        let range = self.range();
        match self.from {
            From::Rule(side) => Some(Translation::to(side, range)),
            From::Output => nat::masquerade(transit, range),
            From::Input => Some(nat::redirect(transit, range)),
        }
    }

    fn tracks(&self) -> bool {
        true
    }

    fn translates(&self) -> bool {
        true
    }

    fn mapping(&self) -> Option<Mapping> {
        let (side, redirects) = match self.from {
            From::Rule(side) => (side, false),
            From::Output => (Side::Source, false),
            From::Input => (Side::Destination, true),
        };
        Some(Mapping { side, range: self.range(), redirects })
    }

    fn gives(&self) -> Gives {
        let range = self.range();
        match self.from {
            From::Rule(side) => range.gives(side),
            // One address, which the interface has.
            From::Output => {
                let one = Range::address(Ipv4Addr::UNSPECIFIED.into()).addresses;
                Range { addresses: one, ..range }.gives(Side::Source)
            }
            From::Input => range.gives(Side::Destination),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_split_at_the_colon_that_is_no_address() {
        let split4 = |text| split(text, Family::Ipv4);
        assert_eq!(split4("1.2.3.4-1.2.3.9:80"), Some((Some("1.2.3.4-1.2.3.9"), Some("80"))));
        assert_eq!(split4(":80-90"), Some((None, Some("80-90"))));
        assert_eq!(split4("[1.2.3.4]:80"), None);
        let split6 = |text| split(text, Family::Ipv6);
        assert_eq!(split6("fd00::1"), Some((Some("fd00::1"), None)));
        assert_eq!(split6("[fd00::1]:80"), Some((Some("fd00::1"), Some("80"))));
        assert_eq!(split6("[]:80"), Some((None, Some("80"))));
        assert_eq!(split6("[fd00::1"), None);
        assert_eq!(split6("[fd00::1]80"), None);
    }

    #[test]
    fn a_range_prints_as_it_reads_back() {
        for text in ["20", "10-20", "10-20/21", "10-10/21"] {
            assert_eq!(ports(text).map(ports_text).as_deref(), Some(text));
        }
        assert_eq!(ports("10-10").map(ports_text).as_deref(), Some("10"));
    }

    #[test]
    fn a_range_takes_numbers_and_a_base_a_service() {
        let range = |first, last, base| Some(Ports { first, last, base });
        assert_eq!(ports("ftp-data"), range(20, 20, None));
        assert_eq!(ports("10-20"), range(10, 20, None));
        assert_eq!(ports("10-20/ftp"), range(10, 20, Some(21)));
        for wrong in
            ["10-ssh", "ftp-ssh", "20-10", "10-20/0", "10/20", "10:20", "", "-1", "1-65536"]
        {
            assert_eq!(ports(wrong), None, "{wrong}");
        }
    }
}
