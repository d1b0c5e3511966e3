//! Matches of upper-layer headers other than TCP's and UDP's ports.

use super::super::{Draw, Piece};
use super::ports::both;

/// `low` or `low:high` of 32-bit numbers, and one of the ends.
fn spi(draw: &mut Draw) -> (String, u32) {
    let ends = draw.range(Draw::word);
    let ends = if draw.one_in(2) { (ends.0, ends.0) } else { ends };
    let text = if ends.0 == ends.1 { ends.0.to_string() } else { format!("{}:{}", ends.0, ends.1) };
    (text, if draw.one_in(2) { ends.0 } else { ends.1 })
}

pub(super) fn ah(draw: &mut Draw) -> Piece {
    let (text, value) = spi(draw);
    Piece::new(format!("{}--ahspi {text}", draw.bang()), move |p| {
        let mut header = vec![17, 4, 0, 0];
        header.extend(value.to_be_bytes());
        header.resize(24, 0);
        p.upper.push((0, header));
    })
}

/// IPv6: the header is one of the chain.
pub(super) fn ah6(draw: &mut Draw) -> Piece {
    let (text, value) = spi(draw);
    let mut options = String::new();
    if draw.one_in(2) {
        options += &format!("{}--ahspi {text}", draw.bang());
    }
    if draw.one_in(3) {
        options += &format!(" {}--ahlen {}", draw.bang(), draw.pick(&[8, 12, 16, 24]));
    }
    if draw.one_in(3) {
        options += " --ahres";
    }
    let words = draw.pick(&[1, 2, 4]);
    let reserved = draw.pick(&[0, 0, 1]);
    Piece::new(options.trim_start(), move |p| {
        let mut body = vec![words, 0, reserved];
        body.extend(value.to_be_bytes());
        body.resize(usize::from(words) * 4 + 7, 0);
        p.extensions.push((51, body));
    })
}

pub(super) fn esp(draw: &mut Draw) -> Piece {
    let (text, value) = spi(draw);
    Piece::new(format!("{}--espspi {text}", draw.bang()), move |p| {
        p.upper.push((0, [value.to_be_bytes(), [0; 4]].concat()));
    })
}

pub(super) fn ipcomp(draw: &mut Draw) -> Piece {
    let ends = draw.range(|draw| draw.port());
    let value = if draw.one_in(2) { ends.0 } else { ends.1 };
    let reserved = if draw.one_in(3) { " --compres" } else { "" };
    let text = format!("{}--ipcompspi {}:{}{reserved}", draw.bang(), ends.0, ends.1);
    let flags = draw.pick(&[0, 0, 1]);
    Piece::new(text, move |p| {
        let [high, low] = value.to_be_bytes();
        p.upper.push((0, vec![6, flags, high, low, 0, 0, 0, 0]));
    })
}

const CHUNKS: [(&str, u8); 8] = [
    ("DATA", 0),
    ("INIT", 1),
    ("INIT_ACK", 2),
    ("SACK", 3),
    ("ABORT", 6),
    ("SHUTDOWN_COMPLETE", 14),
    ("ASCONF", 193),
    ("FORWARD_TSN", 192),
];

