//! Connections that the host opens in the place of clients (`-j SYNPROXY`), as `lab`'s scene `synproxy` shows them.

use crate::net::*;
use conntrack::{EntryHook, Proxy, Visit};

/// What the host gave the client, and what the server chose.
const GIVEN: u32 = 900_000;
const CHOSEN: u32 = 5_000;

/// Opens a connection so; the host sends its own segments where rules say that it does.
fn open(net: &mut Net, line: Line, proxy: Proxy) {
    let own = |net: &mut Net, segment: Segment| {
        let seen = net.visit_frame(&segment.frame(), |visit| Visit {
            hook: EntryHook::Output,
            proxy,
            ..visit
        });
        seen.state()
    };
    let came = |net: &mut Net, segment: Segment| {
        let seen = net.visit_frame(&segment.frame(), |visit| Visit { proxy, ..visit });
        seen.state()
    };
    // A SYN with the number that the client was given.
    assert_eq!(own(net, line.there(SYN, 100, GIVEN)), Some(New));
    assert_eq!(came(net, line.back(SYN_ACK, CHOSEN, 101)), Some(Established));
    assert_eq!(own(net, line.there(ACK, 101, CHOSEN + 1)), Some(Established));
}

#[test]
fn a_client_acknowledges_what_it_was_given() {
    for addresses in [V4, V6] {
        let (mut net, line) = (Net::kernel(), Line::new(addresses));
        open(&mut net, line, Proxy::Seen);
        let passed = |net: &mut Net, segment: Segment| {
            let more = |visit| Visit { proxy: Proxy::Seen, ..visit };
            net.visit_frame(&segment.frame(), more).state()
        };
        // The host's word to the client, with the client's numbers, goes with the connection.
        let word = line.back(ACK, GIVEN + 1, 101).frame();
        let word = net.visit_frame(&word, |visit| Visit {
            hook: EntryHook::Output,
            proxy: Proxy::Seen,
            ..visit
        });
        assert_eq!(word.state(), Some(Established));
        assert_eq!(passed(&mut net, line.there(ACK, 101, GIVEN + 1)), Some(Established));
        assert_eq!(passed(&mut net, line.back(ACK, CHOSEN + 1, 101)), Some(Established));
        assert_eq!(passed(&mut net, line.there(ACK, 101, GIVEN + 600_000)), Some(Invalid));
    }
}

#[test]
fn without_such_a_rule_the_client_is_out_of_window() {
    let (mut net, line) = (Net::kernel(), Line::new(V4));
    open(&mut net, line, Proxy::None);
    assert_eq!(line.there(ACK, 101, GIVEN + 1).pass(&mut net), Some(Invalid));
}

#[test]
fn what_the_host_opens_unseen_is_in_doubt() {
    let (mut net, line) = (Net::kernel(), Line::new(V4));
    let unseen = |visit| Visit { proxy: Proxy::Unseen, ..visit };
    let states = |net: &mut Net, segment: Segment| {
        let states = net.visit_frame(&segment.frame(), unseen).states;
        [New, Established, Invalid].map(|state| states.may_be(state))
    };
    assert_eq!(states(&mut net, line.there(ACK, 101, GIVEN + 1)), [true; 3]);
    // It begins nothing.
    assert_eq!(states(&mut net, line.back(SYN_ACK, CHOSEN, 101)), [false, true, true]);
    // A connection whose beginning is seen is none of those.
    let other = Line { ports: [40_001, 81], ..line };
    assert_eq!(states(&mut net, other.there(SYN, 1, 0)), [true, false, false]);
    assert_eq!(states(&mut net, other.back(SYN_ACK, 7, 2)), [false, true, false]);
}
