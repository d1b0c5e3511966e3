//! [`Untraceable`]: what replies may look like whose flow cannot be found, because how it is translated is not
//! known (a port drawn at random, an address that is not given), or whether it is there; and the first packets of
//! flows that may have been expected.
//!
//! Contract: bounded. It only ever says "may be": past [`MOST`] patterns, everything of a protocol may be such a
//! reply. Patterns are never forgotten, for nobody knows how long the kernel keeps the flow.

use crate::flow::Flow;
use crate::key::{Direction, Tuple};
use packet::{icmpv4, icmpv6, udp};
use std::collections::HashMap;
use std::net::IpAddr;

/// Patterns that are remembered one by one.
const MOST: usize = 1 << 16;

/// What is known of a reply, or of the first packet of a flow that may have been expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pattern {
    /// The packet comes from here, to an unknown destination.
    From(u8, IpAddr, u16),
    /// The packet goes to here, from an unknown source.
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

impl Pattern {
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

/// The replies that may come, and the first packets that may have been expected.
#[derive(Debug, Default)]
pub(crate) struct Untraceable(HashMap<Pattern, Waiting>);

/// What waits for packets of one pattern.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    /// How many flows wait for replies, or expect others.
    flows: u32,
    /// Some of them expect others.
    is_expectation: bool,
}

impl Untraceable {
    /// Replies to packets that now look like `sent`, of which the source or the destination, or both, are
    /// not known.
    pub(crate) fn expect(
        &mut self,
        sent: &Tuple,
        is_source_unknown: bool,
        is_destination_unknown: bool,
    ) {
        let protocol = sent.protocol();
        let (source, destination) = (part(sent, sent.source_part()), destination_part(sent));
        let pattern = match (is_source_unknown, is_destination_unknown) {
            (false, false) => return,
            (true, false) => Pattern::From(protocol, sent.destination(), destination),
            (false, true) => Pattern::To(protocol, sent.source(), source),
            (true, true) => Pattern::Any(protocol),
        };
        self.add(pattern);
    }

    /// Exactly this reply may come, to a flow that may be there.
    pub(crate) fn expect_reply(&mut self, reply: &Tuple) {
        self.expect_once(Pattern::Both(reply.in_zone(0)));
    }

    /// Replies come from here, if there is a flow.
    pub(crate) fn expect_from(&mut self, protocol: u8, source: IpAddr, port: u16) {
        self.expect_once(Pattern::From(protocol, source, port));
    }

    /// A helper may expect this, once or more often.
    pub(crate) fn may_expect(&mut self, pattern: Pattern) {
        match self.0.get_mut(&pattern) {
            Some(waiting) => waiting.is_expectation = true,
            None => self.add(pattern).is_expectation = true,
        }
    }

    /// Packets like this may be of a flow that was overlooked.
    pub(crate) fn expect_once(&mut self, pattern: Pattern) {
        if !self.0.contains_key(&pattern) {
            self.add(pattern);
        }
    }

    fn add(&mut self, pattern: Pattern) -> &mut Waiting {
        let is_full = self.0.len() >= MOST && !self.0.contains_key(&pattern);
        let waiting = self.0.entry(if is_full { pattern.widest() } else { pattern }).or_default();
        waiting.flows = waiting.flows.saturating_add(1);
        waiting
    }

    /// Whether nothing waits: then no packet is such a reply.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a packet without a flow may be such a reply.
    #[inline]
    pub(crate) fn may_include(&self, reply: &Tuple) -> bool {
        !self.0.is_empty() && self.waiting(reply) > 0
    }

    /// How many flows may wait for this reply.
    pub(crate) fn waiting(&self, reply: &Tuple) -> u32 {
        self.all(reply).fold(0, |sum, waiting| sum.saturating_add(waiting.flows))
    }

    /// Whether a first packet like this may have been expected.
    pub(crate) fn may_be_expected(&self, first: &Tuple) -> bool {
        !self.0.is_empty() && self.all(first).any(|waiting| waiting.is_expectation)
    }

    /// What waits for a packet like this.
    fn all(&self, reply: &Tuple) -> impl Iterator<Item = Waiting> {
        let protocol = reply.protocol();
        let (source, destination) = (part(reply, reply.source_part()), destination_part(reply));
        let patterns = [
            Pattern::Any(protocol),
            Pattern::From(protocol, reply.source(), source),
            Pattern::To(protocol, reply.destination(), destination),
            Pattern::Between(protocol, reply.source(), Some(reply.destination())),
            Pattern::Between(protocol, reply.source(), None),
            Pattern::With(reply.source()),
            Pattern::With(reply.destination()),
            Pattern::Whatever,
            Pattern::Both(reply.in_zone(0)),
        ];
        patterns.into_iter().filter_map(|pattern| self.0.get(&pattern).copied())
    }
}

