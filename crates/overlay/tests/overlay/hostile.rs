//! Nodes and directories that mean harm: a node gets nobody's way or name but its own and costs others next to nothing; a
//! directory that is not the signer is not believed, and that is said.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use overlay::limits::{IDENTITY, SECOND};
use overlay::{
    Action, Body, Claims, Identity, Message, Name, NoWay, Node, NotGenuine, PORT, Permits, Refusal,
    Signer,
};
use packet::craft::{Addresses, Craft, Message as Segment};
use proptest::prelude::*;
use tunnel::{HEADROOM, PublicKey, Staged, TAILROOM};

use crate::relayed::end;
use crate::world::{Flying, World, name, policy, seeded, signer};

const UNIX: u64 = 1_800_000_000;

/// Nodes a and b that may reach each other, c that may reach b, and d that may reach nobody; all have registered.
fn world() -> World {
    let mut world = World::new(policy(&[["a", "b"], ["b", "c"]]), 1);
    ["a", "b", "c", "d"].iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
    world.settle(2);
    world
}

/// A node says something that its program would not say.
fn says(world: &mut World, node: &str, transaction: u64, body: Body) {
    let key = world.nodes[&name(node)].0;
    let now = world.time();
    world.directory.receive(&key, &Message { transaction, body }.to_bytes(), now);
    world.carry_out();
}

/// What is on its way to a node.
fn flying_to(world: &World, node: &str) -> Vec<Message> {
    let key = world.nodes[&name(node)].0;
    let to = world.flying.iter().filter_map(|it| match it {
        Flying::ToPeer(to, bytes) if *to == key => Message::parse(bytes).ok(),
        _ => None,
    });
    to.collect()
}

#[test]
fn nobody_answers_for_another_node() {
    let mut world = world();
    world.resolve(&name("a"), &name("b"));
    let question = world.flying.pop().unwrap();
    let Flying::ToDirectory(_, bytes) = &question else { panic!("a question") };
    let transaction = Message::parse(bytes).unwrap().transaction;
    world.deliver(question);
    assert_eq!(flying_to(&world, "b").len(), 1, "it is shown the way to a");
    world.flying.clear();
    // The others know the transaction, and say that they are b, and are ready.
    for node in ["a", "c", "d"] {
        for started in [0, 1, u64::MAX] {
            let ready = Body::Ready { name: name("a"), started, version: 1 };
            says(&mut world, node, transaction, ready);
        }
        let current = started_of(&mut world, node);
        says(
            &mut world,
            node,
            transaction,
            Body::Ready { name: name("a"), started: current, version: 1 },
        );
    }
    assert!(flying_to(&world, "a").is_empty(), "b has not said that it is ready");
    // Nor does b itself, if it is what it said before it began again.
    says(&mut world, "b", transaction, Body::Ready { name: name("a"), started: 1, version: 1 });
    assert!(flying_to(&world, "a").is_empty());
}

/// Makes a node register with a number of the test's, and returns that.
fn started_of(world: &mut World, node: &str) -> u64 {
    says(world, node, 1, Body::Register { started: 77, locals: Vec::new(), identity: None });
    world.flying.clear();
    77
}

#[test]
fn a_question_under_a_foreign_transaction_is_another_question() {
    let mut world = world();
    says(&mut world, "a", 5, Body::Direct { name: name("b") });
    world.flying.clear();
    says(&mut world, "c", 5, Body::Direct { name: name("b") });
    let shown = flying_to(&world, "b");
    let [Message { transaction: 5, body: Body::Direction { identity, .. } }] = &*shown else {
        panic!("{shown:?}")
    };
    assert_eq!(identity.claims.name, name("c"), "who asks is who has the key");
    world.flying.clear();
    says(&mut world, "d", 5, Body::Direct { name: name("b") });
    let refused = Message { transaction: 5, body: Body::Refused(Refusal::NoSuchName) };
    assert_eq!(flying_to(&world, "d"), [refused]);
    assert!(flying_to(&world, "b").is_empty());
}

