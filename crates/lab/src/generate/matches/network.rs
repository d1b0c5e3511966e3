//! Matches of the network header and of what the stack knows about the packet.

use super::super::draft::Draft;
use super::super::{Draw, Piece};

fn range_text<T: PartialEq + std::fmt::Display>((low, high): (T, T)) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

pub(super) fn length(draw: &mut Draw) -> Piece {
    let known = [0, 20, 28, 39, 40, 41, 48, 60, 61, 100, 576, 1500, 65535];
    let ends = draw.range(|draw| draw.pick(&known));
    let len = usize::from(if draw.one_in(2) { ends.0 } else { ends.1 });
    Piece::new(format!("{}--length {}", draw.bang(), range_text::<u16>(ends)), move |p| {
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

pub(super) fn pkttype(draw: &mut Draw) -> Piece {
    let (name, mac) = draw.pick(&[
        ("unicast", crate::scene::NEAR_MAC),
        ("broadcast", [0xff; 6]),
        ("multicast", [1, 0, 0x5e, 0, 0, 1]),
    ]);
    Piece::new(format!("{}--pkt-type {name}", draw.bang()), move |p| p.macs[0] = mac)
}

pub(super) fn addrtype(draw: &mut Draw) -> Piece {
    let types = ["UNSPEC", "UNICAST", "LOCAL", "BROADCAST", "MULTICAST", "ANYCAST"];
    let usual = if draw.ipv6() { &types[1..3] } else { &types[..] };
    let mut text = String::new();
    for name in ["--src-type", "--dst-type"] {
        if draw.one_in(2) || text.is_empty() && name == "--dst-type" {
            let first = draw.pick(usual);
            let second = draw.pick(usual);
            let list = if draw.one_in(3) { format!("{first},{second}") } else { first.to_owned() };
            text += &format!(" {}{name} {list}", draw.bang());
        }
    }
    Piece::plain(text.trim_start())
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
