//! Matches of the network header and of what the stack knows about the packet.

use super::super::draft::Draft;
use super::super::{Draw, Piece};

fn range_text<T: PartialEq + std::fmt::Display>(low: T, high: T) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

pub(super) fn length(draw: &mut Draw) -> Piece {
    let known = [0, 20, 28, 39, 40, 41, 48, 60, 61, 100, 576, 1500, 65535];
    let ends = draw.range(|draw| draw.pick(&known));
    let len = usize::from(if draw.one_in(2) { ends.0 } else { ends.1 });
    Piece::new(format!("{}--length {}", draw.bang(), range_text::<u16>(ends.0, ends.1)), move |p| {
        if (40..=1500).contains(&len) {
            p.total_len = Some(len);
        }
    })
}

fn hops(draw: &mut Draw, name: &str) -> Piece {
    let value = if draw.one_in(2) { draw.pick(&[1, 2, 63, 64, 65]) } else { draw.byte() };
    // On FORWARD the rules see one less than was sent.
    let shift = u8::from(draw.forward());
    let (test, craft) = match draw.rng.u8(..4) {
        0 => (format!("--{name}-lt {value}"), value.wrapping_sub(1)),
        1 => (format!("--{name}-gt {value}"), value.wrapping_add(1)),
        _ => (format!("{}--{name}-eq {value}", draw.bang()), value),
    };
    let ttl = craft.wrapping_add(shift);
    Piece::new(test, move |p| p.ttl = ttl)
}

pub(super) fn ttl(draw: &mut Draw) -> Piece {
    hops(draw, "ttl")
}

pub(super) fn hl(draw: &mut Draw) -> Piece {
    hops(draw, "hl")
}

pub(super) fn tos(draw: &mut Draw) -> Piece {
    let (value, mask) = (draw.byte(), draw.byte());
    let text = if draw.one_in(2) { format!("{value:#x}") } else { format!("{value:#x}/{mask:#x}") };
    Piece::new(format!("{}--tos {text}", draw.bang()), move |p| p.tos = value)
}

pub(super) fn dscp(draw: &mut Draw) -> Piece {
    let value = draw.pick(&[0, 1, 8, 10, 46, 62, 63]);
    Piece::new(format!("{}--dscp {value:#x}", draw.bang()), move |p| {
        p.tos = value << 2 | p.tos & 3;
    })
}

pub(super) fn ecn(draw: &mut Draw) -> Piece {
    let bits = draw.rng.u8(..4);
    if draw.protocol != Some(6) || draw.one_in(2) {
        return Piece::new(format!("{}--ecn-ip-ect {bits}", draw.bang()), move |p| {
            p.tos = p.tos & !3 | bits;
        });
    }
    let (name, flag) =
        if draw.one_in(2) { ("--ecn-tcp-cwr", 0x80) } else { ("--ecn-tcp-ece", 0x40) };
    let bang = draw.bang();
    let set = bang.is_empty();
    Piece::new(format!("{bang}{name}"), move |p| {
        p.flags = if set { p.flags | flag } else { p.flags & !flag };
    })
}

/// No packet here comes by a bridge: `!` alone tells. Scene `bridge` of the lab of real programs has ports.
pub(super) fn physdev(draw: &mut Draw) -> Piece {
    let options = [
        "--physdev-is-in",
        "--physdev-in r0",
        "--physdev-in r+",
        "--physdev-is-out",
        "--physdev-out r1",
        "--physdev-is-bridged",
    ];
    let first = draw.rng.usize(..options.len());
    let second = draw.rng.usize(..options.len());
    let mut text = format!("{}{}", draw.bang(), options[first]);
    let kind = |option: &str| option.split(' ').next().unwrap_or_default().to_owned();
    if kind(options[first]) != kind(options[second]) {
        text.push_str(&format!(" {}{}", draw.bang(), options[second]));
    }
    Piece::plain(text)
}

pub(super) fn pkttype(draw: &mut Draw) -> Piece {
    let (name, mac) = draw.pick(&[
        ("unicast", crate::scene::NEAR_MAC),
        ("broadcast", [0xff; 6]),
        ("multicast", [1, 0, 0x5e, 0, 0, 1]),
    ]);
    Piece::new(format!("{}--pkt-type {name}", draw.bang()), move |p| p.macs[0] = mac)
}

/// Types, and an address of each that the oracle's namespace knows.
const TYPES_V4: [(&str, [u8; 4]); 6] = [
    ("UNSPEC", [0, 0, 0, 0]),
    ("UNICAST", [198, 51, 100, 1]),
    ("LOCAL", [10, 255, 0, 1]),
    ("BROADCAST", [10, 255, 0, 255]),
    ("MULTICAST", [224, 0, 0, 1]),
    ("ANYCAST", [127, 0, 0, 1]),
];

const TYPES_V6: [(&str, [u8; 16]); 6] = [
    ("UNSPEC", [0; 16]),
    ("UNICAST", [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ("LOCAL", [0xfd, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ("MULTICAST", [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ("ANYCAST", [0xfd, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ("UNREACHABLE", [0xfd, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]),
];

pub(super) fn addrtype(draw: &mut Draw) -> Piece {
    let mut text = String::new();
    let mut chosen = [None, None];
    for (index, name) in ["--src-type", "--dst-type"].into_iter().enumerate() {
        if draw.one_in(2) || text.is_empty() && index == 1 {
            let (first, address) = address_type(draw);
            let (second, _) = address_type(draw);
            let list = if draw.one_in(3) { format!("{first},{second}") } else { first.to_owned() };
            text += &format!(" {}{name} {list}", draw.bang());
            chosen[index] = Some(address);
        }
    }
    if !draw.ipv6() && draw.one_in(4) {
        text += " --limit-iface-in";
    }
    let [source, destination] = chosen;
    Piece::new(text.trim_start(), move |p| {
        p.source = source.unwrap_or(p.source);
        p.destination = destination.unwrap_or(p.destination);
    })
}

fn address_type(draw: &mut Draw) -> (&'static str, [u8; 16]) {
    if draw.ipv6() {
        return draw.pick(&TYPES_V6);
    }
    let (name, addr) = draw.pick(&TYPES_V4);
    let mut address = [0; 16];
    address[..4].copy_from_slice(&addr);
    (name, address)
}

/// The interface identifier of the sender's Ethernet address.
pub(super) fn eui64(_: &mut Draw) -> Piece {
    Piece::new("", |p: &mut Draft| {
        let mac = p.macs[1];
        p.source[8..].copy_from_slice(&[
            mac[0] ^ 2,
            mac[1],
            mac[2],
            0xff,
            0xfe,
            mac[3],
            mac[4],
            mac[5],
        ]);
    })
}

pub(super) fn policy(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["--dir in --pol none", "--dir in --pol none"]))
}

pub(super) fn statistic(draw: &mut Draw) -> Piece {
    let every = draw.pick(&[1, 2, 3, 7, 10]);
    let packet = draw.rng.u32(..every);
    Piece::plain(format!("--mode nth {}--every {every} --packet {packet}", draw.bang()))
}
