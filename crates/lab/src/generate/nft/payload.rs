//! Fields of headers: ip, ip6, the transports, and raw bits.

use rules::model::Family;

use super::super::draft::Draft;
use super::Drawing;
use super::field::{Field, Kind, field, near, nothing, v4, v6};

/// Writes big-endian bytes of a value into the upper layer.
fn upper(p: &mut Draft, protocol: u8, at: usize, len: usize, value: u128) {
    p.protocol = protocol;
    p.upper.push((at, value.to_be_bytes()[16 - len..].to_vec()));
}

fn any_upper(p: &mut Draft, at: usize, len: usize, value: u128) {
    p.upper.push((at, value.to_be_bytes()[16 - len..].to_vec()));
}

fn patch(p: &mut Draft, at: usize, len: usize, value: u128) {
    p.patches.push((at, value.to_be_bytes()[16 - len..].to_vec()));
}

fn address4(d: &mut Drawing<'_>) -> u128 {
    let address = d.address(Family::Ipv4);
    u128::from(u32::from_be_bytes([address[0], address[1], address[2], address[3]]))
}

fn address6(d: &mut Drawing<'_>) -> u128 {
    u128::from_be_bytes(d.address(Family::Ipv6))
}

pub(super) fn from4(value: u128) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&(value as u32).to_be_bytes());
    address
}

fn port(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.port())
}

fn byte(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.byte())
}

fn bits3(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.rng.u8(..8))
}

fn bits4(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 1, 5, 6, 8, 15], 4)
}

fn dscp(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 8, 46, 63], 6)
}

fn word16(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 1, 8, 16, 256, 0x2000, 0xffff], 16)
}

fn word32(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.word())
}

fn length(d: &mut Drawing<'_>) -> u128 {
    near(d, &[20, 28, 29, 36, 40, 48, 60, 100, 1500], 16)
}

fn protocol(d: &mut Drawing<'_>) -> u128 {
    near(d, &[6, 17, 1, 58, 132, 33, 136, 50, 51, 108, 47, 2], 8)
}

const DSCP: Kind = Kind::Hex(6);
const DSCP_WORDS: Kind = Kind::Words(&["cs0", "ef"]);
const ECN: Kind = Kind::Words(&["not-ect", "ect1", "ect0", "ce"]);
/// Names that nft has for bits, in the order of [`tcp_flag`].
const TCP_FLAGS: Kind = Kind::Flags(&["fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"]);
const ICMP_TYPES: Kind = Kind::Number(8);

fn tcp_flag(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 1, 2, 3, 4], 3)
}

fn icmp_type(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 3, 8, 5, 11, 13, 17], 8)
}

fn icmp6_type(d: &mut Drawing<'_>) -> u128 {
    near(d, &[1, 2, 128, 129, 130, 133, 135, 136], 8)
}

