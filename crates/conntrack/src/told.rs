//! [`Life`]: a flow's liveness, published for workers that do not hold the flow but count it (`connlimit`).
//!
//! Contract: the tracker that holds a flow writes after each of its packets, once it was asked for the flow's
//! [`Life`]; others read without waiting. The word alone shows when a flow dies of its timeout. An end without a packet
//! of its own, by early drop or a helper, is published with the next packet of a flow of that tuple, or when the flow's
//! own worker looks. Bounded: words that nobody else holds are dropped as the map grows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::flow::{Doubt, Flow, Proto};
use crate::key::Tuple;
use crate::status::Status;
use crate::tcp::{State, Tcp};

/// What there is to a flow for those who do not hold it: one of the words below, or the deadline in nanoseconds,
/// shifted by one, with the lowest bit set where it is TCP and over.
#[derive(Debug)]
pub struct Life(AtomicU64);

const GONE: u64 = 0;
const BEGINS: u64 = 1;
const DOUBTFUL: u64 = 2;
const LEAST: u64 = 4;

/// Whether a flow is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// The flow is there, or is about to be.
    Yes,
    /// The flow is there, but TCP and over (TIME_WAIT or CLOSE).
    Over,
    /// The flow is not there.
    No,
    /// Unknown.
    Maybe,
}

impl Life {
    /// How it is at a time in nanoseconds.
    #[must_use]
    pub fn at(&self, now: u64) -> Alive {
        match self.0.load(Ordering::Acquire) {
            GONE => Alive::No,
            BEGINS => Alive::Yes,
            DOUBTFUL => Alive::Maybe,
            word if word >> 1 <= now => Alive::No,
            word if word & 1 == 1 => Alive::Over,
            _ => Alive::Yes,
        }
    }

    fn tell(&self, flow: Option<&Flow>) {
        let word = match flow {
            Some(flow) if flow.doubt() != Doubt::None => DOUBTFUL,
            // One that a reset ended is out of the table, though its last packet is still under way.
            Some(flow) if flow.is_confirmed() && !flow.status().contains(Status::DYING) => {
                word(flow)
            }
            _ => GONE,
        };
        self.0.store(word, Ordering::Release);
    }
}

fn word(flow: &Flow) -> u64 {
    let over = |tcp: &Tcp| matches!(tcp.state, State::TimeWait | State::Close);
    let is_over = matches!(flow.proto(), Proto::Tcp(tcp) if over(tcp));
    (flow.deadline.saturating_mul(2) & !1).max(LEAST) | u64::from(is_over)
}

/// The words that a tracker published of its flows, by the flows' original tuples.
#[derive(Debug, Default)]
pub(crate) struct Told {
    lives: HashMap<Tuple, Arc<Life>>,
    /// Beyond this number, words that nobody else holds are dropped.
    enough: usize,
}

/// Fewer are not worth a look.
const FEW: usize = 64;

impl Told {
    /// Returns the published word of the flow under way, by its original tuple.
    pub(crate) fn life(&mut self, tuple: &Tuple) -> Arc<Life> {
        if self.lives.len() > self.enough.max(FEW) {
            self.lives.retain(|_, life| Arc::strong_count(life) > 1);
            self.enough = 2 * self.lives.len();
        }
        let fresh = || Arc::new(Life(AtomicU64::new(BEGINS)));
        Arc::clone(self.lives.entry(*tuple).or_insert_with(fresh))
    }

    /// Whether it is of a flow here.
    pub(crate) fn has(&self, tuple: &Tuple, life: &Arc<Life>) -> bool {
        self.lives.get(tuple).is_some_and(|own| Arc::ptr_eq(own, life))
    }

    /// Whether no word was published.
    pub(crate) fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// Publishes what a packet left of the flow; `None` if the flow has ended.
    pub(crate) fn tell(&self, original: &Tuple, flow: Option<&Flow>) {
        if let Some(life) = self.lives.get(original) {
            life.tell(flow);
        }
    }
}

/// Flows go with the tracker that holds them.
impl Drop for Told {
    fn drop(&mut self) {
        self.lives.values().for_each(|life| life.tell(None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(port: u16) -> Tuple {
        Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, [port, 53])
    }

    #[test]
    fn what_nobody_has_is_let_go() {
        let mut told = Told::default();
        let kept: Vec<_> = (0..100).map(|port| told.life(&tuple(port))).collect();
        (100..20_000).for_each(|port| drop(told.life(&tuple(port))));
        assert!(told.lives.len() <= 2 * (kept.len() + FEW), "{} lives", told.lives.len());
        let own = |(port, life)| told.has(&tuple(port), life);
        assert!((0..).zip(&kept).all(own), "those that somebody has stay");
    }

    #[test]
    fn flows_go_with_their_tracker() {
        let mut told = Told::default();
        let life = told.life(&tuple(1));
        assert_eq!(life.at(0), Alive::Yes, "its first packet is under way");
        drop(told);
        assert_eq!(life.at(0), Alive::No);
    }
}
