//! Ports with addresses: what is translated to them, and what comes back.

use packet::craft::Message;
use packet::tcp::Flags;

use super::{Rig, craft, syn};

const ADDRESSES: [(usize, &str); 2] = [(0, "10.0.0.1"), (1, "192.0.2.1")];

/// A segment between these ends, from port to port.
fn segment(ends: [&str; 2], ports: [u16; 2], flags: Flags) -> Vec<u8> {
    craft(ends, Message::tcp(ports[0], ports[1], flags)).frame()
}

#[test]
fn what_is_masqueraded_leaves_with_the_address_of_its_port_and_comes_back() {
    let rules = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o right -j MASQUERADE\nCOMMIT\n";
    let answer = segment(["10.0.0.9", "192.0.2.1"], [80, 40000], Flags::SYN.union(Flags::ACK));
    let rig = Rig::new(rules).addressed(ADDRESSES).sends(0, &[syn(80)]).sends(1, &[answer]);
    let left = rig.run();
    let translated = segment(["192.0.2.1", "10.0.0.9"], [40000, 80], Flags::SYN);
    let back = segment(["10.0.0.9", "10.0.0.7"], [80, 40000], Flags::SYN.union(Flags::ACK));
    assert_eq!(left.frames, [vec![back], vec![translated]]);
}

/// Nothing on a wire is the host's: packets to the address of a port leave through the other one.
#[test]
fn what_is_redirected_leaves_with_the_address_of_the_port_it_came_by() {
    let rules = "*nat\n:PREROUTING ACCEPT [0:0]\n\
        -A PREROUTING -i left -p tcp --dport 80 -j REDIRECT --to-ports 8080\nCOMMIT\n";
    let left = Rig::new(rules).addressed(ADDRESSES).sends(0, &[syn(80)]).run();
    let redirected = segment(["10.0.0.7", "10.0.0.1"], [40000, 8080], Flags::SYN);
    assert_eq!(left.frames, [vec![], vec![redirected]]);
}
