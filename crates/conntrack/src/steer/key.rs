//! [`Key`] and [`Shard`]: the worker of a tuple.

use std::net::IpAddr;
use std::sync::Arc;

use packet::Packet;

use crate::dissect;
use crate::icmp::{self, Message};
use crate::key::{Tuple, has_ports, is_icmp};

/// What spreads words that are alike, and how far its product is shifted down.
pub(super) const ODD: u32 = 0x9e37_79b1;

pub(super) const SHIFT: u32 = 16;

/// Where a protocol stands above the sum of two ports.
pub(super) const ABOVE_PORTS: u32 = 17;

/// What packets of one flow have in common, by which they are steered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// Their two addresses.
    Addresses,
    /// Their protocol and two ports, or the identifier of an ICMP query; protocols without ports have one key.
    Ports(Alike),
}

/// Ports that rules translate to each other: they count as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alike(Arc<[u16]>);

/// One worker's part of the flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Which one it is, from 0.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// What tells whose a packet is.
    pub key: Key,
    /// Most flows that it may hold.
    pub max: usize,
}

impl Key {
    /// Which of `shards` has the flow that the packet is part of, or about if it is an ICMP error. Where tracking finds
    /// no flow for it, the first.
    #[must_use]
    pub fn shard(&self, packet: &Packet<'_>, shards: usize) -> usize {
        tuple(packet).map_or(0, |tuple| self.shard_of(&tuple, shards))
    }

    /// Which of `shards` has flows with this tuple.
    #[must_use]
    pub fn shard_of(&self, tuple: &Tuple, shards: usize) -> usize {
        Self::shard_of_word(self.word(tuple), shards)
    }

    /// Which of `shards` has flows with this number.
    pub(super) fn shard_of_word(word: u32, shards: usize) -> usize {
        (word.wrapping_mul(ODD) >> SHIFT) as usize % shards.max(1)
    }

    /// Whether two tuples are one shard's, however many there are.
    pub(crate) fn is_one(&self, one: &Tuple, other: &Tuple) -> bool {
        self.word(one) == self.word(other)
    }

    /// What packets that are steered by either key are steered by.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ports(ours), Self::Ports(theirs)) => {
                Self::Ports(ours.and(theirs.0.iter().copied()))
            }
            (Self::Addresses, key) | (key, Self::Addresses) => key,
        }
    }

    /// A number that a tuple and its inverse share: of sums alone, as a program of the kernel forms it, too
    /// ([`Key::program`]).
    fn word(&self, tuple: &Tuple) -> u32 {
        match self {
            Self::Addresses => sum(tuple.source()).wrapping_add(sum(tuple.destination())),
            Self::Ports(alike) => {
                Self::word_of_ports(tuple.protocol(), ports(tuple, alike).map(u32::from))
            }
        }
    }
}

impl Alike {
    /// How many ports count as one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no ports are grouped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds ports to these.
    #[must_use]
    pub fn and(&self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.0.iter().copied().chain(ports).collect()
    }

    /// The port that stands for this one.
    pub(super) fn of(&self, port: u16) -> u16 {
        match (self.0.binary_search(&port), self.0.first()) {
            (Ok(_), Some(first)) => *first,
            _ => port,
        }
    }
}

impl FromIterator<u16> for Alike {
    fn from_iter<I: IntoIterator<Item = u16>>(ports: I) -> Self {
        let mut ports: Vec<u16> = ports.into_iter().collect();
        ports.sort_unstable();
        ports.dedup();
        Self(ports.into())
    }
}

impl Shard {
    /// Returns `of` shards that have `max` flows in all, but no more shards than flows.
    pub fn all(key: &Key, of: usize, max: usize) -> impl Iterator<Item = Self> {
        let of = of.min(max).max(1);
        let share = move |number| max / of + usize::from(number < max % of);
        (0..of).map(move |number| Self { number, of, key: key.clone(), max: share(number) })
    }

    /// Whether flows with this tuple are its own.
    #[must_use]
    pub fn has(&self, tuple: &Tuple) -> bool {
        self.key.shard_of(tuple, self.of) == self.number
    }
}

/// The tuple of the flow that a packet is part of, or about if it is an ICMP error.
fn tuple(packet: &Packet<'_>) -> Option<Tuple> {
    let layer = dissect::layer(packet).ok()?;
    if is_icmp(layer.protocol)
        && let Ok(Message::Error { about, .. }) = icmp::read(packet, &layer, false)
    {
        return Some(about);
    }
    dissect::tuple(packet, &layer).ok()
}