#[test]
fn what_only_a_directory_says_is_noted_and_does_nothing() {
    let mut world = world();
    let before = (world.peers.clone(), world.paths.clone());
    world.notes.clear();
    let claims = Claims {
        key: world.nodes[&name("d")].0,
        name: name("b"),
        v4: [10, 99, 0, 3].into(),
        v6: "fd00::3".parse().unwrap(),
        expires: u64::MAX,
    };
    let identity = Box::new(Signer::of_seed(&[1; 32]).unwrap().sign(claims));
    let relays = vec!["192.0.2.1:1".parse().unwrap()];
    for body in [
        Body::Direction { identity: identity.clone(), relays, permits: Permits::default() },
        Body::Registered { identity, time: 0, started: 0, recall: 0 },
        Body::Withdraw { name: name("b") },
        Body::Refused(Refusal::NoSuchName),
    ] {
        says(&mut world, "d", 5, body);
    }
    assert!(world.flying.is_empty());
    assert_eq!(world.notes.len(), 4);
    assert_eq!((world.peers, world.paths), before);
}

#[test]
fn a_flood_of_questions_costs_who_is_asked_for_a_message_for_each_that_is_kept() {
    let mut world = world();
    let mut to_b = 0;
    for transaction in 1..=5_000 {
        says(&mut world, "c", transaction, Body::Direct { name: name("b") });
        to_b += flying_to(&world, "b").len();
        world.flying.clear();
    }
    assert_eq!(to_b, 256);
}

