//! Registrations and directions: whatever is lost, repeated, reordered or restarted, a node never has a peer that the policy
//! does not allow, and once the network carries again, every name has the answer that a model gives.

use overlay::limits::{IDENTITY, SECOND};
use overlay::{Action, Claims, Identity, Message, Name, NoWay, Node, Pair, Refusal, Signer};
use proptest::prelude::*;
use tunnel::PublicKey;

use crate::world::{Flying, World, name, policy, seeded, signer};

pub(crate) const PAIRS: [[&str; 2]; 3] = [["a", "b"], ["b", "c"], ["c", "c"]];
pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Deliver(usize),
    Lose(usize),
    Repeat(usize),
    Wait(u64),
    Resolve(usize, usize),
    RestartNode(usize),
    RestartDirectory,
    /// The authority, or the directory, that is another process, ends, or the authority begins again.
    EndAuthority,
    EndDirectory,
    RestartAuthority,
    /// A device that has a key of this number is enrolled under a name, or one is revoked.
    Enrol(usize, u64),
    Revoke(usize),
    /// The relay on a host of its own ends, or begins again.
    EndRelay(usize),
    RestartRelay(usize),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..64_usize).prop_map(Step::Deliver),
        3 => (0..64_usize).prop_map(Step::Lose),
        3 => (0..64_usize).prop_map(Step::Repeat),
        4 => (1..12_000_u64).prop_map(Step::Wait),
        4 => (0..4_usize, 0..5_usize).prop_map(|(from, to)| Step::Resolve(from, to)),
        1 => (0..4_usize).prop_map(Step::RestartNode),
        1 => Just(Step::RestartDirectory),
    ]
}

pub(crate) fn world(seed: u64) -> World {
    let mut world = World::new(policy(&PAIRS), seed);
    NAMES.iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
    world
}

/// The tunnel may not be there yet when a node says something first.
#[test]
fn a_node_whose_first_registration_was_lost_registers_once_the_directory_meets_it() {
    let mut world = world(1);
    world.settle(2);
    world.directory.expire(world.time());
    world.now += 40 * SECOND;
    world.restart_node(&name("a"));
    world.wait(0);
    world.flying.clear();
    let key = world.nodes[&name("a")].0;
    world.directory.met(&key, world.time());
    world.carry_out();
    while !world.flying.is_empty() {
        let message = world.flying.remove(0);
        world.deliver(message);
    }
    assert!(world.nodes[&name("a")].1.is_registered());
}

pub(crate) fn play(world: &mut World, step: &Step) {
    let count = world.flying.len().max(1);
    match step {
        Step::Deliver(at) if !world.flying.is_empty() => {
            let message = world.flying.remove(at % count);
            world.deliver(message);
        }
        Step::Lose(at) if !world.flying.is_empty() => drop(world.flying.remove(at % count)),
        Step::Repeat(at) if !world.flying.is_empty() => {
            let message = world.flying[at % count].clone();
            world.deliver(message);
        }
        Step::Wait(millis) => world.wait(millis * SECOND / 1_000),
        Step::Resolve(from, to) => {
            let to = NAMES.get(*to).copied().unwrap_or("nobody");
            world.resolve(&name(NAMES[*from]), &name(to));
        }
        Step::RestartNode(node) => world.restart_node(&name(NAMES[*node])),
        Step::RestartDirectory => world.restart_directory(),
        Step::EndAuthority => world.has_authority = false,
        Step::EndDirectory => world.has_directory = false,
        Step::RestartAuthority => world.restart_authority(),
        Step::Enrol(node, number) if world.has_authority => {
            world.enrols(&name(NAMES[*node]), *number);
        }
        Step::Revoke(node) if world.has_authority => drop(world.revoke(&name(NAMES[*node]))),
        Step::EndRelay(relay) => {
            let relays = world.outposts.len();
            world.outposts[relay % relays] = None;
        }
        Step::RestartRelay(relay) => world.restart_outpost(relay % world.outposts.len()),
        _ => {}
    }
}

/// Whether the model lets two nodes reach each other.
pub(crate) fn may(one: &Name, other: &Name) -> bool {
    one != other
        && PAIRS[..2].iter().any(|pair| {
            let [left, right] = pair.map(name);
            (left == *one && right == *other) || (left == *other && right == *one)
        })
}

pub(crate) fn check_peers(world: &World) {
    for (node, peers) in &world.peers {
        for (peer, claims) in peers {
            assert!(may(node, peer), "{node} has {peer}");
            assert_eq!(claims.key, world.nodes[peer].0, "{node} has another key of {peer}");
        }
    }
}

