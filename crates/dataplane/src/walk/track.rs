//! Tracking on the way: a packet meets its connection, and confirms it where it leaves.

use conntrack::{
    Certainty, Confirmation, CtView, EntryHook, Proxy, Space, States, Taken, Template, Visit,
};
use packet::Snapshot;
use rules::eval::Alive;
use rules::model::Hook;
use rules::nat::payload::Written;
use rules::nat::{forget_payload, payload};
use rules::{Connection, Request};

use super::packet_walk::Walk;
use crate::disposition::{DropReason, Midstream, Why};
use crate::observer::Observer;

fn certainty(alive: Alive) -> Certainty {
    if alive == Alive::Certain { Certainty::Certain } else { Certainty::Maybe }
}

impl Walk<'_, '_, '_> {
    /// Whether nobody asks for the connection of the packet, which is on its way.
    #[inline]
    pub(super) fn is_untracked(&self) -> bool {
        let Connection { tracker, given, request, .. } = &self.transit.ct;
        !self.tables.tracks
            && tracker.is_none()
            && given.is_none()
            && self.tracking.known.is_none()
            && *request == Request::Plain
            && self.progress.is_alive()
    }

    /// Tracking has its turn, where anybody asks for connections.
    #[inline]
    pub(super) fn meet(&mut self, observer: &mut impl Observer) {
        if self.is_untracked() {
            self.tracking.tracked = true;
            self.transit.ct.view = CtView::UNKNOWN;
            return;
        }
        self.find_connection(observer);
    }

    pub(super) fn find_connection(&mut self, observer: &mut impl Observer) {
        let before = self.tracking.tracked;
        self.track(observer);
        if self.tables.tracks && !before && self.progress.is_alive() {
            observer.tracked(&self.transit.ct.view, self.transit.ct.flow());
        }
    }

    /// It comes from after the hooks where connections are tracked: there is one, or would be.
    pub(crate) fn was_tracked(&mut self, is_own: bool, observer: &mut impl Observer) {
        self.transit.hook = if is_own { Hook::Output } else { Hook::Prerouting };
        self.meet(observer);
    }

    /// Finds the packet's connection, as the raw table asked.
    pub(super) fn track(&mut self, observer: &mut impl Observer) {
        if self.tracking.tracked || !self.progress.is_alive() {
            return;
        }
        self.tracking.tracked = true;
        if let Some(view) = self.tracking.known {
            self.transit.ct.view = view;
            return;
        }
        let template = match self.transit.ct.request {
            Request::Plain => Template::default(),
            Request::Template(template) => template,
            Request::Untracked | Request::Attached => return,
            Request::Unknown => {
                self.transit.ct.view = CtView::UNKNOWN;
                if let Some(tracker) = &mut self.transit.ct.tracker {
                    tracker.overlook(self.transit.packet);
                }
                return;
            }
        };
        let hidden = if self.recorded.hidden.is_some() { self.as_recorded() } else { None };
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
            certainty: certainty(self.progress.alive),
            proxy: if self.tables.shows_proxy() { self.tracking.visit.proxy } else { Proxy::None },
            ..self.tracking.visit
        };
        let marks = hidden.or_else(|| self.transit.packet.assume());
        *view = tracker.track(self.transit.packet, &visit);
        if let Some(marks) = marks {
            self.transit.packet.knows(marks);
        }
        if let Some(given) = given.filter(|given| given.states != view.states) {
            // Of that connection nothing but its state is known.
            tracker.discard(view);
            *view = given;
        }
        let space = view.space;
        if let Taken::For(state) = view.taken {
            self.tracking.snapshot = Some(self.transit.packet.snapshot());
            let walks = view.as_taken().is_some() && self.may_tell_taken();
            self.transit.ct.walks_as = walks.then_some(state);
        }
        if hidden.is_some() {
            self.hide_flow();
        }
        match space {
            Space::Enough | Space::Tight => {}
            Space::MayBeFull => self.may_drop(Why::Room, observer),
            Space::Unmodelled => self.may_drop(Why::Tracker, observer),
            Space::Full => self.drop_untold(),
        }
    }

    /// The packet before tracking, and what it is taken for where its states do not agree.
    pub(super) fn taken(&mut self) -> Option<(Snapshot, CtView)> {
        let view = self.transit.ct.view.as_taken()?;
        Some((self.tracking.snapshot.take()?, view))
    }

    /// The packet leaves, if it is still on its way: its connection is there from now on.
    #[inline]
    pub(crate) fn confirm(&mut self, observer: &mut impl Observer) {
        if self.tracking.known.is_some() {
            return;
        }
        if self.transit.ct.tracker.is_some() {
            return self.confirm_connection(observer);
        }
        if self.progress.is_alive() {
            observer.leaves(self.transit.packet);
        }
    }

    pub(super) fn confirm_connection(&mut self, observer: &mut impl Observer) {
        self.keep_connection();
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        let told = tracker.telling(view.flow);
        if !self.progress.is_alive() {
            tracker.discard(view);
            told.into_iter().for_each(|flow| tracker.tell(flow));
            return;
        }
        let now = self.transit.time.unwrap_or(0);
        let certainty = certainty(self.progress.alive);
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
        if self.progress.is_alive() {
            observer.leaves(self.transit.packet);
        }
        observer.settled(self.transit.ct.flow());
    }

    /// What a helper's connection has written into the packet may be its end.
    pub(super) fn after_helper(&mut self, written: Written, observer: &mut impl Observer) {
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
    pub(super) fn may_drop(&mut self, why: Why, observer: &mut impl Observer) {
        if self.recorded.let_go {
            return;
        }
        self.progress.may_be_dropped();
        observer.depends_on(why);
    }

    /// Tracking drops the packet.
    pub(super) fn drop_untold(&mut self) {
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
}
