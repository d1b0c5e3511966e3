//! [`Orders`]: the orders to a relay on a host of its own that wait, and how far it has come.

use std::collections::VecDeque;

use tunnel::PublicKey;

use crate::limits;
use crate::message::Transaction;
use crate::paths::Pair;

/// Orders to a relay.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) key: PublicKey,
    /// The start of the relay that was heard, and its last word; nothing while it is not there.
    pub(super) relay: Option<(u64, Transaction)>,
    pub(super) heard: u64,
    /// The number of the series.
    pub(super) series: u64,
    /// Orders that are carried out, and that were sent.
    pub(super) done: u64,
    pub(super) sent: u64,
    /// Those that are not known to be carried out.
    pub(super) queue: VecDeque<Pair>,
    /// The order after which all paths have been named.
    pub(super) whole: u64,
    pub(super) repeat: u64,
    pub(super) counts: (u64, u64),
    /// A start of the relay with other ports than the network has.
    pub(super) strange: Option<u64>,
}

impl Orders {
    /// No orders to the relay of this key, which is not there yet.
    pub(super) fn new(key: PublicKey) -> Self {
        Self {
            key,
            relay: None,
            heard: 0,
            series: 0,
            done: 0,
            sent: 0,
            queue: VecDeque::new(),
            whole: 0,
            repeat: 0,
            counts: (0, 0),
            strange: None,
        }
    }

    /// Begins a series that names these paths first.
    pub(super) fn begin(&mut self, pairs: Vec<Pair>, now: u64) {
        self.series += 1;
        (self.done, self.sent, self.whole) = (0, 0, pairs.len() as u64);
        self.queue = pairs.into();
        self.repeat = now.saturating_add(limits::ASK_AGAIN);
    }

    /// Whether the relay is there.
    pub(super) fn is_there(&self, now: u64) -> bool {
        self.relay.is_some() && now < self.heard.saturating_add(limits::RELAY_PRESENT)
    }

    /// The number of the last order.
    pub(super) fn last(&self) -> u64 {
        self.done + self.queue.len() as u64
    }

    /// Counts what the relay has carried out.
    pub(super) fn carried_out(&mut self, done: u64, now: u64) {
        let new = done.min(self.sent).saturating_sub(self.done);
        if new != 0 {
            self.queue.drain(..new as usize);
            self.done += new;
            self.repeat = now.saturating_add(limits::ASK_AGAIN);
        }
    }

    /// Forgets what the relay has: all paths are named once it is heard.
    pub(super) fn lose(&mut self) {
        self.relay = None;
        self.queue.clear();
        self.sent = self.done;
    }
}
