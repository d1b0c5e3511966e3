//! `-m devgroup`: the group of the incoming or outgoing interface.
//!
//! The host's links have the groups. Source: iptables-extensions(8); kernel `net/netfilter/xt_devgroup.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::matches::mark::masked_text;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};

/// The name that every group file gives to group 0.
const NAMES: &[(&str, u32)] = &[("default", 0)];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "devgroup",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("src-group").invertible(), Opt::value("dst-group").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Devgroup {
    source: Option<Group>,
    destination: Option<Group>,
}

#[derive(Debug)]
struct Group {
    value: u32,
    mask: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["src-group", "dst-group"])?;
    if args.has("src-group") {
        args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
    }
    if args.has("dst-group") {
        args.needs_hook(&[Hook::Forward, Hook::Output, Hook::Postrouting])?;
    }
    let source = parse_group(args, "src-group")?;
    Ok(Box::new(Devgroup { source, destination: parse_group(args, "dst-group")? }))
}

fn parse_group(args: &Args<'_>, name: &str) -> Result<Option<Group>, What> {
    let Some(given) = args.get(name) else { return Ok(None) };
    let (value, mask) = number::named_masked(given, NAMES)?;
    Ok(Some(Group { value, mask, invert: given.invert }))
}

impl Group {
    fn holds(&self, interface: Iface<'_>, transit: &Transit<'_, '_>) -> Outcome {
        let group = match interface {
            Iface::Named(name) => transit.host.links.named(name).and_then(|link| link.group),
            Iface::Absent | Iface::Unknown => None,
        };
        let holds = |group| Outcome::from_bool((self.value ^ group) & self.mask == 0);
        group.map_or(Outcome::MAYBE, holds).invert(self.invert)
    }
}

impl Match for Devgroup {
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let sides = [(&self.source, transit.input), (&self.destination, transit.output)];
        sides.into_iter().fold(Outcome::YES, |all, (group, interface)| match group {
            Some(group) => all.and_then(|| group.holds(interface, transit)),
            None => all,
        })
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the group of the interface is not known (--links, or links.txt of a folder)")
    }

    fn print(&self, to: &mut Printer) {
        for (name, group) in [("src-group", &self.source), ("dst-group", &self.destination)] {
            if let Some(Group { value, mask, invert }) = group {
                to.option(*invert, name, masked_text(*value, *mask));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4};
    use host::{Host, Links};

    #[test]
    fn groups_are_those_of_the_links() {
        // The probe's packets enter through eth0 and leave through eth1.
        let links =
            "1: eth0: <UP> mtu 1500 group default qlen 1\n2: eth1: <UP> mtu 1500 group 12\n";
        let host = Host { links: Links::parse(links).unwrap(), ..Host::default() };
        let bytes = ipv4(17, &[0; 8]);
        let ask = |host: &Host, rule: &str| Frame::ip(&bytes).evaluate_in(host, rule);
        for (rule, outcome) in [
            ("--src-group 0", Outcome::YES),
            ("--src-group default", Outcome::YES),
            ("--src-group 12", Outcome::NO),
            ("! --src-group 12", Outcome::YES),
            ("--dst-group 12", Outcome::YES),
            ("--dst-group 4/4", Outcome::YES),
            ("--dst-group 1/3", Outcome::NO),
            ("--src-group 0 --dst-group 12", Outcome::YES),
            ("--src-group 0 ! --dst-group 12", Outcome::NO),
        ] {
            assert_eq!(ask(&host, &format!("-m devgroup {rule}")), outcome, "{rule}");
        }
        assert_eq!(ask(&Host::default(), "-m devgroup --src-group 0"), Outcome::MAYBE);
        let named = "1: eth0: <UP> mtu 1500 group upstream\n";
        let named = Host { links: Links::parse(named).unwrap(), ..Host::default() };
        assert_eq!(ask(&named, "-m devgroup --src-group 0"), Outcome::MAYBE, "a host's own name");
    }
}
