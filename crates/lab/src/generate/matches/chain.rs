//! Matches of IPv6 extension headers.

use super::super::{Draw, Piece, v6};

/// A craft that adds an extension header.
fn with(text: String, kind: u8, body: Vec<u8>) -> Piece {
    Piece::new(text.trim_start(), move |p| p.extensions.push((kind, body.clone())))
}

pub(super) fn frag(draw: &mut Draw) -> Piece {
    let mut text = String::new();
    let (low, high) = draw.range(Draw::word);
    if draw.one_in(2) {
        text += &format!(" {}--fragid {low}:{high}", draw.bang());
    }
    if draw.one_in(5) {
        text += &format!(" {}--fraglen {}", draw.bang(), draw.pick(&[0, 8]));
    }
    if draw.one_in(5) {
        text += " --fragres";
    }
    text +=
        draw.pick(&["", " --fragfirst", " --fragmore", " --fraglast", " --fragfirst --fragmore"]);
    let offset = draw.pick(&[0_u16, 0, 8, 16, 0xfff8]) | draw.rng.u16(..8);
    let mut body = vec![draw.pick(&[0, 0, 3])];
    body.extend(offset.to_be_bytes());
    body.extend(low.to_be_bytes());
    with(text, 44, body)
}

pub(super) fn ipv6header(draw: &mut Draw) -> Piece {
    let names = [("hop", 0), ("dst", 60), ("route", 43), ("frag", 44), ("auth", 51), ("esp", 50)];
    let more = ["hop", "dst", "route", "frag", "auth", "esp", "none", "prot"];
    let (name, kind) = draw.pick(&names);
    let mut list = vec![name];
    for _ in 0..draw.rng.u8(..3) {
        let other = draw.pick(&more);
        if !list.contains(&other) {
            list.push(other);
        }
    }
    let soft = if draw.one_in(2) { " --soft" } else { "" };
    let text = format!("{}--header {}{soft}", draw.bang(), list.join(","));
    let body = v6::extension(draw, if kind == 50 { 60 } else { kind });
    with(text, kind, body)
}

pub(super) fn hbh(draw: &mut Draw) -> Piece {
    options_header(draw, "hbh", 0)
}

pub(super) fn dst(draw: &mut Draw) -> Piece {
    options_header(draw, "dst", 60)
}

fn options_header(draw: &mut Draw, name: &str, kind: u8) -> Piece {
    let mut text = String::new();
    if draw.one_in(2) {
        text += &format!(" {}--{name}-len {}", draw.bang(), draw.pick(&[8, 16, 24, 32]));
    }
    if draw.one_in(2) {
        let mut list = Vec::new();
        for _ in 0..1 + draw.rng.u8(..3) {
            let kind = draw.pick(&[0, 1, 5, 11, 30, 201]);
            let len = draw.pick(&["", "", ":0", ":1", ":2", ":4"]);
            list.push(format!("{kind}{}", if kind == 0 { "" } else { len }));
        }
        text += &format!(" --{name}-opts {}", list.join(","));
    }
    let body = v6::extension(draw, kind);
    with(text, kind, body)
}

pub(super) fn rt(draw: &mut Draw) -> Piece {
    let mut text = String::new();
    let kind = draw.pick(&[0, 0, 2, 4]);
    let zero = draw.one_in(3);
    if zero {
        text += " --rt-type 0";
    } else if draw.one_in(2) {
        text += &format!(" {}--rt-type {kind}", draw.bang());
    }
    if draw.one_in(2) {
        let (low, high) = draw.range(|draw| draw.rng.u8(..5));
        text += &format!(" {}--rt-segsleft {low}:{high}", draw.bang());
    }
    if draw.one_in(3) {
        text += &format!(" {}--rt-len {}", draw.bang(), draw.pick(&[8, 24, 40, 56]));
    }
    let mut body = v6::extension(draw, 43);
    if zero {
        body[1] = 0;
        if draw.one_in(3) {
            text += " --rt-0-res";
        }
        if draw.one_in(2) {
            let count = 1 + draw.rng.usize(..3);
            let mut addresses = Vec::new();
            body.truncate(7);
            body[0] = count as u8 * 2;
            for _ in 0..count {
                let address = draw.address();
                addresses.push(draw.text(&address));
                body.extend(address);
            }
            text += &format!(" --rt-0-addrs {}", addresses.join(","));
            if draw.one_in(2) {
                text += " --rt-0-not-strict";
            }
        }
    }
    with(text, 43, body)
}

pub(super) fn srh(draw: &mut Draw) -> Piece {
    let mut text = String::new();
    let count = draw.rng.u8(1..4);
    let left = draw.rng.u8(..=count);
    let segments: Vec<[u8; 16]> = (0..count).map(|_| draw.address()).collect();
    let numbers = [
        ("srh-next-hdr", draw.pick(&[17, 6, 59])),
        ("srh-hdr-len", count * 2),
        ("srh-segs-left", left),
        ("srh-last-entry", count - 1),
    ];
    for (name, value) in numbers {
        if draw.one_in(3) {
            let value = if draw.one_in(3) { draw.rng.u8(..8) } else { value };
            let how = draw.pick(&["-eq", "-gt", "-lt"]);
            let how = if name == "srh-next-hdr" { "" } else { how };
            text += &format!(" {}--{name}{how} {value}", draw.bang());
        }
    }
    if draw.one_in(4) {
        text += &format!(" {}--srh-tag {}", draw.bang(), draw.pick(&[0, 1, 65535]));
    }
    for name in ["srh-psid", "srh-nsid", "srh-lsid"] {
        if draw.one_in(5) {
            let segment = draw.pick(&segments);
            let bits = draw.pick(&["", "/64", "/32"]);
            text += &format!(" {}--{name} {}{bits}", draw.bang(), draw.text(&segment));
        }
    }
    let mut body = vec![count * 2, 4, left, count - 1, 0, 0, draw.pick(&[0, 1])];
    body.extend(segments.as_flattened());
    with(text, 43, body)
}