/// ICMP has one identifier, which belongs to neither end.
fn part(tuple: &Tuple, part: u16) -> u16 {
    if matches!(tuple.protocol(), icmpv4::PROTOCOL | icmpv6::PROTOCOL) { 0 } else { part }
}

fn destination_part(tuple: &Tuple) -> u16 {
    part(tuple, tuple.destination_part())
}

/// Between which hosts the flow lies that a packet in this direction of its flow may announce, and, where the flow
/// is translated, replies to that.
pub(crate) fn expected_by(flow: &Flow, direction: Direction, protocol: u8) -> [Pattern; 2] {
    let between = |way| {
        let tuple = flow.tuple(way);
        let (from, to) = (tuple.source(), tuple.destination());
        match (way, flow.indeterminate_ends) {
            (Direction::Original, _) | (_, [false, false]) => {
                Pattern::Between(protocol, from, Some(to))
            }
            (_, [true, false]) => Pattern::Between(protocol, from, None),
            (_, [_, true]) => Pattern::Any(protocol),
        }
    };
    let back = direction.opposite();
    [back, if flow.is_translated() { direction } else { back }].map(between)
}

/// Helpers of all sorts expect flows that one of their flow's hosts takes part in.
pub(crate) fn anything(flow: &Flow) -> [Pattern; 4] {
    match flow.indeterminate_ends {
        [false, false] => {
            let (sent, back) = (&flow.original, &flow.reply);
            [sent.source(), sent.destination(), back.source(), back.destination()]
                .map(Pattern::With)
        }
        _ => [Pattern::Whatever; 4],
    }
}

/// A broadcast is answered from anywhere.
pub(crate) fn answer(flow: &Flow) -> Pattern {
    let back = &flow.reply;
    match flow.indeterminate_ends {
        [false, _] => Pattern::To(udp::PROTOCOL, back.destination(), back.destination_part()),
        [true, _] => Pattern::Any(udp::PROTOCOL),
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
        let mut untraceable = Untraceable::default();
        untraceable.expect(&tuple(1, 2, [1000, 80]), true, false);
        assert!(untraceable.may_include(&tuple(2, 9, [80, 7777])));
        assert!(!untraceable.may_include(&tuple(2, 9, [81, 7777])));
        untraceable.expect(&tuple(3, 4, [3000, 80]), false, true);
        assert!(
            untraceable.may_include(&tuple(9, 3, [5, 3000]))
                && !untraceable.may_include(&tuple(9, 3, [5, 3001]))
        );
        untraceable.expect(&tuple(5, 6, [1, 2]), true, true);
        assert!(untraceable.may_include(&tuple(77, 78, [1, 2])));
    }

    #[test]
    fn a_flow_that_may_be_there_has_one_reply_in_any_zone() {
        let mut untraceable = Untraceable::default();
        untraceable.expect_reply(&tuple(2, 1, [80, 1000]).in_zone(3));
        untraceable.expect_reply(&tuple(2, 1, [80, 1000]));
        assert_eq!(untraceable.waiting(&tuple(2, 1, [80, 1000]).in_zone(5)), 1);
        assert!(
            !untraceable.may_include(&tuple(2, 1, [80, 1001]))
                && !untraceable.may_include(&tuple(1, 2, [1000, 80]))
        );
    }

    #[test]
    fn what_is_expected_is_told_by_hosts_and_past_the_bound_by_nothing() {
        let mut untraceable = Untraceable::default();
        untraceable.may_expect(Pattern::With([10, 0, 0, 3].into()));
        assert!(
            untraceable.may_include(&tuple(3, 1, [1, 2]))
                && untraceable.may_include(&tuple(1, 3, [1, 2]))
        );
        assert!(untraceable.may_be_expected(&tuple(3, 1, [1, 2])));
        untraceable.expect(&tuple(7, 8, [1, 80]), true, false);
        assert!(!untraceable.may_be_expected(&tuple(8, 9, [80, 1])), "a reply is not expected");
        assert!(!untraceable.may_include(&tuple(1, 2, [1, 2])));
        (0..MOST as u32)
            .for_each(|host| untraceable.may_expect(Pattern::With(IpAddr::V4(host.into()))));
        assert!(untraceable.may_include(&tuple(1, 2, [1, 2])));
        assert_eq!(untraceable.0.len(), MOST + 1);
    }
}
