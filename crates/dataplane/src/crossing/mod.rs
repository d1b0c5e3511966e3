//! The short way: what crosses a wire as by a bridge, under rules that need no connections, passes its hooks and
//! leaves. Nothing routes such a packet, none waits for its fragments, and no rule of a bridge sees it.
//!
//! Contract: of a packet for which [`wire_of`] has a wire, [`cross`] leaves the same bytes, says the same and lets
//! observers see the same as the long way of [`Handler::handle`](crate::Handler::handle), to which tests hold it.

use conntrack::Visit;
use host::Assumed;
use packet::{Headers, L3, Link, Mark, Packet};
use rules::model::Hook;
use rules::{Connection, Iface, Transit};

use crate::arrival::{Arrival, Origin};
use crate::course::family_of;
use crate::disposition::{Disposition, Early, FinalVerdict, Outcome};
use crate::egress::{Egress, Exit, Leaving, Made};
use crate::headers::find_headers;
use crate::observer::Observer;
use crate::path::Path;
use crate::program::Program;
use crate::state::State;
use crate::walk::Walk;
use crate::way::{Crossed, Fate, Way};

#[cfg(test)]
mod tests;

/// What carries a packet that takes the short way.
pub(crate) struct Wire<'a> {
    /// The place of its family's plan.
    plan: usize,
    headers: &'a Headers,
    input: &'a str,
    output: &'a str,
}

/// How a packet takes the short way, if it does: its header is whole, nothing is given of it but its wire, and its
/// rules ask neither for its connection nor for the ports of a bridge.
#[inline]
pub(crate) fn wire_of<'a>(program: &Program, arrival: &Arrival<'a>) -> Option<Wire<'a>> {
    let (crossing, headers) = (arrival.wire?, arrival.headers?);
    let (input, output) = (arrival.input?, arrival.output?);
    let is_bridged = !crossing.ages && arrival.link == Link::Wire && !program.bridges();
    let is_plain = arrival.origin == Origin::Wire
        && !arrival.bridge.is_passed_on
        && arrival.at.is_none()
        && arrival.left.is_none();
    let is_whole = matches!(headers.l3, L3::Ipv4 { .. } | L3::Ipv6);
    if !(is_bridged && is_plain && is_whole) {
        return None;
    }
    let family = family_of(headers)?;
    let plan = program.plans().iter().position(|plan| plan.family() == family)?;
    program.plans().get(plan)?.is_plain.then_some(Wire { plan, headers, input, output })
}

/// Takes a packet across its wire; no access list is for it.
#[inline]
pub(crate) fn cross<'h, 'a>(
    wire: &Wire<'a>,
    program: &'a Program,
    state: &'h mut State,
    (room, exit): (&'h mut Vec<u8>, &'h mut Option<Exit>),
    bytes: &mut [u8],
    arrival: &Arrival<'a>,
    observer: &mut impl Observer,
) -> Egress<'h, 'a> {
    let State { families, sets, chance, .. } = state;
    let (config, plan, state) =
        (program.config(), &program.plans()[wire.plan], &mut families[wire.plan]);
    let (family, tables) = (plan.family(), &plan.tables);
    let (input, output) = (Iface::Named(wire.input), Iface::Named(wire.output));
    let found = || find_headers(program, bytes, arrival.link, arrival.wire_len, arrival.origin);
    debug_assert_eq!(*wire.headers, found(), "headers of this frame under this program");
    let came_at = bytes.as_ptr();
    let mut packet = Packet::with_headers(bytes, *wire.headers);
    let bytes = packet.len() as u64;
    let Headers { offload, overrun, .. } = *wire.headers;
    observer.starts(family, Path::Forward, input, output);

    // The rules, hook after hook.
    packet.lend(room);
    if let Some(sets) = sets {
        sets.begin(arrival.time);
    }
    let mut transit = Transit {
        input,
        output,
        sets: sets.as_mut(),
        chance: chance.as_ref(),
        mark: Mark { value: arrival.mark, unknown: 0 },
        backend: tables.backend(),
        time: arrival.time,
        ct: Connection { given: arrival.ctstate, ..Connection::before_tracking() },
        to_host: Some(false),
        path_mtu: arrival.path_mtu(),
        ..Transit::new(&mut packet, family, Hook::Prerouting, &config.host)
    };
    let mut walk = Walk::new(&mut transit, Visit::default(), tables, &mut state.memories);
    walk.hook(Hook::Prerouting, input, Iface::Absent, observer);
    walk.hook(Hook::Forward, input, output, observer);
    walk.hook(Hook::Postrouting, input, output, observer);
    walk.confirm(observer);

    // How it leaves, and what is sent for it if it does not.
    let verdict = walk.verdict();
    let (midstream, either) = (walk.midstream(), walk.either());
    let way = Way {
        path: Path::Forward,
        input,
        output,
        fate: Fate::Sure,
        mtu: None,
        wire: Some(Crossed::Bridged),
        assumed: Assumed::default(),
    };
    let mut answer = None;
    if !matches!(verdict, FinalVerdict::Accept(_))
        && let Some((sent, refused)) = walk.answer(&verdict, false)
    {
        answer = sent;
        if plan.expects_answers {
            state.answers.expect(refused, arrival.time.unwrap_or(0), false);
        }
    }
    let len = walk.packet().len() as u64;
    let mut made = Made::default();
    if let Some(exit) = &mut *exit {
        let leaving = Leaving::new(&walk, way, came_at, None).of(arrival.segment);
        made = exit.make(&mut walk, &verdict, &leaving, None, config);
    }
    let end = Disposition {
        verdict,
        family: Some(family),
        path: Some(Path::Forward),
        bytes,
        offload,
        overrun,
        midstream,
        assumed: Assumed::default(),
        either,
        early: Early::No,
    };
    let (leaves, reply) = made.lent(exit);
    Egress { outcome: Outcome { end, input, output, tuple: None, len, answer }, leaves, reply }
}
