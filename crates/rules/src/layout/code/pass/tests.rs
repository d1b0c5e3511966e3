//! What is passed against rules of which it is known what they say, because they were made so.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{PROTOCOL, protocol};
use super::*;
use crate::ext::kit::testing::{ipv4_udp, with_transit};
use crate::family::{Family, Hook};
use crate::header::ProtocolTest;
use crate::transit::Transit;
use host::Host;
use packet::{Checksums, Link, Packet};

const UDP: u8 = 17;
/// Another protocol with a code.
const OTHER: u8 = 6;
/// The ports of the packets: 1000 to 53.
const PORTS_THAT_HOLD: u64 = 1000 | 53 << 32;

/// A test of an address.
#[derive(Debug, Clone, Copy)]
struct Addr {
    holds: bool,
    inverted: bool,
    masked: bool,
}

/// A rule by what its tests say.
#[derive(Debug, Clone, Copy)]
struct Made {
    /// Whether it holds, and is inverted.
    protocol: Option<(bool, bool)>,
    ports: Option<bool>,
    source: Option<Addr>,
    destination: Option<Addr>,
    /// Words after these, of which nothing is known here.
    more: usize,
}

fn rules() -> impl Strategy<Value = Made> {
    let flag = || prop::bool::weighted(0.3);
    let addr = move || {
        let addr = (flag(), prop::bool::weighted(0.1), any::<bool>());
        let addr = addr.prop_map(|(holds, inverted, masked)| Addr { holds, inverted, masked });
        proptest::option::of(addr)
    };
    let protocol = proptest::option::of((prop::bool::weighted(0.7), prop::bool::weighted(0.2)));
    (protocol, proptest::option::of(flag()), addr(), addr(), 0..2_usize).prop_map(
        |(protocol, ports, source, destination, more)| {
            let ports = ports.filter(|_| matches!(protocol, Some((_, false))));
            Made { protocol, ports, source, destination, more }
        },
    )
}

impl Made {
    /// Like it in shape; what its tests say is `says`'s.
    fn saying(self, says: Self) -> Self {
        let addr = |is: Option<Addr>, says: Option<Addr>| {
            is.map(|addr| Addr { holds: says.map_or(addr.holds, |says| says.holds), ..addr })
        };
        Self {
            protocol: says.protocol.filter(|(_, inverted)| !inverted || self.ports.is_none()),
            ports: self.ports.map(|holds| says.ports.unwrap_or(holds)),
            source: addr(self.source, says.source),
            destination: addr(self.destination, says.destination),
            more: self.more,
        }
    }

    fn is_refused(&self, ports_are_known: bool) -> bool {
        let fails = |addr: Option<Addr>| addr.is_some_and(|addr| !addr.holds);
        self.protocol.is_some_and(|(holds, _)| !holds)
            || ports_are_known && self.ports == Some(false)
            || fails(self.source)
            || fails(self.destination)
    }

    fn words(&self, is_v6: bool, key: &Key<'_>) -> Vec<u64> {
        let (mut head, mut words) = (0, vec![0]);
        if let Some((holds, inverted)) = self.protocol {
            let number = if holds == inverted { OTHER } else { UDP };
            let test = ProtocolTest { number, invert: inverted };
            head |= protocol::code(test).unwrap() << PROTOCOL;
        }
        if let Some(holds) = self.ports {
            head |= PORTS;
            words.push(if holds { PORTS_THAT_HOLD } else { PORTS_THAT_HOLD + 1 });
        }
        let is_host = |addr: Option<Addr>| addr.is_some_and(|addr| !addr.inverted && !addr.masked);
        if !is_v6 && is_host(self.source) && is_host(self.destination) {
            let fails = |addr: Option<Addr>| u64::from(addr.is_none_or(|addr| !addr.holds));
            words.push(key.pair() ^ fails(self.source) ^ fails(self.destination) << 32);
            head |= PAIR;
        } else {
            let mut add = |addr: Option<Addr>, is: [u64; 2], at: u32, not: u64| {
                let Some(addr) = addr else { return };
                head |= form(addr, is_v6) << at | if addr.inverted { not } else { 0 };
                words.extend(test_of(addr, is_v6, is));
            };
            add(self.source, key.source_words, SOURCE, NOT_SOURCE);
            add(self.destination, key.destination_words, DESTINATION, NOT_DESTINATION);
        }
        words.extend(vec![0; self.more]);
        words[0] = head | words.len() as u64;
        words
    }
}