fn ports(tuple: &Tuple, alike: &Alike) -> [u16; 2] {
    match tuple.protocol() {
        protocol if is_icmp(protocol) => [tuple.source_part(); 2],
        protocol if has_ports(protocol) => {
            [tuple.source_part(), tuple.destination_part()].map(|port| alike.of(port))
        }
        _ => [0; 2],
    }
}

/// The 32-bit words of an address, added up.
fn sum(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(v4) => u32::from(v4),
        IpAddr::V6(v6) => {
            let words = [96, 64, 32, 0].map(|shift| (u128::from(v6) >> shift) as u32);
            words.into_iter().fold(0, u32::wrapping_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tuples() -> impl Strategy<Value = Tuple> {
        let protocol = prop_oneof![Just(6u8), Just(17), Just(1), Just(47), Just(132)];
        (any::<[u8; 2]>(), protocol, any::<[u16; 2]>()).prop_map(|([from, to], protocol, parts)| {
            let parts = if protocol == 1 { [parts[0], 8 << 8] } else { parts };
            Tuple::new([10, 0, 0, from].into(), [10, 0, 1, to].into(), protocol, parts)
        })
    }

    proptest! {
        /// Replies, replies to packets whose addresses were translated, and ports that count as one.
        #[test]
        fn a_flow_has_one_shard(
            tuple in tuples(), to in any::<[u8; 4]>(), shards in 1usize..9,
            alike in prop::collection::vec(any::<u16>(), 1..20), pick in any::<prop::sample::Index>(),
        ) {
            let reply = tuple.inverse().unwrap();
            let one = |key: &Key, other: &Tuple| {
                key.is_one(&tuple, other) && key.shard_of(&tuple, shards) == key.shard_of(other, shards)
            };
            prop_assert!(one(&Key::Addresses, &reply));
            let plain = Key::Ports(Alike::default());
            prop_assert!(one(&plain, &reply));
            let moved = tuple.with_destination(to.into(), tuple.destination_part());
            prop_assert!(one(&plain, &moved) && one(&plain, &moved.inverse().unwrap()));
            if has_ports(tuple.protocol()) {
                let port = *pick.get(&alike);
                let key = Key::Ports(alike.iter().copied().chain([tuple.destination_part()]).collect());
                let moved = tuple.with_destination(to.into(), port);
                prop_assert!(one(&key, &moved) && one(&key, &moved.inverse().unwrap()));
                let other = port != tuple.source_part() && port != tuple.destination_part();
                prop_assert!(!other || !plain.is_one(&tuple, &moved));
            }
        }

        #[test]
        fn shares_add_up_to_the_whole(of in 1usize..40, max in 1usize..100) {
            let shards: Vec<Shard> = Shard::all(&Key::Addresses, of, max).collect();
            prop_assert_eq!(shards.iter().map(|shard| shard.max).sum::<usize>(), max);
            prop_assert!(shards.iter().all(|shard| shard.max > 0 && shard.of == shards.len()));
        }
    }

    /// Both directions of a query have its identifier, but one type and code each.
    #[test]
    fn queries_are_spread_by_their_identifier() {
        let key = Key::Ports(Alike::default());
        let echo =
            |id: u16| Tuple::new([10, 0, 0, 1].into(), [10, 0, 1, 1].into(), 1, [id, 8 << 8]);
        assert!(key.is_one(&echo(7), &echo(7).inverse().unwrap()));
        assert!(!key.is_one(&echo(7), &echo(8)));
    }

    #[test]
    fn neighbours_are_spread() {
        for (key, of) in [(Key::Addresses, 2), (Key::Ports(Alike::default()), 8)] {
            let mut counts = vec![0; of];
            for number in 0..1024_u16 {
                let [high, low] = number.to_be_bytes();
                let client = [10, 0, high, low].into();
                let tuple = Tuple::new(client, [192, 0, 2, 1].into(), 6, [30000 + number, 443]);
                counts[key.shard_of(&tuple, of)] += 1;
            }
            assert!(counts.iter().all(|count| (512..1536).contains(&(count * of))), "{counts:?}");
        }
    }

    #[test]
    fn either_key_unites() {
        let ports = |ports: &[u16]| Key::Ports(ports.iter().copied().collect());
        assert_eq!(Key::Addresses.or(Key::Addresses), Key::Addresses);
        assert_eq!(Key::Addresses.or(ports(&[])), ports(&[]));
        assert_eq!(ports(&[80, 8080]).or(ports(&[80, 22])), ports(&[22, 80, 8080]));
    }
}
