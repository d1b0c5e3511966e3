//! How a flow's end is decided: by what a target makes of it, or, where no target claimed it, by what it has.
//!
//! Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_setup_info`, `nf_nat_alloc_null_binding`).

use super::choose::Choice;
use super::range::{Range, address, part};
use super::translation::Translation;
use crate::transit::Transit;
use conntrack::{CtState, Direction, Side};

/// Gives the packet's flow a mapping; false where it is not known which.
#[must_use]
pub fn bind(transit: &mut Transit<'_, '_>, translation: &Translation) -> bool {
    if translation.is_vague {
        // Where the mapping cannot be looked for, the range may have a free one or not.
        if translation.draws() || !has_part(transit, translation.side) {
            crowd(transit);
        }
        return false;
    }
    set_up(transit, translation.side, &translation.range).is_some()
}

/// Whether the packet's flow has a port, or the number of a query, at an end. A flow without has one mapping alone, which another
/// flow may have: the kernel then drops the packet.
#[must_use]
pub fn has_part(transit: &Transit<'_, '_>, side: Side) -> bool {
    let flow = transit.ct.view.flow.and_then(|at| transit.ct.tracker.as_ref()?.flow(at));
    flow.is_none_or(|flow| part(flow.tuple(Direction::Original), side).is_some())
}

/// No target claimed this end: it keeps its address, and its port where no other flow has it. False where it is not
/// known whether one has.
pub fn bind_null(transit: &mut Transit<'_, '_>, side: Side) -> bool {
    let flow = transit.ct.view.flow.and_then(|at| transit.ct.tracker.as_ref()?.flow(at));
    let Some(current) = flow.and_then(|f| f.tuple(Direction::Reply).inverse()) else {
        return true;
    };
    set_up(transit, side, &Range::address(address(&current, side))).is_some()
}

/// Whether the kernel may draw a source port for a flow that begins with this packet, although no target claims its
/// source: replies to it would be another flow's. `destination` is what a target makes of its other end; what is drawn
/// there leaves the source as it is.
#[must_use]
pub fn may_move_source(transit: &mut Transit<'_, '_>, destination: Option<&Translation>) -> bool {
    let (view, now) = (&transit.ct.view, transit.time.unwrap_or(0));
    let begins = view.is_first && !view.assumed;
    let Some((tracker, flow)) = transit.ct.tracker.as_mut().zip(view.flow.filter(|_| begins))
    else {
        return false;
    };
    let current = tracker.flow(flow).and_then(|flow| flow.tuple(Direction::Reply).inverse());
    let moved = match destination {
        Some(made) if made.is_vague => None,
        Some(Translation { side, range, .. }) => current
            .and_then(|current| Choice { tracker, flow, side: *side, range, now }.tuple(&current)),
        None => current,
    };
    let (side, range) = (Side::Source, &Range::default());
    let mut choice = Choice { tracker, flow, side, range, now };
    moved.is_some_and(|moved| choice.keeps(&moved) != Some(true))
}

/// Whether a flow that is known may have the mapping of a flow that may begin with this packet and has no port that could be
/// another one: the kernel then drops the packet. `made` is what a target makes of the flow.
#[must_use]
pub fn may_be_taken(transit: &mut Transit<'_, '_>, side: Side, made: Option<&Translation>) -> bool {
    let (view, now) = (&transit.ct.view, transit.time.unwrap_or(0));
    let may_begin = view.states.may_be(CtState::New) && !view.assumed;
    if !may_begin || has_part(transit, side) {
        return false;
    }
    let Some((tracker, flow)) = transit.ct.tracker.as_mut().zip(transit.ct.view.flow) else {
        return false;
    };
    let current = tracker.flow(flow).and_then(|flow| flow.tuple(Direction::Reply).inverse());
    let moved = match made {
        Some(made) if made.is_vague => return true,
        Some(Translation { range, .. }) => {
            current.and_then(|current| Choice { tracker, flow, side, range, now }.tuple(&current))
        }
        None => current,
    };
    let reply = moved.and_then(|moved| moved.inverse());
    reply.is_none_or(|reply| tracker.meets(&reply, flow, now))
}

/// Nobody knows whether there was a mapping left for the packet's flow.
pub fn crowd(transit: &mut Transit<'_, '_>) {
    if let Some((tracker, flow)) = transit.ct.tracker.as_mut().zip(transit.ct.view.flow) {
        tracker.crowd(flow);
    }
}

/// Whether all mappings that the packet's flow may be given may be taken.
#[must_use]
pub fn is_crowded(transit: &Transit<'_, '_>) -> bool {
    let ct = &transit.ct;
    ct.tracker.as_ref().zip(ct.view.flow).is_some_and(|(tracker, flow)| tracker.is_crowded(flow))
}

/// The choice, and what it leaves in the flow; `None` where it is not known.
fn set_up(transit: &mut Transit<'_, '_>, side: Side, range: &Range) -> Option<()> {
    let (tracker, flow) = transit.ct.tracker.as_mut().zip(transit.ct.view.flow)?;
    let now = transit.time.unwrap_or(0);
    let current = tracker.flow(flow)?.tuple(Direction::Reply).inverse()?;
    let mut choice = Choice { tracker, flow, side, range, now };
    let Some(tuple) = choice.tuple(&current) else {
        if choice.may_fail(&current) {
            tracker.crowd(flow);
        }
        return None;
    };
    let mut status = side.decided();
    if tuple != current {
        status.set(side.translated());
    }
    let reply = tuple.inverse()?;
    tracker.translate(flow, reply, status).then_some(())
}
