//! A packet's walk through the hooks: tables, tracking, time to live, and what is left of its verdicts.
//!
//! [`crate::handler`] says which hooks in which order, `nat` what the nat chains decide.

use packet::{Packet, Read};
use rules::conntrack::{Certainty, Confirmation, CtView, Place, Side, States, Template, Visit};
use rules::eval::{self, Alive, By, Memories, Verdict, Verdicts};
use rules::model::{Family, Hook, Ruleset};
use rules::nat::{self, Binding, Redirected, Translated, Turn, icmp_error, rewrite};
use rules::{Connection, Iface, Transit, Wish};

use crate::disposition::{DropReason, Judgement, Midstream, Why};
use crate::handler::Observer;

/// The tables to walk at each hook, in order.
#[derive(Debug)]
pub(crate) struct Tables {
    /// By `Hook as usize`: the tables, of which the first few are walked before tracking.
    hooks: [(Vec<usize>, usize); 6],
    /// Connections are tracked; without that the nat chains are never walked.
    tracks: bool,
    /// Some rule translates.
    translates: bool,
}

impl Tables {
    pub(crate) fn of(ruleset: &Ruleset) -> Self {
        let hooks = [
            Hook::Prerouting,
            Hook::Input,
            Hook::Forward,
            Hook::Output,
            Hook::Postrouting,
            Hook::Brouting,
        ];
        Self {
            tracks: ruleset.tracks(),
            translates: ruleset.translates(),
            hooks: hooks.map(|hook| {
                let mut tables: Vec<usize> = eval::tables_at(ruleset, hook).collect();
                if hook == Hook::Input {
                    // There the source is translated, behind everything else.
                    tables.sort_by_key(|table| ruleset.tables[*table].name == "nat");
                }
                let raw = tables.iter().filter(|table| ruleset.tables[**table].name == "raw");
                let raw = raw.count();
                (tables, raw)
            }),
        }
    }

    /// The raw tables and the others at a hook.
    fn at(&self, hook: Hook) -> (&[usize], &[usize]) {
        let (tables, raw) = &self.hooks[hook as usize];
        tables.split_at(*raw)
    }
}

fn certainty(alive: Alive) -> Certainty {
    if alive == Alive::Certain { Certainty::Certain } else { Certainty::Maybe }
}

/// A packet on its way through the hooks.
pub(crate) struct Walk<'p, 'b, 'w> {
    transit: Transit<'p, 'b>,
    ruleset: &'w Ruleset,
    tables: &'w Tables,
    memories: &'w mut Memories,
    /// Number of the packet.
    number: u64,
    /// Tracking has seen the packet.
    tracked: bool,

    /// Whether it is still on its way.
    alive: Alive,
    verdicts: Verdicts,
    /// What accepted it in the filter table, else in the last table that it passed.
    accepted_by: Option<By>,
    passed_filter: bool,
    ttl_ran_out: bool,
    dropped_by_tracking: bool,
    /// It is not known which path it takes behind a translation.
    lost_way: bool,
}

