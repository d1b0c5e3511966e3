//! A packet's walk through the hooks: tables, tracking, time to live, and what is left of its verdicts.
//!
//! [`crate::handler`] says which hooks in which order, `tables` which tables stand there, `nat` what the nat chains
//! decide.

mod answer;
mod below;
mod linear;
mod nat;
mod size;
mod tables;
mod taken;
mod verdict;
mod ways;

use conntrack::{
    Attachment, Certainty, Confirmation, CtView, EntryHook, Proxy, Space, States, Taken, Template,
    Visit,
};
use packet::{FlowKey, Mark, Packet, Read, Snapshot};
use rules::eval::{Alive, By, Claim, Givers, Memories, Verdict, Verdicts};
use rules::model::{Family, Hook};
use rules::nat::payload::{self, Written};
use rules::nat::{Drawn, Redirected, forget_payload, undo};
use rules::{BridgeNote, Connection, Iface, Request, Role, Transit};

use crate::arrival::{Left, Passed};
use crate::disposition::{DropReason, Midstream, Why};
use crate::observer::Observer;
use crate::way::Way;

pub(crate) use below::Below;
pub(crate) use size::Sizes;
pub(crate) use tables::{Rules, Tables};
use ways::Ways;

fn certainty(alive: Alive) -> Certainty {
    if alive == Alive::Certain { Certainty::Certain } else { Certainty::Maybe }
}

