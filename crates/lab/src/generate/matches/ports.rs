//! Matches of ports, flags and ICMP types.

use super::super::{Draw, Piece};

fn range_text(low: u16, high: u16) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

/// `--sport` and `--dport`, one of them or both or none; with a chosen port of each.
pub(super) fn both(draw: &mut Draw) -> (String, Option<u16>, Option<u16>) {
    let mut text = String::new();
    let mut chosen = [None, None];
    for (index, name) in ["--sport", "--dport"].into_iter().enumerate() {
        if draw.one_in(2) {
            let ends = if draw.one_in(2) {
                draw.range(Draw::port)
            } else {
                let port = draw.port();
                (port, port)
            };
            text += &format!(" {}{name} {}", draw.bang(), range_text(ends.0, ends.1));
            chosen[index] = Some(if draw.one_in(2) { ends.0 } else { ends.1 });
        }
    }
    (text, chosen[0], chosen[1])
}

pub(super) fn udp(draw: &mut Draw) -> Piece {
    let (text, source, destination) = both(draw);
    Piece::new(text.trim_start(), move |p| {
        p.ports.0 = source.unwrap_or(p.ports.0);
        p.ports.1 = destination.unwrap_or(p.ports.1);
    })
}

pub(super) fn multiport(draw: &mut Draw) -> Piece {
    let name = draw.pick(&["--sports", "--dports", "--ports"]);
    let mut slots = 1 + draw.rng.usize(..15);
    let mut list = Vec::new();
    while slots > 0 {
        let wide = slots > 1 && draw.one_in(4);
        let (low, high) = draw.range(Draw::port);
        if wide && low < high {
            list.push((low, high));
            slots -= 2;
        } else {
            list.push((low, low));
            slots -= 1;
        }
    }
    let (low, high) = draw.pick(&list);
    let port = if draw.one_in(2) { low } else { high };
    let text: Vec<String> = list.into_iter().map(|(low, high)| range_text(low, high)).collect();
    let destination = name == "--dports" || name == "--ports" && draw.one_in(2);
    Piece::new(format!("{}{name} {}", draw.bang(), text.join(",")), move |p| {
        if destination {
            p.ports.1 = port;
        } else {
            p.ports.0 = port;
        }
    })
}

const FLAG_NAMES: [&str; 6] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];

fn flag_list(bits: u8) -> String {
    let names: Vec<&str> =
        (0..6).filter(|at| bits >> at & 1 == 1).map(|at| FLAG_NAMES[at]).collect();
    if names.is_empty() { "NONE".to_owned() } else { names.join(",") }
}

pub(super) fn tcp(draw: &mut Draw) -> Piece {
    let (mut text, source, destination) = both(draw);
    let mut flags = None;
    match draw.rng.u8(..4) {
        0 => {
            let bang = draw.bang();
            text += &format!(" {bang}--syn");
            flags = Some((0x17, 0x02));
        }
        1 => {
            let (mask, set) = (draw.rng.u8(..64), draw.rng.u8(..64));
            let set = if draw.one_in(4) { set } else { set & mask };
            text += &format!(" {}--tcp-flags {} {}", draw.bang(), flag_list(mask), flag_list(set));
            flags = Some((mask, set));
        }
        _ => {}
    }
    let mut option = None;
    if draw.one_in(3) {
        let kind = draw.pick(&[1, 2, 3, 4, 8, 30, 254, 255]);
        text += &format!(" {}--tcp-option {kind}", draw.bang());
        let len = draw.pick(&[0_u8, 1, 2, 2, 4, 10]);
        option = Some(vec![kind, len, 1, 1, 0, 0, 0, 0, 0, 0]);
    }
    Piece::new(text.trim_start(), move |p| {
        p.ports.0 = source.unwrap_or(p.ports.0);
        p.ports.1 = destination.unwrap_or(p.ports.1);
        if let Some((mask, set)) = flags {
            p.flags = p.flags & !mask | set;
        }
        if let Some(option) = &option
            && p.tcp_options.len() < 28
        {
            p.tcp_options.extend(option);
        }
    })
}

pub(super) fn icmp(draw: &mut Draw) -> Piece {
    icmp_of(draw, "--icmp-type", &[0, 3, 5, 8, 11, 12, 255])
}

pub(super) fn icmp6(draw: &mut Draw) -> Piece {
    icmp_of(draw, "--icmpv6-type", &[1, 2, 3, 4, 128, 129, 135, 255])
}

fn icmp_of(draw: &mut Draw, name: &str, known: &[u8]) -> Piece {
    let kind = if draw.one_in(4) { draw.byte() } else { draw.pick(known) };
    let code = draw.pick(&[0, 1, 3, 4, 13, 255]);
    let text = if draw.one_in(2) { kind.to_string() } else { format!("{kind}/{code}") };
    Piece::new(format!("{}{name} {text}", draw.bang()), move |p| p.icmp = (kind, code))
}
