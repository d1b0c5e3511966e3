//! Walks aside: of copies and of segments that pass the hooks besides the packet itself, and count there.

use rules::Iface;
use rules::eval::Alive;
use rules::model::Hook;

use super::doubtful::Doubtful;
use super::packet_walk::Walk;
use super::size::Sizes;
use crate::arrival::Passed;
use crate::observer::Observer;

impl<'p> Walk<'p, '_, '_> {
    /// Walks what is no part of the packet's own way: what that one is known to have met, and its mark, stay as they are.
    pub(super) fn aside(&mut self, walks: impl FnOnce(&mut Self)) {
        let (progress, let_go) = (self.progress, self.recorded.let_go);
        let (mark, port) = (self.transit.mark, self.port);
        self.transit.ct.walks_as = None;
        walks(self);
        (self.progress, self.recorded.let_go) = (progress, let_go);
        (self.transit.mark, self.port) = (mark, port);
    }

    /// What a bridge passes on by its ports beside what it gives to the host, or to another port: counted, and not
    /// part of the verdict. What was not seen leaving may have been dropped, or there was none.
    pub(crate) fn passed_on(
        &mut self,
        copies: impl Iterator<Item = Passed<'p>>,
        bridge: Iface<'p>,
        observer: &mut impl Observer,
    ) {
        for copy in copies {
            self.aside(|walk| {
                walk.port = copy.port;
                if !copy.is_seen && walk.progress.alive == Alive::Certain {
                    (walk.progress.alive, walk.recorded.let_go) = (Alive::Maybe, false);
                }
                walk.hook(Hook::Forward, bridge, bridge, observer);
                walk.hook(Hook::Postrouting, bridge, bridge, observer);
            });
        }
    }

    /// Whether a program had it, or may have had it.
    #[inline]
    pub(crate) fn was_queued(&self) -> bool {
        self.transit.queued
    }

    /// A superframe that a program had goes on in segments: where, and in how many, no capture of what came tells. What
    /// they may have hit besides what it has is counted, and no part of the verdict.
    #[inline(never)]
    pub(crate) fn goes_in_segments(
        &mut self,
        sizes: &Sizes,
        (input, output): (Iface<'p>, Iface<'p>),
        observer: &mut impl Observer,
    ) {
        let more = self.most_segments(sizes, input).saturating_sub(1);
        if !self.progress.is_alive() || more == 0 || !observer.follows_segments() {
            return;
        }
        // Rules that remember nothing say the same of each.
        let (walks, times) = if self.tables.remember() { (more, 1) } else { (1, more) };
        let observer = &mut Doubtful { observer, times };
        for _ in 0..walks {
            self.aside(|walk| {
                (walk.progress.alive, walk.recorded.let_go) = (Alive::Maybe, false);
                walk.hook(Hook::Forward, input, output, observer);
                walk.hook(Hook::Postrouting, input, output, observer);
            });
        }
    }

    /// A copy of what was recorded as it went out to all of a network, or to a group, may come back without a wire: no
    /// capture shows it, and it is counted as one that may have been.
    pub(crate) fn comes_back(&mut self, output: &'p str, observer: &mut impl Observer) {
        if !self.recorded.as_left || !self.progress.is_alive() {
            return;
        }
        let to = crate::routing::way::destination(self.transit.packet);
        if !to.is_some_and(|to| self.transit.host.may_come_back(output, to)) {
            return;
        }
        let by = Iface::Named(output);
        self.aside(|walk| {
            (walk.progress.alive, walk.recorded.let_go) = (Alive::Maybe, false);
            walk.hook(Hook::Postrouting, Iface::Absent, by, observer);
            walk.hook(Hook::Prerouting, by, Iface::Absent, observer);
            walk.hook(Hook::Input, by, Iface::Absent, observer);
        });
    }
}
