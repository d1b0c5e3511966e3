//! An authority that is another process than the directory: whatever is lost, repeated, reordered or restarted, the directory
//! ends up with what the authority says of devices, and no node relies on what the signer has not signed.

use std::collections::BTreeSet;

use overlay::limits::{IDENTITY, SECOND, SERVER_PATIENCE};
use overlay::{
    Action, Body, Certifying, Claims, Device, Following, Message, Name, NoWay, Node, NotGenuine,
    Permits, Refusal, Series, Signer,
};
use proptest::prelude::*;
use tunnel::PublicKey;

use crate::signaling::{NAMES, PAIRS, Step, asked, may, play, step};
use crate::world::{Flying, World, authority_key, directory_key, name, network, policy, seeded};
use crate::world::{secret, signer};

const UNIX: u64 = 1_800_000_000;

fn world(seed: u64) -> World {
    let mut world = World::split(policy(&PAIRS), seed);
    NAMES.iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
    world
}

/// Whether the directory has what the authority says, on its disk and as peers of its tunnel.
fn agrees(world: &World) -> bool {
    let devices = world.authority_disk.devices.values().filter(|device| !device.revoked);
    let mut keys: BTreeSet<PublicKey> = devices.map(|device| device.key).collect();
    keys.insert(authority_key());
    world.disk.devices == world.authority_disk.devices && world.admitted == keys
}

fn is_present(world: &World, text: &str) -> bool {
    world.directory.list(world.now).any(|it| it.present && it.device.name == name(text))
}

/// Between nodes as well as between the two servers, which also end and begin again.
fn split_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => step(),
        1 => Just(Step::EndAuthority),
        1 => Just(Step::EndDirectory),
        2 => Just(Step::RestartAuthority),
        1 => Just(Step::RestartDirectory),
        2 => (0..4_usize, 1..7_u64).prop_map(|(node, key)| Step::Enrol(node, key)),
        1 => (0..4_usize).prop_map(Step::Revoke),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_directory_ends_up_with_what_the_authority_says(
        seed: u64,
        steps in proptest::collection::vec(split_step(), 0..160),
    ) {
        let mut world = world(seed);
        for step in &steps {
            play(&mut world, step);
            for (node, peers) in &world.peers {
                prop_assert!(peers.keys().all(|peer| may(node, peer)));
            }
        }
        if !world.has_authority {
            world.restart_authority();
        }
        if !world.has_directory {
            world.restart_directory();
        }
        world.settle(25);
        let of = [&world.disk.devices, &world.authority_disk.devices];
        prop_assert!(agrees(&world), "{:?}, admitted {:?}", of, world.admitted);
        let is_revoked = |world: &World, it: &str| world.authority_disk.devices[&name(it)].revoked;
        for one in NAMES {
            if is_revoked(&world, one) {
                prop_assert!(!is_present(&world, one));
                continue;
            }
            for other in NAMES {
                let found = asked(&mut world, one, other, 1);
                let is_way = may(&name(one), &name(other)) && !is_revoked(&world, other);
                prop_assert_eq!(found.is_ok(), is_way, "{} asks for {}: {:?}", one, other, found);
                if let Ok(claims) = found {
                    prop_assert_eq!(claims.key, world.nodes[&name(other)].0);
                }
            }
        }
    }
}

#[test]
fn a_revocation_reaches_the_directory_and_the_peers_at_once() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.flying.clear();
    assert!(world.revoke(&name("b")));
    while let Some(message) = world.flying.pop() {
        world.deliver(message);
    }
    assert!(agrees(&world) && !world.peers[&name("a")].contains_key(&name("b")));
}

#[test]
fn a_lost_order_goes_before_later_ones() {
    let mut world = world(1);
    world.settle(2);
    world.flying.clear();
    assert!(world.revoke(&name("a")) && world.revoke(&name("b")));
    // The order about a is lost.
    let second = world.flying.iter().rposition(|it| matches!(it, Flying::ToDirectory(..)));
    let second = world.flying.remove(second.unwrap());
    world.flying.clear();
    world.deliver(second);
    assert!(!world.disk.devices[&name("b")].revoked, "the order about a comes first");
    world.settle(1);
    assert!(agrees(&world));
}