/// The answer to the last question of a node.
pub(crate) fn asked(
    world: &mut World,
    from: &str,
    to: &str,
    seconds: u64,
) -> Result<Claims, NoWay> {
    world.answers.clear();
    world.resolve(&name(from), &name(to));
    world.settle(seconds);
    let answer = world.answers.iter().find(|(node, it, _)| *node == name(from) && *it == name(to));
    answer.unwrap_or_else(|| panic!("{from} got no answer for {to}")).2.clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_name_has_the_models_answer_once_messages_arrive(
        seed: u64,
        steps in proptest::collection::vec(step(), 0..160),
    ) {
        let mut world = world(seed);
        for step in &steps {
            play(&mut world, step);
            check_peers(&world);
        }
        world.settle(12);
        for one in NAMES {
            for other in NAMES.into_iter().chain(["nobody"]) {
                let found = asked(&mut world, one, other, 1);
                check_peers(&world);
                match may(&name(one), &name(other)) {
                    true => {
                        prop_assert_eq!(found.map(|it| it.key), Ok(world.nodes[&name(other)].0));
                        prop_assert!(world.peers[&name(one)].contains_key(&name(other)));
                        prop_assert!(world.peers[&name(other)].contains_key(&name(one)));
                        let pair = Pair::of(&name(one), &name(other));
                        prop_assert!(world.paths.contains_key(&pair));
                    }
                    false => {
                        let denied = Err(NoWay::Refused(Refusal::NoSuchName));
                        prop_assert_eq!(found, denied);
                    }
                }
            }
        }
    }
}

#[test]
fn a_node_that_restarts_expects_its_peers_again() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.restart_node(&name("b"));
    world.settle(2);
    assert!(world.peers[&name("b")].contains_key(&name("a")), "nobody asked for a name");
}

#[test]
fn a_directory_that_restarts_knows_the_paths_again() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    assert!(asked(&mut world, "b", "c", 1).is_ok());
    let before = world.paths.clone();
    world.restart_directory();
    assert_eq!(world.paths, before, "sessions by the relay go on");
    world.settle(12);
    assert_eq!(world.paths, before);
    assert!(world.peers[&name("a")].contains_key(&name("b")));
    // A path that the policy no longer allows is not taken up.
    world.policy = policy(&[["b", "c"]]);
    world.restart_directory();
    assert_eq!(world.paths.keys().collect::<Vec<_>>(), [&Pair::of(&name("b"), &name("c"))]);
    world.settle(12);
    assert!(world.peers[&name("a")].is_empty());
}

#[test]
fn a_node_registers_at_once_with_a_directory_that_began_again() {
    let mut world = world(1);
    world.settle(2);
    world.restart_directory();
    let (key, now) = (world.nodes[&name("a")].0, world.time());
    world.directory.met(&key, now);
    world.carry_out();
    world.settle(1);
    let there = world.directory.list(world.now).filter(|node| node.present);
    assert_eq!(there.map(|node| &node.device.name).collect::<Vec<_>>(), [&name("a")]);
    // Of a node that is there, nothing is wanted.
    world.flying.clear();
    world.directory.met(&key, now);
    world.carry_out();
    assert!(world.flying.is_empty());
}

#[test]
fn a_revoked_node_is_forgotten_at_once_and_stays_out() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    assert!(world.revoke(&name("b")) && !world.revoke(&name("b")));
    // The first word of it is lost.
    world.flying.clear();
    world.settle(11);
    assert!(!world.peers[&name("a")].contains_key(&name("b")));
    assert_eq!(asked(&mut world, "a", "b", 1), Err(NoWay::Refused(Refusal::NoSuchName)));
    world.restart_directory();
    world.settle(2);
    assert_eq!(asked(&mut world, "a", "b", 1), Err(NoWay::Refused(Refusal::NoSuchName)));
    assert!(!world.admitted.contains(&world.nodes[&name("b")].0));
}

const ALL: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn all_pairs() -> Vec<[&'static str; 2]> {
    let all = (0..ALL.len()).flat_map(|one| (0..one).map(move |other| [ALL[other], ALL[one]]));
    all.collect()
}

/// Some of all pairs.
fn pairs() -> impl Strategy<Value = Vec<[&'static str; 2]>> {
    proptest::sample::subsequence(all_pairs(), 0..=15)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A policy that changes reaches the nodes of pairs that are in use and no longer allowed, within 2 s also if the first word
    /// of it is lost, and sends the others nothing.
    #[test]
    fn a_policy_that_changes_reaches_those_it_concerns(
        used in pairs(),
        allowed in pairs(),
        loses: bool,
    ) {
        let mut world = World::new(policy(&all_pairs()), 1);
        ALL.iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
        world.settle(2);
        for [one, other] in &used {
            world.resolve(&name(one), &name(other));
        }
        world.settle(2);
        prop_assert_eq!(world.paths.len(), used.len());
        world.directory.set_policy(policy(&allowed));
        world.carry_out();
        let (kept, ended): (Vec<[&str; 2]>, Vec<[&str; 2]>) =
            used.iter().partition(|pair| allowed.contains(pair));
        prop_assert_eq!(world.flying.len(), 2 * ended.len(), "a message for each that is to forget");
        if loses {
            world.flying.clear();
        }
        let concerned = |key: &PublicKey| {
            ended.iter().flat_map(|pair| pair.iter()).any(|it| world.nodes[&name(it)].0 == *key)
        };
        let concerned: Vec<PublicKey> =
            world.nodes.values().map(|(key, _)| *key).filter(|key| concerned(key)).collect();
        for _ in 0..10 {
            while let Some(message) = world.flying.pop() {
                let key = match &message {
                    Flying::ToPeer(key, _) | Flying::ToDirectory(key, _) => key,
                    Flying::ToAuthority(key, _) | Flying::OfAuthority(key, _) => key,
                };
                prop_assert!(concerned.contains(key), "a message to or from another node");
                world.deliver(message);
            }
            world.wait(SECOND / 5);
        }
        let peers: usize = world.peers.values().map(|peers| peers.len()).sum();
        prop_assert_eq!(peers, 2 * kept.len());
        prop_assert_eq!(world.paths.len(), kept.len());
    }
}

