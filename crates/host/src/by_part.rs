//! [`ByPart`]: what asks for a part of a number, such as [`ByNetwork`] for a prefix of an address, found by the number
//! without asking each.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use crate::Network;
use crate::network::mask;

/// Places in a list by which part each asks for, and what that has to be. Answers come in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByPart<P, N: Eq + Hash> {
    /// Places that ask for no part.
    any: Vec<u32>,
    by_part: Vec<(P, HashMap<N, Vec<u32>>)>,
}

/// By the length of a prefix.
pub(crate) type ByNetwork = ByPart<u8, IpAddr>;

impl<P, N: Eq + Hash> Default for ByPart<P, N> {
    fn default() -> Self {
        Self { any: Vec::new(), by_part: Vec::new() }
    }
}

impl<P: Copy + Eq, N: Eq + Hash> ByPart<P, N> {
    pub(crate) fn of(asked: impl Iterator<Item = Option<(P, N)>>) -> Self {
        let mut all = Self::default();
        for (place, asked) in (0..).zip(asked) {
            let Some((part, number)) = asked else {
                all.any.push(place);
                continue;
            };
            let known = all.by_part.iter().position(|(one, _)| *one == part);
            let at = known.unwrap_or(all.by_part.len());
            if known.is_none() {
                all.by_part.push((part, HashMap::new()));
            }
            all.by_part[at].1.entry(number).or_default().push(place);
        }
        all
    }

    /// The first place from `from` on that asks for nothing, or for what `part_of` gives.
    pub(crate) fn first(&self, from: usize, part_of: impl Fn(P) -> Option<N>) -> Option<usize> {
        let all = self.by_part.iter().filter_map(|(part, places)| places.get(&part_of(*part)?));
        let next = |places: &Vec<u32>| {
            let place = places.partition_point(|place| (*place as usize) < from);
            places.get(place).map(|place| *place as usize)
        };
        all.chain([&self.any]).filter_map(next).min()
    }
}

impl ByNetwork {
    /// Lays out networks of one family; `None` asks for none.
    pub(crate) fn of_networks(networks: impl Iterator<Item = Option<Network>>) -> Self {
        let asked = |network: Network| (network.bits > 0).then_some((network.bits, network.addr));
        Self::of(networks.map(|network| network.and_then(asked)))
    }

    /// The first place from `from` on that asks for no network or for one of this address.
    pub(crate) fn next(&self, from: usize, addr: IpAddr) -> Option<usize> {
        let most = if addr.is_ipv4() { 32 } else { 128 };
        self.first(from, |bits| (bits <= most).then(|| mask(addr, bits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Addresses that often lie in each other's networks.
    fn addr() -> impl Strategy<Value = IpAddr> {
        let few = || prop_oneof![Just(0u8), Just(0x80), Just(0xff), any::<u8>()];
        let v6 = (few(), few()).prop_map(|(a, b)| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[15]) = (a, b);
            IpAddr::from(bytes)
        });
        prop_oneof![(few(), few()).prop_map(|(a, b)| IpAddr::from([a, b, 0, b])), v6]
    }

    proptest! {
        #[test]
        fn it_finds_what_asking_each_finds(
            networks in proptest::collection::vec(proptest::option::of((addr(), 0u8..=128)), 0..40),
            wanted in addr(),
        ) {
            let network = |(addr, bits): (IpAddr, u8)| {
                Network::parse(&format!("{addr}/{}", if addr.is_ipv4() { bits / 4 } else { bits }))
            };
            // A prefix of no bits holds every address here: a list is of one family.
            let networks: Vec<_> = networks.into_iter().map(|one| one.and_then(network)).collect();
            let holds = |one: &Option<Network>| one.is_none_or(|it| it.bits == 0 || it.holds(wanted));
            let each = networks.iter().enumerate().filter(|(_, one)| holds(one)).map(|(at, _)| at);
            let all = ByNetwork::of_networks(networks.iter().copied());
            let first = all.next(0, wanted);
            let found = std::iter::successors(first, |at| all.next(at + 1, wanted));
            prop_assert_eq!(found.collect::<Vec<_>>(), each.collect::<Vec<_>>());
        }
    }
}
