//! Tables of what headers, extension headers and options hold: each field's name, type, place and width in bits.

use crate::types::{
    ARP_OP, BOOLEAN, DCCP_TYPE, DSCP, ECN, ETHER, ETHER_TYPE, GRE_FLAGS, ICMP_CODE, ICMP_TYPE,
    ICMPV6_CODE, ICMPV6_TYPE, IGMP_TYPE, INTEGER, IPV4, IPV6, MARK, MH_TYPE, PROTO, RAW, SERVICE,
    TCP_FLAG, TCPOPT_SUBTYPE, TIME, Ty,
};

/// Where a header begins to be counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The link header.
    Link,
    /// The network header.
    Network,
    /// The transport header.
    Transport,
    /// What follows the transport header.
    Inner,
    /// What follows a tunnel's header.
    Tunnel,
}

/// The bases with their names.
pub const BASES: &[(&str, Base)] = &[
    ("ll", Base::Link),
    ("nh", Base::Network),
    ("th", Base::Transport),
    ("ih", Base::Inner),
    ("tunnel", Base::Tunnel),
];

/// A field of a header.
#[derive(Debug)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Type of its value.
    pub ty: Ty,
    /// First bit, counted from the header's start.
    pub offset: u32,
    /// Width in bits.
    pub bits: u32,
}

/// A header, an extension header or an option, with its fields.
#[derive(Debug)]
pub struct Header {
    /// Name.
    pub name: &'static str,
    /// What its offsets count from.
    pub base: Base,
    /// Number of the protocol, header or option.
    pub number: u32,
    /// Fields.
    pub fields: &'static [Field],
}