#[test]
fn a_policy_that_changes_ends_the_paths_that_it_no_longer_allows() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok() && asked(&mut world, "b", "c", 1).is_ok());
    let flying = world.flying.len();
    world.directory.set_policy(policy(&[["b", "c"]]));
    world.carry_out();
    assert_eq!(world.flying.len(), flying + 2, "only those whom it concerns hear of it");
    world.settle(1);
    assert!(world.peers[&name("a")].is_empty());
    assert_eq!(world.peers[&name("b")].keys().collect::<Vec<_>>(), [&name("c")]);
    assert_eq!(world.paths.len(), 1);
}

#[test]
fn a_node_that_is_not_there_is_said_to_be_offline() {
    let mut world = world(1);
    world.settle(2);
    let (key, gone) = world.nodes.remove(&name("b")).unwrap();
    world.settle(40);
    assert_eq!(asked(&mut world, "a", "b", 1), Err(NoWay::Refused(Refusal::Offline)));
    world.nodes.insert(name("b"), (key, gone));
    world.settle(12);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
}

#[test]
fn without_a_directory_a_question_ends_in_time_and_peers_stay_until_their_identities_expire() {
    let mut world = world(1);
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    world.admitted.clear();
    assert_eq!(asked(&mut world, "a", "c", 6), Err(NoWay::Silent));
    for _ in 0..IDENTITY / 60 - 60 {
        world.wait(60 * SECOND);
        world.flying.clear();
    }
    assert!(world.peers[&name("a")].contains_key(&name("b")));
    for _ in 0..62 {
        world.wait(60 * SECOND);
        world.flying.clear();
    }
    assert!(world.peers[&name("a")].is_empty());
}

/// Messages of a directory that is not the signer: it may say nothing that is believed.
#[test]
fn a_directory_that_names_another_key_is_found_out() {
    let mut world = world(1);
    world.settle(2);
    let (a, b) = (name("a"), name("b"));
    let claims = asked(&mut world, "a", "b", 1).unwrap();
    let other = Signer::of_seed(&[8; 32]).unwrap();
    let wrong = Claims { key: tunnel::PublicKey::new([1; 32]), ..claims };
    let forged: Identity = other.sign(wrong);
    let relays = vec!["192.0.2.1:1".parse().unwrap()];
    let permits = overlay::Permits::default();
    let body = overlay::Body::Direction { identity: Box::new(forged), relays, permits };
    world.notes.clear();
    let message = Message { transaction: 7, body }.to_bytes();
    world.deliver(Flying::ToPeer(world.nodes[&a].0, message));
    check_peers(&world);
    assert!(
        world.notes[0].starts_with("alarm: the directory names a key for b"),
        "{:?}",
        world.notes
    );
    assert_eq!(world.peers[&a][&b].key, world.nodes[&b].0);
}

#[test]
fn a_flood_of_questions_is_bounded_and_keeps_nobody_else_out() {
    let mut world = world(1);
    world.settle(2);
    let key = world.nodes[&name("a")].0;
    let now = world.time();
    for transaction in 1..=2_000 {
        let body = overlay::Body::Direct { name: name("b") };
        world.directory.receive(&key, &Message { transaction, body }.to_bytes(), now);
    }
    world.carry_out();
    let busy = world.flying.iter().filter(|it| {
        let Flying::ToPeer(_, bytes) = it else { return false };
        Message::parse(bytes).is_ok_and(|it| it.body == overlay::Body::Refused(Refusal::Busy))
    });
    assert_eq!(busy.count(), 2_000 - 256);
    world.flying.clear();
    assert!(asked(&mut world, "c", "b", 1).is_ok());
    world.settle(11);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
}

#[test]
fn a_foreign_transaction_answers_nothing() {
    let mut node = Node::new(name("a"), signer().key(), Box::new(seeded(1))).unwrap();
    node.resolve(&name("b"), 0);
    let body = overlay::Body::Refused(Refusal::NoSuchName);
    node.receive(&Message { transaction: 1, body }.to_bytes(), 0);
    while let Some(action) = node.take() {
        assert!(matches!(action, Action::Send(_) | Action::Ask(_)), "{action:?}");
    }
}
