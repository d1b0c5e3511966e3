//! The links of a host, as `ip -d -o link`, `ip -o link` or `ip link` print them.
//!
//! Without `-d` the kind of a link is derived from its flags, its name and what names it; a bridge is then what has
//! ports.

use std::collections::HashMap;

use crate::text::{Line, Record, TextError, index, mac, records};

/// The most links that are looked at one by one.
const FEW: usize = 16;

/// The links of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    all: Vec<Link>,
    by_name: HashMap<Box<str>, usize>,
    by_index: HashMap<u32, usize>,
    by_mac: HashMap<[u8; 6], usize>,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The link's number, unique in its network namespace.
    pub index: u32,
    /// The link's name.
    pub name: Box<str>,
    /// The Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// The longest packet that it carries, in bytes.
    pub mtu: Option<u32>,
    /// The bridge, bond or routing domain that it belongs to.
    pub master: Option<Box<str>>,
    /// The device that it stands on.
    pub parent: Option<Box<str>>,
    /// What it is.
    pub kind: LinkKind,
    /// Whether the link resolves no addresses (`NOARP`).
    pub noarp: bool,
    /// Whether the link has one other end (`POINTOPOINT`).
    pub pointopoint: bool,
    /// Whether the link is up.
    pub up: bool,
    /// The group that it belongs to, if that is printed and its number is known: of names only `default` tells.
    pub group: Option<u32>,
    /// Hairpin mode of a bridge port: it sends packets back out of the port they arrived on. `None` where it is not printed.
    pub hairpin: Option<bool>,
}

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// `lo`.
    Loopback,
    /// An Ethernet card, or what nobody calls anything else.
    Ethernet,
    /// One end of a pair.
    Veth,
    /// A bridge.
    Bridge,
    /// A bond or a team.
    Bond,
    /// A VLAN of its parent.
    Vlan {
        /// The VLAN's number, if it is known.
        id: Option<u16>,
    },
    /// A link of its own address on its parent (macvlan, ipvlan).
    Macvlan,
    /// A point-to-point line.
    Ppp,
    /// A TUN or TAP device.
    Tun,
    /// A routing domain.
    Vrf,
    /// Any other device that packets leave without a wire of its own: tunnels, `dummy`, `ifb`.
    Other,
}

const MASTER_FLAG: &str = "MASTER";

impl Links {
    /// Reads them. A link that stands there twice counts as it stands last.
    ///
    /// # Errors
    /// A line that begins no record of ip(8), with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut links = Self::default();
        for record in records(text) {
            links.add(read_link(&record)?);
        }
        links.guess_kinds();
        Ok(links)
    }

    fn add(&mut self, link: Link) {
        let place = match self.by_index.get(&link.index) {
            Some(place) => *place,
            None => self.all.len(),
        };
        self.by_name.insert(link.name.clone(), place);
        self.by_index.insert(link.index, place);
        // A bridge takes the address of a port: the upper device stands before its parts.
        let owner = link.mac.map(|mac| self.by_mac.entry(mac).or_insert(place));
        if let Some(owner) = owner.filter(|_| link.master.is_none()) {
            *owner = place;
        }
        match self.all.get_mut(place) {
            Some(old) => *old = link,
            None => self.all.push(link),
        }
    }

    /// What `ip -o link` leaves to be told by the other links.
    fn guess_kinds(&mut self) {
        let masters: Vec<usize> = self
            .all
            .iter()
            .filter_map(|link| self.by_name.get(link.master.as_deref()?).copied())
            .collect();
        for place in masters {
            let link = &mut self.all[place];
            if link.kind == LinkKind::Ethernet {
                link.kind = LinkKind::Bridge;
            }
        }
        // Two links that each name the other are the ends of a pair.
        for place in 0..self.all.len() {
            let link = &self.all[place];
            let other = link.parent.as_deref().and_then(|name| self.named(name));
            let is_pair = other.is_some_and(|other| other.parent.as_ref() == Some(&link.name));
            if is_pair || link.kind == LinkKind::Veth {
                self.all[place].kind = LinkKind::Veth;
            }
        }
        for link in &mut self.all {
            if link.kind == LinkKind::Veth {
                link.parent = None;
            }
        }
    }

    /// All of them, in the order of the text.
    #[must_use]
    pub fn all(&self) -> &[Link] {
        &self.all
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The link of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Link> {
        // Of a few names a look at each costs less than a hash, and this is asked for every packet.
        match self.all.len() <= FEW {
            true => self.all.iter().rev().find(|link| *link.name == *name),
            false => self.by_name.get(name).map(|place| &self.all[*place]),
        }
    }

    /// The link of that number.
    #[must_use]
    pub fn at(&self, index: u32) -> Option<&Link> {
        self.by_index.get(&index).map(|place| &self.all[*place])
    }

    /// Returns the link with that address; of several, one that belongs to no other.
    #[must_use]
    pub fn with_mac(&self, mac: [u8; 6]) -> Option<&Link> {
        self.by_mac.get(&mac).map(|place| &self.all[*place])
    }

    /// The device that takes what this one receives: the VLAN of that number on it, else the bridge or bond that it
    /// belongs to, else, of untagged frames, the only link of its own address (macvlan) on it.
    #[must_use]
    pub fn upper(&self, name: &str, vlan: Option<u16>) -> Option<&Link> {
        let on_it = || self.all.iter().filter(|link| link.parent.as_deref() == Some(name));
        if let Some(wanted) = vlan {
            let child = on_it().find(|link| link.kind == LinkKind::Vlan { id: Some(wanted) });
            if child.is_some() {
                return child;
            }
        }
        let master = self.named(name)?.master.as_deref().and_then(|master| self.named(master));
        if let Some(master) = master {
            return matches!(master.kind, LinkKind::Bridge | LinkKind::Bond).then_some(master);
        }
        let mut macvlans = on_it().filter(|link| link.kind == LinkKind::Macvlan);
        let first = macvlans.next().filter(|_| vlan.is_none());
        first.filter(|_| macvlans.next().is_none())
    }
}

