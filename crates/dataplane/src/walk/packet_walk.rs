//! [`Walk`]: a packet on its way through the hooks, and what is kept of it from one to the next.

use conntrack::{Attachment, CtView, Visit};
use host::Missing;
use packet::{FlowKey, KnownBytes, Mark, Packet, Read, Snapshot};
use rules::eval::{Alive, By, Claim, Memories, Verdict, Verdicts};
use rules::model::{Family, Hook};
use rules::nat::{Drawn, Redirected};
use rules::{BridgeNote, Iface, Request, Role, Transit};

use super::progress::Progress;
use super::tables::{Attached, Tables};
use crate::arrival::Left;
use crate::disposition::{DropReason, Either, FinalVerdict, Why};
use crate::observer::Observer;
use crate::routing::way::Way;

/// A packet on its way through the hooks.
pub(crate) struct Walk<'p, 'b, 'w> {
    pub(super) transit: &'w mut Transit<'p, 'b>,
    pub(super) tables: &'w Tables,
    pub(super) memories: &'w mut Memories,
    pub(super) progress: Progress,
    pub(super) tracking: Tracking,
    pub(super) recorded: Recorded,
    pub(super) moved: Moved,
    pub(super) ways: Ways,
    /// Whether fragments of the packet passed the chains before defragmentation by themselves.
    pub(super) apart: bool,
    /// The port by which a bridge passes it on.
    pub(super) port: Iface<'p>,
    /// The rules of a bridge that it crosses.
    pub(super) below: Option<&'w mut Below<'w>>,
    /// What refused it in the state that it is taken for, and what accepted it in that one.
    pub(super) taken_by: (Option<(Verdict, By)>, Option<By>),
}

/// What tracking gets to know of a packet, and has said of it.
pub(super) struct Tracking {
    pub(super) visit: Visit,
    /// What tracking said of it, if it walks once more.
    pub(super) known: Option<CtView>,
    /// Tracking has seen the packet.
    pub(super) tracked: bool,
    /// The packet before tracking, if it may walk once more.
    pub(super) snapshot: Option<Snapshot>,
    /// Its connection, should the host answer it.
    pub(super) attachment: Option<Attachment>,
}

/// How a packet was recorded.
pub(super) struct Recorded {
    /// It was seen leaving: no rule that may have dropped it did.
    pub(super) let_go: bool,
    /// What it was seen to be after all translations, if it was.
    pub(super) drawn: Option<Drawn>,
    /// It is the host's own and was recorded as it left, after its translation.
    pub(super) as_left: bool,
    /// Links by which packets may have come were not recorded.
    pub(super) is_partial: bool,
    /// The packet may be another host's, which arrived on such a link.
    pub(super) may_pass: bool,
    /// Of such a packet, what may have been translated.
    pub(super) hidden: Option<Hidden>,
}

/// What translation has made of a packet.
pub(super) struct Moved {
    /// Whether a rule sent it to this host.
    pub(super) redirected: Redirected,
    /// Its destination is open, and the kernel may draw another source port where that one is taken.
    pub(super) moves_source: bool,
}

/// How many ways a packet may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ways {
    /// One.
    #[default]
    One,
    /// Indeterminate: any, or none.
    Indeterminate,
    /// To the host or on.
    Either {
        /// It surely got here.
        was_certain: bool,
        /// On the first way it may have got through.
        survives: bool,
    },
}

/// Ends that are hidden.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hidden {
    pub(super) ends: [bool; 2],
    /// What was recorded of the packet.
    pub(super) recorded: KnownBytes,
    /// The same without its source, where that is hidden.
    pub(super) source: KnownBytes,
    /// Without all that is.
    pub(super) all: KnownBytes,
}

/// The rules of a bridge, and how far a frame got under them.
pub(crate) struct Below<'w> {
    pub(super) tables: &'w Tables,
    pub(super) memories: &'w mut Memories,
    pub(super) progress: Progress,
    pub(super) mark: Mark,
    /// BROUTING took it from the bridge.
    pub(super) is_routed: bool,
}

