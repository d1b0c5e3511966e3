//! Punches: both nodes of a pair learn at once where the other one may be, and nobody makes the directory say it too often.

use std::net::SocketAddr;

use overlay::limits::{PUNCH_LEAD, PUNCH_PAUSE, PUNCH_SECOND, REGISTER, SECOND};

use overlay::{Ports, Router, Strangers};

use crate::world::{Flying, Punch, World, local, name, policy};

fn world() -> World {
    let mut world = World::new(policy(&[["a", "b"]]), 1);
    for (node, number) in [("a", 1), ("b", 2), ("c", 3)] {
        world.enrolled(node, number);
    }
    world.settle(2);
    world.resolve(&name("a"), &name("b"));
    world.settle(1);
    world
}

#[test]
fn both_nodes_are_told_at_once_where_the_other_one_may_be() {
    let world = world();
    let [one, other] = &world.punches[..] else { panic!("{:?}", world.punches) };
    assert_eq!((one.at, one.after, other.after), (other.at, PUNCH_LEAD, PUNCH_LEAD));
    for punch in [one, other] {
        let key = world.nodes[&punch.peer].0;
        assert_eq!(punch.candidates, [world.places[&key], local(&punch.peer)]);
    }
    assert_ne!(one.node, other.node);
}

#[test]
fn one_node_is_first_in_the_second_attempt_and_the_other_one_in_the_third() {
    let mut world = world();
    world.settle(180);
    let of = |node: &str| {
        let its = world.punches.iter().filter(|it| it.node == name(node));
        its.map(|it| (it.at, it.after - PUNCH_LEAD)).collect::<Vec<_>>()
    };
    let (a, b) = (of("a"), of("b"));
    assert_eq!(a.iter().map(|it| it.1).collect::<Vec<_>>(), [0, 0, PUNCH_SECOND]);
    assert_eq!(b.iter().map(|it| it.1).collect::<Vec<_>>(), [0, PUNCH_SECOND, 0]);
    // In between, routers forget what came too early.
    assert!(a.windows(2).all(|it| it[1].0 - it[0].0 >= PUNCH_PAUSE), "{a:?}");
}

#[test]
fn a_node_that_moves_is_tried_where_it_is_now_but_not_for_each_datagram() {
    let mut world = world();
    let key = world.nodes[&name("a")].0;
    world.settle(15);
    world.punches.clear();
    world.places.insert(key, ([198, 51, 100, 7], 1_024).into());
    world.settle(11);
    let told = world.punches.iter().find(|it| it.node == name("b")).expect("a punch for b");
    assert_eq!(told.candidates[0], world.places[&key]);
    // A router that gives each message another port, or a node that lies.
    world.punches.clear();
    let flood = 1_000;
    for port in 0..flood {
        world.directory.heard(&key, ([198, 51, 100, 7], 2_000 + port).into(), world.time());
        world.now += SECOND / 100;
        world.carry_out();
    }
    world.settle(1);
    let most = u64::from(flood) * SECOND / 100 / REGISTER + 2;
    assert!(world.punches.len() as u64 <= 2 * most, "{}", world.punches.len());
}

/// The first one's attempt is not over when the other one is there, and its socket was another one.
#[test]
fn nodes_that_begin_again_one_after_the_other_are_tried_as_soon_as_that_is_of_use() {
    for seconds in 1..=4 {
        let mut world = world();
        world.settle(60);
        world.restart_node(&name("a"));
        world.settle(seconds);
        world.restart_node(&name("b"));
        world.punches.clear();
        world.settle(5);
        let mut of = world.punches.iter().map(|it| it.node.to_string()).collect::<Vec<_>>();
        of.sort_unstable();
        assert_eq!(of, ["a", "b"], "{seconds} s later");
    }
}

/// Delivers as [`World::settle`] does, but nothing to a node whose own words are two seconds old: its router has forgotten it. The
/// directory looks each second whether that is so.
fn settle_behind_a_router_that_forgets(world: &mut World, node: &str, seconds: u64) {
    let key = world.nodes[&name(node)].0;
    let mut said = world.now;
    for step in 0..seconds * 5 {
        while !world.flying.is_empty() {
            let message = world.flying.remove(0);
            match &message {
                Flying::ToDirectory(from, _) if *from == key => said = world.now,
                Flying::ToPeer(to, _) if *to == key && world.now > said + 2 * SECOND => continue,
                _ => {}
            }
            world.deliver(message);
        }
        if step % 5 == 0 {
            world.directory.recall(world.time());
        }
        world.wait(SECOND / 5);
    }
}

