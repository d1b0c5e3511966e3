//! Two observers as one: each sees what it would see alone. And an observer that is lent.

use conntrack::{CtView, Edit, Side, States};
use packet::Packet;
use rules::model::{Family, Hook};
use rules::nat::Translated;
use rules::{Iface, KnownFlow};

use super::Observer;
use crate::disposition::Why;
use crate::routing::path::Path;

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        self.0.starts(family, path, input, output);
        self.1.starts(family, path, input, output);
    }

    #[inline]
    fn evaluates(&mut self, family: Family) {
        self.0.evaluates(family);
        self.1.evaluates(family);
    }

    #[inline]
    fn enters(&mut self, table: u32, chain: Option<u32>, hook: Hook) {
        self.0.enters(table, chain, hook);
        self.1.enters(table, chain, hook);
    }

    #[inline]
    fn ttl(&mut self, left: Option<u8>) {
        self.0.ttl(left);
        self.1.ttl(left);
    }

    #[inline]
    fn tracked(&mut self, view: &CtView, flow: KnownFlow<'_>) {
        self.0.tracked(view, flow);
        self.1.tracked(view, flow);
    }

    #[inline]
    fn translated(&mut self, side: Side, to: Translated) {
        self.0.translated(side, to);
        self.1.translated(side, to);
    }

    #[inline]
    fn edited(&mut self, packet: &Packet<'_>, edit: &Edit) {
        self.0.edited(packet, edit);
        self.1.edited(packet, edit);
    }

    #[inline]
    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        self.0.rerouted(from, to, input, output);
        self.1.rerouted(from, to, input, output);
    }

    #[inline]
    fn leaves(&mut self, packet: &Packet<'_>) {
        self.0.leaves(packet);
        self.1.leaves(packet);
    }

    #[inline]
    fn settled(&mut self, flow: KnownFlow<'_>) {
        self.0.settled(flow);
        self.1.settled(flow);
    }

    #[inline]
    fn taken(&mut self, states: States) {
        self.0.taken(states);
        self.1.taken(states);
    }

    #[inline]
    fn depends_on(&mut self, why: Why) {
        self.0.depends_on(why);
        self.1.depends_on(why);
    }

    #[inline]
    fn follows_segments(&self) -> bool {
        self.0.follows_segments() && self.1.follows_segments()
    }
}

impl<O: Observer> Observer for &mut O {
    #[inline]
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        O::starts(self, family, path, input, output);
    }

    #[inline]
    fn evaluates(&mut self, family: Family) {
        O::evaluates(self, family);
    }

    #[inline]
    fn enters(&mut self, table: u32, chain: Option<u32>, hook: Hook) {
        O::enters(self, table, chain, hook);
    }

    #[inline]
    fn ttl(&mut self, left: Option<u8>) {
        O::ttl(self, left);
    }

    #[inline]
    fn tracked(&mut self, view: &CtView, flow: KnownFlow<'_>) {
        O::tracked(self, view, flow);
    }

    #[inline]
    fn translated(&mut self, side: Side, to: Translated) {
        O::translated(self, side, to);
    }

    #[inline]
    fn edited(&mut self, packet: &Packet<'_>, edit: &Edit) {
        O::edited(self, packet, edit);
    }

    #[inline]
    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        O::rerouted(self, from, to, input, output);
    }

    #[inline]
    fn leaves(&mut self, packet: &Packet<'_>) {
        O::leaves(self, packet);
    }

    #[inline]
    fn settled(&mut self, flow: KnownFlow<'_>) {
        O::settled(self, flow);
    }

    #[inline]
    fn taken(&mut self, states: States) {
        O::taken(self, states);
    }

    #[inline]
    fn depends_on(&mut self, why: Why) {
        O::depends_on(self, why);
    }

    #[inline]
    fn follows_segments(&self) -> bool {
        O::follows_segments(self)
    }
}