impl<'p, 'b, 'w> Walk<'p, 'b, 'w> {
    /// At the start of its way.
    #[inline]
    pub(crate) fn new(
        transit: &'w mut Transit<'p, 'b>,
        visit: Visit,
        tables: &'w Tables,
        memories: &'w mut Memories,
    ) -> Self {
        Self {
            transit,
            tables,
            memories,
            progress: Progress::start(),
            tracking: Tracking {
                visit,
                known: None,
                tracked: false,
                snapshot: None,
                attachment: None,
            },
            recorded: Recorded {
                let_go: false,
                drawn: None,
                as_left: false,
                is_partial: false,
                may_pass: false,
                hidden: None,
            },
            moved: Moved { redirected: Redirected::No, moves_source: false },
            ways: Ways::One,
            apart: false,
            port: Iface::Absent,
            below: None,
            taken_by: (None, None),
        }
    }

    /// The packet was seen leaving. Under rules that were in force then, no rule that may have dropped it did.
    pub(crate) fn seen_leaving(&mut self, left: Option<&Left<'_>>) {
        let Some(left) = left else { return };
        self.recorded.let_go = left.let_go;
        self.recorded.drawn =
            Some(Drawn { source: left.source, destination: left.destination, ports: left.ports });
    }

    /// The host's own packet, recorded as it left: what its destination was before is not known.
    pub(crate) fn recorded_leaving(&mut self, as_left: bool, let_go: bool) {
        self.recorded.as_left = as_left;
        if as_left {
            self.recorded.let_go |= let_go;
            self.recorded.drawn = Some(Drawn::of(self.transit.packet));
        }
    }

    /// From here on nothing is known of its result.
    pub(crate) fn is_out_of_sight(&mut self) {
        self.recorded.let_go = false;
    }

    /// The bridge passes it on by this port.
    pub(crate) fn leaves_by(&mut self, port: Iface<'p>) {
        self.port = port;
    }

    /// Goes on as the packet that it completed, with that one's mark.
    pub(crate) fn becomes(&mut self, whole: &'p mut Packet<'b>, mark: Mark) {
        self.transit.packet = whole;
        self.transit.mark = mark;
    }

    /// Some part of it may have been dropped before.
    pub(crate) fn may_be_missing(&mut self, observer: &mut impl Observer) {
        self.may_have_gone(Verdict::Drop, Why::Fragment, observer);
    }

    /// A bridge may pass the packet on without rules.
    pub(crate) fn may_be_kept(&mut self, observer: &mut impl Observer) {
        self.may_have_gone(Verdict::Accept, Why::Host(Missing::BridgeCalls), observer);
    }

    fn may_have_gone(&mut self, as_what: Verdict, why: Why, observer: &mut impl Observer) {
        self.transit.ct.walks_as = None;
        observer.depends_on(why);
        self.progress.may_end(as_what);
    }

    /// The kernel drops it here, for this.
    pub(crate) fn drop_as(&mut self, reason: DropReason) {
        self.progress.drop_as(reason);
    }

    /// Once more, as a packet of which tracking knows no more than this.
    pub(crate) fn again(
        transit: &'w mut Transit<'p, 'b>,
        view: CtView,
        tables: &'w Tables,
        memories: &'w mut Memories,
    ) -> Self {
        let mut walk = Self::new(transit, Visit::default(), tables, memories);
        walk.tracking.known = Some(view);
        walk
    }

    /// Every table at one hook; connections are tracked after the raw table.
    #[inline(always)]
    pub(crate) fn hook(
        &mut self,
        hook: Hook,
        input: Iface<'p>,
        output: Iface<'p>,
        observer: &mut impl Observer,
    ) {
        self.stands_at(hook, input, output);
        match self.tables.at(hook) {
            ([], []) if matches!(hook, Hook::Prerouting | Hook::Output) => self.meet(observer),
            ([], []) => {}
            turns => self.turns(turns, observer),
        }
    }

