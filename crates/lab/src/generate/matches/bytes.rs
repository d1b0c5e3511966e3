//! Matches of any byte of the packet.

use super::super::{Draw, Piece};

pub(super) fn u32(draw: &mut Draw) -> Piece {
    let mut tests = Vec::new();
    for _ in 0..1 + draw.rng.u8(..3) {
        let mut place = draw.pick(&[0, 4, 6, 8, 12, 16, 20, 40, 44, 1400]).to_string();
        for _ in 0..draw.rng.u8(..3) {
            place += &match draw.rng.u8(..5) {
                0 => format!("&{:#x}", draw.word()),
                1 => format!(">>{}", draw.rng.u8(..32)),
                2 => format!("<<{}", draw.rng.u8(..32)),
                3 => "&0x3c@4".to_owned(),
                _ => format!("@{}", draw.pick(&[0, 4, 8, 100_000])),
            };
        }
        let mut ranges = Vec::new();
        for _ in 0..1 + draw.rng.u8(..3) {
            let (low, high) = draw.range(Draw::word);
            ranges.push(if draw.one_in(2) {
                format!("{low:#x}")
            } else {
                format!("{low:#x}:{high:#x}")
            });
        }
        tests.push(format!("{place}={}", ranges.join(",")));
    }
    Piece::plain(format!("{}--u32 \"{}\"", draw.bang(), tests.join("&&")))
}

pub(super) fn string(draw: &mut Draw) -> Piece {
    let needle = draw.pick(&["GET /", "a", "aaab", "abcABCabc", "Host", "aXa", "zz"]);
    let algo = draw.pick(&["bm", "kmp"]);
    let mut text = format!("{}--string \"{needle}\" --algo {algo}", draw.bang());
    let from = draw.pick(&[0, 0, 1, 20, 28, 29, 40, 41, 48, 65534]);
    if from > 0 {
        text += &format!(" --from {from}");
    }
    let to = draw.pick(&[1, 28, 29, 30, 33, 34, 48, 53, 60, 65535]);
    if to >= from && draw.one_in(2) {
        text += &format!(" --to {to}");
    }
    let icase = draw.one_in(3);
    if icase {
        text += " --icase";
    }
    let before = draw.pick(&[0, 1, 3, 5, 40]);
    Piece::new(text, move |p| {
        p.payload = vec![b'a'; before];
        let other = icase && before % 2 == 1;
        let bytes = if other { needle.to_ascii_lowercase() } else { needle.to_owned() };
        p.payload.extend(bytes.as_bytes());
        p.payload.extend(b"ab");
    })
}

/// Classic BPF programs: loads of every size and mode, arithmetic, forward jumps, returns.
pub(super) fn bpf(draw: &mut Draw) -> Piece {
    let body = 1 + draw.rng.usize(..8);
    let mut program = Vec::new();
    for index in 0..body {
        let left = (body - index) as u8;
        let at = draw.pick(&[0_u32, 1, 6, 8, 9, 12, 16, 20, 22, 40, 60, 1500]);
        let word = draw.word();
        program.push(match draw.rng.u8(..14) {
            0 => (0x20, 0, 0, at),
            1 => (0x28, 0, 0, at),
            2 => (0x30, 0, 0, at),
            3 => (0x50, 0, 0, at),
            4 => (0xb1, 0, 0, at),
            5 => (0x80, 0, 0, 0),
            6 => (draw.pick(&[0x04, 0x14, 0x24, 0x44, 0x54, 0xa4]), 0, 0, word),
            7 => (draw.pick(&[0x34, 0x94]), 0, 0, word | 1),
            8 => (draw.pick(&[0x64, 0x74]), 0, 0, draw.rng.u32(..32)),
            9 => (draw.pick(&[0x07, 0x87]), 0, 0, 0),
            10 => (draw.pick(&[0x0c, 0x1c, 0x3c, 0x5c, 0x9c]), 0, 0, 0),
            11 => (0x00, 0, 0, word),
            _ => {
                let code = draw.pick(&[0x15, 0x25, 0x35, 0x45]);
                (code, draw.rng.u8(..left), draw.rng.u8(..left), word)
            }
        });
    }
    program.push((0x06, 0, 0, draw.pick(&[0, 1, 65535])));
    program.push((0x16, 0, 0, 0));
    let text: Vec<String> =
        program.iter().map(|(code, jt, jf, k)| format!("{code} {jt} {jf} {k}")).collect();
    Piece::plain(format!("--bytecode \"{},{}\"", program.len(), text.join(",")))
}
