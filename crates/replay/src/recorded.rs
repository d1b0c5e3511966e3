//! [`Recorded`]: which links of the host captures were taken on, and so by which packets came and went unseen.
//!
//! Contract: a capture says it by its interfaces, by what its frames show, or by the link addresses of the host in them;
//! one that says nothing is taken for one of all links. A link is recorded as well where all that it has passes others
//! that are: a bridge by its ports, a VLAN or macvlan by its parent. A frame shows its sender's address at the links below
//! that one, too: what none but some of those would have shown is not recorded for certain.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::hands_over;
use host::{Host, Link, LinkKind};
use pktio::{Interface, LinkType};
use rules::model::Family;

/// Links that stand on each other.
const MOST_ON_EACH_OTHER: usize = 8;

/// Links that captures were taken on.
pub(crate) struct Recorded<'h> {
    host: &'h Host,
    names: BTreeSet<&'h str>,
    /// Addresses in captures that name no interface, each with the links that show it: a capture was taken on one of them.
    macs: BTreeMap<[u8; 6], Vec<&'h str>>,
    /// Captures say which links they were taken on.
    is_told: bool,
    /// Captures may have been taken on all.
    is_all: bool,
    /// There are rules for what bridges pass on, whatever they hand to others.
    has_bridge_rules: bool,
    /// Some capture holds cooked frames.
    is_cooked: bool,
    /// Packets may arrive on links that were not recorded.
    lacks_some: bool,
}

impl<'h> Recorded<'h> {
    /// Nothing yet of a host, which may have rules for what its bridges pass on.
    pub(crate) fn of(host: &'h Host, has_bridge_rules: bool) -> Self {
        Self {
            host,
            has_bridge_rules,
            names: BTreeSet::new(),
            macs: BTreeMap::new(),
            is_told: false,
            is_all: host.links().is_empty(),
            is_cooked: false,
            lacks_some: false,
        }
    }

    /// A capture was taken on the link of this name.
    pub(crate) fn note(&mut self, name: &str) {
        let link = self.host.links().named(name);
        // Of names that the host has no link for a capture may have any number.
        let is_new = link.is_some_and(|link| self.names.insert(&link.name));
        if is_new || !self.is_told {
            self.is_told = true;
            self.look();
        }
    }

    /// A capture has this interface; without a name it is told by the addresses of Ethernet frames, or not at all.
    pub(crate) fn note_interface(&mut self, interface: &Interface) {
        let link_type = interface.link_type;
        self.is_cooked |= matches!(link_type, LinkType::LINUX_SLL | LinkType::LINUX_SLL2);
        match interface.name.as_deref() {
            Some(name) if name != "any" => self.note(name),
            None if link_type == LinkType::ETHERNET => {}
            _ => self.is_all = true,
        }
        self.lacks_some &= !self.is_all;
    }

    /// A frame of a capture that names no interface has this link address of the host.
    pub(crate) fn note_mac(&mut self, mac: [u8; 6]) {
        if self.is_all || self.macs.contains_key(&mac) {
            return;
        }
        let links = self.host.links();
        let has_it = links.all().iter().filter(|link| link.mac == Some(mac));
        let mut showing: Vec<&'h Link> = has_it.collect();
        // Those below show it, too.
        let mut at = 0;
        while let Some(&link) = showing.get(at) {
            let parent = parent_of(link).and_then(|name| links.named(name));
            for below in self.parts(link).chain(parent) {
                if !showing.iter().any(|one| one.name == below.name) {
                    showing.push(below);
                }
            }
            at += 1;
        }
        self.macs.insert(mac, showing.into_iter().map(|link| &*link.name).collect());
        self.is_told = true;
        self.look();
    }

    /// Whether packets may arrive and leave on links that were not recorded.
    pub(crate) fn lacks_some(&self) -> bool {
        self.lacks_some
    }

