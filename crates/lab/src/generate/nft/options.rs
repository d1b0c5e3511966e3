//! Fields of extension headers, IPv4 options and TCP options, and whether they are there.

use super::super::draft::Draft;
use super::Drawing;
use super::field::{Field, Kind, field, near, v4, v6};

fn few(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 1, 2, 4], 8)
}

fn next(d: &mut Drawing<'_>) -> u128 {
    near(d, &[6, 17, 58, 44, 60, 43, 51], 8)
}

fn bit(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.rng.u8(..2))
}

fn short(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 1, 536, 1000, 1460, 1024, 65535], 16)
}

fn word(d: &mut Drawing<'_>) -> u128 {
    u128::from(d.draw.word())
}

/// Puts an extension header before the others, whose bytes after the next header are zeros but one run.
fn extension(p: &mut Draft, kind: u8, len: usize, at: usize, bytes: &[u8]) {
    let mut body = vec![0; len];
    if kind != 44 {
        body[0] = (len / 8) as u8;
    }
    body[at..at + bytes.len()].copy_from_slice(bytes);
    p.extensions.insert(0, (kind, body));
}

/// Options of IPv4 are patched by others; a run of one option.
fn ip_option(p: &mut Draft, bytes: &[u8]) {
    p.options.splice(0..0, bytes.iter().copied());
}

fn tcp_option(p: &mut Draft, bytes: &[u8]) {
    p.protocol = 6;
    p.tcp_options.splice(0..0, bytes.iter().copied());
}

fn size(p: &mut Draft, value: u128) {
    let [high, low] = (value as u16).to_be_bytes();
    tcp_option(p, &[2, 4, high, low]);
}

fn stamp(p: &mut Draft, value: u128, echo: u128) {
    let mut bytes = vec![1, 1, 8, 10];
    bytes.extend((value as u32).to_be_bytes());
    bytes.extend((echo as u32).to_be_bytes());
    tcp_option(p, &bytes);
}

fn sack(p: &mut Draft, left: u128, right: u128) {
    let mut bytes = vec![1, 1, 5, 10];
    bytes.extend((left as u32).to_be_bytes());
    bytes.extend((right as u32).to_be_bytes());
    tcp_option(p, &bytes);
}

/// Single values alone: two words are no set.
const OFFSETS: Kind = Kind::Words(&["0", "185"]);

