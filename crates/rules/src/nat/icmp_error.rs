//! Translates ICMP errors about a flow: their own address, and the packet that they quote.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`nf_nat_icmp_reply_translation`,
//! `nf_nat_icmpv6_reply_translation`).

use super::Translated;
use super::forget::forget;
use super::range::address;
use super::rewrite;
use super::untranslatable::{is_redirect, is_untranslatable};
use crate::transit::Transit;
use conntrack::dissect::{self, Layer};
use conntrack::{Flow, Side, verify};
use packet::{Packet, Read, checksum};

/// Rewrites this end of an error, and the other end of what it quotes.
pub fn packet(transit: &mut Transit<'_, '_>, side: Side) -> Translated {
    let ct = &transit.ct;
    let flow = ct.tracker.as_ref().zip(ct.view.flow).and_then(|(t, at)| t.flow(at));
    let (Some(flow), Ok(layer)) = (flow, dissect::layer(transit.packet)) else {
        return Translated::No;
    };
    let (status, end) = (flow.status(), side.seen_from(ct.view.direction));
    if is_redirect(transit.packet, &layer) {
        return match passes(flow) {
            Some(true) => Translated::No,
            Some(false) => Translated::Dropped,
            None => forget(transit, side),
        };
    }
    if flow.is_indeterminate(end) {
        return forget(transit, side);
    }
    if !status.contains(end.translated()) {
        return Translated::No;
    }
    let quoted_tuple = *flow.tuple(ct.view.direction.opposite());
    let Some(target) = quoted_tuple.inverse() else { return Translated::No };
    let quoted = dissect::quoted_layer(transit.packet, layer.offset + 8, layer.is_v6);
    let Ok(quoted) = quoted else { return Translated::No };
    if is_untranslatable(transit.packet, &quoted, side.opposite()) {
        return Translated::Dropped;
    }
    rewrite::end_of(transit.packet, &quoted, &quoted_tuple, side.opposite());
    renew_checksum(transit.packet, &layer);
    rewrite::end_of(transit.packet, &layer, &target, side);
    Translated::To(address(&target, side), None)
}

/// Whether a redirect about this flow passes: only once both ends are decided, and none is translated. `None` where
/// one may be.
fn passes(flow: &Flow) -> Option<bool> {
    let (status, ends) = (flow.status(), [Side::Source, Side::Destination]);
    if ends.iter().any(|end| status.contains(end.translated())) {
        return Some(false);
    }
    if ends.iter().any(|end| flow.is_indeterminate(*end)) {
        return None;
    }
    Some(ends.iter().all(|end| status.contains(end.decided())))
}

/// Recomputes the checksum of the message, where all of it is known.
fn renew_checksum(packet: &mut Packet<'_>, layer: &Layer) {
    const CHECKSUM: usize = 2;
    let at = layer.offset + CHECKSUM;
    let len = packet.headers().end.saturating_sub(layer.offset);
    rewrite::write(packet, at, &[0; 2]);
    let sum = packet.read_slice(layer.offset, len).map(checksum::sum);
    let pseudo = match layer.is_v6 {
        true => verify::pseudo(packet, layer, len),
        false => Read::Known(0),
    };
    match (sum, pseudo) {
        (Read::Known(sum), Read::Known(pseudo)) => {
            rewrite::write(packet, at, &(!checksum::add(sum, pseudo)).to_be_bytes());
        }
        _ => packet.forget(at..at + 2),
    }
}
