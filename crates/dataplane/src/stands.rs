//! [`Stands`]: what a walk is given of its packet besides bytes and rules, and what is settled when the walk is over.
//! The full path and the direct one begin and end their walks here.

use conntrack::{CtView, Proxy, Tracker, Visit};
use packet::{FlowKey, Link, Mark, Packet, Snapshot};
use rules::eval::{self, Memories};
use rules::ext::Answer;
use rules::ipset::Sets;
use rules::model::Hook;
use rules::{BridgeNote, Chance, Connection, Transit};

use crate::answers::{Answers, Found};
use crate::arrival::{Arrival, Origin};
use crate::bridge;
use crate::config::Config;
use crate::disposition::{Early, Either, FinalVerdict};
use crate::egress::{Exit, Leaving, Made, Parts};
use crate::handler;
use crate::observer::Observer;
use crate::path::Path;
use crate::program::Plan;
use crate::reroute::Before;
use crate::walk::{Sizes, Walk};
use crate::way::Way;

/// What a walk is given of its packet besides bytes and rules.
pub(crate) struct Stands<'n, 's> {
    pub(crate) plan: &'n Plan,
    pub(crate) config: &'n Config,
    pub(crate) arrival: &'s Arrival<'n>,
    /// Its way when it came.
    pub(crate) way: &'s Way<'n>,
    pub(crate) before: &'s Before,
    /// Length of the largest fragment, if it was put together.
    pub(crate) fragment: Option<u32>,
    pub(crate) note: &'s BridgeNote<'n>,
    /// Its mark when it came.
    pub(crate) mark: Mark,
    /// What it answers.
    pub(crate) found: Found,
}

/// The state that a packet meets and leaves.
pub(crate) struct Lasting<'h> {
    pub(crate) memories: &'h mut Memories,
    pub(crate) answers: &'h mut Answers,
    pub(crate) tracker: &'h mut Option<Tracker>,
    pub(crate) sets: &'h mut Option<Sets>,
    pub(crate) chance: Option<&'h Chance>,
}

/// What the end of a walk settles besides the verdict; see [`Outcome`](crate::Outcome).
pub(crate) struct Settled<'p, 'a> {
    pub(crate) answer: Option<Answer>,
    pub(crate) tuple: Option<FlowKey>,
    pub(crate) len: u64,
    /// What leaves, and how, of a handler that sends.
    pub(crate) left: Option<(Made<'a>, Leaving<'p, 'a>)>,
}

/// Sees nothing.
struct Nobody;

impl eval::Observer for Nobody {
    const SEES_RULES: bool = false;
}

impl Observer for Nobody {}

impl<'n> Stands<'n, '_> {
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
            backend: plan.tables.backend(),
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

    /// Walks a packet once more, from before tracking and as what it is taken for, where the states of its connection
    /// do not agree on a verdict: what is certain of it then.
    #[inline(never)]
    pub(crate) fn again(
        &self,
        (mut snapshot, view): (Snapshot, CtView),
        lasting: Lasting<'_>,
        exit: &mut Option<Exit>,
        left: &mut Option<(Made<'n>, Leaving<'_, 'n>)>,
        observer: &mut impl Observer,
    ) -> Option<(FinalVerdict, Option<Either>, Early)> {
        let Lasting { memories, answers, tracker, sets, chance } = lasting;
        let mut packet = snapshot.packet();
        let tracked = tracker.as_mut().filter(|_| self.plan.is_tracked);
        let ct = Connection { tracker: tracked, again: true, ..Connection::before_tracking() };
        let mut transit = self.transit(&mut packet, sets.as_mut(), chance, ct);
        let mut walk = Walk::again(&mut transit, view, &self.plan.tables, memories);
        handler::goes(&mut walk, &mut { *self.way }, self, answers, None, &mut Nobody);
        let (verdict, either) = walk.end();
        if let (Some(exit), Some((made, leaving))) = (exit, left) {
            let (unknown, frames) = (self.config.unknown, &mut exit.frames);
            made.place = leaving.copied().leave(&verdict, unknown, walk.packet(), frames);
        }
        if verdict == FinalVerdict::Unknown {
            return None;
        }
        let is_first = tracker.as_mut().is_some_and(|tracker| tracker.take(&view));
        observer.taken(view.states);
        Some((verdict, either, if is_first { Early::First } else { Early::Later }))
    }
}
