//! A packet's walk through the hooks: tables, tracking, time to live, and what is left of its verdicts.
//!
//! [`crate::handler`] says which hooks in which order.

use packet::Read;
use rules::conntrack::{Certainty, Confirmation, CtView, Place, Template, Visit};
use rules::eval::{self, Alive, By, Memories, Verdict, Verdicts};
use rules::model::{Family, Hook, Ruleset};
use rules::{Connection, Iface, Transit, Wish};

use crate::disposition::{DropReason, Judgement, Midstream, Why};
use crate::handler::Observer;

/// The tables to walk at each hook, in order.
#[derive(Debug)]
pub(crate) struct Tables {
    /// By `Hook as usize`: the tables, of which the first few are walked before tracking.
    hooks: [(Vec<usize>, usize); 6],
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
            hooks: hooks.map(|hook| {
                let tables: Vec<usize> = eval::tables_at(ruleset, hook).collect();
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
            self.table(*table, hook, observer);
        }
        if matches!(hook, Hook::Prerouting | Hook::Output) {
            self.track();
        }
        for table in others {
            self.table(*table, hook, observer);
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
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else {
            self.transit.ct.view = CtView::UNKNOWN;
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
        if view.table_full {
            self.drop_untold();
        }
    }

    /// The packet leaves, if it is still on its way: its connection is there from now on.
    pub(crate) fn confirm(&mut self) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        if self.alive == Alive::Gone {
            tracker.discard(view);
            return;
        }
        let now = self.transit.time.unwrap_or(0);
        let certainty = certainty(self.alive);
        if tracker.confirm(self.transit.packet, view, now, certainty) != Confirmation::Pass {
            self.drop_untold();
        }
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

    fn table(&mut self, table: usize, hook: Hook, observer: &mut impl Observer) {
        if self.alive == Alive::Gone {
            return;
        }
        observer.enters(table as u32, hook);
        let (ruleset, memories) = (self.ruleset, &mut *self.memories);
        let name = ruleset.tables[table].name;
        if name == "nat" {
            // Walked by the first packet of a connection only, and which one that is is not known: its
            // rules may rewrite, and no packet ends here.
            eval::walk(ruleset, table, &mut self.transit, Alive::Maybe, memories, observer);
            return;
        }
        let found = eval::walk(ruleset, table, &mut self.transit, self.alive, memories, observer);
        self.verdicts.extend(&found.without_accept());
        self.alive = match (found.may_be(Verdict::Accept), found.only().is_some()) {
            (false, _) => Alive::Gone,
            (true, true) => self.alive,
            (true, false) => Alive::Maybe,
        };
        if name == "filter" || !self.passed_filter {
            self.accepted_by = found.by(Verdict::Accept);
            self.passed_filter |= name == "filter";
        }
    }

    /// Forwarding lowers the time to live between PREROUTING and FORWARD, and drops what has none left.
    pub(crate) fn lower_ttl(&mut self, observer: &mut impl Observer) {
        if self.alive == Alive::Gone {
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

    /// What became of it.
    pub(crate) fn judgement(mut self) -> Judgement {
        if self.alive != Alive::Gone {
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
