//! Chains that come before defragmentation: they see each fragment by itself, and the packet that is put together no more.
//!
//! Contract: what such a chain does to a fragment is done to what it brings: a dropped fragment brings nothing, and the
//! mark of the first one is the packet's.
//!
//! Source: `NF_IP_PRI_CONNTRACK_DEFRAG`; `net/ipv4/netfilter/nf_defrag_ipv4.c` and its IPv6 sibling.

use conntrack::defrag::Carried;
use packet::Packet;
use rules::{BridgeNote, Connection};

use crate::admit::Global;
use crate::answers::Found;
use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::context::Context;
use crate::delivery::is_fragment;
use crate::disposition::FinalVerdict;
use crate::observer::Observer;
use crate::program::Plan;
use crate::routing::course::{self, Before};
use crate::routing::path::Path;
use crate::state::FamilyState;
use crate::walk::Walk;

/// Takes a fragment through the chains that see it before it waits for others; `None` of what is none, or meets no such
/// chain here.
///
/// # Errors
/// The verdict of a chain that ends it.
pub(crate) fn pass(
    packet: &mut Packet<'_>,
    (plan, state): (&Plan, &mut FamilyState),
    (arrival, config): (&Arrival<'_>, &Config),
    global: &mut Global<'_>,
    carried: Carried,
    observer: &mut impl Observer,
) -> Result<Option<Carried>, FinalVerdict> {
    let came_in = arrival.origin != Origin::Host && arrival.at.is_none();
    if !plan.is_tracked || !plan.tables.see_fragments() || !came_in || !is_fragment(packet) {
        return Ok(None);
    }
    let (before, found) = (Before::of(packet, config), Found::Nothing);
    let rules = (plan.family(), plan.of_rules);
    let Some(course) = course::route(packet, &before, found, arrival, rules, config) else {
        return Ok(None);
    };
    let way = &course.by(packet, arrival, config);
    if !matches!(way.path, Path::Forward | Path::Input) {
        return Ok(None);
    }
    observer.starts(plan.family(), way.path, way.input, way.output);
    let (before, note, mark) = (&before, &BridgeNote::Unknown, carried.mark);
    let (fragment, apart) = (None, false);
    let context =
        Context { plan, config, arrival, way, before, fragment, apart, note, mark, found };
    let (sets, chance) = (global.sets.as_mut(), global.chance);
    let mut transit = context.transit(packet, sets, chance, Connection::before_tracking());
    let memories = &mut state.memories;
    let mut walk = Walk::new(&mut transit, context.visit(), &plan.tables, memories);
    walk.before_defragmentation(way.input, observer);
    let is_certain = carried.is_certain && walk.is_certain();
    match walk.is_alive() {
        true => Ok(Some(Carried { mark: walk.mark(), is_certain })),
        false => Err(walk.verdict()),
    }
}
