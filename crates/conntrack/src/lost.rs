//! [`Lost`]: what replies may look like whose flow cannot be found, because how it is translated is not
//! known (a port drawn at random, an address that nobody named), or whether it is there; and the first packets of
//! flows that may have been foretold.
//!
//! Contract: bounded. It only ever says "may be": past [`MOST`] ends, everything of a protocol may be such a
//! reply. Ends are never forgotten, for nobody knows how long the kernel keeps the flow.

use crate::flow::Flow;
use crate::key::{Direction, Tuple};
use packet::{icmpv4, icmpv6, udp};
use std::collections::HashMap;
use std::net::IpAddr;

/// Ends that are remembered one by one.
const MOST: usize = 1 << 16;

/// What is known of a reply, or of the first packet of a flow that may have been foretold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// It comes from here, and where to is not known.
    From(u8, IpAddr, u16),
    /// It goes to here, and where from is not known.
    To(u8, IpAddr, u16),
    /// Nothing but its protocol.
    Any(u8),
    /// From one host to another, or to any, by any port.
    Between(u8, IpAddr, Option<IpAddr>),
    /// To or from this host, in any protocol.
    With(IpAddr),
    /// Nothing at all.
    Whatever,
    /// Both are known, but not whether the flow is there. In zone 0, whatever its own.
    Both(Tuple),
}

impl End {
    /// What may be all that is known of it.
    fn widest(&self) -> Self {
        match *self {
            Self::From(protocol, ..)
            | Self::To(protocol, ..)
            | Self::Any(protocol)
            | Self::Between(protocol, ..) => Self::Any(protocol),
            Self::Both(reply) => Self::Any(reply.protocol()),
            Self::With(_) | Self::Whatever => Self::Whatever,
        }
    }
}

/// The replies that may come, and the first packets that may have been foretold.
#[derive(Debug, Default)]
pub(crate) struct Lost(HashMap<End, Waiting>);

/// What waits for packets of one end.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    /// How many flows wait for replies, or foretold others.
    flows: u32,
    /// Some of them foretold others.
    foretold: bool,
}

impl Lost {
    /// Replies to packets that now look like `sent`, of which the source or the destination, or both, are
    /// not known.
    pub(crate) fn expect(&mut self, sent: &Tuple, source_lost: bool, destination_lost: bool) {
        let protocol = sent.protocol();
        let (source, destination) = (part(sent, sent.source_part()), destination_part(sent));
        let end = match (source_lost, destination_lost) {
            (false, false) => return,
            (true, false) => End::From(protocol, sent.destination(), destination),
            (false, true) => End::To(protocol, sent.source(), source),
            (true, true) => End::Any(protocol),
        };
        self.add(end);
    }

    /// Exactly this reply may come, to a flow that may be there.
    pub(crate) fn expect_reply(&mut self, reply: &Tuple) {
        self.add_once(End::Both(reply.in_zone(0)));
    }

    /// Replies come from here, if there is a flow.
    pub(crate) fn expect_from(&mut self, protocol: u8, source: IpAddr, port: u16) {
        self.add_once(End::From(protocol, source, port));
    }

    /// A helper may have foretold this, once or more often.
    pub(crate) fn foretell(&mut self, end: End) {
        match self.0.get_mut(&end) {
            Some(waiting) => waiting.foretold = true,
            None => self.add(end).foretold = true,
        }
    }

    fn add_once(&mut self, end: End) {
        if !self.0.contains_key(&end) {
            self.add(end);
        }
    }

    fn add(&mut self, end: End) -> &mut Waiting {
        let is_full = self.0.len() >= MOST && !self.0.contains_key(&end);
        let waiting = self.0.entry(if is_full { end.widest() } else { end }).or_default();
        waiting.flows = waiting.flows.saturating_add(1);
        waiting
    }

    /// Whether a packet without a flow may be such a reply.
    #[inline]
    pub(crate) fn may_be(&self, reply: &Tuple) -> bool {
        !self.0.is_empty() && self.waiting(reply) > 0
    }

    /// How many flows may wait for this reply.
    pub(crate) fn waiting(&self, reply: &Tuple) -> u32 {
        self.all(reply).fold(0, |sum, waiting| sum.saturating_add(waiting.flows))
    }

    /// Whether a first packet like this may have been foretold.
    pub(crate) fn may_be_foretold(&self, first: &Tuple) -> bool {
        !self.0.is_empty() && self.all(first).any(|waiting| waiting.foretold)
    }

