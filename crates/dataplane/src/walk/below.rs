//! [`Below`]: the rules of a bridge beside those of what its frames hold.
//!
//! A wire is a bridge that hands what its frames hold to the rules of that family (`bridge-nf-call-iptables` and its
//! siblings). At each hook the bridge's own rules come first, all of them: BROUTING and PREROUTING before what was held
//! is looked at, so on every fragment; FORWARD and POSTROUTING on the packet as it is by then, without padding. Both see
//! one frame: its bytes and its mark. What BROUTING drops is not bridged: no other rule of the bridge sees it.
//!
//! Source: Linux 6.18 `br_nf_ops` in `net/bridge/br_netfilter_hooks.c`, against `NF_BR_PRI_*`.

use conntrack::Visit;
use conntrack::defrag::Carried;
use packet::{Headers, L3, LinkHeader, Mark, Packet, parse_frame};
use rules::eval::{Alive, Memories, Verdict};
use rules::ipset::Sets;
use rules::model::{Family, Hook};
use rules::{Chance, Iface, Transit};

use super::packet_walk::{Below, Walk};
use super::progress::Progress;
use super::tables::Tables;
use crate::arrival::Arrival;
use crate::config::Config;
use crate::disposition::{DropReason, FinalVerdict};
use crate::observer::Observer;

impl<'w> Below<'w> {
    /// Before its first rule.
    pub(crate) fn new(tables: &'w Tables, memories: &'w mut Memories, mark: u32) -> Self {
        Self {
            tables,
            memories,
            progress: Progress::start(),
            mark: Mark { value: mark, unknown: 0 },
            is_routed: false,
        }
    }

    /// Its mark so far.
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// The mark, and whether all of it got here, of the packet that a fragment completed.
    pub(crate) fn joins(&mut self, carried: &Carried) {
        self.mark = carried.mark;
        if !carried.is_certain {
            self.progress.may_end(Verdict::Drop);
        }
    }

    /// What goes with a fragment that waits.
    pub(crate) fn carried(&self) -> Carried {
        Carried { mark: self.mark, is_certain: self.progress.alive == Alive::Certain }
    }

    /// A frame comes in: its verdict, if it goes no further.
    pub(crate) fn comes_in<'a>(
        &mut self,
        packet: &mut Packet<'_>,
        arrival: &Arrival<'a>,
        config: &'a Config,
        sets: Option<&mut Sets>,
        chance: Option<&Chance>,
        observer: &mut impl Observer,
    ) -> Option<FinalVerdict> {
        let frame = parse_frame(packet.frame(), packet.frame().len());
        if let L3::Fault(fault) = frame.l3 {
            return Some(FinalVerdict::Drop(DropReason::Stack(fault)));
        }
        let held = packet.read_as(frame);
        let input = arrival.input.map_or(Iface::Unknown, Iface::Named);
        let mut transit = Transit {
            input,
            sets,
            chance,
            mark: self.mark,
            time: arrival.time,
            to_host: Some(false),
            ..Transit::new(packet, Family::Bridge, Hook::Brouting, &config.host)
        };
        let mut ended = self.turn(&mut transit, Iface::Absent, observer);
        self.is_routed = ended.take().is_some();
        if self.is_routed {
            self.progress.begin_again();
        } else {
            transit.hook = Hook::Prerouting;
            ended = self.turn(&mut transit, Iface::Absent, observer);
        }
        let packet_type = parse_frame(packet.frame(), packet.frame().len()).link.packet_type;
        packet.read_as(Headers { link: LinkHeader { packet_type, ..held.link }, ..held });
        ended
    }

    /// All rules at one hook: the verdict, if it goes no further.
    fn turn<'s>(
        &mut self,
        transit: &mut Transit<'s, '_>,
        output: Iface<'s>,
        observer: &mut impl Observer,
    ) -> Option<FinalVerdict> {
        observer.evaluates(Family::Bridge);
        let (hook, input) = (transit.hook, transit.input);
        let Self { tables, memories, progress, .. } = self;
        let mut walk = Walk::new(transit, Visit::default(), tables, memories);
        walk.progress = *progress;
        walk.hook(hook, input, output, observer);
        *progress = walk.progress;
        let ended = (!progress.is_alive()).then(|| walk.verdict());
        self.mark = transit.mark;
        ended
    }
}

impl<'p, 'w> Walk<'p, '_, 'w> {
    /// The rules of the bridge that the packet crosses have their say at this hook, before its own.
    #[inline]
    pub(crate) fn below(
        &mut self,
        hook: Hook,
        input: Iface<'p>,
        output: Iface<'p>,
        observer: &mut impl Observer,
    ) {
        let has_turn = |below: &&mut Below<'_>| !below.is_routed;
        if self.progress.is_alive()
            && let Some(below) = self.below.as_deref_mut().filter(has_turn)
        {
            let transit = &mut *self.transit;
            let end = transit.packet.headers().end.min(transit.packet.frame().len());
            let frame = parse_frame(&transit.packet.frame()[..end], end);
            let (held, family) = (transit.packet.read_as(frame), transit.family);
            let mut of_bridge = Transit {
                input,
                sets: transit.sets.as_deref_mut(),
                chance: transit.chance,
                mark: transit.mark,
                time: transit.time,
                to_host: Some(false),
                ..Transit::new(&mut *transit.packet, Family::Bridge, hook, transit.host)
            };
            below.progress.alive = self.progress.alive;
            below.turn(&mut of_bridge, output, observer);
            transit.packet.read_as(held);
            transit.mark = below.mark;
            observer.evaluates(family);
            self.over();
        }
    }

    /// Goes on above the rules of a bridge.
    pub(crate) fn above(&mut self, below: &'w mut Below<'w>) {
        self.below = Some(below);
        self.over();
    }

    /// What the bridge's rules have said so far counts here, too.
    fn over(&mut self) {
        let Some(below) = self.below.as_deref() else { return };
        self.progress.join(&below.progress);
    }

    /// Whether it ended under the rules of the bridge below.
    pub(crate) fn ended_below(&self) -> bool {
        self.below.as_deref().is_some_and(|below| !below.progress.is_alive())
    }
}
