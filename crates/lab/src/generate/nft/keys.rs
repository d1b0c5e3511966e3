//! Keys that are no bytes of the packet: meta, ct, rt, fib, socket, hashes.

use rules::model::Family;

use super::super::draft::Draft;
use super::Drawing;
use super::field::{Field, Kind, field, near, nothing, v4, v6};
use super::payload::from4;

const STATES: Kind = Kind::Flags(&["new", "established", "related", "invalid", "untracked"]);
const STATUS: Kind =
    Kind::Flags(&["expected", "seen-reply", "assured", "confirmed", "snat", "dnat", "dying"]);
const DIRECTION: Kind = Kind::Words(&["original", "reply"]);
const DEVICES: Kind =
    Kind::Words(&["\"t0\"", "\"t1\"", "\"lo\"", "\"t*\"", "\"t0*\"", "\"t00\"", "\"r0\""]);
const INDEXED: Kind = Kind::Words(&["\"t0\"", "\"t1\"", "\"lo\""]);
const PACKET_TYPES: Kind = Kind::Words(&["host", "unicast", "broadcast", "multicast", "other"]);
const LINK_TYPES: Kind = Kind::Words(&["loopback", "ppp", "65534"]);
const ETHER_TYPES: Kind = Kind::Words(&["ip", "ip6", "arp", "vlan"]);
const FAMILIES: Kind = Kind::Words(&["ipv4", "ipv6"]);
const ADDRESS_TYPES: Kind = Kind::Words(&[
    "unicast",
    "local",
    "broadcast",
    "multicast",
    "anycast",
    "blackhole",
    "unreachable",
    "prohibit",
]);
const KINDS: Kind = Kind::Words(&["\"tun\"", "\"veth\"", "\"dummy\""]);
const DAYS: Kind = Kind::Words(&["Sunday", "Monday", "Wednesday", "Friday", "Saturday"]);
const HOURS: Kind = Kind::Words(&[
    "\"00:00\"-\"11:59\"",
    "\"12:00\"-\"23:59\"",
    "\"00:00:00\"-\"23:59:58\"",
    "\"06:00\"-\"18:00\"",
]);
const TIMES: Kind = Kind::Words(&[
    "\"2020-01-01 00:00:00\"-\"2100-01-01 00:00:00\"",
    "\"2020-01-01 00:00:00\"-\"2021-01-01 00:00:00\"",
]);

fn any(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.rng.u8(..))
}

fn first(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 1, 2], 3)
}

fn mark(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 1, 2, 0x10, 0xff00, 0x1234], 32)
}

fn zero(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 0, 1], 16)
}

fn label(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 0, 1], 7)
}

/// A number below 3, as the results of hashes here are; of a number that may be less nft refuses some.
fn below3(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.rng.u8(..3))
}

fn bit(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.rng.u8(..2))
}

fn protocol(d: &mut Drawing<'_>) -> u128 {
    near(d, &[6, 17, 1, 58, 132, 33, 136, 50], 8)
}

fn length(d: &mut Drawing<'_>) -> u128 {
    near(d, &[20, 28, 40, 48, 60, 100, 500, 1500], 16)
}

fn port(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.port())
}

fn address4(d: &mut Drawing<'_>) -> u128 {
    let address = d.address(Family::Ipv4);
    u128::from(u32::from_be_bytes([address[0], address[1], address[2], address[3]]))
}

fn address6(d: &mut Drawing<'_>) -> u128 {
    u128::from_be_bytes(d.address(Family::Ipv6))
}

fn source4(p: &mut Draft, v: u128) {
    p.source = from4(v);
}

fn source6(p: &mut Draft, v: u128) {
    p.source = v.to_be_bytes();
}

