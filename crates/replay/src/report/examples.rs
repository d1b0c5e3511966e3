//! A few packets of every kind of end that people ask about: what was dropped, rejected, unknown, or accepted by
//! a rule.
//!
//! Contract: at most [`EACH`] packets for each end, the first ones of the capture, so memory is bounded by
//! the rules. A packet is put into words only if it is kept.

use std::collections::HashMap;

use dataplane::{Disposition, DropReason, Either, FinalVerdict};
use host::Refused;
use packet::L3Fault;
use rules::eval::By;
use rules::model::Family;

/// Most packets kept for one end.
pub const EACH: usize = 3;

/// An end of packets, of which examples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Dropped, rejected or accepted by a rule, a policy or a match of a family's rules.
    By(Family, By),
    /// Dropped, rejected or accepted by one of several.
    Either(Either),
    /// Refused by the kernel's stack.
    Stack(L3Fault),
    /// Refused by routing.
    Route(Refused),
    /// Time to live ran out.
    Ttl,
    /// Too big for the link that it would leave by.
    TooBig,
    /// Dropped by connection tracking.
    Conntrack,
    /// Reassembly of fragments.
    Reassembly,
    /// Denied by the access list.
    Denied,
    /// Its verdict depends on something that is not known.
    Unknown,
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its number in the captures, from 1.
    pub frame: u64,
    /// Its time in nanoseconds since the Unix epoch.
    pub time: Option<u64>,
    /// Itself in one line.
    pub packet: String,
}

/// What happened to a packet, in lines.
#[derive(Debug, Clone)]
pub(crate) struct PathOf {
    /// Whose rules it met.
    pub(crate) family: Option<Family>,
    pub(crate) text: String,
}

/// The first packets of every end.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    kept: HashMap<End, Vec<Example>>,
}

impl Examples {
    /// Keeps a packet if there are not enough of its end yet.
    pub fn offer(&mut self, disposition: &Disposition, example: impl FnOnce() -> Example) {
        let Some(end) = End::of(disposition) else { return };
        let kept = self.kept.entry(end).or_default();
        if kept.len() < EACH {
            kept.push(example());
        }
    }

    /// Those of one end, in capture order.
    #[must_use]
    pub fn of(&self, end: End) -> &[Example] {
        self.kept.get(&end).map_or(&[], Vec::as_slice)
    }
}

impl End {
    /// The end of a packet; `None` if it was skipped, or accepted by nothing in particular.
    #[must_use]
    pub fn of(disposition: &Disposition) -> Option<Self> {
        let by = |by| Some(Self::By(disposition.family?, by));
        let is_decided =
            !matches!(disposition.verdict, FinalVerdict::Unknown | FinalVerdict::Skip(_));
        if let Some(either) = disposition.either.filter(|_| is_decided) {
            return Some(Self::Either(either));
        }
        match disposition.verdict {
            FinalVerdict::Drop(DropReason::Rule(at)) => by(By::Rule(at)),
            FinalVerdict::Drop(DropReason::HotDrop(at)) => by(By::HotDrop(at)),
            FinalVerdict::Drop(DropReason::Policy { table, chain }) => {
                by(By::Policy { table, chain })
            }
            FinalVerdict::Drop(DropReason::Stack(fault)) => Some(Self::Stack(fault)),
            FinalVerdict::Drop(DropReason::Route(why)) => Some(Self::Route(why)),
            FinalVerdict::Drop(DropReason::Ttl) => Some(Self::Ttl),
            FinalVerdict::Drop(DropReason::TooBig) => Some(Self::TooBig),
            FinalVerdict::Drop(DropReason::Conntrack) => Some(Self::Conntrack),
            FinalVerdict::Drop(DropReason::Reassembly) => Some(Self::Reassembly),
            FinalVerdict::Drop(DropReason::Denied(_)) => Some(Self::Denied),
            // It is never what drops a packet for certain.
            FinalVerdict::Drop(DropReason::Foreign(_)) => Some(Self::Unknown),
            FinalVerdict::Reject(rejected) => by(rejected),
            FinalVerdict::Unknown => Some(Self::Unknown),
            FinalVerdict::Accept(Some(accepted)) => by(accepted),
            FinalVerdict::Accept(None) | FinalVerdict::Skip(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packets_are_kept_and_no_more() {
        let mut examples = Examples::default();
        let unknown = Disposition {
            verdict: FinalVerdict::Unknown,
            family: Some(Family::Ipv4),
            bytes: 40,
            ..Disposition::skipped(dataplane::Skip::Family)
        };
        let accepted = Disposition { verdict: FinalVerdict::Accept(None), ..unknown };
        for frame in 1..=9 {
            let end = if frame % 2 == 0 { &unknown } else { &accepted };
            examples.offer(end, || Example { frame, time: None, packet: String::new() });
        }
        let frames: Vec<u64> = examples.of(End::Unknown).iter().map(|e| e.frame).collect();
        assert_eq!(frames, [2, 4, 6]);
        assert_eq!(examples.of(End::Ttl), []);
    }
}