#[test]
fn a_revocation_waits_for_a_directory_that_is_not_there() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.has_directory = false;
    world.settle(6);
    assert!(world.revoke(&name("b")));
    world.restart_authority();
    world.settle(6);
    assert!(!world.disk.devices[&name("b")].revoked);
    world.restart_directory();
    // Before anything else it hears of who is revoked.
    let first = (0..40).find_map(|_| {
        let message = (!world.flying.is_empty()).then(|| world.flying.remove(0));
        message.clone().into_iter().for_each(|message| world.deliver(message));
        world.wait(SECOND / 10);
        let Some(Flying::ToDirectory(_, bytes)) = message else { return None };
        match Message::parse(&bytes).unwrap().body {
            Body::Member { device, .. } => Some(*device),
            _ => None,
        }
    });
    assert!(first.is_some_and(|device| device.name == name("b") && device.revoked));
    world.settle(2);
    assert!(agrees(&world) && !is_present(&world, "b"));
    assert_eq!(asked(&mut world, "a", "b", 1), Err(NoWay::Refused(Refusal::NoSuchName)));
    assert!(!world.peers[&name("a")].contains_key(&name("b")));
}

#[test]
fn without_its_authority_a_network_goes_on_until_identities_expire() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.has_authority = false;
    world.settle(6);
    assert_eq!(world.directory.has_authority(), Some(false));
    // The directory and a node begin again: the directory has kept what the node showed it.
    world.restart_directory();
    world.restart_node(&name("b"));
    world.settle(12);
    assert!(asked(&mut world, "a", "b", 1).is_ok() && asked(&mut world, "b", "c", 1).is_ok());
    for _ in 0..IDENTITY / 60 {
        world.wait(60 * SECOND);
        while !world.flying.is_empty() {
            let message = world.flying.remove(0);
            world.deliver(message);
        }
    }
    assert!(world.peers.values().all(|peers| peers.is_empty()));
    assert!(!is_present(&world, "a") && !is_present(&world, "b"));
    // Renewals work again once it is back.
    world.restart_authority();
    world.settle(15);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    assert!(!world.notes.iter().any(|note| note.starts_with("alarm")), "{:?}", world.notes);
}

#[test]
fn an_identity_is_renewed_after_half_of_its_life() {
    let mut world = world(1);
    world.settle(2);
    let until = |world: &World| {
        let kept = world.disk.identities[&name("a")].clone();
        let overlay::Record::Identity(identity) = kept else { panic!("{kept:?}") };
        identity.claims.expires
    };
    let first = until(&world);
    world.wait((IDENTITY / 2 - 60) * SECOND);
    world.settle(2);
    assert_eq!(until(&world), first);
    world.wait(60 * SECOND);
    world.settle(2);
    assert!(until(&world) >= first + IDENTITY / 2 - 60);
}

#[test]
fn clocks_that_differ_by_days_are_said_and_hinder_nobody() {
    for ahead in [-3 * 86_400, 3 * 86_400] {
        let mut world = World::split(policy(&PAIRS), 1);
        world.ahead = ahead;
        world.settle(2);
        NAMES.iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
        world.settle(3);
        assert!(asked(&mut world, "a", "b", 1).is_ok(), "{ahead}");
        world.restart_directory();
        world.settle(12);
        assert!(asked(&mut world, "b", "c", 1).is_ok(), "{ahead}");
        let said =
            world.notes.iter().filter(|it| it.starts_with("the authority's clock is 259200 s"));
        // Each start of the directory says so once.
        assert_eq!(said.count(), 2, "{:?}", world.notes);
    }
}

#[test]
fn an_authority_of_another_network_is_none_and_that_is_said() {
    let mut world = World::split(policy(&PAIRS), 1);
    world.has_authority = false;
    world.flying.clear();
    let series = Series::default();
    let ours = network();
    let (domain, v4, v6) = ("other.example".to_owned(), ours.v4, ours.v6);
    let said = Certifying { started: 1, series, time: UNIX, domain, v4, v6 };
    for transaction in 1..4 {
        let body = Body::Certifies(Box::new(said.clone()));
        let message = Message { transaction, body }.to_bytes();
        world.deliver(Flying::ToDirectory(authority_key(), message));
    }
    let device = Device { name: name("a"), key: secret(1).public(), number: 2, revoked: false };
    let body = Body::Member { series, device: Box::new(device) };
    world
        .deliver(Flying::ToDirectory(authority_key(), Message { transaction: 1, body }.to_bytes()));
    assert!(world.flying.is_empty() && world.disk.devices.is_empty());
    let what = "expected an authority of home.example 10.99.0.0/24 fd00::/64, \
                found other.example 10.99.0.0/24 fd00::/64";
    assert_eq!(world.notes.iter().filter(|note| *note == what).count(), 1, "{:?}", world.notes);
}