    /// What waits for a packet like this.
    fn all(&self, reply: &Tuple) -> impl Iterator<Item = Waiting> {
        let protocol = reply.protocol();
        let (source, destination) = (part(reply, reply.source_part()), destination_part(reply));
        let ends = [
            End::Any(protocol),
            End::From(protocol, reply.source(), source),
            End::To(protocol, reply.destination(), destination),
            End::Between(protocol, reply.source(), Some(reply.destination())),
            End::Between(protocol, reply.source(), None),
            End::With(reply.source()),
            End::With(reply.destination()),
            End::Whatever,
            End::Both(reply.in_zone(0)),
        ];
        ends.into_iter().filter_map(|end| self.0.get(&end).copied())
    }
}

/// ICMP has one identifier, which belongs to neither end.
fn part(tuple: &Tuple, part: u16) -> u16 {
    if matches!(tuple.protocol(), icmpv4::PROTOCOL | icmpv6::PROTOCOL) { 0 } else { part }
}

fn destination_part(tuple: &Tuple) -> u16 {
    part(tuple, tuple.destination_part())
}

/// Where what a packet that goes this way of its flow foretells lies, if it foretells anything, and, where the flow is
/// translated, replies to that.
pub(crate) fn expected_by(flow: &Flow, direction: Direction, protocol: u8) -> [End; 2] {
    let between = |way| {
        let tuple = flow.tuple(way);
        let (from, to) = (tuple.source(), tuple.destination());
        match (way, flow.lost_ends) {
            (Direction::Original, _) | (_, [false, false]) => {
                End::Between(protocol, from, Some(to))
            }
            (_, [true, false]) => End::Between(protocol, from, None),
            (_, [_, true]) => End::Any(protocol),
        }
    };
    let back = direction.opposite();
    [back, if flow.is_translated() { direction } else { back }].map(between)
}

/// Helpers of all sorts expect flows that one of their flow's hosts takes part in.
pub(crate) fn anything(flow: &Flow) -> [End; 4] {
    match flow.lost_ends {
        [false, false] => {
            let (sent, back) = (&flow.original, &flow.reply);
            [sent.source(), sent.destination(), back.source(), back.destination()].map(End::With)
        }
        _ => [End::Whatever; 4],
    }
}

/// A broadcast is answered from anywhere.
pub(crate) fn answer(flow: &Flow) -> End {
    let back = &flow.reply;
    match flow.lost_ends {
        [false, _] => End::To(udp::PROTOCOL, back.destination(), back.destination_part()),
        [true, _] => End::Any(udp::PROTOCOL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(from: u8, to: u8, parts: [u16; 2]) -> Tuple {
        Tuple::new([10, 0, 0, from].into(), [10, 0, 0, to].into(), 6, parts)
    }

    #[test]
    fn the_end_that_is_known_tells_replies_apart() {
        let mut lost = Lost::default();
        lost.expect(&tuple(1, 2, [1000, 80]), true, false);
        assert!(lost.may_be(&tuple(2, 9, [80, 7777])));
        assert!(!lost.may_be(&tuple(2, 9, [81, 7777])));
        lost.expect(&tuple(3, 4, [3000, 80]), false, true);
        assert!(lost.may_be(&tuple(9, 3, [5, 3000])) && !lost.may_be(&tuple(9, 3, [5, 3001])));
        lost.expect(&tuple(5, 6, [1, 2]), true, true);
        assert!(lost.may_be(&tuple(77, 78, [1, 2])));
    }

    #[test]
    fn a_flow_that_may_be_there_has_one_reply_in_any_zone() {
        let mut lost = Lost::default();
        lost.expect_reply(&tuple(2, 1, [80, 1000]).in_zone(3));
        lost.expect_reply(&tuple(2, 1, [80, 1000]));
        assert_eq!(lost.waiting(&tuple(2, 1, [80, 1000]).in_zone(5)), 1);
        assert!(!lost.may_be(&tuple(2, 1, [80, 1001])) && !lost.may_be(&tuple(1, 2, [1000, 80])));
    }

    #[test]
    fn what_is_foretold_is_told_by_hosts_and_past_the_bound_by_nothing() {
        let mut lost = Lost::default();
        lost.foretell(End::With([10, 0, 0, 3].into()));
        assert!(lost.may_be(&tuple(3, 1, [1, 2])) && lost.may_be(&tuple(1, 3, [1, 2])));
        assert!(lost.may_be_foretold(&tuple(3, 1, [1, 2])));
        lost.expect(&tuple(7, 8, [1, 80]), true, false);
        assert!(!lost.may_be_foretold(&tuple(8, 9, [80, 1])), "a reply is not foretold");
        assert!(!lost.may_be(&tuple(1, 2, [1, 2])));
        (0..MOST as u32).for_each(|host| lost.foretell(End::With(IpAddr::V4(host.into()))));
        assert!(lost.may_be(&tuple(1, 2, [1, 2])));
        assert_eq!(lost.0.len(), MOST + 1);
    }
}
