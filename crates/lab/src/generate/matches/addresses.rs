//! Matches of addresses.

use super::super::{Draw, Piece};

pub(super) fn iprange(draw: &mut Draw) -> Piece {
    let which = draw.rng.u8(..3);
    let mut text = String::new();
    let mut ends = [None, None];
    for (index, name) in ["--src-range", "--dst-range"].into_iter().enumerate() {
        if which == 2 || usize::from(which) == index {
            let (low, high) = draw.range(Draw::address);
            let bang = draw.bang();
            text += &format!(" {bang}{name} {}-{}", draw.text(&low), draw.text(&high));
            ends[index] = Some(if draw.one_in(2) { low } else { high });
        }
    }
    let [source, destination] = ends;
    Piece::new(text.trim_start(), move |p| {
        p.source = source.unwrap_or(p.source);
        p.destination = destination.unwrap_or(p.destination);
    })
}

pub(super) fn mac(draw: &mut Draw) -> Piece {
    let mac = [2, 0, 0, 0, 0, draw.pick(&[1, 1, 2, 9])];
    let text = mac.map(|byte| format!("{byte:02x}")).join(":");
    Piece::new(format!("{}--mac-source {text}", draw.bang()), move |p| p.macs[1] = mac)
}
