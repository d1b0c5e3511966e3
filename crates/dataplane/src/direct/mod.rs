//! The direct path: a packet that is forwarded from one given interface to another passes its hooks and leaves. Nothing
//! routes it, it is no fragment that waits for others, no bridge's rules see it, and the host answers nothing by it.
//!
//! Contract: of a packet for which [`way_of`] finds a way, [`forward`] leaves the same bytes, says the same and lets
//! observers see the same as the full path, [`Handler::take`](crate::Handler), to which tests hold it.

use host::Assumed;
use packet::{Headers, L3, Link, Mark, Packet};
use rules::model::Hook;
use rules::{BridgeNote, Iface};

use crate::answers::Found;
use crate::arrival::{Arrival, Origin};
use crate::bridge;
use crate::context::{Before, Context, Settled};
use crate::course::{crossed, family_of};
use crate::delivery::is_fragment;
use crate::disposition::{Disposition, Early, FinalVerdict, Outcome};
use crate::egress::{self, Egress, Exit};
use crate::hooks::{self, StateParts};
use crate::interfaces;
use crate::observer::Observer;
use crate::path::Path;
use crate::program::Program;
use crate::reroute;
use crate::state::{FamilyState, State};
use crate::walk::Walk;
use crate::way::{Fate, Way};

#[cfg(test)]
mod tests;

/// The interfaces and the plan of a packet that takes the direct path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct<'a> {
    /// The place of its family's plan.
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

/// Takes a packet along the direct path, with room to become longer; no access list is for it.
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
    let way = Way { path: Path::Forward, input, output, fate: Fate::Sure, mtu, wire, assumed };
    let (bytes, offload, overrun) =
        (packet.len() as u64, packet.headers().offload, packet.headers().overrun);
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
    // Routes are asked again only on a wire where packets age: elsewhere they say what is given.
    let routed = arrival.wire.filter(|wire| wire.ages);
    let before = routed.map_or_else(Before::default, |_| Before::of(packet, config));
    let (found, fragment) = (Found::Nothing, None);
    let (way, before, note) = (&way, &before, &note);
    let context = Context { plan, config, arrival, way, before, fragment, note, mark, found };
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
    walk.goes(gone);
    if !gone.is_bridged() {
        walk.lower_ttl(observer);
        walk.measure(&context.sizes(gone), input, observer);
        walk.turns_back(input, output);
    }
    walk.hook(Hook::Forward, input, output, observer);
    walk.hook(Hook::Postrouting, input, output, observer);
    walk.confirm(observer);

    // How it leaves, and what is sent for it if it does not.
    let (mut verdict, mut either) = walk.end();
    let midstream = walk.midstream();
    let mut early = Early::No;
    let lies = (came_at, None);
    let Settled { answer, tuple, len, mut left } =
        context.settle(&mut walk, &verdict, gone, answers, exit, lies);
    if verdict == FinalVerdict::Unknown {
        let told = if exit.is_none() { walk.as_taken(observer) } else { None };
        let taken = if told.is_none() { walk.taken() } else { None };
        let state = StateParts { memories, answers, tracker, sets, chance: chance.as_ref() };
        let again = |taken| hooks::again(&context, taken, state, exit, &mut left, observer);
        let sure = told.or_else(|| taken.and_then(again));
        if let Some(sure) = sure {
            (verdict, either, early) = sure;
        }
    }
    let (leaves, reply) = egress::lent(left.map(|(made, _)| made), exit);
    let (family, path) = (Some(family), Some(Path::Forward));
    Egress {
        outcome: Outcome {
            end: Disposition {
                verdict,
                family,
                path,
                bytes,
                offload,
                overrun,
                midstream,
                assumed,
                either,
                early,
            },
            input,
            output,
            tuple,
            len,
            answer,
        },
        leaves,
        reply,
    }
}
