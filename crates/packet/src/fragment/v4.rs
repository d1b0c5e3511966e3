//! IPv4: every fragment has the packet's header; options that are not to be copied become no operation after the first.

use super::frames::{Cut, Frames};
use super::sizes::Sizes;
use crate::ipv4::{self, DONT_FRAGMENT, MORE_FRAGMENTS, OFFSET_MASK};
use crate::{checksum, field};

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// Bit of an option's kind: it stands in every fragment.
const COPIED: u8 = 0x80;

pub(super) fn cut(
    frame: &[u8],
    network: usize,
    header_len: usize,
    cut: &Cut<'_>,
    to: &mut Frames,
) -> bool {
    let Some((head, payload)) = frame.split_at_checked(network + header_len) else { return false };
    let space = cut.most.saturating_sub(header_len);
    let Some(sizes) = Sizes::new(payload.len(), space, cut.pieces) else { return false };
    let flag = if cut.dont_fragment && sizes.kept.is_none() { DONT_FRAGMENT } else { 0 };
    // What is cut may be a fragment itself.
    let of_packet = field::be16(head, network + ipv4::FRAGMENT.start..network + ipv4::FRAGMENT.end);
    for range in sizes {
        let more =
            if range.end < payload.len() { MORE_FRAGMENTS } else { of_packet & MORE_FRAGMENTS };
        let offset = (of_packet & OFFSET_MASK) + (range.start / 8) as u16;
        let fragment = to.push(&[head, payload.get(range.clone()).unwrap_or_default()]);
        let header = fragment.get_mut(network..network + header_len).unwrap_or_default();
        put(header, ipv4::TOTAL_LEN.start, (header_len + range.len()) as u16);
        put(header, ipv4::FRAGMENT.start, flag | more | offset);
        // A later fragment has none that stand in the first one alone.
        if range.start > 0 && of_packet & OFFSET_MASK == 0 {
            blank(header.get_mut(ipv4::MIN_HEADER_LEN..).unwrap_or_default());
        }
        put(header, ipv4::CHECKSUM.start, 0);
        let sum = !checksum::sum(header);
        put(header, ipv4::CHECKSUM.start, sum);
    }
    true
}

fn put(header: &mut [u8], at: usize, word: u16) {
    if let Some(place) = header.get_mut(at..at + 2) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

/// Options that only the first fragment has become no operation, as far as they can be read.
fn blank(mut options: &mut [u8]) {
    while let [kind, ..] = options {
        let len = match *kind {
            END => return,
            NO_OPERATION => 1,
            _ => match options.get(1) {
                Some(len) if *len >= 2 => usize::from(*len),
                _ => return,
            },
        };
        let is_copied = options.first().is_some_and(|kind| kind & COPIED != 0);
        let Some((option, rest)) = options.split_at_mut_checked(len) else { return };
        if !is_copied {
            option.fill(NO_OPERATION);
        }
        options = rest;
    }
}
