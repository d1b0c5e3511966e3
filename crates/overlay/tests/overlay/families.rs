//! Nodes with IPv4 alone and nodes with IPv6 alone reach each other by a relay that has both.

use overlay::limits::SECOND;
use tunnel::Path;

use crate::home::Routers;
use crate::router::Kind;
use crate::town::{Distances, MILLISECOND, Town};

const FAR: Distances = Distances { cloud: [5 * MILLISECOND; 2], between: 5 * MILLISECOND };
const SOLE: Routers = &[Kind::Sole];

/// Checks that either node asks and both reach each other by that way, and that no packet is lost.
fn speak_by(town: &mut Town, path: Path) {
    for asks in [0, 1] {
        town.ask(asks);
        town.wait(2 * SECOND);
        assert_eq!(town.speak(&[0, 1], 100), 0);
    }
    assert_eq!([0, 1].map(|side| town.path(side)), [Some(path); 2]);
}

#[test]
fn one_node_has_ipv4_alone_and_the_other_one_ipv6_alone() {
    let v4: [Routers; 4] = [&[Kind::Cone], &[Kind::Plain], &[Kind::Open], &[Kind::Random]];
    for (kinds, relays) in v4.into_iter().flat_map(|kinds| [(kinds, &[][..]), (kinds, &[3, 9])]) {
        for routers in [[kinds, SOLE], [SOLE, kinds]] {
            let relays: Vec<u64> = relays.iter().map(|takes| takes * MILLISECOND).collect();
            let mut town = Town::apart(routers, FAR, &relays);
            town.wait(3 * SECOND);
            speak_by(&mut town, Path::Relay);
        }
    }
}

#[test]
fn a_node_with_ipv6_alone_reaches_directly_whoever_has_ipv6() {
    for other in [SOLE, &[Kind::Firewall]] {
        let mut town = Town::new([SOLE, other], FAR);
        town.wait(3 * SECOND);
        speak_by(&mut town, Path::Direct);
    }
}

/// A directory that has just begun, or a node that has, does not know yet by which family the node is reached.
#[test]
fn either_begins_again_and_is_shown_the_relay_of_its_own_family() {
    for is_apart in [false, true] {
        let relays: &[u64] = if is_apart { &[3 * MILLISECOND] } else { &[] };
        let mut town = Town::apart([&[Kind::Plain], SOLE], FAR, relays);
        town.wait(3 * SECOND);
        speak_by(&mut town, Path::Relay);
        for side in [0, 1] {
            town.join(side, if side == 0 { &[Kind::Plain] } else { SOLE }, 1);
            town.wait(10 * SECOND);
            assert_eq!(town.speak(&[0, 1], 100), 0, "{side} began again, relay apart: {is_apart}");
        }
        town.restart_cloud();
        town.wait(10 * SECOND);
        town.join(1, SOLE, 2);
        town.wait(10 * SECOND);
        assert_eq!(town.speak(&[0, 1], 100), 0, "the cloud began again, relay apart: {is_apart}");
    }
}