impl<'p, 'b, 'w> Walk<'p, 'b, 'w> {
    /// At the start of its way.
    pub(crate) fn new(
        transit: Transit<'p, 'b>,
        number: u64,
        (ruleset, tables, memories): (&'w Ruleset, &'w Tables, &'w mut Memories),
    ) -> Self {
        Self {
            transit,
            ruleset,
            tables,
            memories,
            number,
            tracked: false,
            alive: Alive::Certain,
            verdicts: Verdicts::default(),
            accepted_by: None,
            passed_filter: false,
            ttl_ran_out: false,
            dropped_by_tracking: false,
            lost_way: false,
        }
    }

    /// Every table at one hook; connections are tracked behind the raw table.
    pub(crate) fn hook(
        &mut self,
        hook: Hook,
        (input, output): (Iface<'p>, Iface<'p>),
        observer: &mut impl Observer,
    ) {
        self.transit.hook = hook;
        self.transit.input = input;
        self.transit.output = output;
        let (raw, others) = self.tables.at(hook);
        for table in raw {
            self.table(*table, observer);
        }
        if matches!(hook, Hook::Prerouting | Hook::Output) {
            let before = self.tracked;
            self.track();
            if self.tables.tracks && !before && self.alive != Alive::Gone {
                observer.tracked(&self.transit.ct.view, self.transit.ct.flow());
            }
        }
        for table in others {
            self.table(*table, observer);
        }
    }

    /// BROUTING, which decides whether a frame is bridged: one that its rules drop is routed, and no other
    /// rule of the bridge sees it.
    pub(crate) fn brouting(
        &mut self,
        (input, output): (Iface<'p>, Iface<'p>),
        observer: &mut impl Observer,
    ) {
        self.hook(Hook::Brouting, (input, output), observer);
        let Some(by) = self.verdicts.by(Verdict::Drop) else { return };
        let maybe = self.alive != Alive::Gone;
        self.verdicts = Verdicts::default();
        self.verdicts.add(Verdict::Accept, Some(by));
        if maybe {
            self.alive = Alive::Maybe;
        }
    }

    /// Finds the packet's connection, as the raw table asked.
    fn track(&mut self) {
        if self.tracked || self.alive == Alive::Gone {
            return;
        }
        self.tracked = true;
        let template = match self.transit.ct.wish {
            Wish::Plain => Template::default(),
            Wish::Template(template) => template,
            Wish::Untracked => return,
            Wish::Unknown => {
                self.transit.ct.view = CtView::UNKNOWN;
                return;
            }
        };
        let Connection { tracker, view, said, .. } = &mut self.transit.ct;
        let said = said.map(|state| CtView::without_flow(States::of(state)));
        let Some(tracker) = tracker else {
            *view = said.unwrap_or(CtView::UNKNOWN);
            return;
        };
        let visit = Visit {
            now: self.transit.time.unwrap_or(0),
            frame: self.number,
            place: match self.transit.hook {
                Hook::Output => Place::Output,
                _ => Place::Prerouting,
            },
            template,
            certainty: certainty(self.alive),
        };
        *view = tracker.track(self.transit.packet, &visit);
        if let Some(said) = said.filter(|said| said.states != view.states) {
            // Of that connection nothing but its state is known.
            tracker.discard(view);
            *view = said;
        }
        if view.table_full {
            self.drop_untold();
        }
    }

    /// The packet leaves, if it is still on its way: its connection is there from now on.
    pub(crate) fn confirm(&mut self, observer: &mut impl Observer) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else {
            if self.alive != Alive::Gone {
                observer.leaves(self.transit.packet);
            }
            return;
        };
        if self.alive == Alive::Gone {
            tracker.discard(view);
            return;
        }
        let now = self.transit.time.unwrap_or(0);
        let certainty = certainty(self.alive);
        match tracker.confirm(self.transit.packet, view, now, certainty) {
            Confirmation::Pass => {}
            Confirmation::Clash | Confirmation::Helper => self.drop_untold(),
            Confirmation::MayClash => {
                self.verdicts.add(Verdict::Drop, None);
                self.alive = Alive::Maybe;
                observer.hangs_on(Why::Translation);
            }
            Confirmation::Rewritten => nat::forget_payload(&mut self.transit),
        }
        if self.alive != Alive::Gone {
            observer.leaves(self.transit.packet);
        }
        observer.settled(self.transit.ct.flow());
    }

    /// Tracking drops the packet.
    fn drop_untold(&mut self) {
        self.dropped_by_tracking = true;
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Gone;
    }

    /// Whether its connection was taken for established.
    pub(crate) fn midstream(&self) -> Midstream {
        match self.transit.ct.view {
            CtView { assumed: false, .. } => Midstream::No,
            CtView { is_first: true, .. } => Midstream::First,
            _ => Midstream::Later,
        }
    }

    fn table(&mut self, table: usize, observer: &mut impl Observer) {
        if self.alive == Alive::Gone {
            return;
        }
        let name = self.ruleset.tables[table].name;
        if name == "nat" && self.ruleset.family.is_ip() {
            if self.tables.tracks {
                self.nat(table, observer);
            }
            return;
        }
        self.chains(table, observer);
    }

    /// One table's chains, which may end the packet's way.
    fn chains(&mut self, table: usize, observer: &mut impl Observer) {
        observer.enters(table as u32, self.transit.hook);
        let (ruleset, memories) = (self.ruleset, &mut *self.memories);
        let name = ruleset.tables[table].name;
        let found = eval::walk(ruleset, table, &mut self.transit, self.alive, memories, observer);
        self.verdicts.extend(&found.without_accept());
        self.alive = match (found.may_be(Verdict::Accept), found.only().is_some()) {
            (false, _) => Alive::Gone,
            (true, true) => self.alive,
            (true, false) => Alive::Maybe,
        };
        if name == "filter" || !self.passed_filter && name != "nat" {
            self.accepted_by = found.by(Verdict::Accept);
            self.passed_filter |= name == "filter";
        }
    }

    /// The nat table, and the translation of the packet as its flow has it.
    fn nat(&mut self, table: usize, observer: &mut impl Observer) {
        let side = nat::side_at(self.transit.hook);
        // A flow's end is decided on one way only.
        let turn = if self.lost_way { Turn::Doubt } else { nat::turn(&self.transit, side) };
        let translated = match turn {
            Turn::Pass => Translated::No,
            Turn::Rewrite => rewrite::packet(&mut self.transit, side),
            Turn::Decide => self.decide(table, side, observer),
            Turn::Doubt => self.doubt(table, side, observer),
            Turn::Error => icmp_error::packet(&mut self.transit, side),
        };
        self.transit.ct.binding = Binding::Closed;
        match translated {
            Translated::No => {}
            Translated::Dropped => self.drop_untold(),
            Translated::To(..) | Translated::Unknown => observer.translated(side, translated),
        }
    }

