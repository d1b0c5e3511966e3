//! The names that numbers have in rules: EtherTypes, protocols, ICMP types.
//!
//! Source: ebtables' `/etc/ethertypes`; IANA protocol numbers with the names that `/etc/protocols` of Debian 12 prints;
//! `iptables -p icmp -h`, `ip6tables -p ipv6-icmp -h`.

use packet::LinkHeader;

use crate::family::Family;

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

/// A name, its type, and its range of codes.
pub(crate) type IcmpName = (&'static str, u8, u8, u8);

/// Type and first code of a name.
pub(crate) fn icmp_type(name: &str, family: Family) -> Option<(u8, u8)> {
    let names = icmp_names(family);
    names.iter().find(|(known, ..)| *known == name).map(|(_, kind, code, _)| (*kind, *code))
}

/// The names of a family's ICMP.
pub(crate) fn icmp_names(family: Family) -> &'static [IcmpName] {
    if family == Family::Ipv6 { ICMP_V6 } else { ICMP_V4 }
}

const ICMP_V4: &[IcmpName] = &[
    ("any", 0xff, 0, 0xff),
    ("echo-reply", 0, 0, 0xff),
    ("pong", 0, 0, 0xff),
    ("destination-unreachable", 3, 0, 0xff),
    ("network-unreachable", 3, 0, 0),
    ("host-unreachable", 3, 1, 1),
    ("protocol-unreachable", 3, 2, 2),
    ("port-unreachable", 3, 3, 3),
    ("fragmentation-needed", 3, 4, 4),
    ("source-route-failed", 3, 5, 5),
    ("network-unknown", 3, 6, 6),
    ("host-unknown", 3, 7, 7),
    ("network-prohibited", 3, 9, 9),
    ("host-prohibited", 3, 10, 10),
    ("TOS-network-unreachable", 3, 11, 11),
    ("TOS-host-unreachable", 3, 12, 12),
    ("communication-prohibited", 3, 13, 13),
    ("host-precedence-violation", 3, 14, 14),
    ("precedence-cutoff", 3, 15, 15),
    ("source-quench", 4, 0, 0xff),
    ("redirect", 5, 0, 0xff),
    ("network-redirect", 5, 0, 0),
    ("host-redirect", 5, 1, 1),
    ("TOS-network-redirect", 5, 2, 2),
    ("TOS-host-redirect", 5, 3, 3),
    ("echo-request", 8, 0, 0xff),
    ("ping", 8, 0, 0xff),
    ("router-advertisement", 9, 0, 0xff),
    ("router-solicitation", 10, 0, 0xff),
    ("time-exceeded", 11, 0, 0xff),
    ("ttl-exceeded", 11, 0, 0xff),
    ("ttl-zero-during-transit", 11, 0, 0),
    ("ttl-zero-during-reassembly", 11, 1, 1),
    ("parameter-problem", 12, 0, 0xff),
    ("ip-header-bad", 12, 0, 0),
    ("required-option-missing", 12, 1, 1),
    ("timestamp-request", 13, 0, 0xff),
    ("timestamp-reply", 14, 0, 0xff),
    ("address-mask-request", 17, 0, 0xff),
    ("address-mask-reply", 18, 0, 0xff),
];

const ICMP_V6: &[IcmpName] = &[
    ("destination-unreachable", 1, 0, 0xff),
    ("no-route", 1, 0, 0),
    ("communication-prohibited", 1, 1, 1),
    ("beyond-scope", 1, 2, 2),
    ("address-unreachable", 1, 3, 3),
    ("port-unreachable", 1, 4, 4),
    ("failed-policy", 1, 5, 5),
    ("reject-route", 1, 6, 6),
    ("packet-too-big", 2, 0, 0xff),
    ("time-exceeded", 3, 0, 0xff),
    ("ttl-exceeded", 3, 0, 0xff),
    ("ttl-zero-during-transit", 3, 0, 0),
    ("ttl-zero-during-reassembly", 3, 1, 1),
    ("parameter-problem", 4, 0, 0xff),
    ("bad-header", 4, 0, 0),
    ("unknown-header-type", 4, 1, 1),
    ("unknown-option", 4, 2, 2),
    ("echo-request", 128, 0, 0xff),
    ("ping", 128, 0, 0xff),
    ("echo-reply", 129, 0, 0xff),
    ("pong", 129, 0, 0xff),
    ("mld-listener-query", 130, 0, 0xff),
    ("mld-listener-report", 131, 0, 0xff),
    ("mld-listener-done", 132, 0, 0xff),
    ("mld-listener-reduction", 132, 0, 0xff),
    ("router-solicitation", 133, 0, 0xff),
    ("router-advertisement", 134, 0, 0xff),
    ("neighbour-solicitation", 135, 0, 0xff),
    ("neighbor-solicitation", 135, 0, 0xff),
    ("neighbour-advertisement", 136, 0, 0xff),
    ("neighbor-advertisement", 136, 0, 0xff),
    ("redirect", 137, 0, 0xff),
];