impl Links {
    /// Whether a bridge sends packets back out of their input port; for an unknown port, what all of its ports do.
    /// `None` where that is not printed, or they differ.
    #[must_use]
    pub fn sends_back(&self, bridge: &str, port: Option<&str>) -> Option<bool> {
        let is_port = |link: &&Link| {
            link.master.as_deref() == Some(bridge) && port.is_none_or(|name| *link.name == *name)
        };
        let mut ports = self.all.iter().filter(is_port).map(|link| link.hairpin);
        let first = ports.next()??;
        ports.all(|other| other == Some(first)).then_some(first)
    }
}

fn read_link(record: &Record<'_>) -> Result<Link, TextError> {
    let head = &record.head;
    let index = index(head)?;
    let word = head.at(1);
    let named = word.text.strip_suffix(':').filter(|name| !name.is_empty());
    let named = named.ok_or_else(|| word.not("the name of an interface and a colon"))?;
    let (name, parent) = match named.split_once('@') {
        Some((name, parent)) => (name, Some(parent)),
        None => (named, None),
    };
    let flags = head.at(2);
    let flags = flags.text.strip_prefix('<').and_then(|flags| flags.strip_suffix('>'));
    let flags: Vec<&str> = flags.unwrap_or_default().split(',').collect();
    let kind = kind(name, parent, &flags, record);
    let hardware = record.rest.first().map(|line| (line.at(0).text, line.at(1).text));
    let ether = hardware.filter(|(link, _)| *link == "link/ether");
    // `@if5` is a link of another namespace, `@NONE` none.
    let elsewhere = |parent: &&str| {
        let number = parent.strip_prefix("if").and_then(|number| number.parse::<u32>().ok());
        number.is_some() || *parent == "NONE"
    };
    Ok(Link {
        index,
        name: name.into(),
        mac: ether.and_then(|(_, text)| mac(text)),
        mtu: head.number("mtu"),
        master: head.after("master").map(|word| word.text.into()),
        parent: parent.filter(|parent| !elsewhere(parent)).map(Into::into),
        kind,
        noarp: flags.contains(&"NOARP"),
        pointopoint: flags.contains(&"POINTOPOINT"),
        up: flags.contains(&"UP"),
        group: head.after("group").and_then(|word| match word.text {
            "default" => Some(0),
            number => number.parse().ok(),
        }),
        hairpin: record.rest.iter().find_map(|line| match line.after("hairpin")?.text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }),
    })
}