    /// The first packet of a flow: the chains decide for all of it.
    fn decide(&mut self, table: usize, side: Side, observer: &mut impl Observer) -> Translated {
        self.transit.ct.binding = Binding::Open;
        self.chains(table, observer);
        if self.alive == Alive::Gone {
            return Translated::No;
        }
        if self.transit.ct.binding == Binding::Open {
            nat::bind_null(&mut self.transit, side);
        }
        if self.transit.ct.binding == Binding::Lost {
            self.lose_translation(side);
        }
        rewrite::packet(&mut self.transit, side)
    }

    /// Whether the chains see the packet, or saw its flow, is not known: what they may do is forgotten.
    fn doubt(&mut self, table: usize, side: Side, observer: &mut impl Observer) -> Translated {
        let (ruleset, memories) = (self.ruleset, &mut *self.memories);
        observer.enters(table as u32, self.transit.hook);
        let found = eval::walk(ruleset, table, &mut self.transit, Alive::Maybe, memories, observer);
        if found.may_be(Verdict::Drop) {
            self.verdicts.extend(&found.without_accept());
            self.alive = Alive::Maybe;
        }
        // What may answer a flow that was lost is no flow of its own, or one that the rules decide.
        let answers_any = self.tables.translates && nat::answers_any(&mut self.transit);
        let is_lost =
            self.transit.ct.binding == Binding::Lost || nat::is_translated(&self.transit, side);
        if is_lost {
            self.lose_translation(side);
        } else {
            self.settle_assumed(side);
        }
        if is_lost || answers_any {
            nat::forget(&mut self.transit, side);
            return Translated::Unknown;
        }
        Translated::No
    }

    fn lose_translation(&mut self, side: Side) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        if let Some(flow) = view.flow {
            tracker.lose_translation(flow, view.direction, side);
        }
    }

    /// A flow that was taken for established, and that no rule may translate, is not translated.
    fn settle_assumed(&mut self, side: Side) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        if let Some(flow) = view.flow.filter(|_| view.assumed).and_then(|at| tracker.flow_mut(at)) {
            flow.decide(side);
        }
    }

    /// Forwarding lowers the time to live between PREROUTING and FORWARD, and drops what has none left.
    pub(crate) fn lower_ttl(&mut self, observer: &mut impl Observer) {
        if self.alive == Alive::Gone || !self.ruleset.family.is_ip() {
            return;
        }
        let offset = if self.transit.family == Family::Ipv6 { 7 } else { 8 };
        match self.transit.net::<1>(offset) {
            Read::Known([ttl]) if ttl > 1 => {
                self.transit.packet.set_ttl(ttl - 1);
                return observer.ttl(Some(ttl - 1));
            }
            Read::Known(_) => self.alive = Alive::Gone,
            Read::Unknown | Read::Absent => {
                self.alive = Alive::Maybe;
                observer.hangs_on(Why::NotCaptured);
            }
        }
        observer.ttl(None);
        self.ttl_ran_out = true;
        self.verdicts.add(Verdict::Drop, None);
    }

    /// The packet, as rewritten so far.
    pub(crate) fn packet(&self) -> &Packet<'b> {
        self.transit.packet
    }

    /// Whether a rule has sent it to this host.
    pub(crate) fn redirected(&self) -> Redirected {
        self.transit.ct.redirected
    }

    /// Where it goes from here is not known, and so neither what becomes of it.
    pub(crate) fn lose_way(&mut self, observer: &mut impl Observer) {
        if self.alive == Alive::Gone {
            return;
        }
        observer.hangs_on(Why::Translation);
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Maybe;
        self.lost_way = true;
    }

    /// Whether it may go more than one way: then the rules on each may see it.
    pub(crate) fn lost_way(&self) -> bool {
        self.lost_way
    }

    /// Where it may go more than one way, it may be on the other one, whatever became of it on this one.
    pub(crate) fn other_way(&mut self) {
        if self.lost_way {
            self.alive = Alive::Maybe;
        }
    }

    /// What became of it.
    pub(crate) fn judgement(mut self) -> Judgement {
        if self.alive != Alive::Gone || self.lost_way {
            self.verdicts.add(Verdict::Accept, self.accepted_by);
        }
        match self.verdicts.only() {
            Some((Verdict::Accept, by)) => Judgement::Accept(by),
            Some((Verdict::Drop, Some(by))) => Judgement::Drop(by.into()),
            Some((Verdict::Drop, None)) if self.ttl_ran_out => Judgement::Drop(DropReason::Ttl),
            Some((Verdict::Drop, None)) if self.dropped_by_tracking => {
                Judgement::Drop(DropReason::Conntrack)
            }
            Some((Verdict::Reject, Some(by))) => Judgement::Reject(by),
            _ => Judgement::Unknown,
        }
    }
}
