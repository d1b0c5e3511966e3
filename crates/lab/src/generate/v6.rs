//! What only IPv6 has to draw: extension headers.

use super::Draw;

/// An extension header of a kind: its bytes without the next-header byte, length byte first.
pub(super) fn extension(draw: &mut Draw, kind: u8) -> Vec<u8> {
    let mut body = match kind {
        0 | 60 => options(draw),
        43 => routing(draw),
        44 => vec![0, 0, draw.pick(&[0, 0, 0, 1]), 0, 0, 0, draw.rng.u8(..4)],
        51 => authentication(draw),
        _ => vec![0; 7],
    };
    if draw.one_in(12) {
        body[0] = draw.byte();
    }
    body
}

/// Padding and unknown options that are to be skipped, to a multiple of 8.
fn options(draw: &mut Draw) -> Vec<u8> {
    let mut options = vec![0];
    for _ in 0..draw.rng.u8(..4) {
        let kind = draw.pick(&[0, 1, 5, 7, 0x0b, 0x1e, 0x31, 0x3e, 0x3f, 4, 0xc9, 0x26]);
        let len = match kind {
            0 => {
                options.push(0);
                continue;
            }
            5 => 2,
            7 => draw.pick(&[8, 12, 32]),
            _ => draw.pick(&[0, 1, 2, 4, 8, 16]),
        };
        options.extend([kind, len]);
        let fill = if kind == 1 { 0 } else { draw.rng.u8(..) };
        options.extend(std::iter::repeat_n(fill, usize::from(len)));
    }
    // Room to the next multiple of 8, the next-header byte being one of them.
    let room = (options.len() + 1).next_multiple_of(8) - options.len() - 1;
    match room {
        0 => {}
        1 => options.push(0),
        _ => {
            options.extend([1, room as u8 - 2]);
            options.extend(std::iter::repeat_n(0, room - 2));
        }
    }
    options[0] = (options.len() / 8) as u8;
    options
}

/// Routing headers of type 0, 2, 3 and 4 with their addresses.
fn routing(draw: &mut Draw) -> Vec<u8> {
    let kind = draw.pick(&[0, 0, 2, 3, 4, 4, 255]);
    let count = draw.rng.u8(..4);
    let mut body = vec![count * 2, kind, draw.pick(&[0, 1, 2, count]), 0, 0, 0, 0];
    if kind == 4 {
        body[3] = count.saturating_sub(1);
        body[4] = draw.pick(&[0, 8, 0x20, 0xff]);
        body[6] = draw.pick(&[0, 1, 7]);
    }
    for _ in 0..count {
        body.extend(draw.address());
    }
    body
}

fn authentication(draw: &mut Draw) -> Vec<u8> {
    let words = draw.pick(&[1, 2, 4, 4, 6]);
    let mut body = vec![words, 0, 0];
    body.extend(draw.word().to_be_bytes());
    body.extend(draw.word().to_be_bytes());
    body.resize(usize::from(words) * 4 + 7, 0xab);
    body
}