pub(super) fn sctp(draw: &mut Draw) -> Piece {
    let (mut text, source, destination) = both(draw);
    let mut chunks = Vec::new();
    if draw.one_in(2) {
        let how = draw.pick(&["all", "any", "only"]);
        let mut list = Vec::new();
        for _ in 0..1 + draw.rng.usize(..3) {
            let (name, kind) = draw.pick(&CHUNKS);
            if list.iter().any(|(known, _): &(String, u8)| known.starts_with(name)) {
                continue;
            }
            let flags = match (kind, draw.rng.u8(..3)) {
                (0, 0) => ":Be",
                (0, 1) => ":uE",
                (6 | 14, 0) => ":T",
                (6 | 14, 1) => ":t",
                _ => "",
            };
            list.push((format!("{name}{flags}"), kind));
        }
        let names: Vec<&str> = list.iter().map(|(name, _)| name.as_str()).collect();
        text += &format!(" {}--chunk-types {how} {}", draw.bang(), names.join(","));
        chunks.extend(list.iter().map(|(_, kind)| *kind));
    }
    for _ in 0..draw.rng.u8(..3) {
        chunks.push(draw.pick(&CHUNKS).1);
    }
    let flags = draw.rng.u8(..8);
    let len = draw.pick(&[0_u8, 3, 4, 4, 5, 8, 16]);
    Piece::new(text.trim_start(), move |p| {
        p.ports.0 = source.unwrap_or(p.ports.0);
        p.ports.1 = destination.unwrap_or(p.ports.1);
        let mut at = 12;
        for kind in &chunks {
            let room = usize::from(len.max(4)).next_multiple_of(4);
            let mut chunk = vec![*kind, flags, 0, len];
            chunk.resize(room, 0x0e);
            p.upper.push((at, chunk));
            at += room;
        }
    })
}

const DCCP_TYPES: [&str; 10] = [
    "REQUEST", "RESPONSE", "DATA", "ACK", "DATAACK", "CLOSEREQ", "CLOSE", "RESET", "SYNC",
    "SYNCACK",
];

pub(super) fn dccp(draw: &mut Draw) -> Piece {
    let (mut text, source, destination) = both(draw);
    let kind = draw.rng.u8(..10);
    if draw.one_in(2) {
        let other = draw.pick(&["INVALID", "REQUEST", "SYNCACK", "DATA"]);
        let first = DCCP_TYPES[usize::from(kind)];
        let list = if other == first { first.to_owned() } else { format!("{first},{other}") };
        text += &format!(" {}--dccp-types {list}", draw.bang());
    }
    let option = draw.pick(&[1, 2, 32, 33, 44, 255]);
    if draw.one_in(2) {
        text += &format!(" {}--dccp-option {option}", draw.bang());
    }
    let words = draw.pick(&[3_u8, 4, 5, 6, 7, 2]);
    let extended = draw.rng.u8(..2);
    let body = draw.pick(&[[1, option, 0, 0], [option, 3, 9, 0], [33, 2, option, 4], [0; 4]]);
    Piece::new(text.trim_start(), move |p| {
        p.ports.0 = source.unwrap_or(p.ports.0);
        p.ports.1 = destination.unwrap_or(p.ports.1);
        p.upper.push((4, vec![words, 0, 0, 0, kind << 1 | extended, 0, 0, 0, 0, 0, 0, 0]));
        p.upper.push((16, [body, body, body].concat()));
    })
}

pub(super) fn tcpmss(draw: &mut Draw) -> Piece {
    let known = [0_u16, 1, 536, 1440, 1460, 65535];
    let (low, high) = draw.range(|draw| draw.pick(&known));
    let text = if low == high { low.to_string() } else { format!("{low}:{high}") };
    let mss = if draw.one_in(2) { low } else { high };
    let padded = draw.one_in(3);
    Piece::new(format!("{}--mss {text}", draw.bang()), move |p| {
        let [high, low] = mss.to_be_bytes();
        p.tcp_options = if padded { vec![1, 1] } else { Vec::new() };
        p.tcp_options.extend([2, 4, high, low]);
    })
}

pub(super) fn mh(draw: &mut Draw) -> Piece {
    let known = [0, 1, 2, 5, 7, 8, 255];
    let (low, high) = draw.range(|draw| draw.pick(&known));
    let text = if low == high { low.to_string() } else { format!("{low}:{high}") };
    let kind = if draw.one_in(2) { low } else { high };
    let next = draw.pick(&[59, 59, 59, 6]);
    let len = draw.pick(&[0, 1, 2, 9]);
    Piece::new(format!("{}--mh-type {text}", draw.bang()), move |p| {
        p.upper.push((0, vec![next, len, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    })
}
