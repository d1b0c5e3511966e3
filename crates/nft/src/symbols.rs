//! The names of values: what `nft describe` lists, and the services and users that a ruleset may name.

/// Names with their values.
pub(crate) type Symbols = &'static [(&'static str, u32)];

/// No names.
pub(crate) const NONE: Symbols = &[];

/// Families of packets.
pub(crate) const NF_PROTO: Symbols = &[("ipv4", 2), ("ipv6", 10)];

/// Types of Ethernet frames.
pub(crate) const ETHER_TYPE: Symbols = &[
    ("ip", 0x800),
    ("arp", 0x806),
    ("ip6", 0x86dd),
    ("8021q", 0x8100),
    ("8021ad", 0x88a8),
    ("vlan", 0x8100),
];

/// Operations of ARP.
pub(crate) const ARP_OP: Symbols = &[
    ("request", 1),
    ("reply", 2),
    ("rrequest", 3),
    ("rreply", 4),
    ("inrequest", 8),
    ("inreply", 9),
    ("nak", 10),
];

/// Protocols of IP, as /etc/protocols has them.
pub(crate) const PROTO: Symbols = &[
    ("ip", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap", 4),
    ("st", 5),
    ("tcp", 6),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("udp", 17),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("skip", 57),
    ("ipv6-icmp", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", 132),
    ("fc", 133),
    ("mobility-header", 135),
    ("udplite", 136),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
    ("ethernet", 143),
    ("comp", 108),
    ("icmpv6", 58),
    ("ipip", 4),
];

/// Types of ICMP.
pub(crate) const ICMP_TYPE: Symbols = &[
    ("echo-reply", 0),
    ("destination-unreachable", 3),
    ("source-quench", 4),
    ("redirect", 5),
    ("echo-request", 8),
    ("router-advertisement", 9),
    ("router-solicitation", 10),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp-request", 13),
    ("timestamp-reply", 14),
    ("info-request", 15),
    ("info-reply", 16),
    ("address-mask-request", 17),
    ("address-mask-reply", 18),
];

/// Codes of ICMP destination unreachable.
pub(crate) const ICMP_CODE: Symbols = &[
    ("net-unreachable", 0),
    ("host-unreachable", 1),
    ("prot-unreachable", 2),
    ("port-unreachable", 3),
    ("net-prohibited", 9),
    ("host-prohibited", 10),
    ("admin-prohibited", 13),
    ("frag-needed", 4),
];

/// Types of ICMPv6.
pub(crate) const ICMPV6_TYPE: Symbols = &[
    ("destination-unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("mld-listener-query", 130),
    ("mld-listener-report", 131),
    ("mld-listener-done", 132),
    ("mld-listener-reduction", 132),
    ("nd-router-solicit", 133),
    ("nd-router-advert", 134),
    ("nd-neighbor-solicit", 135),
    ("nd-neighbor-advert", 136),
    ("nd-redirect", 137),
    ("router-renumbering", 138),
    ("ind-neighbor-solicit", 141),
    ("ind-neighbor-advert", 142),
    ("mld2-listener-report", 143),
];

/// Codes of ICMPv6 destination unreachable.
pub(crate) const ICMPV6_CODE: Symbols = &[
    ("no-route", 0),
    ("admin-prohibited", 1),
    ("addr-unreachable", 3),
    ("port-unreachable", 4),
    ("policy-fail", 5),
    ("reject-route", 6),
];

/// Types of IGMP.
pub(crate) const IGMP_TYPE: Symbols = &[
    ("membership-query", 17),
    ("membership-report-v1", 18),
    ("membership-report-v2", 22),
    ("membership-report-v3", 34),
    ("leave-group", 23),
];

/// Flags of TCP.
pub(crate) const TCP_FLAG: Symbols = &[
    ("fin", 0x01),
    ("syn", 0x02),
    ("rst", 0x04),
    ("psh", 0x08),
    ("ack", 0x10),
    ("urg", 0x20),
    ("ecn", 0x40),
    ("cwr", 0x80),
];

/// Types of DCCP packets.
pub(crate) const DCCP_TYPE: Symbols = &[
    ("request", 0x00),
    ("response", 0x01),
    ("data", 0x02),
    ("ack", 0x03),
    ("dataack", 0x04),
    ("closereq", 0x05),
    ("close", 0x06),
    ("reset", 0x07),
    ("sync", 0x08),
    ("syncack", 0x09),
];

/// Types of the mobility header.
pub(crate) const MH_TYPE: Symbols = &[
    ("binding-refresh-request", 0),
    ("home-test-init", 1),
    ("careof-test-init", 2),
    ("home-test", 3),
    ("careof-test", 4),
    ("binding-update", 5),
    ("binding-acknowledgement", 6),
    ("binding-error", 7),
    ("fast-binding-update", 8),
    ("fast-binding-acknowledgement", 9),
    ("fast-binding-advertisement", 10),
    ("experimental-mobility-header", 11),
    ("home-agent-switch-message", 12),
];

/// States of connections.
pub(crate) const CT_STATE: Symbols = &[
    ("invalid", 0x00000001),
    ("new", 0x00000008),
    ("established", 0x00000002),
    ("related", 0x00000004),
    ("untracked", 0x00000040),
];

/// Directions of connections.
pub(crate) const CT_DIR: Symbols = &[("original", 0), ("reply", 1)];

/// Status bits of connections.
pub(crate) const CT_STATUS: Symbols = &[
    ("expected", 0x00000001),
    ("seen-reply", 0x00000002),
    ("assured", 0x00000004),
    ("confirmed", 0x00000008),
    ("snat", 0x00000010),
    ("dnat", 0x00000020),
    ("dying", 0x00000200),
];

/// Types of addresses that routes give.
pub(crate) const FIB_ADDRTYPE: Symbols = &[
    ("unspec", 0),
    ("unicast", 1),
    ("local", 2),
    ("broadcast", 3),
    ("anycast", 4),
    ("multicast", 5),
    ("blackhole", 6),
    ("unreachable", 7),
    ("prohibit", 8),
];

/// Differentiated services.
pub(crate) const DSCP: Symbols = &[
    ("cs0", 0x00),
    ("cs1", 0x08),
    ("cs2", 0x10),
    ("cs3", 0x18),
    ("cs4", 0x20),
    ("cs5", 0x28),
    ("cs6", 0x30),
    ("cs7", 0x38),
    ("df", 0x00),
    ("be", 0x00),
    ("lephb", 0x01),
    ("af11", 0x0a),
    ("af12", 0x0c),
    ("af13", 0x0e),
    ("af21", 0x12),
    ("af22", 0x14),
    ("af23", 0x16),
    ("af31", 0x1a),
    ("af32", 0x1c),
    ("af33", 0x1e),
    ("af41", 0x22),
    ("af42", 0x24),
    ("af43", 0x26),
    ("va", 0x2c),
    ("ef", 0x2e),
];

/// Codes of both ICMPs.
pub(crate) const ICMPX_CODE: Symbols =
    &[("port-unreachable", 1), ("admin-prohibited", 3), ("no-route", 0), ("host-unreachable", 2)];

/// Types of interfaces.
pub(crate) const IFACE_TYPE: Symbols = &[
    ("ether", 1),
    ("ppp", 512),
    ("ipip", 768),
    ("ipip6", 769),
    ("loopback", 772),
    ("sit", 776),
    ("ipgre", 778),
];

/// Types of packets by address of the frame.
pub(crate) const PKT_TYPE: Symbols =
    &[("host", 0), ("unicast", 0), ("broadcast", 1), ("multicast", 2), ("other", 3)];

/// Congestion marks.
pub(crate) const ECN: Symbols = &[("not-ect", 0), ("ect1", 1), ("ect0", 2), ("ce", 3)];

/// Presence.
pub(crate) const BOOLEAN: Symbols = &[("exists", 1), ("missing", 0)];

/// Days of the week.
pub(crate) const DAY: Symbols = &[
    ("Sunday", 0),
    ("Monday", 1),
    ("Tuesday", 2),
    ("Wednesday", 3),
    ("Thursday", 4),
    ("Friday", 5),
    ("Saturday", 6),
];

/// Events of connections.
pub(crate) const CT_EVENT: Symbols = &[
    ("new", 1),
    ("related", 2),
    ("destroy", 4),
    ("reply", 8),
    ("assured", 16),
    ("protoinfo", 32),
    ("helper", 64),
    ("mark", 128),
    ("seqadj", 256),
    ("secmark", 512),
    ("label", 1024),
];

/// Traffic classes.
pub(crate) const CLASSID: Symbols = &[("none", 0), ("root", 0xffff_ffff)];

/// Groups of interfaces.
pub(crate) const DEVGROUP: Symbols = &[("default", 0)];

/// Subtypes of multipath TCP.
pub(crate) const MPTCP: Symbols = &[
    ("mp-capable", 0),
    ("mp-join", 1),
    ("dss", 2),
    ("add-addr", 3),
    ("remove-addr", 4),
    ("mp-prio", 5),
    ("mp-fail", 6),
    ("mp-fastclose", 7),
    ("mp-tcprst", 8),
];

/// Flags of GRE.
pub(crate) const GRE_FLAGS: Symbols =
    &[("checksum", 16), ("routing", 8), ("key", 4), ("sequence", 2), ("strict", 1)];

fn find(symbols: Symbols, word: &str) -> Option<u128> {
    symbols.iter().find(|(name, _)| *name == word).map(|(_, value)| u128::from(*value))
}

/// Reads the name of a service.
pub(crate) fn service(word: &str) -> Option<u128> {
    rules::port_of_service(word).map(u128::from)
}

/// Reads a user or group that every host has.
pub(crate) fn user(word: &str) -> Option<u128> {
    find(&[("root", 0), ("daemon", 1), ("bin", 2), ("nobody", 65534)], word)
}
