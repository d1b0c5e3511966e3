//! PPPoE sessions: a header with the session and a length, then a PPP packet that begins with its protocol.
//!
//! Contract: of PPP only what carries IP as it is. A packet that PPP compressed or split is none of that.
//!
//! Source: RFC 2516, section 4; RFC 1661, section 6.5 (a protocol below 256 may be written in one byte, which is odd).

use std::ops::Range;

use crate::{ethernet, ethertype, vlan};

/// Length in bytes of the header, counted from the end of the EtherType that announces it.
pub const HEADER_LEN: usize = 6;
/// Length in bytes of what follows the header, big endian.
pub const LENGTH: Range<usize> = 4..6;

/// Version 1, type 1, and the code of a session's data.
const SESSION: [u8; 2] = [0x11, 0];
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// The EtherType that stands for what a session carries, if that is IP.
#[must_use]
pub fn ethertype_of(header: &[u8; HEADER_LEN], protocol: u16) -> Option<u16> {
    match protocol {
        _ if !header.starts_with(&SESSION) => None,
        PPP_IPV4 => Some(ethertype::IPV4),
        PPP_IPV6 => Some(ethertype::IPV6),
        _ => None,
    }
}

/// Writes the length of what a frame carries where its link header, `network` bytes long, holds it: in that of PPPoE,
/// or in place of the EtherType. Other link headers hold none.
pub fn set_length(frame: &mut [u8], network: usize) {
    let end = frame.len();
    let mut at = ethernet::HEADER_LEN;
    while let Some(&[high, low]) = at.checked_sub(2).and_then(|kind| frame.get(kind..at)) {
        let kind = u16::from_be_bytes([high, low]);
        let (field, start) = match kind {
            _ if at > network => return,
            kind if vlan::is_tag(kind) => {
                at += vlan::HEADER_LEN;
                continue;
            }
            ethertype::PPPOE => (at + LENGTH.start, at + HEADER_LEN),
            kind if kind < ethertype::MIN => (at - 2, at),
            _ => return,
        };
        let len = u16::try_from(end.saturating_sub(start)).unwrap_or(u16::MAX);
        if let Some(field) = frame.get_mut(field..field + 2) {
            field.copy_from_slice(&len.to_be_bytes());
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(rest: &[u8]) -> Vec<u8> {
        [&[2; 12], rest].concat()
    }

    #[test]
    fn a_length_is_written_where_the_link_header_holds_one() {
        let cases: [(&[u8], &[u8]); 5] = [
            (
                &[0x88, 0x64, 0x11, 0, 0, 1, 9, 9, 0, 0x21],
                &[0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0, 0x21],
            ),
            (
                &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 9, 9, 0x21],
                &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 4, 0x21],
            ),
            (&[1, 1, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &[0, 11, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
            (&[8, 0], &[8, 0]),
            (&[0x81, 0, 0, 5, 8, 0], &[0x81, 0, 0, 5, 8, 0]),
        ];
        for (header, expected) in cases {
            let mut bytes = [frame(header), vec![7; 3]].concat();
            set_length(&mut bytes, 12 + header.len());
            assert_eq!(bytes, [frame(expected), vec![7; 3]].concat());
        }
    }

    #[test]
    fn a_frame_that_ends_early_is_left_alone() {
        for len in 0..20 {
            let mut bytes = frame(&[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0])[..len].to_vec();
            let before = bytes.clone();
            set_length(&mut bytes, 26);
            assert_eq!(bytes, before);
        }
    }
}
