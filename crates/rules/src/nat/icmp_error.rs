//! Translates ICMP errors about a flow: their own address, and the packet that they quote.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`nf_nat_icmp_reply_translation`,
//! `nf_nat_icmpv6_reply_translation`).

use super::Translated;
use super::forget::forget;
use super::range::address;
use super::rewrite;
use crate::transit::Transit;
use conntrack::dissect::{self, Layer};
use conntrack::{Side, Status, verify};
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
        return redirect(status);
    }
    if flow.is_indeterminate(end) {
        forget(transit, side);
        return Translated::Unknown;
    }
    if !status.contains(end.translated()) {
        return Translated::No;
    }
    let quoted_tuple = *flow.tuple(ct.view.direction.opposite());
    let Some(target) = quoted_tuple.inverse() else { return Translated::No };
    let quoted = dissect::quoted_layer(transit.packet, layer.offset + 8, layer.is_v6);
    let Ok(quoted) = quoted else { return Translated::No };
    rewrite::end_of(transit.packet, &quoted, &quoted_tuple, side.opposite());
    renew_checksum(transit.packet, &layer);
    rewrite::end_of(transit.packet, &layer, &target, side);
    Translated::To(address(&target, side), None)
}

fn is_redirect(packet: &Packet<'_>, layer: &Layer) -> bool {
    let kind = if layer.is_v6 { 137 } else { 5 };
    packet.read::<1>(layer.offset) == Read::Known([kind])
}

/// A redirect passes only once both ends are decided, and none is translated.
fn redirect(status: Status) -> Translated {
    let is_decided =
        status.contains(Side::Source.decided()) && status.contains(Side::Destination.decided());
    let is_translated = status.contains(Side::Source.translated())
        || status.contains(Side::Destination.translated());
    if is_decided && !is_translated { Translated::No } else { Translated::Dropped }
}

/// The checksum of the message, computed anew where all of it is known.
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