impl PartialEq for Header {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Header {
    /// Finds a field by its name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Finds a header in a table.
pub fn find(table: &'static [Header], name: &str) -> Option<&'static Header> {
    table.iter().find(|header| header.name == name)
}

macro_rules! headers {
    ($(#[$doc:meta])* $id:ident: $($name:literal $base:ident $number:literal
        [$($field:literal $ty:ident $offset:literal $bits:literal),* $(,)?];)*) => {
        $(#[$doc])*
        pub static $id: &[Header] = &[$(Header {
            name: $name,
            base: Base::$base,
            number: $number,
            fields: &[$(Field { name: $field, ty: &$ty, offset: $offset, bits: $bits }),*],
        }),*];
    };
}

headers! {
    /// Headers that `payload` reads.
    PAYLOAD:
    "ether" Link 0 ["daddr" ETHER 0 48, "saddr" ETHER 48 48, "type" ETHER_TYPE 96 16];
    "vlan" Link 0x8100 ["pcp" INTEGER 112 3, "dei" INTEGER 115 1, "cfi" INTEGER 115 1, "id" INTEGER 116 12,
        "type" ETHER_TYPE 128 16];
    "arp" Network 0x806 ["htype" INTEGER 0 16, "ptype" ETHER_TYPE 16 16, "hlen" INTEGER 32 8,
        "plen" INTEGER 40 8, "operation" ARP_OP 48 16, "saddr ether" ETHER 64 48, "saddr ip" IPV4 112 32,
        "daddr ether" ETHER 144 48, "daddr ip" IPV4 192 32];
    "ip" Network 0x800 ["version" INTEGER 0 4, "hdrlength" INTEGER 4 4, "dscp" DSCP 8 6, "ecn" ECN 14 2,
        "length" INTEGER 16 16, "id" INTEGER 32 16, "frag-off" RAW 48 16, "ttl" INTEGER 64 8,
        "protocol" PROTO 72 8, "checksum" INTEGER 80 16, "saddr" IPV4 96 32, "daddr" IPV4 128 32];
    "ip6" Network 0x86dd ["version" INTEGER 0 4, "dscp" DSCP 4 6, "ecn" ECN 10 2, "flowlabel" INTEGER 12 20,
        "length" INTEGER 32 16, "nexthdr" PROTO 48 8, "hoplimit" INTEGER 56 8, "saddr" IPV6 64 128,
        "daddr" IPV6 192 128];
    "icmp" Transport 1 ["type" ICMP_TYPE 0 8, "code" ICMP_CODE 8 8, "checksum" INTEGER 16 16,
        "id" INTEGER 32 16, "sequence" INTEGER 48 16, "gateway" INTEGER 32 32, "mtu" INTEGER 48 16];
    "igmp" Transport 2 ["type" IGMP_TYPE 0 8, "mrt" INTEGER 8 8, "checksum" INTEGER 16 16,
        "group" IPV4 32 32];
    "tcp" Transport 6 ["sport" SERVICE 0 16, "dport" SERVICE 16 16, "sequence" INTEGER 32 32,
        "ackseq" INTEGER 64 32, "doff" INTEGER 96 4, "reserved" INTEGER 100 4, "flags" TCP_FLAG 104 8,
        "window" INTEGER 112 16, "checksum" INTEGER 128 16, "urgptr" INTEGER 144 16];
    "udp" Transport 17 ["sport" SERVICE 0 16, "dport" SERVICE 16 16, "length" INTEGER 32 16,
        "checksum" INTEGER 48 16];
    "udplite" Transport 136 ["sport" SERVICE 0 16, "dport" SERVICE 16 16, "csumcov" INTEGER 32 16,
        "checksum" INTEGER 48 16];
    "sctp" Transport 132 ["sport" SERVICE 0 16, "dport" SERVICE 16 16, "vtag" INTEGER 32 32,
        "checksum" INTEGER 64 32];
    "dccp" Transport 33 ["sport" SERVICE 0 16, "dport" SERVICE 16 16, "type" DCCP_TYPE 67 4];
    "esp" Transport 50 ["spi" INTEGER 0 32, "sequence" INTEGER 32 32];
    "ah" Transport 51 ["nexthdr" PROTO 0 8, "hdrlength" INTEGER 8 8, "reserved" INTEGER 16 16,
        "spi" INTEGER 32 32, "sequence" INTEGER 64 32];
    "comp" Transport 108 ["nexthdr" PROTO 0 8, "flags" RAW 8 8, "cpi" INTEGER 16 16];
    "icmpv6" Transport 58 ["type" ICMPV6_TYPE 0 8, "code" ICMPV6_CODE 8 8, "checksum" INTEGER 16 16,
        "parameter-problem" INTEGER 32 32, "mtu" INTEGER 32 32, "id" INTEGER 32 16,
        "sequence" INTEGER 48 16, "max-delay" INTEGER 32 16, "taddr" IPV6 64 128, "daddr" IPV6 192 128];
    "gre" Transport 47 ["flags" GRE_FLAGS 0 5, "version" INTEGER 13 3, "protocol" ETHER_TYPE 16 16];
    "gretap" Transport 47 [];
    "vxlan" Inner 0 ["vni" INTEGER 32 24, "flags" INTEGER 0 8];
    "geneve" Inner 0 ["vni" INTEGER 32 24, "type" ETHER_TYPE 16 16];
    "th" Transport 0 ["sport" SERVICE 0 16, "dport" SERVICE 16 16];
}

/// Headers that may hold another packet, whose fields `inner` expressions read.
pub const TUNNELS: &[&str] = &["vxlan", "geneve", "gre", "gretap"];

headers! {
    /// Extension headers of IPv6.
    EXTENSION:
    "hbh" Network 0 ["nexthdr" PROTO 0 8, "hdrlength" INTEGER 8 8];
    "rt" Network 43 ["nexthdr" PROTO 0 8, "hdrlength" INTEGER 8 8, "type" INTEGER 16 8,
        "seg-left" INTEGER 24 8];
    "rt0" Network 43 ["addr" IPV6 64 128];
    "rt2" Network 43 ["addr" IPV6 64 128];
    "srh" Network 43 ["last-entry" INTEGER 32 8, "flags" INTEGER 40 8, "tag" INTEGER 48 16,
        "sid" IPV6 64 128];
    "frag" Network 44 ["nexthdr" PROTO 0 8, "reserved" INTEGER 8 8, "frag-off" INTEGER 16 13,
        "reserved2" INTEGER 29 2, "more-fragments" INTEGER 31 1, "id" INTEGER 32 32];
    "dst" Network 60 ["nexthdr" PROTO 0 8, "hdrlength" INTEGER 8 8];
    "mh" Network 135 ["nexthdr" PROTO 0 8, "hdrlength" INTEGER 8 8, "type" MH_TYPE 16 8,
        "reserved" INTEGER 24 8, "checksum" INTEGER 32 16];
}

headers! {
    /// Options of TCP.
    TCP_OPTION:
    "eol" Transport 0 [];
    "nop" Transport 1 [];
    "maxseg" Transport 2 ["kind" INTEGER 0 8, "length" INTEGER 8 8, "size" INTEGER 16 16];
    "window" Transport 3 ["kind" INTEGER 0 8, "length" INTEGER 8 8, "count" INTEGER 16 8];
    "sack-perm" Transport 4 ["kind" INTEGER 0 8, "length" INTEGER 8 8];
    "sack" Transport 5 ["kind" INTEGER 0 8, "length" INTEGER 8 8, "left" INTEGER 16 32,
        "right" INTEGER 48 32];
    "sack0" Transport 5 ["left" INTEGER 16 32, "right" INTEGER 48 32];
    "sack1" Transport 5 ["left" INTEGER 80 32, "right" INTEGER 112 32];
    "sack2" Transport 5 ["left" INTEGER 144 32, "right" INTEGER 176 32];
    "sack3" Transport 5 ["left" INTEGER 208 32, "right" INTEGER 240 32];
    "timestamp" Transport 8 ["kind" INTEGER 0 8, "length" INTEGER 8 8, "tsval" INTEGER 16 32,
        "tsecr" INTEGER 48 32];
    "mptcp" Transport 30 ["kind" INTEGER 0 8, "length" INTEGER 8 8, "subtype" TCPOPT_SUBTYPE 16 4];
    "md5sig" Transport 19 ["kind" INTEGER 0 8, "length" INTEGER 8 8];
    "fastopen" Transport 34 ["kind" INTEGER 0 8, "length" INTEGER 8 8];
}

headers! {
    /// Options of IPv4.
    IP_OPTION:
    "lsrr" Network 131 ["type" INTEGER 0 8, "length" INTEGER 8 8, "ptr" INTEGER 16 8, "addr" IPV4 24 32];
    "rr" Network 7 ["type" INTEGER 0 8, "length" INTEGER 8 8, "ptr" INTEGER 16 8, "addr" IPV4 24 32];
    "ssrr" Network 137 ["type" INTEGER 0 8, "length" INTEGER 8 8, "ptr" INTEGER 16 8, "addr" IPV4 24 32];
    "ra" Network 148 ["type" INTEGER 0 8, "length" INTEGER 8 8, "value" INTEGER 16 16];
}

headers! {
    /// Chunks of SCTP.
    SCTP_CHUNK:
    "data" Transport 0 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16, "tsn" INTEGER 32 32,
        "stream" INTEGER 64 16, "ssn" INTEGER 80 16, "ppid" INTEGER 96 32];
    "init" Transport 1 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "init-tag" INTEGER 32 32, "a-rwnd" INTEGER 64 32, "num-outbound-streams" INTEGER 96 16,
        "num-inbound-streams" INTEGER 112 16, "initial-tsn" INTEGER 128 32];
    "init-ack" Transport 2 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "init-tag" INTEGER 32 32, "a-rwnd" INTEGER 64 32, "num-outbound-streams" INTEGER 96 16,
        "num-inbound-streams" INTEGER 112 16, "initial-tsn" INTEGER 128 32];
    "sack" Transport 3 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "cum-tsn-ack" INTEGER 32 32, "a-rwnd" INTEGER 64 32, "num-gap-ack-blocks" INTEGER 96 16,
        "num-dup-tsns" INTEGER 112 16];
    "heartbeat" Transport 4 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "heartbeat-ack" Transport 5 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "abort" Transport 6 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "shutdown" Transport 7 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "cum-tsn-ack" INTEGER 32 32];
    "shutdown-ack" Transport 8 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "error" Transport 9 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "cookie-echo" Transport 10 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "cookie-ack" Transport 11 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "ecne" Transport 12 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "lowest-tsn" INTEGER 32 32];
    "cwr" Transport 13 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "lowest-tsn" INTEGER 32 32];
    "shutdown-complete" Transport 14 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16];
    "asconf-ack" Transport 128 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "seqno" INTEGER 32 32];
    "forward-tsn" Transport 192 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "new-cum-tsn" INTEGER 32 32];
    "asconf" Transport 193 ["type" INTEGER 0 8, "flags" INTEGER 8 8, "length" INTEGER 16 16,
        "seqno" INTEGER 32 32];
}