/// Extension headers of IPv6.
pub(super) const EXTHDR: &[Field] = &[
    v6("exthdr presence", "exthdr hbh", Kind::Presence, bit, |p, v| {
        if v == 1 {
            extension(p, 0, 7, 1, &[1, 4])
        }
    }),
    v6("exthdr presence", "exthdr frag", Kind::Presence, bit, |p, v| p.fragment = v as u16),
    v6("exthdr presence", "exthdr rt", Kind::Presence, bit, |p, v| {
        if v == 1 {
            extension(p, 43, 7, 1, &[4])
        }
    }),
    v6("exthdr presence", "exthdr dst", Kind::Presence, bit, |p, v| {
        if v == 1 {
            extension(p, 60, 7, 1, &[1, 4])
        }
    }),
    v6("exthdr presence", "exthdr mh", Kind::Presence, bit, |p, v| {
        if v == 1 {
            p.protocol = 135
        }
    }),
    v6("exthdr hbh", "hbh nexthdr", Kind::Number(8), next, |p, v| {
        extension(p, 0, 7, 1, &[1, 4]);
        if p.extensions.len() == 1 {
            p.protocol = v as u8
        }
    }),
    v6("exthdr hbh", "hbh hdrlength", Kind::Number(8), few, |p, v| {
        extension(p, 0, v as usize * 8 + 7, 1, &[1, 4])
    }),
    v6("exthdr dst", "dst nexthdr", Kind::Number(8), next, |p, v| {
        extension(p, 60, 7, 1, &[1, 4]);
        if p.extensions.len() == 1 {
            p.protocol = v as u8
        }
    }),
    v6("exthdr dst", "dst hdrlength", Kind::Number(8), few, |p, v| {
        extension(p, 60, v as usize % 8 * 8 + 7, 1, &[1, 4])
    }),
    v6("exthdr rt", "rt nexthdr", Kind::Number(8), next, |p, v| {
        extension(p, 43, 7, 1, &[4]);
        if p.extensions.len() == 1 {
            p.protocol = v as u8
        }
    }),
    v6("exthdr rt", "rt hdrlength", Kind::Number(8), few, |p, v| {
        extension(p, 43, v as usize % 8 * 8 + 7, 1, &[4])
    }),
    v6(
        "exthdr rt",
        "rt type",
        Kind::Number(8),
        |d| near(d, &[0, 2, 3, 4], 8),
        |p, v| extension(p, 43, 7, 1, &[v as u8]),
    ),
    v6("exthdr rt", "rt seg-left", Kind::Number(8), few, |p, v| {
        extension(p, 43, 7, 1, &[4, v as u8])
    }),
    v6("exthdr srh", "srh flags", Kind::Number(8), few, |p, v| {
        extension(p, 43, 7, 1, &[4, 0, 0, v as u8])
    }),
    v6("exthdr srh", "srh tag", Kind::Number(16), few, |p, v| {
        extension(p, 43, 7, 1, &[4, 0, 0, 0, 0, v as u8])
    }),
    v6("exthdr srh", "srh last-entry", Kind::Number(8), few, |p, v| {
        extension(p, 43, 7, 1, &[4, 0, v as u8])
    }),
    v6("exthdr frag", "frag nexthdr", Kind::Number(8), next, |p, v| {
        p.protocol = v as u8;
        p.fragment = 1;
    }),
    v6("exthdr frag", "frag reserved", Kind::Number(8), few, |p, v| {
        extension(p, 44, 7, 0, &[v as u8, 0, 1])
    }),
    // In sets nft 1.0.6 compares its bits wrongly.
    v6("exthdr frag", "frag frag-off", OFFSETS, few, |p, v| {
        p.fragment = [0, 185][v as usize % 2] << 3 | 1;
    }),
    v6("exthdr frag", "frag more-fragments", Kind::Number(1), bit, |p, v| {
        p.fragment = 8 | v as u16
    }),
    v6("exthdr frag", "frag reserved2", Kind::Number(2), bit, |p, v| {
        p.fragment = 1 | (v as u16) << 1
    }),
    v6(
        "exthdr frag",
        "frag id",
        Kind::Number(32),
        |d| near(d, &[1, 0, 2], 32),
        |p, _| p.fragment = 1,
    ),
    v6(
        "exthdr mh",
        "mh nexthdr",
        Kind::Number(8),
        |d| near(d, &[59, 0], 8),
        |p, v| {
            p.protocol = 135;
            p.upper.push((0, vec![v as u8, 0, 1, 0, 0, 0, 0, 0]));
        },
    ),
    v6("exthdr mh", "mh type", Kind::Number(8), few, |p, v| {
        p.protocol = 135;
        p.upper.push((0, vec![59, 0, v as u8, 0, 0, 0, 0, 0]));
    }),
    v6("exthdr mh", "mh hdrlength", Kind::Number(8), few, |p, v| {
        p.protocol = 135;
        p.upper.push((0, vec![59, v as u8, 0, 0, 0, 0, 0, 0]));
    }),
];

/// Options of IPv4.
pub(super) const IP_OPTIONS: &[Field] = &[
    v4("ip option", "ip option rr", Kind::Presence, bit, |p, v| {
        if v == 1 {
            ip_option(p, &[7, 7, 4, 0, 0, 0, 0])
        }
    }),
    v4("ip option", "ip option lsrr", Kind::Presence, bit, |p, v| {
        if v == 1 {
            ip_option(p, &[131, 3, 4])
        }
    }),
    v4("ip option", "ip option ssrr", Kind::Presence, bit, |p, v| {
        if v == 1 {
            ip_option(p, &[137, 3, 4])
        }
    }),
    v4("ip option", "ip option ra", Kind::Presence, bit, |p, v| {
        if v == 1 {
            ip_option(p, &[148, 4, 0, 0])
        }
    }),
    v4("ip option", "ip option ra value", Kind::Number(16), few, |p, v| {
        ip_option(p, &[148, 4, 0, v as u8])
    }),
    v4("ip option", "ip option ra length", Kind::Number(8), few, |p, _| {
        ip_option(p, &[148, 4, 0, 0])
    }),
    v4(
        "ip option",
        "ip option rr type",
        Kind::Number(8),
        |d| near(d, &[7], 8),
        |p, _| {
            ip_option(p, &[7, 7, 4, 0, 0, 0, 0]);
        },
    ),
    v4(
        "ip option",
        "ip option rr ptr",
        Kind::Number(8),
        |d| near(d, &[4, 8], 8),
        |p, v| {
            ip_option(p, &[7, 7, v as u8, 0, 0, 0, 0]);
        },
    ),
];

