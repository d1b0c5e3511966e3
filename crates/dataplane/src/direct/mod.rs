//! The direct path: a packet that is forwarded from one given interface to another passes its hooks and leaves. Nothing
//! routes it, it is no fragment that waits for others, no bridge's rules see it, and it is no answer of the host.
//!
//! Contract: of a packet for which [`way_of`] finds a way, [`forward`] leaves the same bytes, says the same and lets
//! observers see the same as the full path, [`Handler::take`](crate::Handler), to which tests hold it.

use host::Assumed;
use packet::{Headers, L3, Link, Mark, Packet};
use rules::model::Hook;
use rules::{BridgeNote, Iface};

use crate::answers::Found;
use crate::arrival::{Arrival, Origin};
use crate::context::{Context, Settled};
use crate::delivery::is_fragment;
use crate::disposition::{Disposition, FinalVerdict, Outcome};
use crate::egress::{self, Egress, Exit};
use crate::hooks::{self, StateParts};
use crate::observer::Observer;
use crate::program::Program;
use crate::routing::bridge;
use crate::routing::course::Before;
use crate::routing::course::{crossed, family_of};
use crate::routing::interfaces;
use crate::routing::path::Path;
use crate::routing::reroute;
use crate::routing::way::{Decision, Way};
use crate::state::{FamilyState, State};
use crate::walk::Walk;

#[cfg(test)]
mod tests;

/// The interfaces and the plan of a packet that takes the direct path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct<'a> {
    /// The place of the family's plan.
    place: usize,
    input: &'a str,
    output: &'a str,
}

/// Says how a packet takes the direct path, if it does: its header is whole, path and interfaces are given, and it was
/// neither seen leaving nor passed on by a bridge.
#[inline(always)]
pub(crate) fn direct_of<'a>(
    program: &'a Program,
    headers: &Headers,
    arrival: &Arrival<'a>,
) -> Option<Direct<'a>> {
    let is_whole = matches!(headers.l3, L3::Ipv4 { .. } | L3::Ipv6);
    let is_others = arrival.origin == Origin::Addresses
        && headers.link.packet_type == Some(interfaces::OTHER_HOST);
    let is_usual = arrival.origin != Origin::Host
        && arrival.link != Link::Nflog
        && arrival.at.is_none()
        && arrival.left.is_none()
        && arrival.ctstate.is_none()
        && !arrival.bridge.is_passed_on;
    let config = program.config();
    if !is_whole
        || is_others
        || !is_usual
        || program.bridges()
        || arrival.wire.is_none() && arrival.path.or(config.path) != Some(Path::Forward)
    {
        return None;
    }
    let (input, output) = interfaces::given_both(headers, arrival, config)?;
    Some(Direct { place: program.place_of(family_of(headers)?)?, input, output })
}

impl Direct<'_> {
    /// Whether the packet may wait for other fragments before its walk.
    #[inline]
    pub(crate) fn may_wait(&self, program: &Program, packet: &Packet<'_>) -> bool {
        program.plans()[self.place].ruleset_tracks && is_fragment(packet)
    }
}

/// Takes a packet along the direct path, with room to become longer; no access list applies to it.
#[inline]
pub(crate) fn forward<'h, 'a>(
    Direct { place, input, output }: Direct<'a>,
    program: &'a Program,
    state: &'h mut State,
    exit: &'h mut Option<Exit>,
    packet: &mut Packet<'_>,
    arrival: &Arrival<'a>,
    observer: &mut impl Observer,
) -> Egress<'h, 'a> {
    let State { families, sets, chance, .. } = state;
    let (config, plan) = (&**program.config(), &program.plans()[place]);
    let FamilyState { memories, answers, tracker, .. } = &mut families[place];
    let came_at = packet.frame().as_ptr();
    let (family, tables) = (plan.family(), &plan.tables);
    let (input, output) = (Iface::Named(input), Iface::Named(output));
    let (wire, mtu) = crossed(packet, arrival, None);
    let assumed = Assumed::default();
    let way = Way { path: Path::Forward, input, output, fate: Decision::Sure, mtu, wire, assumed };
    let mut end = Disposition::of(Some(family), packet.headers(), packet.len());
    end.path = Some(Path::Forward);
    observer.starts(family, way.path, input, output);

    // The rules, hook after hook.
    if let Some(sets) = sets {
        sets.begin(arrival.time);
    }
    let note = match plan.asks_for_ports {
        true => bridge::note(&way, arrival, &config.host, family),
        false => BridgeNote::Unknown,
    };
    let mark = Mark { value: arrival.mark, unknown: 0 };
    // Routes are asked again only on a wire where packets age: elsewhere the given interfaces decide.
    let routed = arrival.wire.filter(|wire| wire.ages);
    let before = routed.map_or_else(Before::default, |_| Before::of(packet, config));
    let (found, fragment) = (Found::Nothing, None);
    let (way, before, note) = (&way, &before, &note);
    let apart = false;
    let context =
        Context { plan, config, arrival, way, before, fragment, apart, note, mark, found };
    let ct = context.connection(tracker);
    let mut transit = context.transit(packet, sets.as_mut(), chance.as_ref(), ct);
    let mut walk = Walk::new(&mut transit, context.visit(), tables, memories);
    walk.hook(Hook::Prerouting, input, Iface::Absent, observer);
    let mut rerouted: Way<'a>;
    let mut gone = way;
    if routed.is_some() && !walk.is_unseen_before_routing() {
        rerouted = *way;
        reroute::after(&mut walk, &mut rerouted, before, &context, observer);
        gone = &rerouted;
    }
    walk.follow(gone);
    if !gone.is_bridged() {
        walk.lower_ttl(observer);
        walk.measure(&context.sizes(gone), input, observer);
        walk.turns_back(input, output);
    }
    walk.hook(Hook::Forward, input, output, observer);
    walk.hook(Hook::Postrouting, input, output, observer);
    walk.confirm(observer);

    // How the packet leaves, and what is sent for it if it does not.
    (end.verdict, end.either) = walk.end();
    end.midstream = walk.midstream();
    let Settled { answer, tuple, len, mut left } =
        context.settle(&mut walk, &end.verdict, gone, answers, exit, (came_at, None));
    if end.verdict == FinalVerdict::Unknown {
        let doubt = walk.doubted(exit.is_none(), observer);
        let state = StateParts { memories, answers, tracker, sets, chance: chance.as_ref() };
        if let Some(sure) = hooks::decided(&context, doubt, state, exit, &mut left, observer) {
            (end.verdict, end.either, end.early) = sure;
        }
    }
    let (leaves, reply) = egress::lent(left.map(|(made, _)| made), exit);
    let outcome = Outcome { end, input, output, tuple, len, answer };
    Egress { outcome, leaves, reply }
}