    /// What is worth a warning of what the captures do not show.
    pub(crate) fn warnings(&self) -> Vec<String> {
        const NAMED: usize = 8;
        let missing = self.missing();
        let named = missing.iter().take(NAMED).map(|name| &**name).collect::<Vec<_>>().join(", ");
        let more = match missing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let unrecorded = (!missing.is_empty()).then(|| {
            format!(
                "not recorded: {named}{more}: what came or went by them is not counted, and what left by others may have \
                 come by them (tcpdump -i any records all)"
            )
        });
        let vlan =
            self.host.links().all().iter().find(|link| {
                self.is_cooked && link.up && matches!(link.kind, LinkKind::Vlan { .. })
            });
        let vlan = vlan.map(|link| {
            let parent = link.parent.as_deref().unwrap_or("its parent");
            format!(
                "cooked captures (tcpdump -i any) do not show VLAN tags: a frame of a VLAN that the host has no link for is \
                 taken for one without a tag ({parent} has VLANs: tcpdump -i {parent} shows their tags)"
            )
        });
        unrecorded.into_iter().chain(self.doubtful()).chain(vlan).collect()
    }

    /// Which links a capture may have been taken on that does not tell on which of several.
    fn doubtful(&self) -> Option<String> {
        let is_open = |names: &&Vec<&str>| {
            let links = names.iter().filter_map(|name| self.host.links().named(name));
            names.len() > 1 && links.into_iter().any(|link| self.is_missing(link))
        };
        let names = self.macs.values().filter(|_| !self.is_all).find(is_open)?;
        let first = names.first()?;
        Some(format!(
            "a capture that names no interface may be of {}: say of which ({first}=FILE)",
            names.join(" or ")
        ))
    }

    fn look(&mut self) {
        let mut links = self.host.links().all().iter();
        self.lacks_some = !self.is_all
            && self.is_told
            && links.any(|link| {
                let is_way = link.kind != LinkKind::Loopback && self.port_of(link).is_none();
                is_way && self.is_missing(link)
            });
    }

    /// Links that are up, and of which nothing was recorded.
    pub(crate) fn missing(&self) -> Vec<String> {
        let is_told = !self.is_all && self.is_told;
        let links = self.host.links().all().iter().filter(|_| is_told);
        links.filter(|link| self.is_missing(link)).map(|link| link.name.to_string()).collect()
    }

    fn is_missing(&self, link: &Link) -> bool {
        // A routing domain has what its members have.
        let is_one = link.up && link.kind != LinkKind::Vrf;
        let has_way = !is_fed(link) || self.parts(link).next().is_some();
        let shows_all = self.port_of(link).is_some_and(|upper| !self.passes_unseen(upper));
        is_one && has_way && !shows_all && !self.is_recorded(link)
    }

    fn is_recorded(&self, link: &Link) -> bool {
        let is_by = |names: &Vec<&str>| {
            !names.is_empty() && names.iter().all(|name| self.is_shown(link, Some(name), 0))
        };
        self.is_shown(link, None, 0) || self.macs.values().any(is_by)
    }

    /// Whether captures show all that passes a link, where one more was taken on this one.
    fn is_shown(&self, link: &Link, one: Option<&str>, depth: usize) -> bool {
        if self.names.contains(&*link.name) || one == Some(&*link.name) {
            return true;
        }
        if depth == MOST_ON_EACH_OTHER {
            return false;
        }
        let parent = parent_of(link).and_then(|name| self.host.links().named(name));
        let mut parts = self.parts(link).peekable();
        parent.is_some_and(|parent| self.is_shown(parent, one, depth + 1))
            || parts.peek().is_some() && parts.all(|part| self.is_shown(part, one, depth + 1))
    }

    /// Links that feed a bridge or a bond with all they have.
    fn parts<'s>(&'s self, of: &'s Link) -> impl Iterator<Item = &'h Link> + 's {
        let links = self.host.links().all().iter().filter(|_| is_fed(of));
        links.filter(|link| link.up && link.master.as_deref() == Some(&*of.name))
    }

    /// The bridge or bond that a link is a part of.
    fn port_of(&self, link: &Link) -> Option<&'h Link> {
        let upper = self.host.links().named(link.master.as_deref()?)?;
        is_fed(upper).then_some(upper)
    }

    /// Whether a bridge that was recorded may hand packets to the rules that it does not show: those between its ports.
    fn passes_unseen(&self, upper: &Link) -> bool {
        let may = |family| hands_over(self.host, family) != Some(false);
        upper.kind == LinkKind::Bridge
            && (self.has_bridge_rules || may(Family::Ipv4) || may(Family::Ipv6))
    }
}