#[test]
fn a_key_of_a_server_is_no_nodes() {
    let mut world = World::split(policy(&PAIRS), 1);
    for key in [directory_key(), authority_key()] {
        world.directory.learn(Device { name: name("a"), key, number: 2, revoked: false });
        world.carry_out();
    }
    assert!(world.disk.devices.is_empty() && world.admitted.contains(&authority_key()));
    assert_eq!(world.notes.len(), 2, "{:?}", world.notes);
}

#[test]
fn nobody_speaks_for_an_authority_or_a_directory() {
    let mut world = world(1);
    world.settle(2);
    world.flying.clear();
    world.notes.clear();
    let node = world.nodes[&name("a")].0;
    let device = Device { name: name("b"), key: node, number: 9, revoked: true };
    let series = Series { by: 1, to: 2, number: u64::MAX };
    let member = Body::Member { series, device: Box::new(device) };
    let follows = Body::Follows(Following { started: 3, series, done: u64::MAX });
    let says = |world: &mut World, to_directory: bool, from, body| {
        let bytes = Message { transaction: u64::MAX, body }.to_bytes();
        match to_directory {
            true => world.directory.receive(&from, &bytes, world.time()),
            false => drop(world.authority.receive(&from, &bytes, world.time())),
        }
        world.carry_out();
    };
    says(&mut world, true, node, member.clone());
    says(&mut world, false, node, follows.clone());
    says(&mut world, false, directory_key(), member);
    says(&mut world, false, directory_key(), Body::Renew);
    says(&mut world, true, authority_key(), Body::Direct { name: name("b") });
    assert!(world.flying.is_empty(), "nobody is answered");
    assert_eq!(world.notes.len(), 4, "{:?}", world.notes);
    // A directory that says that it has done what nobody ordered hears everything again.
    says(&mut world, false, directory_key(), follows);
    world.restart_directory();
    world.settle(3);
    assert!(agrees(&world));
}

#[test]
fn an_authority_that_hears_nothing_makes_another_session_now_and_then() {
    let mut world = World::split(policy(&PAIRS), 1);
    assert!(world.authority.is_deserted(SERVER_PATIENCE));
    assert!(!world.authority.is_deserted(2 * SERVER_PATIENCE - 1));
    assert!(world.authority.is_deserted(2 * SERVER_PATIENCE));
    assert!(!World::new(policy(&PAIRS), 1).authority.is_deserted(u64::MAX));
}

#[test]
fn a_node_offers_no_identity_but_its_own() {
    let mut world = world(1);
    world.settle(2);
    let kept = |world: &World, it: &str| match &world.disk.identities[&name(it)] {
        overlay::Record::Identity(identity) => identity.clone(),
        other => panic!("{other:?}"),
    };
    let (of_b, before) = (kept(&world, "b"), world.disk.identities.clone());
    let mut claims = kept(&world, "a").claims;
    claims.expires += 99;
    let forged = Box::new(Signer::of_seed(&[8; 32]).unwrap().sign(claims.clone()));
    let elsewhere = Claims { v4: [10, 99, 0, 77].into(), ..claims };
    let moved = Box::new(signer().sign(elsewhere));
    let (key, now) = (world.nodes[&name("a")].0, world.time());
    world.notes.clear();
    for identity in [of_b, forged, moved] {
        let body = Body::Register { started: 7, locals: Vec::new(), identity: Some(identity) };
        world.directory.receive(&key, &Message { transaction: 7, body }.to_bytes(), now);
        world.carry_out();
    }
    assert_eq!(world.disk.identities, before);
    assert_eq!(world.notes.len(), 3);
    assert!(world.notes.iter().all(|note| note.starts_with("alarm: a offers an identity")));
}

/// A node whose authority was heard, with what it has done since.
fn heard(is_apart: bool) -> Node {
    let mut node = Node::new(name("a"), signer().key(), Box::new(seeded(1))).unwrap();
    if is_apart {
        node.authority_apart();
    }
    node.tick(SECOND);
    let Some(Action::Ask(question)) = node.take() else { panic!("a question") };
    let transaction = Message::parse(&question).unwrap().transaction;
    let identity = Box::new(signer().sign(claims("a", 1, UNIX + IDENTITY)));
    let answer = Message { transaction, body: Body::Renewed { identity, time: UNIX } }.to_bytes();
    match is_apart {
        true => node.receive_of_authority(&answer, SECOND),
        false => node.receive(&answer, SECOND),
    }
    assert!(!node.lacks_identity());
    node
}

