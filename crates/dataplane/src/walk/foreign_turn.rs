//! The turns of chains that are not evaluated ([`super::foreign`]): what they may do to a packet.
//!
//! Contract: without such chains nothing here is ever reached. What a chain may do is done to what is known of the packet: it
//! may have been dropped, its mark, addresses or options may be others, or anything may have happened to it.

use conntrack::{Side, States};
use host::foreign::Effects;
use packet::{L4, Mark, Read};
use rules::nat;
use rules::{Iface, Request};

use super::foreign::{Devices, Does, Met};
use super::packet_walk::Walk;
use super::tables::Attached;
use crate::disposition::Why;
use crate::observer::Observer;

impl Walk<'_, '_, '_> {
    /// The chains between two tables have their turns.
    #[cold]
    pub(super) fn foreign(&mut self, turn: &Attached, observer: &mut impl Observer) {
        let tables = self.tables;
        for met in tables.foreign(turn) {
            if !self.progress.is_alive() {
                return;
            }
            if self.meets(&met.devices) {
                self.meet_foreign(met, observer);
            }
        }
    }

    fn meets(&self, devices: &Devices) -> bool {
        let (names, interface) = match devices {
            Devices::All => return true,
            Devices::In(names) => (names, self.transit.input),
            Devices::Out(names) => (names, self.transit.output),
        };
        match interface {
            Iface::Named(name) => names.binary_search_by(|known| (**known).cmp(name)).is_ok(),
            Iface::Unknown => true,
            Iface::Absent => false,
        }
    }

    fn meet_foreign(&mut self, met: &Met, observer: &mut impl Observer) {
        let effects = match met.does {
            Does::Effects(effects) => effects,
            Does::TranslatesBack if self.is_no_answer() => return,
            Does::TranslatesBack => Effects::DESTINATION,
        };
        observer.depends_on(Why::Foreign(met.chain));
        // What it is in one of its connection's states is no longer all that is open.
        self.transit.ct.walks_as = None;
        if effects.has(Effects::ALL) {
            self.progress.given_up = true;
            self.transit.make_indeterminate();
            if !self.tracking.tracked {
                self.transit.ct.request(Request::Unknown, false);
            }
        }
        if effects.has(Effects::MARKS) {
            self.transit.mark = Mark { value: 0, unknown: u32::MAX };
            self.transit.ct.change(false, |_| {});
        }
        if effects.has(Effects::OPTIONS) {
            self.forget_options();
        }
        for (effect, side) in
            [(Effects::SOURCE, Side::Source), (Effects::DESTINATION, Side::Destination)]
        {
            if effects.has(effect) {
                nat::forget(self.transit, side);
            }
        }
        if effects.has(Effects::DROPS) && !self.recorded.let_go {
            self.progress.may_drop_in(met.chain);
        }
    }

    /// Whether the packet certainly answers none that went before it.
    fn is_no_answer(&self) -> bool {
        let new = States::of(conntrack::CtState::New);
        let is_first = self.tracking.visit.frame == 1 && self.transit.ct.view.states == new;
        is_first || self.transit.ct.given == Some(conntrack::CtState::New) || self.is_syn()
    }

    /// Whether it certainly opens a connection of TCP.
    fn is_syn(&self) -> bool {
        let Some(start) = self.tcp() else { return false };
        matches!(self.transit.net::<1>(start + 13), Read::Known([flags]) if flags & 0x12 == 2)
    }

    /// Where its TCP header starts in the packet, if it has one.
    fn tcp(&self) -> Option<usize> {
        let headers = self.transit.packet.headers();
        match headers.l4 {
            L4::Upper(upper) if upper.protocol == 6 => {
                Some(upper.offset.saturating_sub(headers.network))
            }
            _ => None,
        }
    }

    /// TCP options, and the checksum over them.
    fn forget_options(&mut self) {
        let Some(start) = self.tcp() else { return };
        let header = match self.transit.net::<1>(start + 12) {
            Read::Known([offset]) => usize::from(offset >> 4) * 4,
            Read::Unknown | Read::Absent => 60,
        };
        self.transit.forget_net(start + 16..start + 18);
        self.transit.forget_net(start + 20..start + header.max(20));
    }
}