/// The link that all passes which passes this one.
fn parent_of(link: &Link) -> Option<&str> {
    let is_below = matches!(link.kind, LinkKind::Vlan { .. } | LinkKind::Macvlan);
    link.parent.as_deref().filter(|_| is_below)
}

/// Whether a link gets all that its parts get.
fn is_fed(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Bridge | LinkKind::Bond)
}

#[cfg(test)]
mod tests {
    use host::{Links, Sysctl};

    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn host(links: &str, sysctl: Option<&str>) -> Host {
        let sysctl = sysctl.map(|text| Sysctl::parse(text).unwrap());
        Host { links: Links::parse(links).unwrap(), sysctl, ..Host::default() }
    }

    fn link(number: u32, name: &str, mac: u8, rest: &str) -> String {
        format!(
            "{number}: {name}: <BROADCAST,UP> mtu 1500 qdisc noqueue {rest}\\    link/ether 02:00:00:00:00:0{mac} brd ff:ff:ff:ff:ff:ff\n"
        )
    }

    #[test]
    fn an_address_that_several_links_have_notes_none_of_them() {
        let vlan = |number: u32, id: u32| {
            let name = format!("eth0.{id}@eth0");
            link(number, &name, 1, "")
                .replace('\n', &format!(" \\    vlan protocol 802.1Q id {id}\n"))
        };
        let host = host(&[link(2, "eth0", 1, ""), vlan(3, 10), vlan(4, 20)].concat(), None);
        let mut recorded = Recorded::of(&host, false);
        assert!(!recorded.lacks_some(), "nothing says what was recorded");
        recorded.note_mac(MAC);
        assert!(recorded.lacks_some());
        assert_eq!(recorded.missing(), ["eth0", "eth0.10", "eth0.20"]);
        let warnings = recorded.warnings();
        assert!(warnings[1].contains("may be of eth0 or eth0.10 or eth0.20: say"), "{warnings:?}");
        // One of them is named.
        recorded.note("eth0.10");
        assert_eq!(recorded.missing(), ["eth0", "eth0.20"]);
        recorded.note("eth0");
        assert!(!recorded.lacks_some() && recorded.warnings().is_empty());
    }

    #[test]
    fn an_address_of_a_bridge_and_of_a_port_does_not_tell_which() {
        let bridge = link(2, "br0", 1, "").replace('\n', " \\    bridge forward_delay 1500\n");
        let port = |number, name, mac| link(number, name, mac, "master br0");
        let links = [bridge, port(3, "lan1", 1), port(4, "lan2", 2)].concat();
        let host = host(&links, Some("net.bridge.bridge-nf-call-iptables = 0\n"));
        let mut recorded = Recorded::of(&host, false);
        recorded.note_mac(MAC);
        assert!(recorded.lacks_some());
        // One address that one link has tells.
        recorded.note_mac([2, 0, 0, 0, 0, 2]);
        recorded.note("br0");
        assert!(!recorded.lacks_some());
    }

    /// As the rules are evaluated: a host whose settings are not given hands packets on.
    #[test]
    fn ports_of_a_recorded_bridge_are_missing_where_it_may_hand_packets_to_rules() {
        let bridge = link(2, "br0", 1, "").replace('\n', " \\    bridge forward_delay 1500\n");
        let links = [bridge, link(3, "lan1", 3, "master br0"), link(4, "lan2", 2, "master br0")];
        let missing = |calls: Option<[u8; 2]>, has_bridge_rules| {
            let settings = calls.map(|[v4, v6]| {
                format!(
                    "net.bridge.bridge-nf-call-iptables = {v4}\nnet.bridge.bridge-nf-call-ip6tables = {v6}\n"
                )
            });
            let host = host(&links.concat(), settings.as_deref());
            let mut recorded = Recorded::of(&host, has_bridge_rules);
            recorded.note("br0");
            recorded.missing()
        };
        assert_eq!(missing(None, false), ["lan1", "lan2"]);
        assert_eq!(missing(Some([0, 0]), false), [""; 0]);
        assert_eq!(missing(Some([0, 0]), true), ["lan1", "lan2"]);
        assert_eq!(missing(Some([0, 1]), false), ["lan1", "lan2"]);
    }
}