fn claims(node: &str, number: u8, expires: u64) -> Claims {
    let key = PublicKey::new([number; 32]);
    let (v4, v6) = ([10, 99, 0, number].into(), "fd00::7".parse().unwrap());
    Claims { key, name: name(node), v4, v6, expires }
}

/// What a node does, without its messages.
fn done(node: &mut Node) -> (Vec<Message>, Vec<Action>) {
    let (mut sent, mut others) = (Vec::new(), Vec::new());
    while let Some(action) = node.take() {
        match action {
            Action::Send(bytes) => sent.push(Message::parse(&bytes).unwrap()),
            other => others.push(other),
        }
    }
    (sent, others)
}

#[test]
fn a_directory_does_not_say_what_time_it_is_once_the_authority_has() {
    for is_apart in [true, false] {
        let mut node = heard(is_apart);
        let (sent, _) = done(&mut node);
        let transaction = sent.last().unwrap().transaction;
        // It would have the node believe in what the signer said of b yesterday.
        let identity = Box::new(signer().sign(claims("a", 1, UNIX + IDENTITY)));
        let body = Body::Registered { identity, time: UNIX - 86_400, started: 1, recall: 0 };
        node.receive(&Message { transaction, body }.to_bytes(), SECOND);
        node.resolve(&name("b"), SECOND);
        let (sent, _) = done(&mut node);
        let transaction = sent.last().unwrap().transaction;
        let identity = Box::new(signer().sign(claims("b", 2, UNIX - 1)));
        let relays = vec!["192.0.2.1:1".parse().unwrap()];
        let body = Body::Direction { identity, relays, permits: Permits::default() };
        node.receive(&Message { transaction, body }.to_bytes(), SECOND);
        let (_, others) = done(&mut node);
        let found = Err(NoWay::NotGenuine(NotGenuine::Expired));
        assert!(others.contains(&Action::Answer { name: name("b"), found }), "{others:?}");
    }
}

#[test]
fn a_directory_does_not_speak_for_an_authority_apart() {
    let mut node = Node::new(name("a"), signer().key(), Box::new(seeded(1))).unwrap();
    node.authority_apart();
    node.tick(SECOND);
    let Some(Action::Ask(question)) = node.take() else { panic!("a question") };
    let transaction = Message::parse(&question).unwrap().transaction;
    let identity = signer().sign(claims("a", 1, UNIX + IDENTITY));
    let renewed = |identity: &overlay::Identity, transaction| {
        let body = Body::Renewed { identity: Box::new(identity.clone()), time: UNIX };
        Message { transaction, body }.to_bytes()
    };
    node.receive(&renewed(&identity, transaction), SECOND);
    assert!(node.lacks_identity());
    // Nor does an authority say anything that it was not asked, or that its signer has not signed.
    node.receive_of_authority(&renewed(&identity, transaction ^ 1), SECOND);
    assert!(node.lacks_identity());
    done(&mut node);
    let wrong = [
        Signer::of_seed(&[8; 32]).unwrap().sign(claims("a", 1, UNIX + IDENTITY)),
        signer().sign(claims("b", 1, UNIX + IDENTITY)),
        signer().sign(claims("a", 1, UNIX)),
    ];
    for wrong in &wrong {
        node.receive_of_authority(&renewed(wrong, transaction), SECOND);
        let (_, others) = done(&mut node);
        assert!(matches!(&*others, [Action::Note(_)]) && node.lacks_identity(), "{others:?}");
    }
    node.receive_of_authority(&renewed(&identity, transaction), SECOND);
    assert!(!node.lacks_identity());
}

/// The name of a device may not be forgotten with it: what is left out of an authority's devices by a replaced database ends with
/// its identity.
#[test]
fn an_authority_whose_database_was_replaced_renews_nobody_it_does_not_know() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    let gone: Name = name("b");
    world.authority_disk.devices.remove(&gone);
    world.restart_authority();
    for _ in 0..IDENTITY / 60 {
        world.wait(60 * SECOND);
        while !world.flying.is_empty() {
            let message = world.flying.remove(0);
            world.deliver(message);
        }
    }
    world.settle(2);
    assert!(is_present(&world, "a") && !is_present(&world, "b"));
    assert!(!world.peers[&name("a")].contains_key(&gone));
}