/// The kind of a link: as `-d` says it, else as flags, hardware type and name tell it.
fn kind(name: &str, parent: Option<&str>, flags: &[&str], record: &Record<'_>) -> LinkKind {
    let hardware = record.rest.first().map_or("", |line| line.at(0).text);
    if flags.contains(&"LOOPBACK") || hardware == "link/loopback" {
        return LinkKind::Loopback;
    }
    if let Some(kind) = record.rest.iter().skip(1).find_map(detailed) {
        return kind;
    }
    let is_on = |parent: &&str| !parent.starts_with("if");
    if parent.filter(is_on).is_some() {
        let id = name.rsplit_once('.').and_then(|(_, id)| id.parse().ok());
        let id = id.or_else(|| name.strip_prefix("vlan").and_then(|id| id.parse().ok()));
        return if id.is_some() { LinkKind::Vlan { id } } else { LinkKind::Other };
    }
    match hardware {
        "link/ppp" => LinkKind::Ppp,
        "link/none" if flags.contains(&"POINTOPOINT") => LinkKind::Tun,
        "link/ether" if flags.contains(&MASTER_FLAG) && flags.contains(&"NOARP") => LinkKind::Vrf,
        "link/ether" if flags.contains(&MASTER_FLAG) => LinkKind::Bond,
        "link/ether" | "" if parent.is_some() => LinkKind::Veth,
        "link/ether" | "" => LinkKind::Ethernet,
        _ => LinkKind::Other,
    }
}