/// All fields of headers.
pub(super) const FIELDS: &[Field] = &[
    v4("payload ip", "ip saddr", Kind::V4, address4, |p, v| p.source = from4(v)),
    v4("payload ip", "ip daddr", Kind::V4, address4, |p, v| p.destination = from4(v)),
    v4("payload ip", "ip protocol", Kind::Number(8), protocol, |p, v| p.protocol = v as u8),
    v4("payload ip", "ip ttl", Kind::Number(8), byte, |p, v| p.ttl = v as u8),
    v4("payload ip", "ip dscp", DSCP, dscp, |p, v| p.tos = (v as u8) << 2),
    v4("payload ip", "ip ecn", ECN, bits3, |p, v| p.tos = v as u8 & 3),
    v4("payload ip", "ip length", Kind::Number(16), length, |p, v| p.total_len = Some(v as usize)),
    v4("payload ip", "ip id", Kind::Number(16), |d| near(d, &[100, 700, 2000], 16), nothing),
    v4("payload ip", "ip frag-off", Kind::Hex(16), word16, |p, v| p.fragment = v as u16),
    v4("payload ip", "ip hdrlength", Kind::Number(4), bits4, nothing),
    v4("payload ip", "ip version", Kind::Number(4), |d| near(d, &[4, 4, 6], 4), nothing),
    v4("payload ip", "ip checksum", Kind::Hex(16), word16, nothing),
    v6("payload ip6", "ip6 saddr", Kind::V6, address6, |p, v| p.source = v.to_be_bytes()),
    v6("payload ip6", "ip6 daddr", Kind::V6, address6, |p, v| p.destination = v.to_be_bytes()),
    v6("payload ip6", "ip6 nexthdr", Kind::Number(8), protocol, |p, v| p.protocol = v as u8),
    v6("payload ip6", "ip6 hoplimit", Kind::Number(8), byte, |p, v| p.ttl = v as u8),
    // nft 1.0.6 makes wrong bytecode of all else that may be asked of its bits.
    v6(
        "payload ip6",
        "ip6 dscp",
        DSCP_WORDS,
        |d| u128::from(d.draw.rng.u8(..)),
        |p, v| {
            p.tos = [0, 46][v as usize % 2] << 2;
        },
    ),
    v6("payload ip6", "ip6 ecn", ECN, bits3, |p, v| p.tos = v as u8 & 3),
    v6("payload ip6", "ip6 length", Kind::Number(16), length, |p, v| {
        p.total_len = Some(v as usize + 40);
    }),
    v6("payload ip6", "ip6 flowlabel", Kind::Hex(20), |d| near(d, &[100, 700, 2000], 20), nothing),
    v6("payload ip6", "ip6 version", Kind::Number(4), |d| near(d, &[6, 6, 4], 4), nothing),
    field("payload tcp", "tcp sport", Kind::Number(16), port, |p, v| {
        p.protocol = 6;
        p.ports.0 = v as u16;
    }),
    field("payload tcp", "tcp dport", Kind::Number(16), port, |p, v| {
        p.protocol = 6;
        p.ports.1 = v as u16;
    }),
    field("payload tcp", "tcp flags", TCP_FLAGS, tcp_flag, |p, v| {
        p.protocol = 6;
        p.flags |= 1 << v;
    }),
    field("payload tcp", "tcp sequence", Kind::Number(32), word32, |p, v| upper(p, 6, 4, 4, v)),
    field("payload tcp", "tcp ackseq", Kind::Number(32), word32, |p, v| upper(p, 6, 8, 4, v)),
    field("payload tcp", "tcp doff", Kind::Number(4), bits4, |p, _| p.protocol = 6),
    field("payload tcp", "tcp window", Kind::Number(16), word16, |p, v| upper(p, 6, 14, 2, v)),
    field("payload tcp", "tcp checksum", Kind::Hex(16), word16, |p, v| upper(p, 6, 16, 2, v)),
    field("payload tcp", "tcp urgptr", Kind::Number(16), word16, |p, v| upper(p, 6, 18, 2, v)),
    field("payload udp", "udp sport", Kind::Number(16), port, |p, v| {
        p.protocol = 17;
        p.ports.0 = v as u16;
    }),
    field("payload udp", "udp dport", Kind::Number(16), port, |p, v| {
        p.protocol = 17;
        p.ports.1 = v as u16;
    }),
    field(
        "payload udp",
        "udp length",
        Kind::Number(16),
        |d| near(d, &[8, 9, 16, 28, 41], 16),
        |p, v| {
            upper(p, 17, 4, 2, v);
        },
    ),
    field("payload udp", "udp checksum", Kind::Hex(16), word16, |p, v| upper(p, 17, 6, 2, v)),
    field("payload udplite", "udplite sport", Kind::Number(16), port, |p, v| {
        p.protocol = 136;
        p.ports.0 = v as u16;
    }),
    field("payload udplite", "udplite dport", Kind::Number(16), port, |p, v| {
        p.protocol = 136;
        p.ports.1 = v as u16;
    }),
    field("payload udplite", "udplite checksum", Kind::Hex(16), word16, |p, v| {
        upper(p, 136, 6, 2, v)
    }),
    field("payload sctp", "sctp sport", Kind::Number(16), port, |p, v| {
        p.protocol = 132;
        p.ports.0 = v as u16;
    }),
    field("payload sctp", "sctp dport", Kind::Number(16), port, |p, v| {
        p.protocol = 132;
        p.ports.1 = v as u16;
    }),
    field("payload sctp", "sctp vtag", Kind::Hex(32), word32, |p, v| upper(p, 132, 4, 4, v)),
    field("payload sctp", "sctp checksum", Kind::Hex(32), word32, |p, v| upper(p, 132, 8, 4, v)),
    field("payload dccp", "dccp sport", Kind::Number(16), port, |p, v| {
        p.protocol = 33;
        p.ports.0 = v as u16;
    }),
    field("payload dccp", "dccp dport", Kind::Number(16), port, |p, v| {
        p.protocol = 33;
        p.ports.1 = v as u16;
    }),
    field(
        "payload dccp",
        "dccp type",
        Kind::Number(4),
        |d| near(d, &[0, 1, 2, 9], 4),
        |p, v| {
            upper(p, 33, 8, 1, v << 1);
        },
    ),
    v4("payload icmp", "icmp type", ICMP_TYPES, icmp_type, |p, v| {
        p.protocol = 1;
        p.icmp.0 = v as u8;
    }),
    v4(
        "payload icmp",
        "icmp code",
        Kind::Number(8),
        |d| near(d, &[0, 1, 3, 13], 8),
        |p, v| {
            p.protocol = 1;
            p.icmp.1 = v as u8;
        },
    ),
    v4("payload icmp", "icmp checksum", Kind::Hex(16), word16, |p, v| upper(p, 1, 2, 2, v)),
    v4("payload icmp", "icmp id", Kind::Number(16), word16, |p, v| upper(p, 1, 4, 2, v)),
    v4("payload icmp", "icmp sequence", Kind::Number(16), word16, |p, v| upper(p, 1, 6, 2, v)),
    v4("payload icmp", "icmp gateway", Kind::Number(32), word32, |p, v| {
        p.icmp.0 = 5;
        upper(p, 1, 4, 4, v);
    }),
    v4("payload icmp", "icmp mtu", Kind::Number(16), word16, |p, v| {
        p.icmp.0 = 3;
        upper(p, 1, 6, 2, v);
    }),
    v6("payload icmpv6", "icmpv6 type", ICMP_TYPES, icmp6_type, |p, v| {
        p.protocol = 58;
        p.icmp.0 = v as u8;
    }),
    v6(
        "payload icmpv6",
        "icmpv6 code",
        Kind::Number(8),
        |d| near(d, &[0, 1, 3, 4], 8),
        |p, v| {
            p.protocol = 58;
            p.icmp.1 = v as u8;
        },
    ),
    v6("payload icmpv6", "icmpv6 checksum", Kind::Hex(16), word16, |p, v| upper(p, 58, 2, 2, v)),
    v6("payload icmpv6", "icmpv6 id", Kind::Number(16), word16, |p, v| upper(p, 58, 4, 2, v)),
    v6("payload icmpv6", "icmpv6 sequence", Kind::Number(16), word16, |p, v| upper(p, 58, 6, 2, v)),
    v6("payload icmpv6", "icmpv6 mtu", Kind::Number(32), word32, |p, v| {
        p.icmp.0 = 2;
        upper(p, 58, 4, 4, v);
    }),
    v6("payload icmpv6", "icmpv6 parameter-problem", Kind::Number(32), word32, |p, v| {
        p.icmp.0 = 4;
        upper(p, 58, 4, 4, v);
    }),
    v6("payload icmpv6", "icmpv6 max-delay", Kind::Number(16), word16, |p, v| {
        p.icmp.0 = 130;
        upper(p, 58, 4, 2, v);
    }),
    field("payload th", "th sport", Kind::Number(16), port, |p, v| p.ports.0 = v as u16),
    field("payload th", "th dport", Kind::Number(16), port, |p, v| p.ports.1 = v as u16),
    field("payload ah", "ah spi", Kind::Hex(32), word32, |p, v| upper(p, 51, 4, 4, v)),
    field("payload ah", "ah sequence", Kind::Number(32), word32, |p, v| upper(p, 51, 8, 4, v)),
    field("payload ah", "ah hdrlength", Kind::Number(8), bits4, |p, v| upper(p, 51, 1, 1, v)),
    field("payload ah", "ah reserved", Kind::Hex(16), word16, |p, v| upper(p, 51, 2, 2, v)),
    field("payload esp", "esp spi", Kind::Hex(32), word32, |p, v| upper(p, 50, 0, 4, v)),
    field("payload esp", "esp sequence", Kind::Number(32), word32, |p, v| upper(p, 50, 4, 4, v)),
    field("payload comp", "comp nexthdr", Kind::Number(8), protocol, |p, v| {
        upper(p, 108, 0, 4, v << 24)
    }),
    field("payload comp", "comp flags", Kind::Hex(8), byte, |p, v| upper(p, 108, 0, 4, v << 16)),
    field("payload comp", "comp cpi", Kind::Hex(16), word16, |p, v| upper(p, 108, 0, 4, v)),
    v4(
        "payload igmp",
        "igmp type",
        Kind::Hex(8),
        |d| near(d, &[0x11, 0x12, 0x16, 0x22], 8),
        |p, v| {
            upper(p, 2, 0, 8, v << 56);
        },
    ),
    v4("payload igmp", "igmp mrt", Kind::Number(8), byte, |p, v| upper(p, 2, 0, 8, v << 48)),
    v4("payload igmp", "igmp checksum", Kind::Hex(16), word16, |p, v| upper(p, 2, 0, 8, v << 32)),
    // To nft 1.0.6 it is a number.
    v4("payload igmp", "igmp group", Kind::Hex(32), word32, |p, v| upper(p, 2, 4, 4, v)),
    field("payload raw", "@nh,0,8", Kind::Hex(8), |d| near(d, &[0x45, 0x60], 8), nothing),
    field("payload raw", "@nh,64,8", Kind::Hex(8), byte, |p, v| patch(p, 8, 1, v)),
    field("payload raw", "@nh,72,16", Kind::Hex(16), word16, nothing),
    field("payload raw", "@nh,96,32", Kind::Hex(32), word32, |p, v| patch(p, 12, 4, v)),
    field("payload raw", "@nh,13,3", Kind::Hex(3), bits3, nothing),
    field("payload raw", "@nh,280,16", Kind::Hex(16), word16, nothing),
    field("payload raw", "@th,0,16", Kind::Hex(16), port, |p, v| p.ports.0 = v as u16),
    field("payload raw", "@th,16,16", Kind::Hex(16), port, |p, v| p.ports.1 = v as u16),
    field("payload raw", "@th,0,8", Kind::Hex(8), byte, |p, v| any_upper(p, 0, 1, v)),
    field("payload raw", "@th,24,8", Kind::Hex(8), byte, |p, v| any_upper(p, 3, 1, v)),
    field("payload raw", "@th,32,32", Kind::Hex(32), word32, |p, v| any_upper(p, 4, 4, v)),
    field("payload raw", "@th,8,16", Kind::Hex(16), word16, |p, v| any_upper(p, 1, 2, v)),
    field("payload raw", "@th,40,24", Kind::Hex(24), word16, |p, v| any_upper(p, 5, 3, v)),
    field("payload raw", "@th,64,64", Kind::Hex(64), word32, |p, v| any_upper(p, 8, 8, v)),
    field("payload raw", "@th,3,5", Kind::Hex(5), bits4, nothing),
    field(
        "payload raw",
        "@ih,0,32",
        Kind::Hex(32),
        |d| near(d, &[0x6161_6161, 0], 32),
        |p, _| {
            p.payload = vec![0x61; 8];
        },
    ),
];