/// A packet on its way through the hooks.
pub(crate) struct Walk<'p, 'b, 'w> {
    transit: &'w mut Transit<'p, 'b>,
    tables: &'w Tables,
    memories: &'w mut Memories,
    /// What tracking is told of the packet.
    visit: Visit,
    /// What tracking said of it, if it walks once more.
    known: Option<CtView>,
    /// Tracking has seen the packet.
    tracked: bool,
    /// The packet before tracking, if it may walk once more.
    snapshot: Option<Snapshot>,

    /// Whether it is still on its way.
    alive: Alive,
    verdicts: Verdicts,
    /// What accepted it in the filter table, else in the last table that it passed.
    accepted: Option<Givers>,
    passed_filter: bool,
    /// A table's walk was given up: nothing is known of its result.
    given_up: bool,
    /// Tracking may have dropped it.
    may_be_dropped: bool,
    /// What dropped it, or may have, if that was no rule.
    untold: Option<DropReason>,
    ways: Ways,
    /// Whether a rule sent it to this host.
    redirected: Redirected,
    /// Its destination is open, and the kernel may draw another source port for one that it may have.
    moves_source: bool,
    /// What it was seen to be after all translations, if it was.
    drawn: Option<Drawn>,
    /// Its connection, should the host answer it.
    attachment: Option<Attachment>,
    /// It was seen leaving: no rule that may have dropped it did.
    let_go: bool,
    /// It is the host's own and was recorded as it left, after its translation.
    as_left: bool,
    /// The port by which a bridge passes it on.
    port: Iface<'p>,
    /// The rules of a bridge that it crosses.
    below: Option<&'w mut Below<'w>>,
    /// What refused it in the state that it is taken for, and what accepted it in that one, as `accepted`.
    taken_by: (Option<(Verdict, By)>, Option<By>),
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
            visit,
            known: None,
            tracked: false,
            snapshot: None,
            alive: Alive::Certain,
            verdicts: Verdicts::default(),
            accepted: None,
            passed_filter: false,
            given_up: false,
            may_be_dropped: false,
            untold: None,
            ways: Ways::One,
            redirected: Redirected::No,
            moves_source: false,
            drawn: None,
            attachment: None,
            let_go: false,
            as_left: false,
            port: Iface::Absent,
            below: None,
            taken_by: (None, None),
        }
    }

    /// The packet was seen leaving. Under rules that were in force then, no rule that may have dropped it did.
    pub(crate) fn seen_leaving(&mut self, left: Option<&Left<'_>>) {
        let Some(left) = left else { return };
        self.let_go = left.let_go;
        self.drawn =
            Some(Drawn { source: left.source, destination: left.destination, ports: left.ports });
    }

    /// The host's own packet, recorded as it left: what its destination was before is not known.
    pub(crate) fn recorded_leaving(&mut self, as_left: bool, let_go: bool) {
        self.as_left = as_left;
        if as_left {
            self.let_go |= let_go;
            self.drawn = Some(Drawn::of(self.transit.packet));
        }
    }

    /// Gives a packet that was recorded as it left the ends that it was made with.
    pub(crate) fn made_by_host(&mut self) {
        let now = self.transit.time.unwrap_or(0);
        if let Some(tracker) = &mut self.transit.ct.tracker {
            tracker.begin(self.visit.began.unwrap_or(now));
        }
        undo(self.transit);
    }

    /// From here on nothing is known of its result.
    pub(crate) fn is_out_of_sight(&mut self) {
        self.let_go = false;
    }

    /// The bridge passes it on by this port.
    pub(crate) fn leaves_by(&mut self, port: Iface<'p>) {
        self.port = port;
    }

    /// What a bridge passes on by its ports beside what it gives to the host, or to another port: counted, and not
    /// part of the verdict. What was not seen leaving may have been dropped, or there was none.
    pub(crate) fn passed_on(
        &mut self,
        copies: impl Iterator<Item = Passed<'p>>,
        bridge: Iface<'p>,
        observer: &mut impl Observer,
    ) {
        let before = (self.alive, self.verdicts, self.accepted, self.passed_filter);
        let (mark, port, let_go) = (self.transit.mark, self.port, self.let_go);
        for copy in copies {
            self.transit.ct.walks_as = None;
            self.port = copy.port;
            if !copy.is_seen && self.alive == Alive::Certain {
                (self.alive, self.let_go) = (Alive::Maybe, false);
            }
            self.hook(Hook::Forward, bridge, bridge, observer);
            self.hook(Hook::Postrouting, bridge, bridge, observer);
            (self.alive, self.verdicts, self.accepted, self.passed_filter) = before;
            (self.transit.mark, self.port, self.let_go) = (mark, port, let_go);
        }
    }

    /// Goes on as the packet that it completed, with that one's mark.
    pub(crate) fn becomes(&mut self, whole: &'p mut Packet<'b>, mark: Mark) {
        self.transit.packet = whole;
        self.transit.mark = mark;
    }

    /// Some part of it may have been dropped before.
    pub(crate) fn may_be_missing(&mut self, observer: &mut impl Observer) {
        self.transit.ct.walks_as = None;
        observer.depends_on(Why::Fragment);
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Maybe;
    }

    /// The kernel drops it here, for this.
    pub(crate) fn drop_as(&mut self, reason: DropReason) {
        self.untold.get_or_insert(reason);
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Gone;
    }

    /// Once more, as a packet of which tracking knows no more than this.
    pub(crate) fn again(
        transit: &'w mut Transit<'p, 'b>,
        view: CtView,
        tables: &'w Tables,
        memories: &'w mut Memories,
    ) -> Self {
        Self { known: Some(view), ..Self::new(transit, Visit::default(), tables, memories) }
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
        self.transit.hook = hook;
        self.transit.input = input;
        self.transit.output = output;
        if let BridgeNote::Ports { output, .. } = &mut self.transit.bridge {
            let goes_out = matches!(hook, Hook::Forward | Hook::Postrouting);
            *output = if goes_out { self.port } else { Iface::Absent };
        }
        match self.tables.at(hook) {
            ([], []) if matches!(hook, Hook::Prerouting | Hook::Output) => self.meet(observer),
            ([], []) => {}
            turns => self.turns(turns, observer),
        }
    }

    /// Whether nobody asks for the connection of the packet, which is on its way.
    #[inline]
    fn is_untracked(&self) -> bool {
        let Connection { tracker, given, request, .. } = &self.transit.ct;
        !self.tables.tracks
            && tracker.is_none()
            && given.is_none()
            && self.known.is_none()
            && *request == Request::Plain
            && self.alive != Alive::Gone
    }

    /// The tables have their turns, those before tracking first.
    fn turns(&mut self, (before_tracking, after): (&[u8], &[u8]), observer: &mut impl Observer) {
        for table in before_tracking {
            self.table(usize::from(*table), observer);
        }
        if matches!(self.transit.hook, Hook::Prerouting | Hook::Output) {
            self.meet(observer);
        }
        for table in after {
            self.table(usize::from(*table), observer);
        }
    }

    /// Tracking has its turn, where anybody asks for connections.
    #[inline]
    fn meet(&mut self, observer: &mut impl Observer) {
        if self.is_untracked() {
            self.tracked = true;
            self.transit.ct.view = CtView::UNKNOWN;
            return;
        }
        self.find_connection(observer);
    }

    fn find_connection(&mut self, observer: &mut impl Observer) {
        let before = self.tracked;
        self.track(observer);
        if self.tables.tracks && !before && self.alive != Alive::Gone {
            observer.tracked(&self.transit.ct.view, self.transit.ct.flow());
        }
    }

    /// It comes from after the hooks where connections are tracked: there is one, or would be.
    pub(crate) fn was_tracked(&mut self, is_own: bool, observer: &mut impl Observer) {
        self.transit.hook = if is_own { Hook::Output } else { Hook::Prerouting };
        self.meet(observer);
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
        let Some(by) = self.verdicts.by(Verdict::Drop) else { return };
        let maybe = self.alive != Alive::Gone;
        self.verdicts = Verdicts::default();
        self.verdicts.add(Verdict::Accept, Some(by));
        if maybe {
            self.alive = Alive::Maybe;
        }
    }

    /// Finds the packet's connection, as the raw table asked.
    fn track(&mut self, observer: &mut impl Observer) {
        if self.tracked || self.alive == Alive::Gone {
            return;
        }
        self.tracked = true;
        if let Some(view) = self.known {
            self.transit.ct.view = view;
            return;
        }
        let template = match self.transit.ct.request {
            Request::Plain => Template::default(),
            Request::Template(template) => template,
            Request::Untracked | Request::Attached => return,
            Request::Unknown => {
                self.transit.ct.view = CtView::UNKNOWN;
                return;
            }
        };
        let Connection { tracker, view, given, .. } = &mut self.transit.ct;
        let given = given.map(|state| CtView::without_flow(States::of(state)));
        let Some(tracker) = tracker else {
            *view = given.unwrap_or(CtView::UNKNOWN);
            return;
        };
        let visit = Visit {
            now: self.transit.time.unwrap_or(0),
            hook: match self.transit.hook {
                Hook::Output => EntryHook::Output,
                _ => EntryHook::Prerouting,
            },
            template,
            certainty: certainty(self.alive),
            proxy: if self.tables.shows_proxy { self.visit.proxy } else { Proxy::None },
            ..self.visit
        };
        *view = tracker.track(self.transit.packet, &visit);
        if let Some(given) = given.filter(|given| given.states != view.states) {
            // Of that connection nothing but its state is known.
            tracker.discard(view);
            *view = given;
        }
        let space = view.space;
        if let Taken::For(state) = view.taken {
            self.snapshot = Some(self.transit.packet.snapshot());
            let walks = view.as_taken().is_some() && self.may_tell_taken();
            self.transit.ct.walks_as = walks.then_some(state);
        }
        match space {
            Space::Enough | Space::Tight => {}
            Space::MayBeFull => self.may_drop(Why::Room, observer),
            Space::Full => self.drop_untold(),
        }
    }

    /// The packet before tracking, and what it is taken for where its states do not agree.
    pub(crate) fn taken(&mut self) -> Option<(Snapshot, CtView)> {
        let view = self.transit.ct.view.as_taken()?;
        Some((self.snapshot.take()?, view))
    }

    /// The packet leaves, if it is still on its way: its connection is there from now on.
    #[inline]
    pub(crate) fn confirm(&mut self, observer: &mut impl Observer) {
        if self.known.is_some() {
            return;
        }
        if self.transit.ct.tracker.is_some() {
            return self.confirm_connection(observer);
        }
        if self.alive != Alive::Gone {
            observer.leaves(self.transit.packet);
        }
    }

    fn confirm_connection(&mut self, observer: &mut impl Observer) {
        self.keep_connection();
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        let told = tracker.telling(view.flow);
        if self.alive == Alive::Gone {
            tracker.discard(view);
            told.into_iter().for_each(|flow| tracker.tell(flow));
            return;
        }
        let now = self.transit.time.unwrap_or(0);
        let certainty = certainty(self.alive);
        let confirmation = tracker.confirm(self.transit.packet, view, now, certainty);
        told.into_iter().for_each(|flow| tracker.tell(flow));
        match confirmation {
            Confirmation::Pass => {}
            Confirmation::Clash | Confirmation::Helper => self.drop_untold(),
            Confirmation::MayClash => self.may_drop(Why::Translation, observer),
            Confirmation::Edited(edit) => {
                observer.edited(self.transit.packet, &edit);
                let written = payload::write(self.transit.packet, &edit);
                self.after_helper(written, observer);
            }
            Confirmation::Rewritten => {
                // Whether numbers are moved at all is not known, nor then whether that ends it.
                if payload::can_be_renumbered(self.transit.packet) != Written::Done {
                    self.may_drop(Why::Translation, observer);
                }
                forget_payload(self.transit);
            }
        }
        if self.alive != Alive::Gone {
            observer.leaves(self.transit.packet);
        }
        observer.settled(self.transit.ct.flow());
    }

    /// What a helper's connection has written into the packet may be its end.
    fn after_helper(&mut self, written: Written, observer: &mut impl Observer) {
        match written {
            Written::Done => {}
            Written::Dropped => self.drop_untold(),
            Written::Unknown => {
                forget_payload(self.transit);
                self.may_drop(Why::Translation, observer);
            }
        }
    }

    /// Tracking may drop the packet, which this would tell.
    fn may_drop(&mut self, why: Why, observer: &mut impl Observer) {
        if self.let_go {
            return;
        }
        self.may_be_dropped = true;
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Maybe;
        observer.depends_on(why);
    }

    /// Tracking drops the packet.
    fn drop_untold(&mut self) {
        self.drop_as(DropReason::Conntrack);
    }

    /// It comes back to this host by `lo`, where its connection's helper sees it once more.
    pub(crate) fn loops_back(&mut self) {
        let now = self.transit.time.unwrap_or(0);
        if let Connection { tracker: Some(tracker), view, again: false, .. } = &mut self.transit.ct
        {
            tracker.loops_back(view, now);
        }
    }

    /// Whether its connection was taken for established.
    pub(crate) fn midstream(&self) -> Midstream {
        match self.transit.ct.view {
            CtView { assumed: false, .. } => Midstream::No,
            CtView { is_first: true, .. } => Midstream::First,
            _ => Midstream::Later,
        }
    }

    #[inline]
    fn table(&mut self, table: usize, observer: &mut impl Observer) {
        if self.alive == Alive::Gone {
            return;
        }
        if self.tables.role(table) == Role::Translate {
            if self.tables.tracks {
                self.transit.ct.walks_as = None;
                self.nat(table, observer);
            }
            return;
        }
        self.chains(table, observer);
    }

    /// One table's chains, which may end the packet's way; and which rule translates its flow.
    #[inline]
    fn chains(&mut self, table: usize, observer: &mut impl Observer) -> Claim {
        observer.enters(table as u32, self.transit.hook);
        let found = self.rules_of(table, self.alive, observer);
        if self.transit.ct.walks_as.is_some() {
            self.follow_taken(table, found.as_taken());
        }
        let is_let_go = self.let_go && found.may_be(Verdict::Accept);
        // Most packets certainly go on: nothing is to be joined then.
        if is_let_go || matches!(found.only(), Some((Verdict::Accept, _))) {
            self.accepted(table, &found);
            return found.translated_by();
        }
        match found.sure() {
            Some((verdict, by)) => self.verdicts.add(verdict, by),
            None => self.verdicts.extend(&found.without_accept()),
        }
        self.alive = match (found.may_be(Verdict::Accept), found.only().is_some()) {
            (false, _) => Alive::Gone,
            (true, true) => self.alive,
            (true, false) => Alive::Maybe,
        };
        self.accepted(table, &found);
        found.translated_by()
    }

    /// What a table's rules say. Where their walk was given up, they may have done anything.
    #[inline]
    fn rules_of(&mut self, table: usize, entry: Alive, observer: &mut impl Observer) -> Verdicts {
        let (transit, memories) = (&mut *self.transit, &mut *self.memories);
        let found = self.tables.walk(table, transit, entry, memories, observer);
        if found.is_given_up() {
            self.given_up = true;
            if !self.tracked {
                self.transit.ct.request(Request::Unknown, false);
            }
        }
        found
    }

    /// What accepted it here counts as what accepted it, if nothing weightier does.
    #[inline]
    fn accepted(&mut self, table: usize, found: &Verdicts) {
        let role = self.tables.role(table);
        if self.tells(role) {
            self.accepted = found.givers(Verdict::Accept);
            self.passed_filter |= role == Role::Filter;
        }
    }

    /// Whether what accepts it in a table of this role is what accepted it so far.
    fn tells(&self, role: Role) -> bool {
        let tells = !matches!(role, Role::Translate | Role::Readdress);
        role == Role::Filter || !self.passed_filter && tells
    }

    /// Forwarding lowers the time to live between PREROUTING and FORWARD, and drops what has none left.
    pub(crate) fn lower_ttl(&mut self, observer: &mut impl Observer) {
        if self.alive == Alive::Gone || !self.transit.family.is_ip() {
            return;
        }
        let offset = if self.transit.family == Family::Ipv6 { 7 } else { 8 };
        match self.transit.net::<1>(offset) {
            Read::Known([ttl]) if ttl > 1 => {
                self.transit.packet.set_ttl(ttl - 1);
                return observer.ttl(Some(ttl - 1));
            }
            Read::Known(_) => self.alive = Alive::Gone,
            Read::Unknown | Read::Absent if self.let_go => return,
            Read::Unknown | Read::Absent => {
                self.alive = Alive::Maybe;
                observer.depends_on(Why::NotCaptured);
            }
        }
        observer.ttl(None);
        self.untold.get_or_insert(DropReason::Ttl);
        self.verdicts.add(Verdict::Drop, None);
    }

    /// It goes this way, as routing decided.
    pub(crate) fn goes(&mut self, way: &Way<'_>) {
        self.transit.to_host = way.ends_here();
        self.transit.mtu = way.mtu;
    }

    /// Its mark.
    pub(crate) fn mark(&self) -> Mark {
        self.transit.mark
    }

    /// Whether it may still be on its way.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive != Alive::Gone
    }

    /// Whether it certainly is.
    pub(crate) fn is_certain(&self) -> bool {
        self.alive == Alive::Certain
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
        self.redirected
    }
}
