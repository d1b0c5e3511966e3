//! Relays on hosts of their own: whatever is lost, repeated, reordered or restarted, no node is shown a way that no relay has
//! carried, and once the network carries again, each relay has the directory's paths and no others.

use std::collections::BTreeSet;

use overlay::limits::{SECOND, SERVER_PATIENCE};
use overlay::{Body, Message, NoWay, Pair, Refusal, Relaying, Series};
use proptest::prelude::*;

use crate::signaling::{NAMES, PAIRS, Step, asked, check_peers, may, play, step};
use crate::world::{Flying, World, name, policy, relay_key};

fn world(seed: u64) -> World {
    world_of(1, seed)
}

/// One with that many relays.
fn world_of(relays: usize, seed: u64) -> World {
    let mut world = World::apart(policy(&PAIRS), seed, relays);
    NAMES.iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
    world
}

fn pair(one: &str, other: &str) -> Pair {
    Pair::of(&name(one), &name(other))
}

/// Whether each relay forwards from one node to the other by the port that the directory means, once both have sent.
fn forwards(world: &mut World, pair: &Pair) -> bool {
    let port = world.paths[pair];
    let place = |name| world.places[&world.nodes[name].0];
    let (first, second, now) = (place(&pair.0), place(&pair.1), world.now);
    world.outposts.iter_mut().all(|outpost| {
        let outpost = outpost.as_mut().unwrap();
        outpost.forward(port, first, b"x", now);
        outpost.forward(port, second, b"y", now) == Some(first)
            && outpost.forward(port, first, b"z", now) == Some(second)
    })
}

/// Whether each relay has the directory's paths, and carries them.
fn agrees(world: &mut World) -> bool {
    let paths: BTreeSet<Pair> = world.paths.keys().cloned().collect();
    let mut relays = world.outposts.iter().map(|it| it.as_ref().unwrap().pairs().collect());
    relays.all(|pairs: BTreeSet<Pair>| pairs == paths) && paths.iter().all(|it| forwards(world, it))
}

/// Which relays the directory knows to be there.
fn is_there(world: &World) -> Vec<bool> {
    world.directory.relays(world.now).map(|relay| relay.is_there).collect()
}

fn apart_step() -> impl Strategy<Value = Step> {
    let relay = 0..3_usize;
    let ends = relay.clone().prop_map(Step::EndRelay);
    prop_oneof![12 => step(), 1 => ends, 1 => relay.prop_map(Step::RestartRelay)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn each_relay_has_the_directorys_paths_once_messages_arrive(
        seed: u64,
        relays in 1..4_usize,
        steps in proptest::collection::vec(apart_step(), 0..160),
    ) {
        let mut world = world_of(relays, seed);
        for step in &steps {
            play(&mut world, step);
            check_peers(&world);
        }
        for relay in 0..relays {
            if world.outposts[relay].is_none() {
                world.restart_outpost(relay);
            }
        }
        world.settle(12);
        for one in NAMES {
            for other in NAMES {
                let found = asked(&mut world, one, other, 1).is_ok();
                prop_assert_eq!(found, may(&name(one), &name(other)), "{} asks for {}", one, other);
            }
        }
        prop_assert!(agrees(&mut world));
        world.revoke(&name("b"));
        world.settle(1);
        prop_assert!(world.paths.is_empty() && agrees(&mut world));
    }
}

#[test]
fn a_new_path_costs_one_repetition_of_the_question() {
    let mut world = world(1);
    world.settle(2);
    let before = world.now;
    world.resolve(&name("a"), &name("b"));
    while world.answers.is_empty() {
        assert!(world.now < before + SECOND);
        world.settle(0);
        while !world.flying.is_empty() {
            let message = world.flying.remove(0);
            world.deliver(message);
        }
        world.wait(SECOND / 20);
    }
    assert!(world.answers[0].2.is_ok(), "{:?}", world.answers);
    assert!(world.now <= before + 3 * SECOND / 10, "{} ms", (world.now - before) / 1_000_000);
}

#[test]
fn a_lost_order_goes_before_later_ones() {
    let mut world = world(1);
    world.settle(2);
    world.resolve(&name("a"), &name("b"));
    world.resolve(&name("b"), &name("c"));
    let questions: Vec<Flying> = world.flying.drain(..).collect();
    questions.into_iter().for_each(|question| world.deliver(question));
    let is_order = |it: &Flying| matches!(it, Flying::ToPeer(to, _) if *to == relay_key());
    assert!(world.flying.len() == 2 && world.flying.iter().all(is_order));
    let second = world.flying.remove(1);
    world.flying.clear();
    world.deliver(second);
    assert_eq!(world.outposts[0].as_ref().unwrap().pairs().count(), 0);
    // Both are repeated; in which order they come is the network's affair, and a later one is repeated again.
    for _ in 0..2 {
        world.wait(SECOND / 5);
        while let Some(message) = world.flying.pop() {
            world.deliver(message);
        }
    }
    assert_eq!(world.outposts[0].as_ref().unwrap().pairs().count(), 2);
    assert!(agrees(&mut world));
}

#[test]
fn without_a_relay_names_are_offline_and_what_is_known_stays() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.outposts[0] = None;
    world.settle(6);
    assert_eq!(is_there(&world), [false]);
    let offline = NoWay::Refused(Refusal::Offline);
    assert_eq!(asked(&mut world, "b", "c", 1), Err(offline));
    assert!(world.peers[&name("a")].contains_key(&name("b")), "they may have a direct path");
    // What the policy says of them reaches them all the same.
    world.set_policy(policy(&[["b", "c"]]));
    world.settle(1);
    assert!(!world.peers[&name("a")].contains_key(&name("b")));
    world.restart_outpost(0);
    world.settle(2);
    assert!(asked(&mut world, "b", "c", 1).is_ok() && agrees(&mut world));
}

