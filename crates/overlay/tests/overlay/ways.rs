//! What nodes say of how they reach each other, as the owner of a directory sees it.

use overlay::limits::{REACHES, SECOND};
use overlay::{Body, Message, Reached};

use crate::world::{World, name, policy};

fn says(world: &mut World, from: &str, peer: &str, is_direct: bool, micros: Option<u32>) {
    let peers = vec![Reached { name: name(peer), is_direct, micros }];
    let message = Message { transaction: 0, body: Body::Reaches { peers } }.to_bytes();
    let (key, now) = (world.nodes[&name(from)].0, world.time());
    world.directory.receive(&key, &message, now);
}

/// The word of each node of a pair: whether the way is direct, and microseconds of a round trip.
type Said = [Option<(bool, Option<u32>)>; 2];

fn said(world: &World) -> Vec<Said> {
    world.directory.ways(world.time().nanos).map(|way| way.said).collect()
}

#[test]
fn a_node_says_how_it_reaches_its_own_peers_for_a_minute_and_nothing_else() {
    let mut world = World::new(policy(&[["a", "b"], ["a", "c"]]), 1);
    for (node, number) in [("a", 1), ("b", 2), ("c", 3)] {
        world.enrolled(node, number);
    }
    world.settle(2);
    world.resolve(&name("a"), &name("b"));
    world.settle(2);
    assert_eq!(said(&world), [[None, None]]);
    says(&mut world, "b", "a", true, Some(1_200));
    assert_eq!(said(&world), [[None, Some((true, Some(1_200)))]]);
    says(&mut world, "a", "b", false, None);
    // There is no path between those, and between the next two nobody else has a say.
    says(&mut world, "a", "c", true, None);
    says(&mut world, "c", "b", true, None);
    says(&mut world, "c", "c", true, None);
    let both = [Some((false, None)), Some((true, Some(1_200)))];
    assert_eq!(said(&world), [both]);
    let listed = world.directory.list(world.time().nanos);
    assert_eq!(listed.filter(|it| it.present && it.at.is_some()).count(), 3);
    world.settle(REACHES / SECOND + 1);
    assert_eq!(said(&world), [[None, None]]);
}
