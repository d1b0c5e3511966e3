//! Why packets were not evaluated, in words: the reasons, and what would have them evaluated.

use pktio::LinkType;
use rules::model::Family;

use super::Report;

impl Report {
    /// The reasons that there are, each with its packets, in the order in which they are shown.
    pub(super) fn skips(&self) -> Vec<(u64, String)> {
        let skipped = &self.skipped;
        let families = skipped.families.iter().map(|(family, n)| (*n, self.of_no_rules(*family)));
        let types = skipped.link_types.iter().map(|(kind, n)| (*n, of_link_type(*kind)));
        let others = [
            (skipped.other_host, "frames addressed to another host"),
            (skipped.fragment, "fragments, counted with the packet that they are part of"),
            (skipped.second, "second sightings of packets, as they left"),
            (
                skipped.lower,
                "on lower devices (bridge ports, VLAN parents) of packets shown elsewhere",
            ),
        ];
        let others = others.map(|(packets, why)| (packets, why.to_owned()));
        families.chain(types).chain(others).filter(|(packets, _)| *packets > 0).collect()
    }

    /// Of packets of a family without rules: which, and the option that gives rules.
    fn of_no_rules(&self, family: Option<Family>) -> String {
        let Some(family) = family else {
            return "neither IPv4, IPv6 nor ARP, no rules for them".to_owned();
        };
        let has = |family| self.files.iter().any(|file| file.ruleset.family == family);
        let hint = match family {
            Family::Ipv6 if has(Family::Ipv4) => " (--rules6 FILE)".to_owned(),
            Family::Ipv4 if has(Family::Ipv6) => {
                " (as RULES, those of IPv6 as --rules6)".to_owned()
            }
            _ => format!(" (another replay, of {} rules)", family.tool()),
        };
        format!("{}, no rules for its packets{hint}", protocol(family))
    }
}

/// What packets of a family are called.
fn protocol(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
        Family::Arp => "ARP",
        Family::Bridge => "Ethernet",
    }
}

fn of_link_type(kind: LinkType) -> String {
    let name = kind.name().map_or_else(String::new, |name| format!(" ({name})"));
    format!("link type {}{name} is not read", kind.0)
}
