//! [`Orders`]: the orders of a server to another that wait, and how far that has come; [`Followed`]: the orders that
//! a server follows. So does a directory order its relay, and an authority its directory.
//!
//! Contract: an order is about one thing and says what is so of it when it is sent; what changes later is another order. Orders
//! have numbers, from 1 on in a [`Series`], are carried out in their order, each once, and are repeated until they are. After a
//! restart of either side another series begins, with all things that there are. What waits is bounded.

use std::collections::VecDeque;

use tunnel::PublicKey;

use crate::limits;
use crate::message::Transaction;
use crate::orders::Series;

/// Orders to a server.
#[derive(Debug)]
pub(crate) struct Orders<T> {
    pub(crate) key: PublicKey,
    /// The start of the server that was heard, and its last word; nothing while it is not there.
    server: Option<(u64, Transaction)>,
    heard: u64,
    /// The number of the series.
    number: u64,
    /// Orders that are carried out, and that were sent.
    done: u64,
    sent: u64,
    /// Those that are not known to be carried out.
    queue: VecDeque<T>,
    /// The order after which all things have been named.
    pub(crate) whole: u64,
    repeat: u64,
    /// A start of the server that is not as this side expects.
    strange: Option<u64>,
}

/// What a server says of itself: a number that its start drew, the orders that it follows, and how many it has carried out.
pub(crate) type Said = (u64, Series, u64);

/// What follows from a server's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing: a later word came before.
    Nothing,
    /// It goes on.
    GoesOn,
    /// A series has to begin: it has begun again, or does not follow this one.
    Begins {
        /// It was not there before.
        is_other: bool,
    },
}

impl<T: Clone> Orders<T> {
    /// No orders to the server of this key, which is not there yet.
    pub(crate) fn new(key: PublicKey) -> Self {
        let (server, strange, queue) = (None, None, VecDeque::new());
        let (heard, number, done, sent, whole, repeat) = (0, 0, 0, 0, 0, 0);
        Self { key, server, heard, number, done, sent, queue, whole, repeat, strange }
    }

    /// Takes a word of the server, under a transaction that rises with each.
    pub(crate) fn hear(
        &mut self,
        own: u64,
        (started, series, done): Said,
        transaction: Transaction,
        now: u64,
    ) -> Heard {
        if self.server.is_some_and(|(start, last)| start == started && transaction <= last) {
            return Heard::Nothing;
        }
        let is_other = self.server.is_none_or(|(start, _)| start != started);
        let is_ours = series == Series { by: own, to: started, number: self.number };
        let is_astray = self.done != 0 && (!is_ours || done < self.done);
        self.heard = now;
        self.server = Some((started, transaction));
        if is_other || is_astray {
            return Heard::Begins { is_other };
        }
        if is_ours {
            self.carried_out(done, now);
        }
        Heard::GoesOn
    }

    /// Whether a start of the server that is not as expected was not heard of before.
    pub(crate) fn is_new_stranger(&mut self, started: u64) -> bool {
        self.strange.replace(started) != Some(started)
    }

    /// The series.
    pub(crate) fn series(&self, own: u64) -> Series {
        let to = self.server.map_or(0, |(start, _)| start);
        Series { by: own, to, number: self.number }
    }

    /// Begins a series that names these things first.
    pub(crate) fn begin(&mut self, all: Vec<T>, now: u64) {
        self.number += 1;
        (self.done, self.sent, self.whole) = (0, 0, all.len() as u64);
        self.queue = all.into();
        self.repeat = now.saturating_add(limits::ASK_AGAIN);
    }

    /// Whether the server is there.
    pub(crate) fn is_there(&self, now: u64) -> bool {
        self.server.is_some() && now < self.heard.saturating_add(limits::SERVER_PRESENT)
    }

    /// Whether an order is known to be carried out.
    pub(crate) fn is_done(&self, order: u64) -> bool {
        self.server.is_some() && order <= self.done
    }

    /// Orders what is so of a thing, unless the server is not there: once it is, all things are named. Returns the order's
    /// number.
    pub(crate) fn order(&mut self, thing: T) -> Option<u64> {
        self.server?;
        if self.queue.len() >= limits::ORDERS + self.whole as usize {
            self.lose();
            return None;
        }
        self.queue.push_back(thing);
        Some(self.last())
    }

    /// The next order that is to be sent, with its number.
    pub(crate) fn send(&mut self) -> Option<(u64, T)> {
        let next = self.sent + 1;
        if next > self.last().min(self.done + limits::ORDERS_SENT) {
            return None;
        }
        let thing = self.queue.get((next - self.done - 1) as usize)?.clone();
        self.sent = next;
        Some((next, thing))
    }

    /// Makes the orders that are not carried out be sent again, if it is time.
    pub(crate) fn repeat(&mut self, now: u64) {
        if now >= self.repeat {
            self.repeat = now.saturating_add(limits::ASK_AGAIN);
            self.sent = self.done;
        }
    }

    /// Whether a server that was there no longer is.
    pub(crate) fn misses(&mut self, now: u64) -> bool {
        let is_missed = self.server.is_some() && !self.is_there(now);
        if is_missed {
            self.lose();
        }
        is_missed
    }

    /// The number of the last order.
    fn last(&self) -> u64 {
        self.done + self.queue.len() as u64
    }

    /// Counts what the server has carried out.
    fn carried_out(&mut self, done: u64, now: u64) {
        let new = done.min(self.sent).saturating_sub(self.done);
        if new != 0 {
            self.queue.drain(..new as usize);
            self.done += new;
            self.repeat = now.saturating_add(limits::ASK_AGAIN);
        }
    }

    /// Forgets what the server has: all things are named once it is heard.
    fn lose(&mut self) {
        self.server = None;
        self.queue.clear();
        self.sent = self.done;
    }
}

/// The orders that a server follows, and how many of them it has carried out.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) series: Series,
    pub(crate) done: u64,
}

impl Followed {
    /// Follows orders for this start, unless later ones of the same start are followed already; returns whether they are others.
    pub(crate) fn follow(&mut self, series: Series, own: u64) -> bool {
        let Series { by, number, .. } = self.series;
        let is_other = series.to == own && (series.by != by || series.number > number);
        if is_other {
            (self.series, self.done) = (series, 0);
        }
        is_other
    }

    /// Whether an order of this number is the next one: then it counts as carried out.
    pub(crate) fn is_next(&mut self, series: Series, number: u64) -> bool {
        let is_next = series == self.series && number == self.done + 1;
        self.done += u64::from(is_next);
        is_next
    }
}