/// A key of `meta`, `ct`, `rt`, `socket`, …: its name and the type of its value.
pub type Key = (&'static str, Ty);

/// Finds a key.
pub fn key(table: &'static [Key], name: &str) -> Option<&'static Key> {
    table.iter().find(|key| key.0 == name)
}

/// Keys of `socket`.
pub static SOCKET: &[Key] = &[
    ("transparent", &INTEGER),
    ("mark", &MARK),
    ("wildcard", &INTEGER),
    ("cgroupv2", &crate::types::CGROUPV2),
];

/// Keys of `rt`.
pub static RT: &[Key] = &[
    ("classid", &crate::types::REALM),
    ("nexthop", &IPV4),
    ("mtu", &INTEGER),
    ("ipsec", &BOOLEAN),
];

/// Keys of `ipsec`.
pub static IPSEC: &[Key] =
    &[("reqid", &INTEGER), ("spi", &INTEGER), ("saddr", &IPV4), ("daddr", &IPV4)];

/// Keys of `tunnel`.
pub static TUNNEL: &[Key] = &[("path", &BOOLEAN), ("id", &INTEGER)];

/// Results of `fib`.
pub static FIB: &[Key] = &[
    ("type", &crate::types::FIB_ADDRTYPE),
    ("oif", &crate::types::IFACE_INDEX),
    ("oifname", &crate::types::IFNAME),
    ("check", &BOOLEAN),
];

/// Keys of `ct`.
pub static CT: &[Key] = &[
    ("state", &crate::types::CT_STATE),
    ("direction", &crate::types::CT_DIR),
    ("status", &crate::types::CT_STATUS),
    ("mark", &MARK),
    ("expiration", &TIME),
    ("helper", &crate::types::STRING),
    ("l3proto", &crate::types::NF_PROTO),
    ("saddr", &IPV4),
    ("daddr", &IPV4),
    ("protocol", &PROTO),
    ("proto-src", &SERVICE),
    ("proto-dst", &SERVICE),
    ("label", &crate::types::CT_LABEL),
    ("bytes", &INTEGER),
    ("packets", &INTEGER),
    ("avgpkt", &INTEGER),
    ("zone", &INTEGER),
    ("event", &crate::types::CT_EVENT),
    ("secmark", &crate::types::SECMARK),
    ("id", &INTEGER),
    ("count", &INTEGER),
];

/// Keys of `meta`; [`BARE_META`] lists the keys that are printed without the word.
pub static META: &[Key] = &[
    ("length", &INTEGER),
    ("protocol", &ETHER_TYPE),
    ("nfproto", &crate::types::NF_PROTO),
    ("l4proto", &PROTO),
    ("priority", &crate::types::CLASSID),
    ("mark", &MARK),
    ("iif", &crate::types::IFACE_INDEX),
    ("iifname", &crate::types::IFNAME),
    ("iiftype", &crate::types::IFACE_TYPE),
    ("oif", &crate::types::IFACE_INDEX),
    ("oifname", &crate::types::IFNAME),
    ("oiftype", &crate::types::IFACE_TYPE),
    ("skuid", &crate::types::UID),
    ("skgid", &crate::types::GID),
    ("nftrace", &INTEGER),
    ("rtclassid", &crate::types::REALM),
    ("ibrname", &crate::types::IFNAME),
    ("obrname", &crate::types::IFNAME),
    ("ibriport", &crate::types::IFNAME),
    ("obriport", &crate::types::IFNAME),
    ("pkttype", &crate::types::PKT_TYPE),
    ("cpu", &INTEGER),
    ("iifgroup", &crate::types::DEVGROUP),
    ("oifgroup", &crate::types::DEVGROUP),
    ("cgroup", &INTEGER),
    ("random", &INTEGER),
    ("ipsec", &BOOLEAN),
    ("secpath", &BOOLEAN),
    ("iifkind", &crate::types::IFKIND),
    ("oifkind", &crate::types::IFKIND),
    ("ibrpvid", &INTEGER),
    ("ibrvproto", &ETHER_TYPE),
    ("ibrhwaddr", &ETHER),
    ("time", &crate::types::DATE),
    ("day", &crate::types::DAY),
    ("hour", &crate::types::HOUR),
    ("secmark", &crate::types::SECMARK),
    ("sdif", &crate::types::IFACE_INDEX),
    ("sdifname", &crate::types::IFNAME),
    ("broute", &INTEGER),
];

/// Keys of `meta` that are printed alone.
pub const BARE_META: &[&str] = &["iif", "iifname", "oif", "oifname", "iifgroup", "oifgroup"];

/// Keys of `meta` that are read alone as well.
pub const UNQUALIFIED: &[&str] = &[
    "mark",
    "iif",
    "iifname",
    "iiftype",
    "oif",
    "oifname",
    "oiftype",
    "skuid",
    "skgid",
    "nftrace",
    "rtclassid",
    "ibriport",
    "ibrname",
    "obriport",
    "obrname",
    "pkttype",
    "cpu",
    "iifgroup",
    "oifgroup",
    "cgroup",
];
