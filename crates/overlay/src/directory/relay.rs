//! Relays on hosts of their own: which orders they get, and what follows from their words.
//!
//! An order says of one pair what is so when it is sent: a path, or none. What changes later is another order. So orders that wait
//! are no more than pairs, and a relay that has carried out all of them has every path as it is. Each relay carries all paths, by
//! the same port: nodes are shown all relays, and leave a silent relay without asking anybody.

use std::net::{IpAddr, SocketAddr};

use tunnel::PublicKey;

use super::apart::{RelayState, Remote};
use super::state::Directory;
use crate::effect::{Effect, Now};
use crate::limits::RELAYS;
use crate::message::{Body, Message, Transaction};
use crate::name::Name;
use crate::network::guest_address;
use crate::orders::{End, Join, Relaying};
use crate::paths::Pair;
use crate::queue::{Heard, Orders};

impl Directory {
    /// A relay is on a host of its own, where nodes reach it, and has this key: to be said before anything else is, of at most
    /// [`RELAYS`]. It is a peer of the tunnel with an address of the link alone, as guests are.
    pub fn relay_apart(&mut self, at: IpAddr, key: PublicKey) {
        if self.relays.len() < RELAYS {
            let addresses = vec![guest_address(&key).into()];
            self.effects.push_back(Effect::Admit { key, addresses });
            self.relays.push(Remote { at, other: None, orders: Orders::new(key), counts: (0, 0) });
        }
    }

    /// The relay at this address has another one for nodes that have that family alone: to be said before anything else is.
    pub fn relay_also_at(&mut self, at: IpAddr, other: IpAddr) {
        if self.relays.is_empty() && self.relay.0 == at {
            self.other = Some(other);
        }
        let its = self.relays.iter_mut().filter(|relay| relay.at == at);
        its.for_each(|relay| relay.other = Some(other));
    }

    /// Whether a relay has addresses of both families.
    pub(super) fn has_both(&self) -> bool {
        self.other.is_some() || self.relays.iter().any(|relay| relay.other.is_some())
    }

    /// Where a relay is for a node: at the address of the family by which the node reaches the directory.
    pub(super) fn for_node(&self, node: &Name, (at, other): (IpAddr, Option<IpAddr>)) -> IpAddr {
        let seen = self.present.get(node).and_then(|presence| presence.at);
        let is_its = |place: &IpAddr| seen.is_some_and(|seen| seen.is_ipv4() == place.is_ipv4());
        other.filter(|other| is_its(other) && !is_its(&at)).unwrap_or(at)
    }

    /// The relays apart.
    pub fn relays(&self, now: u64) -> impl Iterator<Item = RelayState> {
        self.relays.iter().map(move |relay| {
            let Remote { at, counts, ref orders, .. } = *relay;
            RelayState { at, is_there: orders.is_there(now), counts }
        })
    }

    /// The place of the relay apart that has this key.
    pub(super) fn relay_of(&self, key: &PublicKey) -> Option<usize> {
        self.relays.iter().position(|relay| relay.orders.key == *key)
    }

    /// Whether there is a relay now.
    pub(super) fn has_relay(&self, now: u64) -> bool {
        self.relays.is_empty() || self.relays.iter().any(|relay| relay.orders.is_there(now))
    }

    /// Whether a relay carries a path.
    pub(super) fn is_carried(&self, pair: &Pair) -> bool {
        let is_done = |(number, relay): (usize, &Remote)| {
            self.paths.order(pair, number).is_some_and(|order| relay.orders.is_done(order))
        };
        self.relays.is_empty() || self.relays.iter().enumerate().any(is_done)
    }

    /// Where the relays are for a node by a port, that first which the pair is to use first: pairs are spread, and always the same
    /// way.
    pub(super) fn relays_of(&self, node: &Name, pair: &Pair, port: u16) -> Vec<SocketAddr> {
        let bytes = pair.0.as_str().bytes().chain(pair.1.as_str().bytes());
        let first = bytes.map(usize::from).sum::<usize>() % self.relays.len().max(1);
        let (before, from) = self.relays.split_at(first);
        let apart = from.iter().chain(before).map(|relay| (relay.at, relay.other));
        let mut all: Vec<(IpAddr, Option<IpAddr>)> = apart.collect();
        if all.is_empty() {
            all.push((self.relay.0, self.other));
        }
        all.into_iter().map(|at| SocketAddr::new(self.for_node(node, at), port)).collect()
    }

