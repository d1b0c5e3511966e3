//! What a translation that is not known may have changed in a packet.

use super::Translated;
use super::untranslatable::{self, is_query};
use crate::family::Family;
use crate::transit::Transit;
use conntrack::{CtState, Side, States};
use packet::{L4, Packet, Upper};
use std::ops::Range;

/// Whether the packet's flow, as far as it is known, has this end of the packet translated.
#[must_use]
pub fn is_translated(transit: &Transit<'_, '_>, side: Side) -> bool {
    let ct = &transit.ct;
    let flow = ct.tracker.as_ref().zip(ct.view.flow).and_then(|(t, at)| t.flow(at));
    let end = side.seen_from(ct.view.direction);
    flow.is_some_and(|flow| flow.status().contains(end.translated()) || flow.is_indeterminate(end))
}

/// Whether nothing is known of the packet's connection, so that it may answer any; the flow that it is taken to
/// be part of is then known to be doubtful in just this.
#[must_use]
pub fn answers_any(transit: &mut Transit<'_, '_>) -> bool {
    let ct = &mut transit.ct;
    let flow = ct.tracker.as_mut().zip(ct.view.flow).and_then(|(t, at)| t.flow_mut(at));
    match flow {
        Some(flow) if ct.view.states == States::ANY && ct.view.is_first => {
            flow.stand_in();
            true
        }
        Some(flow) => flow.is_stand_in() || ct.view.states == States::ANY,
        None => ct.view.states.may_be(CtState::Established),
    }
}

/// Makes unknown what a translation of this end may change, and says so.
pub fn forget(transit: &mut Transit<'_, '_>, side: Side) -> Translated {
    let passes_only_untranslated = untranslatable::passes_only_untranslated(transit.packet, side);
    forget_end(transit, side);
    if passes_only_untranslated { Translated::UnknownOrDropped } else { Translated::Unknown }
}

/// Makes unknown the address of this end alone.
pub fn forget_address(transit: &mut Transit<'_, '_>, side: Side) {
    let (addr, checksum) = match (transit.family, side) {
        (Family::Ipv6, Side::Source) => (8..24, None),
        (Family::Ipv6, Side::Destination) => (24..40, None),
        (_, Side::Source) => (12..16, Some(10..12)),
        (_, Side::Destination) => (16..20, Some(10..12)),
    };
    for range in checksum.into_iter().chain([addr]) {
        transit.forget_net(range);
    }
}

fn forget_end(transit: &mut Transit<'_, '_>, side: Side) {
    forget_address(transit, side);
    let headers = transit.packet.headers();
    let (network, len) = (headers.network, transit.packet.len());
    match headers.l4 {
        L4::Upper(upper) => {
            let start = upper.offset.saturating_sub(network);
            for range in upper_ranges(side, transit.packet, &upper) {
                transit.forget_net(start + range.start..start.saturating_add(range.end));
            }
        }
        // The ports are somewhere after the fixed header.
        L4::Unknown | L4::Broken { .. } => {
            let fixed = if transit.family == Family::Ipv6 { 40 } else { 20 };
            transit.forget_net(fixed..len);
        }
        L4::Fragment { .. } | L4::None => {}
    }
}

/// Makes unknown what a helper may write into a packet: its length, and everything after its network header but
/// the ports.
pub fn forget_payload(transit: &mut Transit<'_, '_>) {
    let fixed = if transit.family == Family::Ipv6 { [4..6, 0..0] } else { [2..4, 10..12] };
    for range in fixed {
        transit.forget_net(range);
    }
    let headers = transit.packet.headers();
    let (network, len) = (headers.network, transit.packet.len());
    if let L4::Upper(upper) = headers.l4 {
        transit.forget_net(upper.offset.saturating_sub(network) + 4..len);
    }
}

/// Bytes of the upper-layer header that a translation may change.
fn upper_ranges(side: Side, packet: &Packet<'_>, upper: &Upper) -> [Range<usize>; 2] {
    let port = if side == Side::Source { 0..2 } else { 2..4 };
    match upper.protocol {
        6 => [port, 16..18],
        17 | 33 | 136 => [port, 6..8],
        132 => [port, 8..12],
        // The checksum and the identifier; in an error, also the packet that it quotes.
        1 | 58 if is_query(packet, upper.protocol, upper.offset) => [2..6, 0..0],
        1 | 58 => [2..packet.len(), 0..0],
        // The key of GRE.
        47 => [4..8, 0..0],
        _ => [0..0, 0..0],
    }
}