/// Keys of `meta`.
pub(super) const META: &[Field] = &[
    field("meta length", "meta length", Kind::Number(16), length, |p, v| {
        p.total_len = Some(v as usize)
    }),
    field("meta protocol", "meta protocol", ETHER_TYPES, first, nothing),
    field("meta nfproto", "meta nfproto", FAMILIES, any, nothing),
    field("meta l4proto", "meta l4proto", Kind::Number(8), protocol, |p, v| p.protocol = v as u8),
    field("meta mark", "meta mark", Kind::Hex(32), mark, nothing),
    field("meta iif", "iif", INDEXED, first, nothing),
    field("meta oif", "oif", INDEXED, first, nothing),
    field("meta iifname", "iifname", DEVICES, any, nothing),
    field("meta oifname", "oifname", DEVICES, any, nothing),
    field("meta iiftype", "iiftype", LINK_TYPES, any, nothing),
    field("meta oiftype", "oiftype", LINK_TYPES, any, nothing),
    field("meta iifgroup", "iifgroup", Kind::Number(32), zero, nothing),
    field("meta oifgroup", "oifgroup", Kind::Number(32), zero, nothing),
    field("meta iifkind", "meta iifkind", KINDS, any, nothing),
    field("meta oifkind", "meta oifkind", KINDS, any, nothing),
    field("meta pkttype", "meta pkttype", PACKET_TYPES, any, nothing),
    field(
        "meta priority",
        "meta priority",
        Kind::Words(&["0:0", "1:2", "none", "0:1"]),
        any,
        nothing,
    ),
    field("meta rtclassid", "rtclassid", Kind::Number(32), zero, nothing),
    field("meta skuid", "meta skuid", Kind::Number(32), zero, nothing),
    field("meta skgid", "meta skgid", Kind::Number(32), zero, nothing),
    field("meta sdif", "meta sdif", INDEXED, first, nothing),
    field("meta time", "meta time", TIMES, any, nothing),
    field("meta day", "meta day", DAYS, any, nothing),
    field("meta hour", "meta hour", HOURS, any, nothing),
    field("meta ipsec", "meta secpath", Kind::Presence, bit, nothing),
];

/// Keys of `ct`.
pub(super) const CT: &[Field] = &[
    field("ct state", "ct state", STATES, any, nothing),
    field("ct state", "ct state", STATES, first, nothing),
    field("ct status", "ct status", STATUS, any, nothing),
    field("ct direction", "ct direction", DIRECTION, any, nothing),
    field("ct mark", "ct mark", Kind::Hex(32), mark, nothing),
    field(
        "ct expiration",
        "ct expiration",
        Kind::Words(&["1s-10d", "0s-1s", "20s-5d"]),
        any,
        nothing,
    ),
    field("ct zone", "ct zone", Kind::Number(16), zero, nothing),
    field("ct l3proto", "ct l3proto", FAMILIES, any, nothing),
    field("ct protocol", "ct protocol", Kind::Number(8), protocol, |p, v| p.protocol = v as u8),
    field("ct proto-src", "ct original proto-src", Kind::Number(16), port, |p, v| {
        p.ports.0 = v as u16
    }),
    field("ct proto-dst", "ct original proto-dst", Kind::Number(16), port, |p, v| {
        p.ports.1 = v as u16
    }),
    field("ct proto-src", "ct reply proto-src", Kind::Number(16), port, |p, v| {
        p.ports.1 = v as u16
    }),
    field("ct proto-dst", "ct reply proto-dst", Kind::Number(16), port, |p, v| {
        p.ports.0 = v as u16
    }),
    v4("ct address", "ct original ip saddr", Kind::V4, address4, source4),
    v4("ct address", "ct original ip daddr", Kind::V4, address4, |p, v| p.destination = from4(v)),
    v4("ct address", "ct reply ip saddr", Kind::V4, address4, |p, v| p.destination = from4(v)),
    v4("ct address", "ct reply ip daddr", Kind::V4, address4, source4),
    v6("ct address", "ct original ip6 saddr", Kind::V6, address6, source6),
    v6("ct address", "ct original ip6 daddr", Kind::V6, address6, |p, v| {
        p.destination = v.to_be_bytes()
    }),
    v6("ct address", "ct reply ip6 saddr", Kind::V6, address6, |p, v| {
        p.destination = v.to_be_bytes()
    }),
    v6("ct address", "ct reply ip6 daddr", Kind::V6, address6, source6),
    field("ct packets", "ct packets", Kind::Number(64), first, nothing),
    field("ct packets", "ct original packets", Kind::Number(64), first, nothing),
    field("ct packets", "ct reply packets", Kind::Number(64), first, nothing),
    field("ct bytes", "ct bytes", Kind::Number(64), length, nothing),
    field("ct bytes", "ct reply bytes", Kind::Number(64), length, nothing),
    field("ct avgpkt", "ct avgpkt", Kind::Number(64), length, nothing),
    field("ct label", "ct label", Kind::Number(7), label, nothing),
    field("ct helper", "ct helper", Kind::Words(&["\"ftp\"", "\"sip\"", "\"tftp\""]), any, nothing),
];

