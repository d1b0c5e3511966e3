//! [`on_wire`]: a frame of a capture whose interface is the port of a wire ([`Wires`]).

use packet::Link;
use pktio::Direction;

use crate::arrival::{Arrival, Origin};
use crate::wires::Wires;

/// A received frame of a port, as it crosses the wire.
#[cold]
pub(crate) fn on_wire<'a>(wires: &'a Wires, arrival: &Arrival<'a>) -> Option<Arrival<'a>> {
    let is_leaving = arrival.direction == Direction::Outbound || arrival.origin == Origin::Host;
    let name = arrival.interface.filter(|_| !is_leaving)?;
    let (join, from) = wires.all.iter().find_map(|join| {
        let from = join.ports.iter().position(|port| port == name)?;
        Some((join, from))
    })?;
    Some(Arrival {
        link: if arrival.link == Link::Ethernet { Link::Wire } else { arrival.link },
        input: Some(&join.ports[from]),
        output: Some(&join.ports[1 - from]),
        wire: Some(&join.crossings[from]),
        origin: Origin::Wire,
        // They were found for another link type.
        headers: None,
        ..*arrival
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::Crossing;

    #[test]
    fn only_what_came_in_by_a_port_crosses() {
        let wires = Wires::parse("wire left right keep - -").unwrap();
        let at = |interface, direction| Arrival {
            interface: Some(interface),
            direction,
            ..Arrival::new(1, Link::Ethernet, 60)
        };
        let crossing = on_wire(&wires, &at("right", Direction::Inbound)).unwrap();
        assert_eq!([crossing.input, crossing.output], [Some("right"), Some("left")]);
        assert_eq!((crossing.link, crossing.wire), (Link::Wire, Some(&Crossing::default())));
        assert!(on_wire(&wires, &at("left", Direction::Unknown)).is_some());
        assert!(on_wire(&wires, &at("left", Direction::Outbound)).is_none());
        assert!(on_wire(&wires, &at("eth0", Direction::Inbound)).is_none());
        assert!(
            on_wire(&wires, &Arrival { origin: Origin::Host, ..at("left", Direction::Unknown) })
                .is_none()
        );
    }
}