/// Options of TCP.
pub(super) const TCP_OPTIONS: &[Field] = &[
    field("tcp option presence", "tcp option maxseg", Kind::Presence, bit, |p, v| {
        if v == 1 {
            size(p, 1460)
        }
    }),
    field("tcp option presence", "tcp option sack-perm", Kind::Presence, bit, |p, v| {
        if v == 1 {
            tcp_option(p, &[4, 2])
        }
    }),
    field("tcp option presence", "tcp option timestamp", Kind::Presence, bit, |p, v| {
        if v == 1 {
            stamp(p, 1, 0)
        }
    }),
    field("tcp option presence", "tcp option window", Kind::Presence, bit, |p, v| {
        if v == 1 {
            tcp_option(p, &[3, 3, 7])
        }
    }),
    field("tcp option presence", "tcp option sack", Kind::Presence, bit, |p, v| {
        if v == 1 {
            sack(p, 1, 2)
        }
    }),
    field("tcp option presence", "tcp option nop", Kind::Presence, bit, |p, v| {
        if v == 1 {
            tcp_option(p, &[1])
        }
    }),
    field("tcp option presence", "tcp option 30", Kind::Presence, bit, |p, v| {
        if v == 1 {
            tcp_option(p, &[30, 4, 0, 0])
        }
    }),
    field("tcp option presence", "tcp option 253", Kind::Presence, bit, |p, v| {
        if v == 1 {
            tcp_option(p, &[253, 4, 0, 0])
        }
    }),
    field("tcp option field", "tcp option maxseg size", Kind::Number(16), short, size),
    field(
        "tcp option field",
        "tcp option maxseg length",
        Kind::Number(8),
        |d| near(d, &[4], 8),
        |p, _| size(p, 1460),
    ),
    field("tcp option field", "tcp option window count", Kind::Number(8), few, |p, v| {
        tcp_option(p, &[3, 3, v as u8])
    }),
    field(
        "tcp option field",
        "tcp option sack-perm length",
        Kind::Number(8),
        |d| near(d, &[2], 8),
        |p, _| tcp_option(p, &[4, 2]),
    ),
    field("tcp option field", "tcp option timestamp tsval", Kind::Number(32), word, |p, v| {
        stamp(p, v, 0)
    }),
    field("tcp option field", "tcp option timestamp tsecr", Kind::Number(32), word, |p, v| {
        stamp(p, 7, v)
    }),
    field("tcp option field", "tcp option sack left", Kind::Number(32), word, |p, v| sack(p, v, 7)),
    field("tcp option field", "tcp option sack right", Kind::Number(32), word, |p, v| {
        sack(p, 7, v)
    }),
    field(
        "tcp option field",
        "tcp option sack length",
        Kind::Number(8),
        |d| near(d, &[10], 8),
        |p, _| sack(p, 7, 8),
    ),
    field("tcp option raw", "tcp option @2,16,16", Kind::Hex(16), short, size),
    field("tcp option raw", "tcp option @8,16,32", Kind::Hex(32), word, |p, v| stamp(p, v, 0)),
    field(
        "tcp option raw",
        "tcp option @30,0,8",
        Kind::Hex(8),
        |d| near(d, &[30], 8),
        |p, _| tcp_option(p, &[30, 4, 0, 0]),
    ),
];
