//! What a recording shows of a translation that the rules leave open: a port drawn at random, one of several targets
//! that may have matched, a flow whose beginning was not captured.
//!
//! Contract: what the rules decide stays as they decide it; only what would be indeterminate is taken from the
//! recording.

use super::Translated;
use super::binding::Drawn;
use super::range::{address, part, with_end};
use super::rewrite::end_of;
use crate::transit::Transit;
use conntrack::{Before, Direction, Side, dissect};
use packet::{icmpv4, icmpv6};

/// Gives the packet's flow, which it begins, what it was seen to be given at this end; false where the flow is not of
/// its making.
pub fn bind_drawn(transit: &mut Transit<'_, '_>, drawn: &Drawn, side: Side) -> bool {
    let ct = &mut transit.ct;
    let Some((tracker, handle)) = ct.tracker.as_mut().zip(ct.view.flow) else { return false };
    if ct.view.direction != Direction::Original {
        return false;
    }
    let current = tracker.flow(handle).and_then(|flow| flow.tuple(Direction::Reply).inverse());
    let Some(current) = current else { return false };
    let seen = drawn.tuple(current.protocol());
    // An identifier is one of both ends: the source's translation changes it.
    let is_query = matches!(current.protocol(), icmpv4::PROTOCOL | icmpv6::PROTOCOL);
    let port = drawn.ports.and(part(&seen, side)).filter(|_| !is_query || side == Side::Source);
    let tuple = with_end(&current, side, address(&seen, side), port);
    let mut status = side.decided();
    if tuple != current {
        status.set(side.translated());
    }
    tuple.inverse().is_some_and(|reply| tracker.translate(handle, reply, status))
}

/// Gives a packet of the host's own, which was recorded as it left, the ends that it was made with. What has the ends of
/// a flow between others answers a packet that was no part of it (a reset by a closed port): nothing translated it, unless
/// the packet may be one of theirs.
pub fn undo(transit: &mut Transit<'_, '_>, of_others: bool) -> Before {
    let Ok(layer) = dissect::layer(transit.packet) else { return Before::AsItIs };
    let Ok(seen) = dissect::tuple(transit.packet, &layer) else { return Before::AsItIs };
    let now = transit.time.unwrap_or(0);
    let Some(tracker) = transit.ct.tracker.as_mut() else { return Before::AsItIs };
    let before = tracker.before(&seen, now);
    if let Before::Made(made) = before
        && (of_others || transit.host.is_local(made.source()) != Some(false))
    {
        end_of(transit.packet, &layer, &made, Side::Source);
        end_of(transit.packet, &layer, &made, Side::Destination);
    }
    before
}

/// Writes this end of a packet as it was seen; `None` where that is not all that changes.
pub fn write_drawn(transit: &mut Transit<'_, '_>, drawn: &Drawn, side: Side) -> Option<Translated> {
    let layer = dissect::layer(transit.packet).ok()?;
    let is_icmp = matches!(layer.protocol, icmpv4::PROTOCOL | icmpv6::PROTOCOL);
    // An error quotes a packet whose translation was not looked at.
    if is_icmp && drawn.ports.is_none() {
        return None;
    }
    let seen = drawn.tuple(layer.protocol);
    end_of(transit.packet, &layer, &seen, side);
    Some(Translated::To(address(&seen, side), drawn.ports.and(part(&seen, side))))
}
