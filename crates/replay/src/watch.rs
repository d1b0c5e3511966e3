//! [`Watch`]: whether packets that several workers share depend on each other after all, by what they have left.
//!
//! Contract: batches come in order, each with the parts that workers had of it. What it says of a batch is said before
//! anything of that one is reported; of those before it nothing was wrong.

use std::collections::VecDeque;

use dataplane::{ANSWERS_KEPT, ANSWERS_LONGEST, Footprint};

use crate::alone::Alone;
use crate::batch::{Batch, Part};

/// What workers have left, all together.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Most connections that there may be.
    connections: u64,
    /// Up to the last batch.
    before: Footprint,
    /// Packets that each batch left to be answered, with the time of its last one, as far back as they may be.
    kept: VecDeque<(u64, [u64; 2])>,
}

impl Watch {
    pub(crate) fn new(connections: u64) -> Self {
        Self { connections, before: Footprint::default(), kept: VecDeque::new() }
    }

    /// Why one worker has to see all packets, if the next batch shows that.
    pub(crate) fn sees(&mut self, batch: &Batch, parts: &[Part]) -> Option<Alone> {
        let footprints = parts.iter().map(|part| part.footprint);
        let now = footprints.fold(Footprint::default(), Footprint::and);
        let before = std::mem::replace(&mut self.before, now);
        let is_asked = now.own > before.own;
        let times = [batch.arrived.first(), batch.arrived.last()];
        let [first, last] = times.map(|frame| frame.and_then(|frame| frame.time).unwrap_or(0));
        let kept = [0, 1].map(|kind| now.kept[kind] - before.kept[kind]);
        let waiting = self.waiting(kept, first, last);
        if now.crosses {
            Some(Alone::Translation)
        } else if now.connections > self.connections {
            Some(Alone::Connections)
        } else {
            (is_asked && waiting > ANSWERS_KEPT as u64).then_some(Alone::Answers)
        }
    }

    /// Packets of one kind that may wait for answers while a batch is evaluated that spans these times and adds `kept`
    /// packets.
    fn waiting(&mut self, kept: [u64; 2], first: u64, last: u64) -> u64 {
        let is_over = |at: u64| at.saturating_add(ANSWERS_LONGEST) < first;
        while self.kept.front().is_some_and(|(at, _)| is_over(*at)) {
            self.kept.pop_front();
        }
        if kept != [0; 2] {
            self.kept.push_back((last, kept));
        }
        let of = |kind: usize| self.kept.iter().map(|(_, kept)| kept[kind]).sum();
        u64::max(of(0), of(1))
    }
}