/// The kind that a line of details names, if it is the line that does.
fn detailed(line: &Line<'_>) -> Option<LinkKind> {
    Some(match line.at(0).text {
        "veth" => LinkKind::Veth,
        "bridge" => LinkKind::Bridge,
        "bond" | "team" => LinkKind::Bond,
        "vlan" => LinkKind::Vlan { id: line.number("id") },
        "macvlan" | "macvtap" | "ipvlan" | "ipvtap" => LinkKind::Macvlan,
        "ppp" => LinkKind::Ppp,
        "tun" => LinkKind::Tun,
        "vrf" => LinkKind::Vrf,
        "dummy" | "ifb" | "gre" | "gretap" | "ip6gre" | "ip6gretap" | "ipip" | "sit" | "ip6tnl"
        | "vti" | "vti6" | "xfrm" | "wireguard" | "vxlan" | "geneve" | "nlmon" | "macsec"
        | "erspan" | "hsr" | "dsa" | "batadv" => LinkKind::Other,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETAILED: &str = r"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0 addrgenmode eui64
2: br0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\    link/ether 52:25:fc:45:3d:be brd ff:ff:ff:ff:ff:ff promiscuity 0 \    bridge forward_delay 1500 hello_time 200 vlan_filtering 0
4: v0@v1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue master br0 state UP\    link/ether 52:25:fc:45:3d:be brd ff:ff:ff:ff:ff:ff \    veth \    bridge_slave state forwarding priority 32
5: t0: <NO-CARRIER,POINTOPOINT,MULTICAST,NOARP,UP> mtu 1500 state DOWN\    link/none  promiscuity 0 \    tun type tun pi off
6: br0.5@br0: <BROADCAST,UP> mtu 1500\    link/ether 52:25:fc:45:3d:be brd ff:ff:ff:ff:ff:ff \    vlan protocol 802.1Q id 5 <REORDER_HDR>
7: eth0@if9: <BROADCAST,UP> mtu 1500\    link/ether 02:42:ac:11:00:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0 \    veth addrgenmode eui64
";

    #[test]
    fn details_tell_what_a_link_is() {
        let links = Links::parse(DETAILED).unwrap();
        let kind = |name: &str| links.named(name).unwrap().kind;
        assert_eq!(kind("lo"), LinkKind::Loopback);
        assert_eq!(kind("br0"), LinkKind::Bridge);
        assert_eq!(kind("v0"), LinkKind::Veth);
        assert_eq!(kind("t0"), LinkKind::Tun);
        assert_eq!(kind("br0.5"), LinkKind::Vlan { id: Some(5) });
        let v0 = links.at(4).unwrap();
        assert_eq!(
            (v0.mtu, v0.master.as_deref(), v0.parent.as_deref()),
            (Some(1400), Some("br0"), None)
        );
        assert!(links.at(5).unwrap().noarp && links.at(5).unwrap().pointopoint);
        assert_eq!(links.at(7).unwrap().parent, None);
        assert_eq!((links.at(1).unwrap().group, links.at(2).unwrap().group), (Some(0), None));
        assert_eq!(&*links.with_mac([0x52, 0x25, 0xfc, 0x45, 0x3d, 0xbe]).unwrap().name, "br0.5");
        let upper = |name: &str, vlan| links.upper(name, vlan).map(|link| &*link.name);
        assert_eq!(upper("v0", None), Some("br0"));
        assert_eq!(upper("br0", Some(5)), Some("br0.5"));
        assert_eq!(upper("br0", None), None);
        assert_eq!(upper("v0", Some(7)), Some("br0"));
    }

    #[test]
    fn a_bridge_sends_back_by_ports_that_are_hairpins() {
        let port = |name: &str, hairpin: &str| {
            format!(
                "9: {name}@if2: <UP> mtu 1500 master br0\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff \\    \
                 veth \\    bridge_slave state forwarding {hairpin} guard off\n"
            )
            .replacen('9', &name[1..], 1)
        };
        let of = |ports: &[(&str, &str)], asked| {
            let text: String = ports.iter().map(|(name, hairpin)| port(name, hairpin)).collect();
            Links::parse(&text).unwrap().sends_back("br0", asked)
        };
        let (on, off) = (("v1", "hairpin on"), ("v2", "hairpin off"));
        assert_eq!(of(&[off], None), Some(false));
        assert_eq!(
            (of(&[on, off], Some("v1")), of(&[on, off], Some("v2"))),
            (Some(true), Some(false))
        );
        assert_eq!(
            (of(&[on, off], None), of(&[("v3", "")], None), of(&[], None)),
            (None, None, None)
        );
    }

    #[test]
    fn without_details_others_tell() {
        let text = r"2: br0: <BROADCAST,UP> mtu 1500 qdisc noqueue\    link/ether 52:25:fc:45:3d:be brd ff:ff:ff:ff:ff:ff
3: v1@v0: <BROADCAST,UP> mtu 1500\    link/ether b6:17:5f:a0:32:a5 brd ff:ff:ff:ff:ff:ff
4: v0@v1: <BROADCAST,UP> mtu 1500 qdisc noqueue master br0 qlen 1000\    link/ether 52:25:fc:45:3d:be brd ff:ff:ff:ff:ff:ff
5: eth1.12@eth1: <BROADCAST,UP> mtu 1500\    link/ether 52:25:fc:45:3d:bf brd ff:ff:ff:ff:ff:ff
6: bond0: <BROADCAST,MASTER,UP> mtu 1500\    link/ether 52:25:fc:45:3d:bd brd ff:ff:ff:ff:ff:ff
7: eth2: <BROADCAST,SLAVE,UP> mtu 1500 master bond0\    link/ether 52:25:fc:45:3d:bd brd ff:ff:ff:ff:ff:ff
8: ppp0: <POINTOPOINT,MULTICAST,NOARP,UP> mtu 1492\    link/ppp
";
        let lines = text.replace('\\', "\n");
        for text in [text, &lines] {
            let links = Links::parse(text).unwrap();
            let kinds: Vec<_> = links.all().iter().map(|link| link.kind).collect();
            use LinkKind as K;
            let vlan = K::Vlan { id: Some(12) };
            assert_eq!(kinds, [K::Bridge, K::Veth, K::Veth, vlan, K::Bond, K::Ethernet, K::Ppp]);
            assert_eq!(
                &*links.with_mac([0x52, 0x25, 0xfc, 0x45, 0x3d, 0xbd]).unwrap().name,
                "bond0"
            );
            assert_eq!(links.upper("eth2", None).unwrap().index, 6);
            assert_eq!(links.upper("eth1", Some(12)).unwrap().index, 5);
        }
    }

    #[test]
    fn what_is_no_link_is_told() {
        let error = Links::parse("1: lo: <UP>\nDevice \"x\" does not exist.").unwrap_err();
        assert_eq!((error.line, error.column, &*error.found), (2, 1, "Device"));
        let error = Links::parse("1: lo").unwrap_err();
        assert_eq!((error.line, error.column, &*error.found), (1, 4, "lo"));
    }
}
