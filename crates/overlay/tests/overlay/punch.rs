//! Punches: both nodes of a pair learn at once where the other one may be, and nobody makes the directory say it too often.

use overlay::limits::{PUNCH_LEAD, PUNCH_PAUSE, PUNCH_SECOND, REGISTER, SECOND};

use crate::world::{World, local, name, policy};

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
