//! The tests that need no extension: `-s -d -i -o -p -f`.

use super::super::{Draw, Piece};
use super::protocols;

/// `-p`, mostly without `!`, and mostly one that some match is for.
pub(crate) fn protocol(draw: &mut Draw, seldom: bool) -> (Option<u8>, Option<Piece>) {
    if draw.one_in(if seldom { 2 } else { 5 }) {
        return (None, None);
    }
    let known = protocols(draw.scene.family);
    let number = if draw.one_in(12) { draw.rng.u8(1..) } else { draw.pick(&known) };
    let inverted = draw.one_in(10);
    let piece = Piece::new(format!("{}-p {number}", if inverted { "! " } else { "" }), move |p| {
        p.protocol = if inverted { number ^ 1 } else { number };
    });
    ((!inverted).then_some(number), Some(piece))
}

/// One of the other tests, unless the rule has it already.
pub(crate) fn draw(draw: &mut Draw, have: &[Piece]) -> Option<Piece> {
    let kinds: &[&str] = match (draw.ipv6(), draw.forward()) {
        (false, false) => &["-s", "-s", "-d", "-d", "-i", "-f"],
        (false, true) => &["-s", "-d", "-i", "-o", "-f"],
        (true, false) => &["-s", "-s", "-d", "-d", "-i"],
        (true, true) => &["-s", "-d", "-i", "-o"],
    };
    let kind = draw.pick(kinds);
    if have.iter().any(|piece| piece.text.trim_start_matches("! ").starts_with(kind)) {
        return None;
    }
    Some(match kind {
        "-s" | "-d" => address(draw, kind),
        "-f" => fragment(draw),
        _ => interface(draw, kind),
    })
}

fn address(draw: &mut Draw, option: &'static str) -> Piece {
    let addr = draw.address();
    let bang = draw.bang();
    let bits: u32 = if draw.ipv6() {
        draw.pick(&[128, 128, 127, 65, 64, 63, 48, 32, 3, 1])
    } else {
        draw.pick(&[32, 32, 31, 25, 24, 23, 16, 8, 1])
    };
    let odd = draw.one_in(10);
    let mask = if odd { odd_mask(draw) } else { bits.to_string() };
    let text = format!("{bang}{option} {}/{mask}", draw.text(&addr));
    Piece::new(text, move |p| match option {
        "-s" => p.source = addr,
        _ => p.destination = addr,
    })
}

/// A mask with holes.
fn odd_mask(draw: &mut Draw) -> String {
    if draw.ipv6() {
        draw.pick(&["ffff::ffff", "::1", "ffff:ffff::ff00"]).to_owned()
    } else {
        draw.pick(&["255.0.255.0", "0.0.0.255", "128.0.0.1", "255.255.0.254"]).to_owned()
    }
}

fn fragment(draw: &mut Draw) -> Piece {
    let bang = draw.bang();
    let later = bang.is_empty();
    let offset = draw.pick(&[1, 2, 3, 185, 0x1fff]);
    Piece::new(format!("{bang}-f"), move |p| p.fragment = if later { 0x2000 | offset } else { 0 })
}

fn interface(draw: &mut Draw, option: &'static str) -> Piece {
    let names: &[&str] = match (draw.ethernet(), option) {
        (false, "-i") => &["t0", "t+", "t1", "lo", "t", "t0+"],
        (false, _) => &["t1", "t+", "t0", "t11"],
        (true, "-i") => &["r0", "r0+", "r00", "r+", "r0++", "r1", "s0"],
        (true, _) => &["r1", "r+", "r0", "d0"],
    };
    let name = draw.pick(names);
    Piece::plain(format!("{}{option} {name}", draw.bang()))
}
