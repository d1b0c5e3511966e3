//! Packets that leave in parts.

use super::*;

#[test]
fn a_superframe_leaves_in_segments() {
    // Those of a small MSS may be shorter than one segment of the usual size.
    for lens in [[1448, 1448, 1104], [500, 500, 300]] {
        let mut capture = Capture::new();
        let whole = lens.iter().sum();
        capture.frame(Way::In, "wan0", &segment((SERVER, 80), (CLIENT, 4000), 1000, whole));
        let part = |sequence, len| segment((SERVER, 80), (CLIENT, 4000), sequence, len);
        let mut sequence = 1000;
        for len in lens {
            capture.frame(Way::Out, "lan0", &part(sequence, len));
            sequence += len as u32;
        }
        // The byte after it is another packet's.
        capture.frame(Way::Out, "lan0", &part(sequence, 10));
        let seen = capture.take();
        assert_eq!(sightings(&seen[1..4]), [second(1); 3]);
        assert_eq!(seen[4].sighting, Sighting::Own);
        assert_eq!(seen[0].left.unwrap().number, 2);
    }
}

#[test]
fn a_datagram_leaves_in_fragments_and_all_that_came_of_it_know() {
    // The UDP header of the first one tells the length of all.
    let part = |source, (offset, payload_len, more)| {
        let fragment = Some(Fragment { offset, more });
        let message = Message::udp(5000, 53);
        let craft = Craft { payload_len, fragment, id: 9, ..craft(source, SERVER, message) };
        let mut frame = craft.frame();
        if offset == 0 {
            frame[24..26].copy_from_slice(&2960_u16.to_be_bytes());
        }
        frame
    };
    let mut capture = Capture::new();
    for cut in [(0, 1472, true), (1480, 1480, false)] {
        capture.bytes(Way::In, "lan0", &part(CLIENT, cut), LinkType::Raw);
    }
    for cut in [(0, 1000, true), (1008, 1000, true), (2008, 952, false)] {
        capture.bytes(Way::Out, "wan0", &part(ROUTER, cut), LinkType::Raw);
    }
    let seen = capture.take();
    assert_eq!(sightings(&seen[..2]), [Sighting::Arrival; 2]);
    assert_eq!(sightings(&seen[2..]), [second(1); 3]);
    assert_eq!(seen[0].left.unwrap().number, 3);
    assert_eq!(seen[1].left, seen[0].left);
}

#[test]
fn without_reassembly_each_fragment_leaves_by_itself() {
    let part = |offset, payload_len, more| {
        let fragment = Some(Fragment { offset, more });
        let craft = craft(CLIENT, SERVER, Message::udp(5000, 53));
        Craft { payload_len, fragment, id: 9, ..craft }
    };
    let mut capture = Capture::new();
    let plain = Families { v4: false, v6: true };
    capture.sightings = capture.sightings.with_reassembly(plain);
    for (offset, len, more) in [(0, 688, true), (696, 696, true), (1392, 100, false)] {
        capture.frame(Way::In, "lan0", &part(offset, len, more));
    }
    // The second one was dropped.
    capture.frame(Way::Out, "wan0", &part(0, 688, true));
    capture.frame(Way::Out, "wan0", &part(1392, 100, false));
    let seen = capture.take();
    let left: Vec<_> = seen[..3].iter().map(|seen| seen.left.map(|left| left.number)).collect();
    assert_eq!(left, [Some(4), None, Some(5)]);
    assert_eq!(sightings(&seen[3..]), [second(1), second(3)]);
}

#[test]
fn what_must_stay_whole_does_not_leave_in_fragments() {
    let whole = |dont_fragment| Craft {
        payload_len: 1400,
        id: 9,
        ..Craft { dont_fragment, ..craft(CLIENT, SERVER, Message::udp(5000, 53)) }
    };
    let part = Craft { fragment: Some(Fragment { offset: 0, more: true }), ..whole(false) };
    let mut first = part.frame();
    first.truncate(20 + 8 + 1000);
    first[2..4].copy_from_slice(&1028_u16.to_be_bytes());
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &whole(true));
    capture.frame(Way::In, "lan0", &whole(false));
    capture.bytes(Way::Out, "wan0", &first, LinkType::Raw);
    let seen = capture.take();
    assert_eq!((seen[0].left, seen[2].sighting), (None, second(2)));
}

#[test]
fn parts_of_a_flow_whose_ends_are_all_translated_are_known_by_it() {
    let (came, left) = (((CLIENT, 4000), (ROUTER, 8080)), (("192.0.2.1", 61_000), (SERVER, 80)));
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment(came.0, came.1, 100, 2000));
    capture.frame(Way::Out, "wan0", &segment(left.0, left.1, 100, 1000));
    capture.frame(Way::Out, "wan0", &segment(left.0, left.1, 1100, 1000));
    capture.frame(Way::Out, "wan0", &segment(("192.0.2.7", 61_001), (SERVER, 81), 1100, 900));
    let expected = [Sighting::Arrival, second(1), second(1), Sighting::Own];
    assert_eq!(
        sightings(&capture.take()),
        expected,
        "the last is of a flow that nothing ties to it"
    );
}