/// `rt`, `fib` and `socket`.
pub(super) const ROUTES: &[Field] = &[
    v4("rt nexthop", "rt ip nexthop", Kind::V4, address4, nothing),
    v6("rt nexthop", "rt ip6 nexthop", Kind::V6, address6, nothing),
    field("rt classid", "rt classid", Kind::Number(32), zero, nothing),
    field(
        "rt mtu",
        "rt mtu",
        Kind::Number(16),
        |d| near(d, &[1460, 65495, 65475, 1220], 16),
        nothing,
    ),
    field("rt ipsec", "rt ipsec", Kind::Presence, bit, nothing),
    field("fib type", "fib saddr type", ADDRESS_TYPES, any, nothing),
    field("fib type", "fib daddr type", ADDRESS_TYPES, any, nothing),
    field("fib type", "fib daddr . iif type", ADDRESS_TYPES, any, nothing),
    field("fib type", "fib saddr . mark type", ADDRESS_TYPES, any, nothing),
    field("fib type", "fib daddr . oif type", ADDRESS_TYPES, any, nothing),
    field("fib oif", "fib saddr . iif oif", Kind::Presence, bit, nothing),
    field("fib oif", "fib saddr oif", Kind::Presence, bit, nothing),
    field("fib oif", "fib daddr oif", INDEXED, first, nothing),
    field("fib oif", "fib daddr . iif oif", INDEXED, first, nothing),
    field("fib oif", "fib saddr oif", INDEXED, first, nothing),
    field("fib oifname", "fib daddr oifname", INDEXED, first, nothing),
    field("fib oifname", "fib saddr . iif oifname", INDEXED, first, nothing),
    field("socket", "socket transparent", Kind::Number(1), bit, nothing),
    field("socket", "socket mark", Kind::Hex(32), mark, nothing),
    field("socket", "socket wildcard", Kind::Number(1), bit, nothing),
];

/// Numbers drawn, counted and hashed; each keeps something, or draws.
pub(super) const NUMBERS: &[Field] = &[
    field("numgen inc", "numgen inc mod 3", Kind::Number(2), below3, nothing),
    field("numgen inc", "numgen inc mod 2 offset 1", Kind::Number(2), below3, nothing),
    field("numgen random", "numgen random mod 1", Kind::Number(2), bit, nothing),
    v4("jhash", "jhash ip saddr mod 4 seed 0x1", Kind::Number(3), below3, nothing),
    v4(
        "jhash",
        "jhash ip saddr . ip daddr mod 3 seed 0xdeadbeef",
        Kind::Number(3),
        below3,
        nothing,
    ),
    v6("jhash", "jhash ip6 saddr mod 4 seed 0x7", Kind::Number(3), below3, nothing),
    v4(
        "jhash",
        "jhash ip daddr . tcp dport mod 4 seed 0x1 offset 2",
        Kind::Number(3),
        below3,
        |p, _| p.protocol = 6,
    ),
    v6("jhash", "jhash ip6 daddr . ip6 saddr mod 4 seed 0x11", Kind::Number(3), below3, nothing),
    field("jhash", "jhash meta mark mod 4 seed 0x1", Kind::Number(3), below3, nothing),
    field("symhash", "symhash mod 1", Kind::Number(2), bit, nothing),
];