    /// The turns before defragmentation, of a fragment that comes in.
    pub(crate) fn before_defragmentation(
        &mut self,
        input: Iface<'p>,
        observer: &mut impl Observer,
    ) {
        self.stands_at(Hook::Prerouting, input, Iface::Absent);
        let (before_tracking, _) = self.tables.at(Hook::Prerouting);
        for turn in before_tracking.iter().filter(|turn| turn.sees_fragments) {
            self.turn(turn, observer);
        }
    }

    /// Notes whether fragments of the packet had those turns by themselves.
    pub(crate) fn came_apart(&mut self, apart: bool) {
        self.apart = apart;
    }

    /// It is at a hook from here on, and between these interfaces.
    #[inline(always)]
    pub(super) fn stands_at(&mut self, hook: Hook, input: Iface<'p>, output: Iface<'p>) {
        self.transit.hook = hook;
        self.transit.input = input;
        self.transit.output = output;
        if let BridgeNote::Ports { output, .. } = &mut self.transit.bridge {
            let goes_out = matches!(hook, Hook::Forward | Hook::Postrouting);
            *output = if goes_out { self.port } else { Iface::Absent };
        }
    }

    /// What is attached there has its turns, before tracking first.
    fn turns(
        &mut self,
        (before_tracking, after): (&[Attached], &[Attached]),
        observer: &mut impl Observer,
    ) {
        let is_past = self.apart && self.transit.hook == Hook::Prerouting;
        for turn in before_tracking.iter().filter(|turn| !(is_past && turn.sees_fragments)) {
            self.turn(turn, observer);
        }
        if matches!(self.transit.hook, Hook::Prerouting | Hook::Output) {
            self.meet(observer);
        }
        for turn in after {
            self.turn(turn, observer);
        }
    }

    /// BROUTING, which decides whether a frame is bridged: one that its rules drop is routed, and no other
    /// rule of the bridge sees it.
    pub(crate) fn brouting(
        &mut self,
        input: Iface<'p>,
        output: Iface<'p>,
        observer: &mut impl Observer,
    ) {
        self.hook(Hook::Brouting, input, output, observer);
        let Some(by) = self.progress.verdicts.by(Verdict::Drop) else { return };
        let maybe = self.progress.is_alive();
        self.progress.verdicts = Verdicts::default();
        self.progress.verdicts.add(Verdict::Accept, Some(by));
        if maybe {
            self.progress.alive = Alive::Maybe;
        }
    }

    #[inline]
    pub(super) fn turn(&mut self, turn: &Attached, observer: &mut impl Observer) {
        if !self.progress.is_alive() {
            return;
        }
        match turn.role {
            Some(Role::Translate) => {
                if self.tables.tracks {
                    self.transit.ct.walks_as = None;
                    self.nat(turn, observer);
                }
            }
            Some(_) => {
                self.chains(turn, observer);
            }
            None => self.foreign(turn, observer),
        }
    }

    /// A base chain and the chains that it leads to, which may end the packet's way; and which rule translates its flow.
    #[inline]
    pub(super) fn chains(&mut self, turn: &Attached, observer: &mut impl Observer) -> Claim {
        let role = turn.role.unwrap_or(Role::Other);
        observer.enters(turn.table, turn.chain(), self.transit.hook);
        let found = self.rules_of(turn, self.progress.alive, observer);
        if observer.has_settled() {
            self.settle(&found);
        }
        if self.transit.ct.walks_as.is_some() {
            self.follow_taken(role, found.as_taken());
        }
        let is_let_go = self.recorded.let_go && found.may_be(Verdict::Accept);
        // Most packets certainly go on: nothing is to be joined then.
        if is_let_go || matches!(found.only(), Some((Verdict::Accept, _))) {
            self.progress.accept((role, self.transit.hook), &found);
            return found.translated_by();
        }
        self.progress.take(&found);
        self.progress.accept((role, self.transit.hook), &found);
        found.translated_by()
    }

    /// It is known to have come to a rule of the table that it just walked: nothing before ended its way.
    fn settle(&mut self, found: &Verdicts) {
        self.progress.settle(found);
        self.transit.ct.walks_as = None;
    }