/// Anything that a node may say.
fn body() -> impl Strategy<Value = Body> {
    let name = || prop::sample::select(vec!["a", "b", "c", "d", "nobody"]).prop_map(name);
    prop_oneof![
        (0..3_u64, any::<[u8; 4]>()).prop_map(|(started, at)| {
            let (locals, identity) = (vec![(at, 7).into()], None);
            Body::Register { started, locals, identity }
        }),
        name().prop_map(|name| Body::Direct { name }),
        (name(), 0..3_u64, 0..3_u64).prop_map(|(name, started, version)| Body::Ready {
            name,
            started,
            version
        }),
        name().prop_map(|name| Body::Withdrawn { name }),
        name().prop_map(|name| Body::Withdraw { name }),
        any::<[u8; 32]>().prop_map(|key| Body::Enrol { key: PublicKey::new(key) }),
        Just(Body::Refused(Refusal::Full)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever c says, between what honest nodes do: others are sent at most two messages for each of it (a way
    /// and when to punch), nobody has a peer that
    /// the policy does not allow or under another key, and honest nodes get their answers.
    #[test]
    fn a_node_that_says_anything_harms_nobody(
        said in proptest::collection::vec((0..4_u64, body(), any::<bool>()), 0..80),
    ) {
        let mut world = world();
        for (transaction, body, asks) in said {
            if asks {
                world.resolve(&name("a"), &name("b"));
            }
            let before: usize = ["a", "b", "d"].iter().map(|it| flying_to(&world, it).len()).sum();
            says(&mut world, "c", transaction, body);
            let after: usize = ["a", "b", "d"].iter().map(|it| flying_to(&world, it).len()).sum();
            prop_assert!(after <= before + 2, "{before} messages to others, then {after}");
            while let Some(message) = world.flying.pop() {
                let to_c = matches!(&message, Flying::ToPeer(to, _) if *to == world.nodes[&name("c")].0);
                if !to_c {
                    world.deliver(message);
                }
            }
            for (node, peers) in &world.peers {
                for (peer, claims) in peers {
                    prop_assert!(world.policy.allows(node, peer));
                    prop_assert_eq!(claims.key, world.nodes[peer].0);
                }
            }
        }
        world.answers.clear();
        world.resolve(&name("a"), &name("b"));
        world.settle(1);
        prop_assert!(world.answers.iter().any(|(node, _, found)| *node == name("a") && found.is_ok()));
    }

    /// A peer seals inner packets whose lengths lie, or that are cut: what is delivered lies in the datagram, and is from an
    /// address of that peer.
    #[test]
    fn lengths_that_lie_inside_the_tunnel_are_not_believed(
        changes in proptest::collection::vec((0..48_usize, any::<u8>()), 0..4),
        cut in 0..60_usize,
        other: bool,
    ) {
        let mut ends = [end(1, 2), end(2, 1)];
        let source = if other { "10.0.0.9" } else { "10.0.0.1" };
        let addresses = Addresses::new(source.parse().unwrap(), [10, 0, 0, 2].into()).unwrap();
        let segment = Segment::udp(PORT, PORT);
        let craft = Craft { ethernet: None, payload: vec![7; 20], ..Craft::new(addresses, segment) };
        let mut packet = craft.frame();
        for (at, byte) in &changes {
            packet[*at] = *byte;
        }
        packet.truncate(packet.len() - cut.min(packet.len() - 1));
        exchange(&mut ends);
        if let Some(mut datagram) = sealed(&mut ends[0], &packet) {
            let came = ends[1].receive(&mut datagram, at("192.0.2.1:1"), SECOND).message();
            prop_assert!(came.is_some() || other || cut > 0 || !changes.is_empty());
            if let Some(carried) = came {
                prop_assert!(carried.payload.end <= datagram.len());
                prop_assert_eq!(carried.from.ip(), std::net::IpAddr::from([10, 0, 0, 1]));
            }
        }
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Makes a session between two ends.
fn exchange(ends: &mut [overlay::Carrier; 2]) {
    for _ in 0..4 {
        for side in 0..2 {
            ends[side].tick(SECOND);
            while let Some((_, mut datagram)) = ends[side].take() {
                ends[1 - side].receive(&mut datagram, at("192.0.2.1:1"), SECOND);
            }
        }
    }
}

/// An inner packet as an end seals it, whatever it holds.
fn sealed(end: &mut overlay::Carrier, packet: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = vec![0; HEADROOM + packet.len() + TAILROOM];
    let range = HEADROOM..HEADROOM + packet.len();
    buffer[range.clone()].copy_from_slice(packet);
    match end.tunnel_mut().stage(packet, SECOND) {
        Staged::Seal(sealing) => {
            sealing.seal(&mut buffer, range).ok().map(|it| buffer[it].to_vec())
        }
        Staged::Wait(_) | Staged::Dropped(_) => None,
    }
}

/// A node a with a directory that the test is.
struct Deceived {
    node: Node,
    peers: BTreeMap<Name, Claims>,
    notes: Vec<String>,
    answers: Vec<Result<Claims, NoWay>>,
    sent: Vec<Message>,
}

fn claims(node: &str, number: u8) -> Claims {
    let key = PublicKey::new([number; 32]);
    let (v4, v6) = ([10, 99, 0, number].into(), "fd00::7".parse().unwrap());
    Claims { key, name: name(node), v4, v6, expires: UNIX + IDENTITY }
}

impl Deceived {
    /// It has registered.
    fn new() -> Self {
        let node = Node::new(name("a"), signer().key(), Box::new(seeded(1))).unwrap();
        let (peers, notes, answers, sent) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        let mut deceived = Self { node, peers, notes, answers, sent };
        deceived.node.tick(SECOND);
        deceived.act();
        let identity = Box::new(signer().sign(claims("a", 1)));
        deceived.hears(None, Body::Registered { identity, time: UNIX, started: 1, recall: 0 });
        deceived
    }

    /// The directory says something, under the last transaction of the node or another one.
    fn hears(&mut self, transaction: Option<u64>, body: Body) {
        let last = self.sent.last().map_or(0, |it| it.transaction);
        let message = Message { transaction: transaction.unwrap_or(last), body };
        self.node.receive(&message.to_bytes(), SECOND);
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.node.take() {
            match action {
                Action::Send(bytes) | Action::Ask(bytes) => {
                    self.sent.push(Message::parse(&bytes).unwrap())
                }
                Action::Add { claims, .. } => drop(self.peers.insert(claims.name.clone(), claims)),
                Action::Remove { name } => assert!(self.peers.remove(&name).is_some()),
                Action::Answer { found, .. } => self.answers.push(found),
                Action::Note(line) => self.notes.push(line),
                Action::Permit { .. }
                | Action::Punch { .. }
                | Action::Probe { .. }
                | Action::Keep(_) => {}
            }
        }
    }

    fn is_shown(&mut self, transaction: Option<u64>, identity: Identity) {
        let relays = vec!["192.0.2.1:1".parse().unwrap()];
        self.hears(
            transaction,
            Body::Direction { identity: Box::new(identity), relays, permits: Permits::default() },
        );
    }
}

/// What a directory without the signer's key can make of an identity that it has.
fn lies() -> Vec<(Identity, NotGenuine)> {
    let genuine = signer().sign(claims("b", 2));
    let forged = |change: fn(&mut Claims)| {
        let mut identity = genuine.clone();
        change(&mut identity.claims);
        (identity, NotGenuine::Forged)
    };
    let old = Claims { expires: UNIX, ..claims("b", 2) };
    vec![
        forged(|claims| claims.key = PublicKey::new([9; 32])),
        forged(|claims| claims.v4 = [10, 99, 0, 9].into()),
        forged(|claims| claims.v6 = "fd00::9".parse().unwrap()),
        forged(|claims| claims.expires += 1),
        (Signer::of_seed(&[8; 32]).unwrap().sign(claims("b", 2)), NotGenuine::Forged),
        (signer().sign(old), NotGenuine::Expired),
    ]
}

#[test]
fn a_wrong_key_for_a_peer_is_found_out_said_and_never_used() {
    for (identity, why) in lies() {
        let mut node = Deceived::new();
        node.node.resolve(&name("b"), SECOND);
        node.act();
        node.is_shown(None, identity.clone());
        assert_eq!(node.answers, [Err(NoWay::NotGenuine(why))], "{identity:?}");
        assert!(node.notes[0].starts_with("alarm: the directory names a key for b"));
        assert!(node.peers.is_empty() && node.notes.len() == 1);
        // Nor does it take the place of a key that is known, asked for or not.
        node.is_shown(Some(0), signer().sign(claims("b", 2)));
        node.is_shown(Some(0), identity);
        assert_eq!(node.peers[&name("b")], claims("b", 2));
        assert_eq!(node.notes.len(), 2);
    }
}

#[test]
fn the_identity_of_another_node_is_no_answer() {
    let mut node = Deceived::new();
    node.node.resolve(&name("b"), SECOND);
    node.act();
    node.is_shown(None, signer().sign(claims("c", 3)));
    assert!(node.answers.is_empty(), "b was asked for");
    node.is_shown(None, signer().sign(claims("b", 2)));
    assert_eq!(node.answers, [Ok(claims("b", 2))]);
    // Nor is this node somebody else, or its own peer.
    node.is_shown(Some(0), signer().sign(claims("a", 9)));
    assert!(!node.peers.contains_key(&name("a")));
    node.node.tick(20 * SECOND);
    node.act();
    let identity = Box::new(signer().sign(claims("b", 2)));
    let register = node.sent.iter().rev().find(|it| matches!(it.body, Body::Register { .. }));
    let transaction = register.map(|it| it.transaction);
    node.hears(transaction, Body::Registered { identity, time: UNIX, started: 2, recall: 0 });
    assert_eq!(node.notes, ["the directory takes this node for another"]);
}

#[test]
fn a_directory_that_sends_nonsense_fills_no_log() {
    let mut node = Deceived::new();
    let (lie, _) = lies().remove(0);
    for _ in 0..5_000 {
        node.is_shown(Some(0), lie.clone());
        node.node.receive(b"nonsense", SECOND);
        node.act();
    }
    assert_eq!(node.notes.len(), 100);
    assert!(node.notes[99].contains("are left out"));
    node.node.receive(b"nonsense", 12 * SECOND);
    node.act();
    assert_eq!(node.notes.len(), 101);
}
