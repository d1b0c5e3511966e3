//! Answers to what left: what its receiver would send, and errors of a router beyond.

use packet::{Checksums, L4, Link, Packet};
use rules::model::Family;

use super::Draw;
use super::draft::Draft;

/// An answer to a bare packet, or an error that quotes it, as a draft.
pub(crate) fn draft(draw: &mut Draw, left: &[u8]) -> Option<Draft> {
    let (mut bytes, len) = (left.to_vec(), left.len());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let L4::Upper(upper) = packet.headers().l4 else { return None };
    let is_v6 = left.first()? >> 4 == 6;
    draw.scene.family = if is_v6 { Family::Ipv6 } else { Family::Ipv4 };
    let mut ends = [[0; 16]; 2];
    let (start, size) = if is_v6 { (8, 16) } else { (12, 4) };
    for (at, end) in ends.iter_mut().enumerate() {
        end[..size].copy_from_slice(left.get(start + at * size..)?.get(..size)?);
    }
    let [source, destination] = ends;
    let body = left.get(upper.offset..)?;
    if draw.one_in(6) {
        return Some(error(draw, source, left));
    }
    let mut draft = Draft::new(draw.scene, destination, source);
    draft.protocol = upper.protocol;
    draft.payload = vec![0x62; draw.pick(&[0, 4, 9])];
    match upper.protocol {
        1 | 58 => {
            let kind = match body.first()? {
                8 => 0,
                128 => 129,
                other => *other,
            };
            draft.icmp = (kind, 0);
            draft.upper.push((4, body.get(4..8)?.to_vec()));
        }
        _ => {
            let port = |at| Some(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]));
            draft.ports = (port(2).unwrap_or(0), port(0).unwrap_or(0));
            draft.flags = draw.pick(&[0x12, 0x12, 0x10, 0x18, 0x11, 0x04]);
        }
    }
    Some(draft)
}

/// That a packet did not get through.
fn error(draw: &mut Draw, source: [u8; 16], left: &[u8]) -> Draft {
    let router = draw.address();
    let mut draft = Draft::new(draw.scene, router, source);
    // None that tells a path's size, which the host would keep.
    (draft.protocol, draft.icmp) = match draw.ipv6() {
        true => (58, (draw.pick(&[1, 1, 3]), draw.pick(&[0, 1, 3, 4]))),
        false => (1, (draw.pick(&[3, 3, 11]), draw.pick(&[0, 1, 3, 10]))),
    };
    let quoted = if draw.one_in(4) { 28 } else { 200 };
    draft.payload = left[..left.len().min(quoted)].to_vec();
    draft
}
