//! What nodes may begin: whatever is lost, repeated, reordered or restarted while policies follow each other, once the network
//! carries again both nodes of each pair hold each other to the last one.

use overlay::{Message, NoWay, Policy, Refusal};
use proptest::prelude::*;

use crate::signaling::{NAMES, Step, asked, play, step, world};
use crate::world::{World, name, policy};

/// Policies of a pair or none, of one way and of both, of ports and of everything.
fn drawn(number: u8, version: u64) -> Policy {
    let pairs: &[[&str; 2]] = match number % 4 {
        0 => &[["a", "b"], ["b", "c"]],
        1 => &[["b", "c"], ["a", "b"]],
        2 => &[["b", "c"]],
        _ => &[["a", "b"], ["a", "d"]],
    };
    let mut policy = policy(pairs);
    policy.version = version;
    if number / 4 % 2 == 1 {
        policy.lines[0].both = false;
        policy.lines[0].services = vec![format!("tcp/{number}").parse().unwrap()];
    }
    policy
}

#[derive(Clone, Debug)]
enum Event {
    Step(Step),
    Policy(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![12 => step().prop_map(Event::Step), 1 => (0..16_u8).prop_map(Event::Policy)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn both_nodes_hold_each_other_to_the_last_policy(
        seed: u64,
        events in proptest::collection::vec(event(), 0..160),
    ) {
        let mut world = world(seed);
        for event in &events {
            match event {
                Event::Step(step) => play(&mut world, step),
                Event::Policy(number) => {
                    let version = world.policy.version + 1;
                    world.set_policy(drawn(*number, version));
                }
            }
        }
        // A peer by a message that was overtaken by its end has been asked for again.
        world.settle(62);
        for (own, peer) in NAMES.iter().flat_map(|one| NAMES.map(|other| (name(one), name(other)))) {
            let permits = world.policy.permits(&own, &peer);
            let held = world.permits.get(&(own.clone(), peer.clone())).map(|it| it.lines.clone());
            // A node that has the other one as a peer holds it to the policy, whether anybody asks or not.
            prop_assert!(held.is_none_or(|held| held == permits.lines), "{} and {}", own, peer);
            if own == peer {
                continue;
            }
            match asked(&mut world, own.as_str(), peer.as_str(), 1) {
                Ok(_) => prop_assert!(!permits.lines.is_empty(), "{} and {}", own, peer),
                found => {
                    prop_assert_eq!(found, Err(NoWay::Refused(Refusal::NoSuchName)));
                    prop_assert!(permits.lines.is_empty());
                }
            }
        }
    }
}

/// The policy of one directed line, in this version.
fn directed(version: u64, service: &str) -> Policy {
    let mut policy = policy(&[["a", "b"], ["b", "c"]]);
    policy.version = version;
    policy.lines[0].both = false;
    policy.lines[0].services = vec![service.parse().unwrap()];
    policy
}

/// Both nodes hold each other to the version that is in force, whatever becomes of the messages that say so.
#[test]
fn a_policy_that_changes_reaches_both_nodes_of_a_pair_and_nobody_else() {
    let mut world = world(1);
    world.set_policy(directed(2, "tcp/22"));
    world.settle(2);
    assert!(asked(&mut world, "b", "a", 1).is_ok(), "names resolve against the line, too");
    assert!(asked(&mut world, "c", "b", 1).is_ok());
    let pair = |one: &str, other: &str| (name(one), name(other));
    let lets = |world: &World, own: &str, peer: &str, inward: bool, port: u16| {
        world.permits[&pair(own, peer)].permits(inward, overlay::Protocol::Tcp, port)
    };
    assert!(lets(&world, "a", "b", false, 22) && lets(&world, "b", "a", true, 22));
    assert!(!lets(&world, "a", "b", true, 22) && !lets(&world, "b", "a", false, 22));
    // What was shown before comes after the change, which is lost the first time.
    let now = world.time();
    let key = world.nodes[&name("a")].0;
    let body = overlay::Body::Direct { name: name("b") };
    world.directory.receive(&key, &Message { transaction: 5, body }.to_bytes(), now);
    world.carry_out();
    let old = world.flying.clone();
    world.flying.clear();
    world.set_policy(directed(3, "tcp/23"));
    assert_eq!(world.flying.len(), 2);
    world.flying = old;
    world.settle(11);
    for (own, peer, inward) in [("a", "b", false), ("b", "a", true)] {
        assert_eq!(world.permits[&pair(own, peer)].version, 3);
        assert!(lets(&world, own, peer, inward, 23) && !lets(&world, own, peer, inward, 22));
    }
    assert_eq!(world.permits[&pair("c", "b")].version, 2);
}

#[test]
fn a_message_that_was_overtaken_takes_nothing_back() {
    let mut world = world(1);
    world.set_policy(directed(2, "tcp/22"));
    world.settle(2);
    assert!(asked(&mut world, "a", "b", 1).is_ok());
    let shown = |world: &mut World, version| {
        world.set_policy(directed(version, &format!("tcp/{version}")));
        std::mem::take(&mut world.flying)
    };
    let (old, new) = (shown(&mut world, 3), shown(&mut world, 4));
    world.flying = [new, old].concat();
    world.settle(1);
    for (own, peer) in [("a", "b"), ("b", "a")] {
        assert_eq!(world.permits[&(name(own), name(peer))].version, 4);
    }
}