#[test]
fn an_attempt_of_which_a_node_could_not_hear_is_begun_again_once_that_is_known() {
    let mut world = world();
    world.settle(60);
    world.restart_node(&name("a"));
    world.settle(1);
    world.restart_node(&name("b"));
    world.punches.clear();
    settle_behind_a_router_that_forgets(&mut world, "b", 20);
    let of = |node: &str| world.punches.iter().filter(|it| it.node == name(node)).count();
    assert_eq!((of("a"), of("b")), (2, 1), "{:#?}", world.punches);
}

#[test]
fn places_that_lead_nowhere_are_not_tried() {
    use overlay::{Body, Message};
    let mut world = world();
    world.punches.clear();
    let bad = ["127.0.0.1:1", "0.0.0.0:1", "224.0.0.1:1", "[fe80::1]:1", "192.0.2.9:0"];
    let candidates = bad.map(|it| it.parse().unwrap()).to_vec();
    for peer in ["b", "c"] {
        let body = Body::Punch {
            name: name(peer),
            after: 0,
            candidates: candidates.clone(),
            routers: None,
        };
        let message = Message { transaction: 0, body }.to_bytes();
        let key = world.nodes[&name("a")].0;
        world.deliver(crate::world::Flying::ToPeer(key, message));
    }
    let [only] = &world.punches[..] else { panic!("c is no peer: {:?}", world.punches) };
    assert!(only.candidates.is_empty(), "{only:?}");
}

/// Node a is seen with this port by the directory, and with these by the ports of the relay that it is asked to probe.
fn sounded(session: u16, seen: &[u16]) -> World {
    let mut world = world();
    let key = world.nodes[&name("a")].0;
    let ip = world.places[&key].ip();
    world.punches.clear();
    world.places.insert(key, (ip, session).into());
    world.settle(11);
    let mut seen = seen.iter();
    let mut asked = world.probed.remove(&name("a")).unwrap_or_default();
    while !asked.is_empty() {
        for port in asked {
            let Some(at) = seen.next() else { break };
            world.directory.probed(&key, port, (ip, *at).into(), world.time());
            world.carry_out();
        }
        world.settle(1);
        asked = world.probed.remove(&name("a")).unwrap_or_default();
    }
    world.settle(100);
    world
}

#[test]
fn the_node_whose_router_takes_what_comes_too_early_sends_first() {
    let mut world = sounded(4_000, &[4_000, 4_000, 4_001]);
    // The other node moves: a third attempt, in which both would begin at once.
    let key = world.nodes[&name("b")].0;
    world.places.insert(key, ([198, 51, 100, 7], 1_024).into());
    world.punches.clear();
    world.settle(12);
    let of = |node: &str| world.punches.iter().find(|it| it.node == name(node)).unwrap();
    let router = Router { ports: Ports::One, strangers: Strangers::Taken };
    assert_eq!((of("b").routers.unwrap()[1], of("a").routers.unwrap()[0]), (router, router));
    assert_eq!((of("a").after, of("b").after), (PUNCH_LEAD, PUNCH_LEAD + PUNCH_SECOND));
}

#[test]
fn the_next_ports_of_a_router_that_counts_on_are_tried_by_the_other_node_alone() {
    let world = sounded(4_000, &[4_004, 4_008]);
    let of = |node: &str| world.punches.iter().rev().find(|it| it.node == name(node)).unwrap();
    assert_eq!(of("b").routers.unwrap()[1].ports, Ports::Step(4));
    let ports = of("b").candidates.iter().map(SocketAddr::port).collect::<Vec<_>>();
    assert!(ports.len() > 8, "{ports:?}");
    assert!(of("a").candidates.len() <= 2, "{:?}", of("a"));
}

#[test]
fn what_nobody_asked_for_says_nothing_of_a_router() {
    let mut world = world();
    let key = world.nodes[&name("a")].0;
    for port in [1, 52_000, 52_100, 65_535] {
        world.directory.probed(&key, port, ([192, 0, 2, 1], 9).into(), world.time());
    }
    world.settle(100);
    let of = |it: &&Punch| it.node == name("b");
    let last = world.punches.iter().rev().find(of).unwrap();
    assert_eq!(last.routers.unwrap()[1], Router::default());
}
