//! [`Contradictions`]: packets of which the captures show something else than the rules make of them.
//!
//! A packet that was seen leaving was not dropped, was not for the host, and left with the addresses that it had then.
//! Where a replay says otherwise, rules, host and capture are not of one time, or tamis is wrong.

use std::collections::HashMap;

use dataplane::{DropReason, FinalVerdict, Left, Outcome, Path};
use packet::FlowKey;

use crate::decider::Decider;

/// What a capture contradicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contradicted {
    /// A verdict that drops the packet, by this.
    Drop(Decider),
    /// The decision that the packet is for the host itself.
    ToHost,
    /// The addresses or ports that it leaves with.
    Translation,
}

/// How often one thing is contradicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Number of the first of them.
    pub example: u64,
}

/// Packets whose verdict the capture contradicts.
#[derive(Debug, Clone, Default)]
pub struct Contradictions {
    by: HashMap<Contradicted, Count>,
    /// Packets that were let go on, of which no frame shows that they left.
    pub unseen: u64,
}

impl Contradictions {
    /// Holds a verdict to how the packet was seen leaving.
    #[inline]
    pub(crate) fn compare(
        &mut self,
        number: u64,
        outcome: &Outcome<'_>,
        left: Option<&Left<'_>>,
        is_own: bool,
    ) {
        let end = &outcome.end;
        // The host's own packets are shown as they leave; on `lo` they may be dropped after that.
        if is_own && end.path == Some(Path::Output) && matches!(end.verdict, FinalVerdict::Drop(_))
        {
            return self.add(number, Contradicted::Drop(Decider::of(end, None)));
        }
        let Some(left) = left else {
            let goes_on = end.path == Some(Path::Forward);
            self.unseen += u64::from(goes_on && matches!(end.verdict, FinalVerdict::Accept(_)));
            return;
        };
        self.compare_left(number, outcome, left);
    }

    fn compare_left(&mut self, number: u64, outcome: &Outcome<'_>, left: &Left<'_>) {
        let end = &outcome.end;
        let contradicted = match end.verdict {
            // A fragment that was left out when its packet was put together, which left without it.
            FinalVerdict::Drop(DropReason::Conntrack) if end.path.is_none() => return,
            FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => {
                Contradicted::Drop(Decider::of(end, None))
            }
            FinalVerdict::Accept(_) if end.path == Some(Path::Input) => Contradicted::ToHost,
            FinalVerdict::Accept(_)
                if outcome.tuple.is_some_and(|tuple| !is_as_seen(&tuple, left)) =>
            {
                Contradicted::Translation
            }
            _ => return,
        };
        self.add(number, contradicted);
    }

    fn add(&mut self, number: u64, contradicted: Contradicted) {
        let count = self.by.entry(contradicted).or_insert(Count { packets: 0, example: number });
        count.packets += 1;
    }

    /// Adds what others found.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self { by, unseen } = other;
        self.unseen += unseen;
        for (contradicted, count) in by {
            let ours = self.by.entry(contradicted).or_insert(Count { packets: 0, ..count });
            ours.packets += count.packets;
            ours.example = ours.example.min(count.example);
        }
    }

    /// Packets in all.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.by.values().map(|count| count.packets).sum()
    }

    /// Returns what is contradicted, most packets first.
    #[must_use]
    pub fn by(&self) -> Vec<(Contradicted, Count)> {
        let mut by: Vec<_> = self.by.iter().map(|(what, count)| (*what, *count)).collect();
        by.sort_by_key(|(_, count)| (std::cmp::Reverse(count.packets), count.example));
        by
    }
}

/// Whether a packet leaves as it was seen to.
fn is_as_seen(tuple: &FlowKey, left: &Left<'_>) -> bool {
    let ports = left.ports.unwrap_or([tuple.source_port, tuple.destination_port]);
    (tuple.source, tuple.destination) == (left.source, left.destination)
        && [tuple.source_port, tuple.destination_port] == ports
}