    /// What the rules of a base chain say. Where their walk was given up, they may have done anything.
    #[inline]
    pub(super) fn rules_of(
        &mut self,
        turn: &Attached,
        entry: Alive,
        observer: &mut impl Observer,
    ) -> Verdicts {
        let (transit, memories) = (&mut *self.transit, &mut *self.memories);
        let found = self.tables.walk(turn, transit, entry, memories, observer);
        if found.is_given_up() {
            self.progress.given_up = true;
            if !self.tracking.tracked {
                self.transit.ct.request(Request::Unknown, false);
            }
        }
        found
    }

    /// Forwarding lowers the time to live between PREROUTING and FORWARD, which sees the lower one, and drops what has none
    /// left (`ip_forward`, `ip6_forward`).
    pub(crate) fn lower_ttl(&mut self, observer: &mut impl Observer) {
        if !self.progress.is_alive() || !self.transit.family.is_ip() {
            return;
        }
        let offset = if self.transit.family == Family::Ipv6 { 7 } else { 8 };
        match self.transit.net::<1>(offset) {
            Read::Known([ttl]) if ttl > 1 => {
                self.transit.packet.set_ttl(ttl - 1);
                return observer.ttl(Some(ttl - 1));
            }
            Read::Known(_) => self.progress.drop_as(DropReason::Ttl),
            Read::Unknown | Read::Absent if self.recorded.let_go => return,
            Read::Unknown | Read::Absent => {
                self.progress.may_drop_as(DropReason::Ttl);
                observer.depends_on(Why::NotCaptured);
            }
        }
        observer.ttl(None);
    }

    /// It goes this way, as routing decided.
    pub(crate) fn follow(&mut self, way: &Way<'_>) {
        self.transit.to_host = way.ends_here();
        self.transit.mtu = way.mtu;
    }

    /// Its mark.
    pub(crate) fn mark(&self) -> Mark {
        self.transit.mark
    }

    /// Whether it may still be on its way.
    pub(crate) fn is_alive(&self) -> bool {
        self.progress.is_alive()
    }

    /// Whether it certainly is.
    pub(crate) fn is_certain(&self) -> bool {
        self.progress.alive == Alive::Certain
    }

    /// Its time, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.transit.time.unwrap_or(0)
    }

    /// The family of its rules.
    pub(crate) fn family(&self) -> Family {
        self.transit.family
    }

    /// Connections are tracked under its rules.
    pub(crate) fn tracks(&self) -> bool {
        self.tables.tracks
    }

    /// The packet, as rewritten so far.
    pub(crate) fn packet(&self) -> &Packet<'b> {
        self.transit.packet
    }

    /// Its addresses and ports as they are now, where all of them are known.
    pub(crate) fn tuple(&self) -> Option<FlowKey> {
        self.tables.tracks.then(|| FlowKey::of(self.transit.packet).known()).flatten()
    }

    /// Whether no table and no tracking sees it before it is routed.
    pub(crate) fn is_unseen_before_routing(&self) -> bool {
        !self.tables.tracks && self.tables.at(Hook::Prerouting) == (&[], &[])
    }

    /// Whether a rule has sent it to this host.
    pub(crate) fn redirected(&self) -> Redirected {
        self.moved.redirected
    }

    /// Its verdict, and what may have given it where that is not certain.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> (FinalVerdict, Option<Either>) {
        // Most packets certainly went on, or certainly did not, by the one rule or policy that says so.
        match self.progress.sure().filter(|_| self.ways == Ways::One) {
            Some(verdict) => (verdict, None),
            None => (self.verdict(), self.either()),
        }
    }

    /// Its verdict.
    pub(crate) fn verdict(&mut self) -> FinalVerdict {
        self.progress.verdict(self.ways == Ways::Indeterminate)
    }

    /// What may have given the verdict, where it is certain and what gave it is not.
    pub(crate) fn either(&self) -> Option<Either> {
        self.progress.either()
    }
}
