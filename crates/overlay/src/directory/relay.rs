//! A relay on a host of its own: which orders it gets, and what follows from its words.
//!
//! An order says of one pair what is so when it is sent: a path, or none. What changes later is another order. So orders that wait
//! are no more than pairs, and a relay that has carried out all of them has every path as it is.

use tunnel::PublicKey;

use super::state::Directory;
use crate::effect::{Effect, Now};
use crate::message::{Body, Message, Transaction};
use crate::name::Name;
use crate::network::guest_address;
use crate::orders::{End, Join, Relaying};
use crate::paths::Pair;
use crate::queue::{Heard, Orders};

impl Directory {
    /// The relay is on a host of its own, and has this key: to be said before anything else is. It is a peer of the tunnel with
    /// an address of the link alone, as guests are.
    pub fn relay_apart(&mut self, key: PublicKey) {
        let addresses = vec![guest_address(&key).into()];
        self.effects.push_back(Effect::Admit { key, addresses });
        self.orders = Some(Orders::new(key));
    }

    /// Of a relay apart: whether it is there, and how many datagrams it has forwarded and dropped.
    #[must_use]
    pub fn relay(&self, now: u64) -> Option<(bool, (u64, u64))> {
        self.orders.as_ref().map(|orders| (orders.is_there(now), self.counts))
    }

    /// Whether this is the key of a relay apart.
    pub(super) fn is_relay(&self, key: &PublicKey) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.key == *key)
    }

    /// Whether there is a relay now.
    pub(super) fn has_relay(&self, now: u64) -> bool {
        self.orders.as_ref().is_none_or(|orders| orders.is_there(now))
    }

    /// Whether the relay carries a path.
    pub(super) fn is_carried(&self, pair: &Pair) -> bool {
        self.orders
            .as_ref()
            .is_none_or(|orders| self.paths.order(pair).is_some_and(|order| orders.is_done(order)))
    }

    /// The relay says something.
    pub(super) fn relay_says(&mut self, transaction: Transaction, body: Body, now: Now) {
        let Body::Relays(said) = body else {
            return self.note("the relay sent a message that is not a relay's".to_owned());
        };
        if !self.is_ours(&said) {
            return;
        }
        let Some(orders) = &mut self.orders else { return };
        let word = (said.started, said.series, said.done);
        match orders.hear(self.started, word, transaction, now.nanos) {
            Heard::Nothing => return,
            Heard::GoesOn => {}
            Heard::Begins { is_other } => {
                self.begin_orders(now);
                if is_other {
                    self.note("the relay is there".to_owned());
                }
            }
        }
        self.counts = said.counts;
        let Some(orders) = &self.orders else { return };
        let (series, whole) = (orders.series(self.started), orders.whole);
        self.send_relay(transaction, Body::Relayed { series, whole });
        self.send_orders();
    }

    /// Whether the relay has the ports that nodes are shown; it is noted once where it has not.
    fn is_ours(&mut self, said: &Relaying) -> bool {
        let ports = (*self.relay.1.start(), *self.relay.1.end());
        let Some(orders) = &mut self.orders else { return false };
        if said.ports != ports && orders.is_new_stranger(said.started) {
            let ((first, last), (own, end)) = (said.ports, ports);
            let what = format!("expected a relay with ports {own}-{end}, found {first}-{last}");
            self.note(what);
        }
        said.ports == ports
    }

    /// Begins to name all paths.
    fn begin_orders(&mut self, now: Now) {
        let Some(orders) = &mut self.orders else { return };
        let pairs: Vec<Pair> = self.paths.pairs().cloned().collect();
        for (order, pair) in (1..).zip(&pairs) {
            self.paths.set_order(pair, order);
        }
        orders.begin(pairs, now.nanos);
    }

    /// Orders what is so of a pair, unless no relay is there: once it is, all paths are named. Returns the order's number.
    pub(super) fn order(&mut self, pair: &Pair) -> Option<u64> {
        let order = self.orders.as_mut()?.order(pair.clone())?;
        self.send_orders();
        Some(order)
    }

    /// Orders again what is so of a node's paths.
    pub(super) fn order_all(&mut self, name: &Name) {
        if self.orders.is_some() {
            for pair in self.paths.of(name) {
                self.order(&pair);
            }
        }
    }

    /// Sends the orders that are due.
    fn send_orders(&mut self) {
        while let Some((number, pair)) = self.orders.as_mut().and_then(Orders::send) {
            let body = self.order_for(pair);
            self.send_relay(number, body);
        }
    }

    fn order_for(&self, pair: Pair) -> Body {
        let series = self.orders.as_ref().map(|it| it.series(self.started)).unwrap_or_default();
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

    fn send_relay(&mut self, transaction: Transaction, body: Body) {
        let Some(orders) = &self.orders else { return };
        let (to, at) = (orders.key, guest_address(&orders.key).into());
        let message = Message { transaction, body }.to_bytes();
        self.effects.push_back(Effect::Send { to, at, message });
    }

    /// Repeats orders that the relay has not carried out.
    pub(super) fn repeat_orders(&mut self, now: u64) {
        if let Some(orders) = &mut self.orders {
            orders.repeat(now);
            self.send_orders();
        }
    }

    /// Notices that the relay no longer speaks.
    pub(super) fn miss_relay(&mut self, now: u64) {
        if self.orders.as_mut().is_some_and(|orders| orders.misses(now)) {
            self.note("the relay is not there".to_owned());
        }
    }
}
