//! IPv6: a fragment header stands after the headers that every router reads.

use super::frames::{Cut, Frames};
use super::sizes::Sizes;
use crate::ipv6_ext::{self, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, MORE_FRAGMENTS, ROUTING};
use crate::{field, ipv6};

const FRAGMENT_HEADER_LEN: usize = 8;

pub(super) fn cut(frame: &[u8], network: usize, cut: &Cut<'_>, to: &mut Frames) -> bool {
    let Some((len, named_at)) = unfragmentable(frame.get(network..).unwrap_or_default()) else {
        return false;
    };
    let Some((head, payload)) = frame.split_at_checked(network + len) else { return false };
    let space = cut.most.saturating_sub(len + FRAGMENT_HEADER_LEN);
    let Some(sizes) = Sizes::new(payload.len(), space, cut.pieces) else { return false };
    let next = head.get(network + named_at).copied().unwrap_or(ipv6_ext::NO_NEXT);
    for range in sizes {
        let more = if range.end < payload.len() { MORE_FRAGMENTS } else { 0 };
        let [a, b] = (range.start as u16 | more).to_be_bytes();
        let [c, d, e, f] = cut.id.to_be_bytes();
        let header = [next, 0, a, b, c, d, e, f];
        let part = payload.get(range.clone()).unwrap_or_default();
        let fragment = to.push(&[head, &header, part]);
        let fragment = fragment.get_mut(network..).unwrap_or_default();
        let payload_len = len + FRAGMENT_HEADER_LEN + range.len() - ipv6::HEADER_LEN;
        if let Some(place) = fragment.get_mut(ipv6::PAYLOAD_LEN) {
            place.copy_from_slice(&(payload_len as u16).to_be_bytes());
        }
        if let Some(place) = fragment.get_mut(named_at) {
            *place = FRAGMENT;
        }
    }
    true
}

/// How long the part is that every fragment has, and which byte of it names the header after it. `None` where the
/// packet ends within it.
fn unfragmentable(packet: &[u8]) -> Option<(usize, usize)> {
    let (mut len, mut named_at) = (ipv6::HEADER_LEN, ipv6::NEXT_HEADER.start);
    let mut is_routed = false;
    loop {
        match *packet.get(named_at)? {
            HOP_BY_HOP => {}
            ROUTING => is_routed = true,
            DESTINATION_OPTIONS if !is_routed => {}
            _ => return (len <= packet.len()).then_some((len, named_at)),
        }
        let units = field::byte(packet.get(len..len + 2)?, ipv6_ext::LEN);
        named_at = len;
        len += (usize::from(units) + 1) * 8;
    }
}
