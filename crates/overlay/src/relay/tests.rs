//! A relay, compared with a list of paths that is searched from end to end: whatever is joined, parted and restored, each source has the
//! same destination by both.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PORTS: u16 = 2;
const NAMES: u8 = 4;
const ADDRESSES: u16 = 5;

#[derive(Clone, Debug)]
enum Step {
    Join(u8, u8, u16),
    Part(u8, u8),
    Restore(u8, u8, usize, u16),
    /// A node's session with the directory is where its datagram is from.
    Look(u8, u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let (name, port, from) = (|| 0..NAMES, || 0..PORTS, || 0..ADDRESSES);
    prop_oneof![
        3 => (name(), name(), port()).prop_map(|(a, b, port)| Step::Join(a, b, port)),
        1 => (name(), name()).prop_map(|(a, b)| Step::Part(a, b)),
        3 => (name(), name(), 0..2_usize, from())
            .prop_map(|(a, b, side, from)| Step::Restore(a, b, side, from)),
        3 => (name(), port(), from()).prop_map(|(node, port, from)| Step::Look(node, port, from)),
    ]
}

fn pair(one: u8, other: u8) -> Pair {
    let name = |number: u8| format!("n{number}").parse().unwrap();
    Pair::of(&name(one), &name(other))
}

fn key(number: u8) -> PublicKey {
    PublicKey::new([number; 32])
}

fn at(number: u16) -> SocketAddr {
    // One of IPv4, one of IPv6, and connections of the same address and port.
    match number {
        0 => "192.0.2.1:9".parse().unwrap(),
        1 => "[2001:db8::1]:9".parse().unwrap(),
        scope => format!("[2001:db8::1%{scope}]:9").parse().unwrap(),
    }
}

/// Paths by their pairs: the port, and the sources.
type Oracle = BTreeMap<Pair, (u16, Sources)>;

fn bind(oracle: &mut Oracle, pair: &Pair, side: usize, from: SocketAddr) {
    let Some((port, _)) = oracle.get(pair).copied() else { return };
    for (_, sources) in oracle.values_mut().filter(|it| it.0 == port) {
        sources.iter_mut().filter(|it| **it == Some(from)).for_each(|it| *it = None);
    }
    oracle.get_mut(pair).unwrap().1[side] = Some(from);
}

/// Where a source's datagrams go, and whether it is known.
fn destination(oracle: &Oracle, port: u16, from: SocketAddr) -> (bool, Option<SocketAddr>) {
    let sides = oracle.values().filter(|it| it.0 == port).flat_map(|it| [(it.1, 0), (it.1, 1)]);
    let found = sides.into_iter().find(|(sources, side)| sources[*side] == Some(from));
    (found.is_some(), found.and_then(|(sources, side)| sources[1 - side]))
}

fn take(relay: &mut Relay, oracle: &mut Oracle, step: &Step) {
    match *step {
        Step::Join(a, b, port) => {
            let (first, second) = (a.min(b), a.max(b));
            relay.join(&pair(a, b), [key(first), key(second)], port);
            let path = oracle.entry(pair(a, b)).or_insert((port, [None; 2]));
            if path.0 != port {
                *path = (port, [None; 2]);
            }
        }
        Step::Part(a, b) => {
            relay.part(&pair(a, b));
            oracle.remove(&pair(a, b));
        }
        Step::Restore(a, b, side, from) => {
            let mut sources = [None; 2];
            sources[side] = Some(at(from));
            relay.restore(&pair(a, b), sources);
            bind(oracle, &pair(a, b), side, at(from));
        }
        Step::Look(node, port, from) => {
            let places = |of: &PublicKey| (*of == key(node)).then(|| at(from));
            relay.look_for(port, at(from), b"x", places);
            // Of several paths of a node by one port, which a directory never orders, any may be taken.
            let name = pair(node, node).0;
            let of_node = oracle
                .iter()
                .filter(|(pair, path)| path.0 == port && (pair.0 == name || pair.1 == name));
            let bound: Vec<Pair> = of_node.map(|(pair, _)| pair.clone()).collect();
            let taken = bound.iter().find_map(|pair| {
                let (sources, ..) = relay.forwarding.path(relay.slot(pair)?);
                let side = usize::from(pair.0 != name);
                let is_it = sources[side] == Some(at(from));
                is_it.then(|| (pair.clone(), side))
            });
            assert_eq!(taken.is_some(), !bound.is_empty());
            if let Some((pair, side)) = taken {
                bind(oracle, &pair, side, at(from));
            }
        }
    }
}

proptest! {
    #[test]
    fn each_source_goes_where_a_search_says(steps in prop::collection::vec(step(), 1..60)) {
        let (mut relay, mut oracle) = (Relay::default(), Oracle::new());
        for step in &steps {
            take(&mut relay, &mut oracle, step);
            let (mut forwarded, mut dropped) = relay.counts();
            for (port, from) in (0..PORTS).flat_map(|port| (0..ADDRESSES).map(move |at| (port, at))) {
                let (is_known, to) = destination(&oracle, port, at(from));
                let expected = match to {
                    Some(to) => Forwarded::To(to),
                    None if is_known => Forwarded::Dropped,
                    None => Forwarded::Unknown,
                };
                prop_assert_eq!(relay.forwarded(port, at(from), b"x", 1), expected);
                forwarded += u64::from(to.is_some());
                dropped += u64::from(is_known && to.is_none());
            }
            prop_assert_eq!(relay.counts(), (forwarded, dropped));
            let paths = relay.paths().map(|path| (path.pair, (path.port, path.sources)));
            prop_assert_eq!(paths.collect::<Oracle>(), oracle.clone());
        }
        // What is parted takes nothing with it, and nothing is left behind.
        oracle.keys().for_each(|pair| relay.part(pair));
        prop_assert!(relay.pairs.is_empty() && relay.names.numbers.is_empty());
        prop_assert!(relay.ports.values().all(Vec::is_empty));
    }
}