    /// A relay says something.
    pub(super) fn relay_says(
        &mut self,
        number: usize,
        transaction: Transaction,
        body: Body,
        now: Now,
    ) {
        let Body::Relays(said) = body else {
            return self.note("a relay sent a message that is not a relay's".to_owned());
        };
        if !self.is_ours(number, &said) {
            return;
        }
        let Some(Remote { at, orders, counts, .. }) = self.relays.get_mut(number) else { return };
        let (at, word) = (*at, (said.started, said.series, said.done));
        match orders.hear(self.started, word, transaction, now.nanos) {
            Heard::Nothing => return,
            Heard::GoesOn => *counts = said.counts,
            Heard::Begins { is_other } => {
                *counts = said.counts;
                self.begin_orders(number, now);
                if is_other {
                    self.note(format!("the relay at {at} is there"));
                }
            }
        }
        let Some(relay) = self.relays.get(number) else { return };
        let (series, whole) = (relay.orders.series(self.started), relay.orders.whole);
        self.send_relay(number, transaction, Body::Relayed { series, whole });
        self.send_orders(number);
    }

    /// Whether a relay has the ports that nodes are shown; it is noted once where it has not.
    fn is_ours(&mut self, number: usize, said: &Relaying) -> bool {
        let ports = (*self.relay.1.start(), *self.relay.1.end());
        let Some(relay) = self.relays.get_mut(number) else { return false };
        if said.ports != ports && relay.orders.is_new_stranger(said.started) {
            let ((first, last), (own, end), at) = (said.ports, ports, relay.at);
            let what = format!("expected a relay with ports {own}-{end} at {at}");
            self.note(format!("{what}, found {first}-{last}"));
        }
        said.ports == ports
    }

    /// Begins to name all paths.
    fn begin_orders(&mut self, number: usize, now: Now) {
        let Some(relay) = self.relays.get_mut(number) else { return };
        let pairs: Vec<Pair> = self.paths.pairs().cloned().collect();
        for (order, pair) in (1..).zip(&pairs) {
            self.paths.set_order(pair, number, order);
        }
        relay.orders.begin(pairs, now.nanos);
    }

    /// Orders what is so of a pair, unless a relay is not there: once it is, all paths are named. A path that is new is carried
    /// once that is carried out.
    pub(super) fn order(&mut self, pair: &Pair, is_new: bool) {
        for number in 0..self.relays.len() {
            let order = self.relays.get_mut(number).and_then(|it| it.orders.order(pair.clone()));
            if let Some(order) = order.filter(|_| is_new) {
                self.paths.set_order(pair, number, order);
            }
            self.send_orders(number);
        }
    }

    /// Orders again what is so of a node's paths.
    pub(super) fn order_all(&mut self, name: &Name) {
        if !self.relays.is_empty() {
            for pair in self.paths.of(name) {
                self.order(&pair, false);
            }
        }
    }

    /// Sends the orders that are due.
    fn send_orders(&mut self, number: usize) {
        let next = |directory: &mut Self| directory.relays.get_mut(number)?.orders.send();
        while let Some((order, pair)) = next(self) {
            let body = self.order_for(number, pair);
            self.send_relay(number, order, body);
        }
    }

    fn order_for(&self, number: usize, pair: Pair) -> Body {
        let relay = self.relays.get(number);
        let series = relay.map(|it| it.orders.series(self.started)).unwrap_or_default();
        let end = |name: &Name| {
            let key = self.devices.get(name)?.key;
            let at = self.present.get(name).and_then(|it| it.at);
            Some(End { name: name.clone(), key, at })
        };
        match (self.paths.port(&pair), end(&pair.0), end(&pair.1)) {
            (Some(port), Some(first), Some(second)) => {
                Body::Join(Box::new(Join { series, port, ends: [first, second] }))
            }
            _ => Body::Part { series, pair },
        }
    }

    fn send_relay(&mut self, number: usize, transaction: Transaction, body: Body) {
        let Some(relay) = self.relays.get(number) else { return };
        let (to, at) = (relay.orders.key, guest_address(&relay.orders.key).into());
        let message = Message { transaction, body }.to_bytes();
        self.effects.push_back(Effect::Send { to, at, message });
    }

    /// Repeats orders that relays have not carried out.
    pub(super) fn repeat_orders(&mut self, now: u64) {
        for number in 0..self.relays.len() {
            self.relays.get_mut(number).into_iter().for_each(|relay| relay.orders.repeat(now));
            self.send_orders(number);
        }
    }

    /// Notices relays that no longer speak.
    pub(super) fn miss_relays(&mut self, now: u64) {
        for number in 0..self.relays.len() {
            let Some(relay) = self.relays.get_mut(number) else { continue };
            if relay.orders.misses(now) {
                let at = relay.at;
                self.note(format!("the relay at {at} is not there"));
            }
        }
    }
}