fn form(addr: Addr, is_v6: bool) -> u64 {
    match (is_v6, addr.masked) {
        (false, _) => V4,
        (true, false) => V6,
        (true, true) => V6_MASKED,
    }
}

/// A test of the packet's address `is`; in the last bit of the first byte it differs where it is to.
fn test_of(addr: Addr, is_v6: bool, [low, high]: [u64; 2]) -> Vec<u64> {
    let low = low ^ u64::from(addr.holds == addr.inverted);
    match (is_v6, addr.masked) {
        (false, false) => vec![low | 0xffff_ffff << 32],
        (false, true) => vec![low & 0x00ff_ffff | 0x00ff_ffff << 32],
        (true, false) => vec![low, high],
        (true, true) => vec![low, high & 0xff, u64::MAX, 0xff],
    }
}

/// Shows a packet of UDP, over IPv4 or IPv6.
fn with_key<T>(is_v6: bool, has_ports: bool, see: impl FnOnce(&Key<'_>) -> T) -> T {
    fn key<'p>(transit: &Transit<'p, '_>, has_ports: bool) -> Key<'p> {
        if has_ports { Key::with_ports(transit) } else { Key::of(transit) }
    }
    let mut frame = ipv4_udp(b"");
    if !is_v6 {
        return with_transit(&frame, frame.len(), |transit| see(&key(transit, has_ports)));
    }
    let udp = frame.split_off(20);
    let mut frame = vec![0x60, 0, 0, 0, 0, udp.len() as u8, UDP, 64];
    frame.extend((1..=32).chain(udp));
    let len = frame.len();
    let mut packet = Packet::parse(&mut frame, len, Link::Ipv6, Checksums::Ignore);
    let host = Host::default();
    see(&key(&Transit::new(&mut packet, Family::Ipv6, Hook::Forward, &host), has_ports))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn what_is_skipped_refuses_or_only_counts_and_what_stops_it_does_not(
        first in rules(),
        like in vec(rules(), 0..6),
        others in vec(rules(), 0..6),
        is_v6: bool,
        has_ports: bool,
    ) {
        let mut made = vec![first];
        made.extend(like.into_iter().map(|says| first.saying(says)));
        made.extend(others);
        with_key(is_v6, has_ports, |key| {
            let words: Vec<_> = made.iter().map(|made| made.words(is_v6, key)).collect();
            let mut counted = 0;
            let (skipped, read) = key.skip(&words.concat(), &mut |_| counted += 1);
            prop_assert_eq!(skipped, words[..read].iter().map(Vec::len).sum::<usize>());
            let matched = made[..read].iter().zip(&words);
            let matched: Vec<_> = matched.filter(|(made, _)| !made.is_refused(has_ports)).collect();
            prop_assert_eq!(matched.len(), counted);
            let counts = |words: &[u64]| {
                [PAIR_RULE, V6_RULE].contains(&(words[0] & (TESTS | LEN))) && only_counts(words[0])
            };
            prop_assert!(matched.iter().all(|(_, words)| counts(words)));
            prop_assert!(made.get(read).is_none_or(|made| !made.is_refused(has_ports)));
            Ok(())
        })?;
    }

    #[test]
    fn all_of_one_shape_that_refuse_are_passed_and_no_others(
        first in rules(),
        like in vec(rules(), 0..6),
        other in rules(),
        is_v6: bool,
    ) {
        let mut made = vec![first];
        made.extend(like.into_iter().map(|says| first.saying(says)));
        made.push(other);
        let (passed, expected) = with_key(is_v6, true, |key| {
            let words: Vec<_> = made.iter().map(|made| made.words(is_v6, key)).collect();
            let shape = words[0][0] & SHAPE;
            let tests = words[0][0] & (TESTS | LEN);
            let counts = [PAIR_RULE, V6_RULE].contains(&tests);
            let expected = made.iter().zip(&words).position(|(made, words)| match counts {
                true => words[0] & (TESTS | LEN) != tests,
                false => words[0] & SHAPE != shape || !made.is_refused(true),
            });
            let expected = expected.unwrap_or(made.len());
            let hits = made[..expected].iter().filter(|made| !made.is_refused(true)).count();
            let mut counted = 0;
            let passed = key.pass(&words.concat(), &mut |_| counted += 1);
            ((passed, counted), (expected, if counts { hits } else { 0 }))
        });
        let addr = [first.source, first.destination].into_iter().flatten();
        let is_plain = addr.clone().all(|addr| !addr.inverted);
        let is_shape = first.ports.is_none() && addr.count() > 0;
        prop_assert_eq!(passed, if is_plain && is_shape { expected } else { (0, 0) });
    }
}
