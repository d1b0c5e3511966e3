//! What differs between families, as values: names, tables, hooks, protocols.
//!
//! Source: iptables(8) and ip6tables(8) "TABLES"; `NF_IP_PRI_*` in the kernel's
//! `include/uapi/linux/netfilter_ipv4.h` for the order of tables at a hook; IANA protocol numbers with
//! the names that `/etc/protocols` of Debian 12 prints.

use packet::LinkHeader;

use crate::model::{Family, Hook};

/// A table that a family knows.
#[derive(Debug)]
pub struct TableKind {
    /// Its name.
    pub name: &'static str,
    /// Hooks with a built-in chain, in the order in which the save tool prints them.
    pub hooks: &'static [Hook],
}

use Hook::{Brouting, Forward, Input, Output, Postrouting, Prerouting};

/// Tables of IPv4 and IPv6 in the order in which they are walked at a hook. `nat` stands where
/// destination NAT does; at POSTROUTING and INPUT it comes last as well.
const IP_TABLES: &[TableKind] = &[
    TableKind { name: "raw", hooks: &[Prerouting, Output] },
    TableKind { name: "mangle", hooks: &[Prerouting, Input, Forward, Output, Postrouting] },
    TableKind { name: "nat", hooks: &[Prerouting, Input, Output, Postrouting] },
    TableKind { name: "filter", hooks: &[Input, Forward, Output] },
    TableKind { name: "security", hooks: &[Input, Forward, Output] },
];

/// Tables of ARP.
const ARP_TABLES: &[TableKind] = &[TableKind { name: "filter", hooks: &[Input, Output, Forward] }];

/// Tables of bridges, in the order in which they are walked.
const BRIDGE_TABLES: &[TableKind] = &[
    TableKind { name: "broute", hooks: &[Brouting] },
    TableKind { name: "nat", hooks: &[Prerouting, Output, Postrouting] },
    TableKind { name: "filter", hooks: &[Input, Forward, Output] },
];

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Ipv4, Self::Ipv6, Self::Arp, Self::Bridge];

    /// Whether its packets are routed: they have connections, translations and a time to live.
    #[must_use]
    pub fn is_ip(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Ipv6)
    }

    /// The tables of this family, in the order in which a hook walks them.
    #[must_use]
    pub fn tables(self) -> &'static [TableKind] {
        match self {
            Self::Ipv4 | Self::Ipv6 => IP_TABLES,
            Self::Arp => ARP_TABLES,
            Self::Bridge => BRIDGE_TABLES,
        }
    }

    /// The table of this name, if the family knows it.
    #[must_use]
    pub fn table(self, name: &str) -> Option<&'static TableKind> {
        self.tables().iter().find(|table| table.name == name)
    }

    /// The name as `--family` and the JSON spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ip6",
            Self::Arp => "arp",
            Self::Bridge => "bridge",
        }
    }

    /// The family of this `--family` name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// The command whose save text this family reads.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Self::Ipv4 => "iptables",
            Self::Ipv6 => "ip6tables",
            Self::Arp => "arptables",
            Self::Bridge => "ebtables",
        }
    }

    /// Bytes of an address of `-s` and `-d`.
    #[must_use]
    pub fn addr_len(self) -> usize {
        match self {
            Self::Ipv4 | Self::Arp => 4,
            Self::Ipv6 => 16,
            Self::Bridge => 6,
        }
    }
}

/// EtherTypes and their printed names; the first name of a number is the one printed. From ebtables'
/// `/etc/ethertypes`.
const ETHERTYPES: &[(u16, &str)] = &[
    (LinkHeader::LLC, "Length"),
    (0x0800, "IPv4"),
    (0x0800, "ip"),
    (0x0800, "ip4"),
    (0x0805, "X25"),
    (0x0806, "ARP"),
    (0x0806, "ether-arp"),
    (0x08ff, "FR_ARP"),
    (0x08ff, "BPQ"),
    (0x6000, "DEC"),
    (0x6001, "DNA_DL"),
    (0x6002, "DNA_RC"),
    (0x6003, "DNA_RT"),
    (0x6004, "LAT"),
    (0x6005, "DIAG"),
    (0x6006, "CUST"),
    (0x6007, "SCA"),
    (0x6558, "TEB"),
    (0x6559, "RAW_FR"),
    (0x8035, "RARP"),
    (0x809b, "ATALK"),
    (0x80f3, "AARP"),
    (0x8100, "802_1Q"),
    (0x8100, "8021q"),
    (0x8100, "1q"),
    (0x8100, "802.1q"),
    (0x8100, "dot1q"),
    (0x8137, "IPX"),
    (0x8191, "NetBEUI"),
    (0x86dd, "IPv6"),
    (0x86dd, "ip6"),
    (0x880b, "PPP"),
    (0x884c, "ATMMPOA"),
    (0x8863, "PPP_DISC"),
    (0x8864, "PPP_SES"),
    (0x8884, "ATMFATE"),
    (0x88cc, "LLDP"),
    (0x9000, "loop"),
];

/// The printed name of an EtherType, if it has one.
#[must_use]
pub(crate) fn ethertype_name(number: u16) -> Option<&'static str> {
    ETHERTYPES.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}

/// The number of the name of an EtherType, in any case of letters.
#[must_use]
pub(crate) fn ethertype_number(name: &str) -> Option<u16> {
    ETHERTYPES.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(number, _)| *number)
}

/// Protocol numbers and their printed names; the first name of a number is the one printed.
const PROTOCOLS: &[(u8, &str)] = &[
    (0, "all"),
    (1, "icmp"),
    (2, "igmp"),
    (3, "ggp"),
    (4, "ipencap"),
    (5, "st"),
    (6, "tcp"),
    (8, "egp"),
    (9, "igp"),
    (12, "pup"),
    (17, "udp"),
    (20, "hmp"),
    (22, "xns-idp"),
    (27, "rdp"),
    (29, "iso-tp4"),
    (33, "dccp"),
    (36, "xtp"),
    (37, "ddp"),
    (38, "idpr-cmtp"),
    (41, "ipv6"),
    (43, "ipv6-route"),
    (44, "ipv6-frag"),
    (45, "idrp"),
    (46, "rsvp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (57, "skip"),
    (58, "ipv6-icmp"),
    (58, "icmpv6"),
    (58, "icmp6"),
    (59, "ipv6-nonxt"),
    (60, "ipv6-opts"),
    (73, "rspf"),
    (81, "vmtp"),
    (88, "eigrp"),
    (89, "ospf"),
    (93, "ax.25"),
    (94, "ipip"),
    (97, "etherip"),
    (98, "encap"),
    (103, "pim"),
    (108, "ipcomp"),
    (112, "vrrp"),
    (115, "l2tp"),
    (124, "isis"),
    (132, "sctp"),
    (133, "fc"),
    (135, "mobility-header"),
    (135, "ipv6-mh"),
    (135, "mh"),
    (136, "udplite"),
    (137, "mpls-in-ip"),
    (138, "manet"),
    (139, "hip"),
    (140, "shim6"),
    (141, "wesp"),
    (142, "rohc"),
    (143, "ethernet"),
];

/// The printed name of a protocol number, if it has one.
#[must_use]
pub fn protocol_name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}

/// The number of a protocol name, in any case of letters.
#[must_use]
pub fn protocol_number(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(number, _)| *number)
}