#[test]
fn a_directory_that_begins_again_interrupts_no_path() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok() && asked(&mut world, "b", "c", 1).is_ok());
    assert!(forwards(&mut world, &pair("a", "b")));
    // It comes back with another policy, and has forgotten a pair.
    world.policy = policy(&[["a", "b"]]);
    world.restart_directory();
    let sends = |world: &mut World| forwards(world, &pair("a", "b"));
    for _ in 0..20 {
        assert!(sends(&mut world));
        let message = (!world.flying.is_empty()).then(|| world.flying.remove(0));
        message.into_iter().for_each(|message| world.deliver(message));
        world.wait(SECOND / 10);
    }
    world.settle(2);
    assert!(agrees(&mut world) && !world.paths.contains_key(&pair("b", "c")));
}

#[test]
fn a_node_that_moves_is_known_to_the_relay() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.settle(12);
    let key = world.nodes[&name("a")].0;
    world.places.insert(key, "192.0.2.99:51900".parse().unwrap());
    world.settle(12);
    assert!(forwards(&mut world, &pair("a", "b")));
}

#[test]
fn a_relay_starts_with_the_sources_that_it_had() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    let (port, now) = (world.paths[&pair("a", "b")], world.now);
    // Their routers give them another port for the relay; the next handshake would be minutes away.
    let [near, far] = ["192.0.2.1:7", "192.0.2.2:7"].map(|it| it.parse().unwrap());
    let elsewhere = "198.51.100.1:7".parse().unwrap();
    for (source, works) in [(near, true), (elsewhere, false)] {
        let before = vec![(pair("a", "b"), [Some(source), Some(far)])];
        let entropy = &mut crate::world::seeded(9);
        let ports = crate::world::relay().1;
        world.outposts[0] = Some(overlay::Outpost::new(ports, before, entropy).unwrap());
        world.settle(2);
        let outpost = world.outposts[0].as_mut().unwrap();
        assert_eq!(outpost.forward(port, far, b"x", now).is_some(), works);
    }
}

#[test]
fn a_relay_that_serves_other_ports_is_none_and_that_is_said() {
    let mut world = world(1);
    let series = Series::default();
    let relaying = Relaying { started: 1, series, done: 0, ports: (1, 2), counts: (0, 0) };
    for transaction in 1..4 {
        let message = Message { transaction, body: Body::Relays(relaying) }.to_bytes();
        world.deliver(Flying::ToDirectory(relay_key(), message));
    }
    assert_eq!(is_there(&world), [false]);
    let said = "expected a relay with ports 52000-52127 at 203.0.114.1, found 1-2";
    assert_eq!(world.notes.iter().filter(|note| *note == said).count(), 1);
}

#[test]
fn a_node_and_a_relay_say_nothing_for_each_other() {
    let mut world = world(1);
    world.settle(2);
    world.notes.clear();
    let relaying = Relaying {
        started: 1,
        series: Series::default(),
        done: u64::MAX,
        ports: (52_000, 52_127),
        counts: (0, 0),
    };
    let says = |world: &mut World, from, body| {
        let message = Message { transaction: u64::MAX, body }.to_bytes();
        world.deliver(Flying::ToDirectory(from, message));
        world.flying.is_empty()
    };
    let node = world.nodes[&name("a")].0;
    assert!(says(&mut world, node, Body::Relays(relaying)));
    assert!(says(&mut world, relay_key(), Body::Direct { name: name("b") }));
    assert_eq!(world.notes.len(), 2, "{:?}", world.notes);
    // What it says that it has carried out, and was never ordered, counts for nothing.
    let before = is_there(&world);
    says(&mut world, relay_key(), Body::Relays(relaying));
    assert_eq!(before, [true]);
    world.flying.clear();
    world.resolve(&name("a"), &name("b"));
    world.settle(0);
    let question = world.flying.remove(0);
    world.deliver(question);
    assert!(
        world.flying.iter().all(|it| matches!(it, Flying::ToPeer(to, _) if *to == relay_key()))
    );
    // Its key is nobody's.
    let guest = world.authority.invite(name("e"), world.time()).unwrap().public();
    world.carry_out();
    world.flying.clear();
    let enrol = Message { transaction: u64::MAX, body: Body::Enrol { key: relay_key() } };
    world.deliver(Flying::ToAuthority(guest, enrol.to_bytes()));
    let Some(Flying::ToPeer(_, answer)) = world.flying.pop() else { panic!("an answer") };
    let refused = Message { transaction: u64::MAX, body: Body::Refused(Refusal::KeyTaken) };
    assert_eq!(Message::parse(&answer), Ok(refused));
}

#[test]
fn a_relay_that_hears_nothing_makes_another_session_now_and_then() {
    let mut world = world(1);
    let outpost = world.outposts[0].as_mut().unwrap();
    assert!(outpost.is_deserted(SERVER_PATIENCE));
    assert!(!outpost.is_deserted(2 * SERVER_PATIENCE - 1));
    assert!(outpost.is_deserted(2 * SERVER_PATIENCE));
}
