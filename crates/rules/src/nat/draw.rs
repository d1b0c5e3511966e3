//! [`candidates`]: the ports that a worker tries where the kernel draws one at random.
//!
//! Contract: pure. Replies to every one of them steer to the worker's own shard, so that no other worker needs to know of
//! the flow; with one shard these are all ports of the range.
//!
//! Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_l4proto_unique_tuple`): the ranges, and the search from a drawn first
//! port on.

use super::range::{Ports, address, with_end};
use conntrack::steer::Shard;
use conntrack::{Side, Tuple, has_ports};

/// Ports that are tried for each shard that there is.
const ATTEMPTS: u32 = 128;

/// Returns the tuples that differ in the port, one after the other from a drawn `first` one.
pub(super) fn candidates(
    tuple: &Tuple,
    side: Side,
    ports: Ports,
    shard: Option<&Shard>,
    first: u64,
) -> impl Iterator<Item = Tuple> {
    let start = (first % u64::from(ports.len())) as u32;
    let most = ATTEMPTS.saturating_mul(shard.map_or(1, |shard| shard.of as u32));
    let port = move |step: u32| ports.first + ((start + step) % ports.len()) as u16;
    let at = move |port: u16| with_end(tuple, side, address(tuple, side), Some(port));
    let has = move |reply: Tuple| shard.is_none_or(|shard| shard.has(&reply));
    let is_own = move |tuple: &Tuple| tuple.inverse().is_some_and(has);
    (0..ports.len().min(most)).map(move |step| at(port(step))).filter(is_own)
}

/// What the kernel draws from where no ports are given: privileged ones stay so, identifiers are any.
pub(super) fn usual(tuple: &Tuple, port: u16) -> Ports {
    let (first, last) = match port {
        _ if !has_ports(tuple.protocol()) => (0, u16::MAX),
        0..512 => (1, 511),
        512..1024 => (600, 1023),
        _ => (1024, u16::MAX),
    };
    Ports { first, last, base: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conntrack::steer::Key;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn replies_to_what_is_drawn_come_to_the_worker_that_drew_it(
            parts in any::<[u16; 2]>(), protocol in prop_oneof![Just(6u8), Just(17)], of in 1usize..6,
            alike in prop::collection::vec(any::<u16>(), 0..4), range in any::<[u16; 2]>(), drawn: u64,
        ) {
            let tuple = Tuple::new([10, 0, 0, 1].into(), [20, 0, 0, 1].into(), protocol, parts);
            let [first, last] = [range[0].min(range[1]), range[0].max(range[1])];
            for ports in [Ports { first, last, base: None }, usual(&tuple, parts[0])] {
                let key = Key::Ports(alike.iter().copied().collect());
                let shards: Vec<Shard> = Shard::all(&key, of, 100).collect();
                let tried_by = |shard| candidates(&tuple, Side::Source, ports, Some(shard), drawn);
                let mut tried = 0;
                for (number, shard) in shards.iter().enumerate() {
                    for candidate in tried_by(shard) {
                        tried += 1;
                        prop_assert_eq!(key.shard_of(&candidate.inverse().unwrap(), of), number);
                        prop_assert!((ports.first..=ports.last).contains(&candidate.source_part()));
                    }
                }
                // Between them they try what one alone would.
                prop_assert_eq!(tried, ports.len().min(ATTEMPTS * of as u32));
            }
        }
    }
}
