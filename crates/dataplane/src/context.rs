//! [`Context`]: the plan, the configuration, the arrival and the way of one packet. The full path and the direct path make
//! the start of a walk from it, and settle the end of the walk with it.
//!
//! Contract: it borrows, and changes nothing but the answers that are expected and what leaves.

use conntrack::{Proxy, Tracker, Visit};
use packet::{FlowKey, Link, Mark, Packet};
use rules::ext::Answer;
use rules::ipset::Sets;
use rules::model::Hook;
use rules::{BridgeNote, Chance, Connection, Transit};

use crate::answers::{Answers, Found};
use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::disposition::FinalVerdict;
use crate::egress::{Exit, Leaving, Made, Parts};
use crate::program::Plan;
use crate::routing::bridge;
use crate::routing::course::{Before, first_source};
use crate::routing::path::Path;
use crate::routing::way::Way;
use crate::walk::{Sizes, Walk};

/// The context of one packet's walk.
pub(crate) struct Context<'n, 's> {
    pub(crate) plan: &'n Plan,
    pub(crate) config: &'n Config,
    pub(crate) arrival: &'s Arrival<'n>,
    /// Its way when it came.
    pub(crate) way: &'s Way<'n>,
    pub(crate) before: &'s Before,
    /// Length of the largest fragment, if it was put together.
    pub(crate) fragment: Option<u32>,
    /// Whether fragments of the packet passed the chains before defragmentation by themselves.
    pub(crate) apart: bool,
    pub(crate) note: &'s BridgeNote<'n>,
    /// Its mark when it came.
    pub(crate) mark: Mark,
    /// What it answers.
    pub(crate) found: Found,
}

/// What the end of a walk settles besides the verdict; see [`Outcome`](crate::Outcome).
pub(crate) struct Settled<'p, 'a> {
    pub(crate) answer: Option<Answer>,
    pub(crate) tuple: Option<FlowKey>,
    pub(crate) len: u64,
    /// What leaves, and how, of a handler that sends.
    pub(crate) left: Option<(Made<'a>, Leaving<'p, 'a>)>,
}

impl<'n> Context<'n, '_> {
    /// The packet before its first hook.
    #[inline(always)]
    pub(crate) fn transit<'p, 'b>(
        &self,
        packet: &'p mut Packet<'b>,
        sets: Option<&'p mut Sets>,
        chance: Option<&'p Chance>,
        ct: Connection<'p>,
    ) -> Transit<'p, 'b>
    where
        'n: 'p,
    {
        let Self { plan, config, arrival, way, note, mark, .. } = self;
        Transit {
            input: way.input,
            output: way.output,
            bridge: **note,
            sets,
            chance,
            mark: *mark,
            time: arrival.time,
            ct,
            to_host: way.ends_here(),
            mtu: way.mtu,
            path_mtu: arrival.path_mtu(),
            ..Transit::new(packet, plan.family(), Hook::Prerouting, &config.host)
        }
    }

    /// The connection of the packet, before tracking.
    #[inline(always)]
    pub(crate) fn connection<'p>(&self, tracker: &'p mut Option<Tracker>) -> Connection<'p> {
        Connection {
            tracker: tracker.as_mut().filter(|_| self.plan.is_tracked),
            given: self.arrival.ctstate,
            ..Connection::before_tracking()
        }
    }

    /// What tracking is told of the packet.
    #[inline(always)]
    pub(crate) fn visit(&self) -> Visit {
        let Arrival { number, began, one_sided, origin, .. } = *self.arrival;
        Visit {
            frame: number,
            began,
            unheard: one_sided && self.way.path == Path::Input,
            proxy: if one_sided { Proxy::Unseen } else { Proxy::Seen },
            came_in: origin == Origin::Wire,
            ..Visit::default()
        }
    }

    /// Notes how the packet was recorded, and on the host's own what its sender gave it before translation.
    #[inline(always)]
    pub(crate) fn recorded<'p>(&self, walk: &mut Walk<'p, '_, '_>)
    where
        'n: 'p,
    {
        let Self { arrival, config, way, found, .. } = *self;
        let is_tapped = arrival.origin == Origin::Host && arrival.link != Link::Nflog;
        walk.came_apart(self.apart);
        walk.seen_leaving(arrival.left.as_ref());
        walk.recorded_leaving(is_tapped, arrival.was_let_go);
        if arrival.unrecorded || arrival.ctstate.is_some() {
            let is_partial = arrival.unrecorded && arrival.given_path(config).is_none();
            walk.is_told(arrival.ctstate, is_partial);
        }
        // An answer's ends are found by what it answers.
        if is_tapped && matches!(found, Found::Nothing) && arrival.ctstate.is_none() {
            walk.made_by_host(way.output, |packet| first_source(packet, arrival, config));
        }
    }

    /// What is known of the packet's size on this way.
    #[inline(always)]
    pub(crate) fn sizes(&self, way: &Way<'_>) -> Sizes {
        let Self { arrival, config, fragment, .. } = *self;
        Sizes {
            fragment,
            segment: arrival.segment,
            left: arrival.left.is_some(),
            on_wire: way.wire.is_some(),
            bridged: way.is_bridged() || bridge::crosses(way, arrival, &config.host),
            output: way.mtu,
        }
    }

    /// Settles how the packet leaves on its way, and what is sent for it if it does not.
    #[inline(always)]
    pub(crate) fn settle<'p>(
        &self,
        walk: &mut Walk<'_, '_, '_>,
        verdict: &FinalVerdict,
        gone: &Way<'n>,
        answers: &mut Answers,
        exit: &mut Option<Exit>,
        (came_at, parts): (*const u8, Option<&'p mut Parts>),
    ) -> Settled<'p, 'n> {
        let Self { plan, config, arrival, .. } = *self;
        let answered = walk.answer(verdict, gone.path != Path::Forward);
        let answer = answered.as_ref().and_then(|(answer, _)| *answer);
        let refused = answered.as_ref().map(|(_, refused)| refused);
        let sent = refused.filter(|refused| refused.is_moved()).map(|refused| refused.sent);
        let now = arrival.time.unwrap_or(0);
        if plan.expects_answers
            && let Some((_, refused)) = answered
        {
            answers.expect(refused, now, arrival.link == Link::Nflog);
        } else if let Some(stray) = walk.stray() {
            answers.remember(stray, now);
        }
        let may_be_moved = plan.tables.translates() || arrival.left.is_some();
        let tuple = if may_be_moved { walk.tuple() } else { None };
        let len = walk.packet().len() as u64;
        let left = exit.as_mut().map(|exit| {
            let leaving = Leaving::new(walk, *gone, came_at, parts).of(arrival.segment);
            (exit.make(walk, verdict, &leaving, sent.as_ref(), config), leaving)
        });
        Settled { answer, tuple, len, left }
    }
}
