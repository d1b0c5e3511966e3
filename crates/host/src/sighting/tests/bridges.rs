//! Bridges and their ports.

use super::*;

#[test]
fn a_frame_for_another_host_is_no_arrival_unless_a_bridge_passes_it_on() {
    for (device, expected) in [("wan0", Sighting::OtherHost), ("port0", Sighting::Arrival)] {
        let mut capture = Capture::new();
        capture.frame(Way::OtherHost, device, &craft(CLIENT, SERVER, Message::udp(5000, 53)));
        assert_eq!(sightings(&capture.take()), [expected], "{device}");
    }
}

/// Queries of its own (IGMP snooping, STP) a bridge sends by its ports, below all hooks.
#[test]
fn what_a_bridge_sends_by_itself_is_told_where_the_capture_shows_what_it_sends() {
    let query = craft("0.0.0.0", "224.0.0.1", Message::Other { protocol: 2, header: vec![17; 8] });
    for (is_shown, expected) in [(false, Sighting::Own), (true, Sighting::Lower { of: None })] {
        let mut capture = Capture::new();
        if is_shown {
            capture.frame(Way::Out, "br0", &craft(ROUTER, CLIENT, Message::udp(53, 5000)));
        }
        capture.frame(Way::Out, "port0", &query);
        assert_eq!(capture.take().last().map(|seen| seen.sighting), Some(expected));
    }
}

#[test]
fn a_bridge_and_its_ports_show_one_packet() {
    // To the bridge and on by the WAN; the answer comes back.
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    capture.frame(Way::In, "br0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    capture.frame(Way::Out, "wan0", &craft(ROUTER, SERVER, Message::udp(5000, 53)));
    let answer = Craft { payload_len: 30, ..craft(SERVER, CLIENT, Message::udp(53, 5000)) };
    let there = Craft { payload_len: 30, ..craft(SERVER, ROUTER, Message::udp(53, 5000)) };
    capture.frame(Way::In, "wan0", &there);
    capture.frame(Way::Out, "br0", &answer);
    capture.frame(Way::Out, "port0", &answer);
    let seen = capture.take();
    let lower = |of| Sighting::Lower { of: Some(of) };
    let wanted = [lower(2), Sighting::Arrival, second(2), Sighting::Arrival, second(4), lower(5)];
    assert_eq!(sightings(&seen), wanted);
}

#[test]
fn what_translation_leads_off_a_bridge_is_one_packet() {
    let came = segment((CLIENT, 4000), ("10.96.0.10", 53), 1, 0);
    let made = segment((CLIENT, 4000), (SERVER, 5353), 1, 0);
    for is_port_first in [true, false] {
        let mut capture = Capture::new();
        let mut shown = [(Way::OtherHost, "port0", &came), (Way::In, "br0", &made)];
        if !is_port_first {
            shown.reverse();
        }
        for (way, device, craft) in shown {
            capture.frame(way, device, craft);
            capture.time -= 10_000;
        }
        capture.time += 10_000;
        capture.frame(Way::Out, "wan0", &Craft { ttl: 63, ..made.clone() });
        let seen = capture.take();
        let port = usize::from(!is_port_first);
        let number = port as u64 + 1;
        assert_eq!(seen[port].sighting, Sighting::Arrival);
        assert_eq!([seen[1 - port].sighting, seen[2].sighting], [second(number); 2]);
        assert_eq!(seen[port].left.map(|left| (left.number, left.device)), Some((3, 3)));
        assert_eq!((seen[port].device, numbers(&seen[port])), (4, (5, vec![], 0, false)));
    }
    // So long after, it is another packet.
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &came);
    capture.time += JITTER;
    capture.frame(Way::In, "br0", &made);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival; 2]);
    // One of another sender is another packet.
    let other = segment(("10.0.0.3", 4000), (SERVER, 5353), 1, 0);
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &came);
    capture.frame(Way::In, "br0", &other);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival; 2]);
}

#[test]
fn what_a_bridge_passes_on_came_in_by_the_bridge() {
    let mut capture = Capture::new();
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.frame(Way::Out, "port1", &craft);
    // A bridge that listens to everything shows it, too.
    capture.frame(Way::OtherHost, "br0", &craft);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, second(1), Sighting::OtherHost]);
    assert_eq!((seen[0].device, seen[0].left.unwrap().device), (4, 4));
    assert!(seen[0].left.unwrap().bridged);
}

/// The same from a bridge of three ports.
fn three_ports() -> Capture {
    let links = ["port0", "port1", "port2"].iter().zip(2..);
    let ports = links.map(|(name, index)| link(index, name, Some("br0")));
    let devices = Devices::of(std::iter::once(link(1, "br0", None)).chain(ports));
    Capture { sightings: Sightings::new(devices), is_told: false, ..Capture::new() }
}

/// Ports by number: 1 is the bridge.
fn numbers(seen: &Seen) -> (u32, Vec<u32>, u8, bool) {
    let Bridged { port, ports, more, is_passed_on } = seen.bridged;
    (port, ports.iter().collect(), more, is_passed_on)
}

#[test]
fn a_bridge_that_shows_what_its_ports_pass_on_does_not_come_between_them() {
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.frame(Way::OtherHost, "br0", &craft);
    capture.frame(Way::OtherHost, "port1", &craft);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, Sighting::OtherHost, second(1)]);
    assert_eq!(numbers(&seen[0]), (2, vec![3], 0, true));
}

#[test]
fn ports_of_one_time_do_not_tell_which_came_first() {
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.time -= 10_000;
    capture.frame(Way::OtherHost, "port1", &craft);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, second(1)]);
    assert_eq!(numbers(&seen[0]), (0, vec![0], 0, true));
}

#[test]
fn what_goes_to_a_group_may_leave_by_every_other_port() {
    let mut frame = craft(CLIENT, "10.0.0.255", Message::udp(137, 137)).frame();
    let mut ethernet = vec![0xff; 6];
    ethernet.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    ethernet.append(&mut frame);
    let comes = |capture: &mut Capture| {
        capture.bytes(Way::In, "port0", &ethernet, LinkType::Ethernet);
        capture.bytes(Way::In, "br0", &ethernet, LinkType::Ethernet);
    };
    let mut capture = three_ports();
    comes(&mut capture);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Lower { of: Some(2) }, Sighting::Arrival]);
    assert_eq!(numbers(&seen[1]), (2, vec![], 2, false));

    let mut capture = three_ports();
    comes(&mut capture);
    capture.bytes(Way::Out, "port2", &ethernet, LinkType::Ethernet);
    let seen = capture.take();
    assert_eq!(
        numbers(&seen[1]),
        (2, vec![4], 1, false),
        "one was seen, the other may have been dropped"
    );
}

/// As reports of MLD are repeated: the bridge showed the first one above its port, and not the second.
#[test]
fn what_a_station_sends_to_a_group_again_is_another_packet() {
    let mut frame = craft("fe80::2", "ff02::16", Message::udp(5353, 5353)).frame();
    let mut ethernet = vec![0x33, 0x33, 0, 0, 0, 0x16];
    ethernet.extend([2, 0, 0, 0, 0, 9, 0x86, 0xdd]);
    ethernet.append(&mut frame);
    let mut capture = three_ports();
    for _ in 0..2 {
        for (way, device) in [(Way::In, "port0"), (Way::Out, "port2"), (Way::In, "br0")] {
            capture.bytes(way, device, &ethernet, LinkType::Ethernet);
        }
        capture.time += 200_000_000;
    }
    let seen = capture.take();
    let once = |from| [Sighting::Lower { of: Some(from + 2) }, second(from), Sighting::Arrival];
    assert_eq!(sightings(&seen), [once(1), once(4)].concat());
    assert_eq!(
        [2, 5].map(|at| numbers(&seen[at])),
        [(2, vec![4], 1, false), (2, vec![4], 1, false)]
    );
}

#[test]
fn what_goes_to_a_station_that_was_heard_leaves_by_one_port() {
    let (there, back) = ((CLIENT, "10.0.0.3"), ("10.0.0.3", CLIENT));
    let udp = |(source, destination), id| Craft {
        id,
        ..craft(source, destination, Message::udp(5000, 5000))
    };
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &udp(there, 1));
    capture.frame(Way::OtherHost, "port1", &udp(back, 2));
    capture.frame(Way::OtherHost, "port0", &udp(there, 3));
    capture.time += bridged::AGEING;
    capture.frame(Way::OtherHost, "port0", &udp(there, 4));
    let seen = capture.take();
    let found: Vec<_> = seen.iter().map(numbers).map(|(_, ports, more, _)| (ports, more)).collect();
    let known = |port| (vec![port], 0);
    let flooded = (vec![], 1);
    assert_eq!(found, [flooded.clone(), known(2), known(3), flooded]);
}

#[test]
fn a_reset_for_a_bridged_packet_is_the_hosts() {
    let station = ("10.0.0.3", 80);
    let there = segment((CLIENT, 4000), station, 1, 0);
    let mut reset = segment(station, (CLIENT, 4000), 0, 0);
    if let Message::Tcp { flags, .. } = &mut reset.message {
        *flags = Flags::RST;
    }
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port1", &segment(station, (CLIENT, 4000), 7, 0));
    capture.frame(Way::OtherHost, "port0", &there);
    capture.frame(Way::OtherHost, "port0", &reset);
    // One that the station sends comes in by its own port first.
    let real = Craft { id: 9, ..reset };
    capture.frame(Way::OtherHost, "port1", &real);
    capture.frame(Way::OtherHost, "port0", &real);
    // Anything else of a station that has moved is what it sends.
    capture.frame(Way::OtherHost, "port0", &segment(station, (CLIENT, 4000), 8, 0));
    let seen = sightings(&capture.take());
    let lower = Sighting::Lower { of: None };
    assert_eq!(seen[2..], [lower, Sighting::Arrival, second(4), Sighting::Arrival]);
}

#[test]
fn fragments_at_a_port_are_lower_where_the_bridge_shows_them_put_together() {
    let fragment = |offset, payload_len, more| Craft {
        payload_len,
        fragment: Some(Fragment { offset, more }),
        id: 9,
        ..craft(CLIENT, SERVER, Message::udp(5000, 53))
    };
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &fragment(0, 1472, true));
    capture.frame(Way::OtherHost, "port0", &fragment(1480, 528, false));
    // Put together, its UDP length is that of the first fragment's header: it says the same.
    let mut whole = fragment(0, 1472, true).frame();
    whole[6..8].fill(0);
    whole.truncate(20 + 8 + 1472);
    capture.bytes(Way::In, "br0", &whole, LinkType::Raw);
    let seen = capture.take();
    assert_eq!(sightings(&seen[..2]), [Sighting::Lower { of: Some(3) }; 2]);
    assert_eq!(seen[2].sighting, Sighting::Arrival);

    // Those of another link are not the bridge's.
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &fragment(0, 1472, true));
    capture.frame(Way::In, "lan0", &fragment(1480, 528, false));
    capture.bytes(Way::In, "br0", &whole, LinkType::Raw);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival; 3]);

    // Translated, the whole is what became of those that came.
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &fragment(0, 1472, true));
    capture.frame(Way::OtherHost, "port0", &fragment(1480, 528, false));
    whole[16..20].copy_from_slice(&[10, 0, 0, 1]);
    capture.bytes(Way::In, "br0", &whole, LinkType::Raw);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, Sighting::Arrival, second(2)]);
    assert!(seen[..2].iter().all(|seen| !seen.bridged.is_passed_on));
}

#[test]
fn a_bridge_sends_on_what_its_sender_was_heard_at_another_port_to_say() {
    let [bridge, a, b] = [1, 2, 3].map(|last| [2, 0, 0, 0, 0, last]);
    let frame = |to: [u8; 6], from: [u8; 6], craft: &Craft| {
        [&to[..], &from[..], &[8, 0], &craft.frame()].concat()
    };
    let service = segment((CLIENT, 4000), ("10.96.0.10", 80), 1, 0);
    let made = segment(("10.0.0.1", 4000), ("10.0.0.3", 80), 1, 0);
    let back = segment(("10.0.0.1", 4000), (CLIENT, 80), 1, 0);
    let left = |port, frame_made: &[u8]| {
        let mut capture = Capture { is_told: false, ..Capture::new() };
        capture.bytes(Way::In, "port0", &frame(bridge, a, &service), LinkType::Ethernet);
        capture.bytes(Way::OtherHost, port, frame_made, LinkType::Ethernet);
        sightings(&capture.take())
    };
    assert_eq!(left("port1", &frame(b, a, &made)), [Sighting::Arrival, second(1)]);
    assert_eq!(left("port0", &frame(a, a, &back)), [Sighting::Arrival, second(1)], "hairpin");
    assert_eq!(left("port0", &frame(b, a, &made)), [Sighting::Arrival; 2], "it may come so");
}

#[test]
fn a_station_that_moved_to_another_port_sends_from_there() {
    let [a, b] = [2, 3].map(|last| [2, 0, 0, 0, 0, last]);
    let frame = |craft: &Craft| [&b[..], &a[..], &[8, 0], &craft.frame()].concat();
    let sent = |sequence| segment((CLIENT, 4000), ("10.0.0.3", 80), sequence, 0);
    let mut capture = Capture { is_told: false, ..Capture::new() };
    capture.bytes(Way::OtherHost, "port0", &frame(&sent(1)), LinkType::Ethernet);
    for sequence in 2..5 {
        capture.bytes(Way::OtherHost, "port1", &frame(&sent(sequence)), LinkType::Ethernet);
    }
    // And back: what the bridge then sends on at the other port has the sender that was heard at the first.
    capture.bytes(Way::OtherHost, "port0", &frame(&sent(5)), LinkType::Ethernet);
    let made = segment((CLIENT, 4000), ("10.0.0.4", 8080), 5, 0);
    capture.bytes(Way::OtherHost, "port1", &frame(&made), LinkType::Ethernet);
    let seen = sightings(&capture.take());
    assert_eq!((&seen[..5], seen[5]), (&[Sighting::Arrival; 5][..], second(5)));
}

#[test]
fn what_a_station_sends_once_it_has_moved_the_bridge_sends_on_at_the_port_that_it_left() {
    let [a, b] = [2, 3].map(|last| [2, 0, 0, 0, 0, last]);
    let frame = |to: [u8; 6], craft: &Craft| [&to[..], &a[..], &[8, 0], &craft.frame()].concat();
    let sent = |sequence| segment((CLIENT, 4000), ("10.0.0.3", 80), sequence, 0);
    let made = segment((CLIENT, 4000), ("10.0.0.4", 8080), 2, 0);
    let mut capture = Capture { is_told: false, ..Capture::new() };
    capture.bytes(Way::OtherHost, "port0", &frame(b, &sent(1)), LinkType::Ethernet);
    capture.bytes(Way::OtherHost, "port1", &frame(b, &sent(2)), LinkType::Ethernet);
    capture.bytes(Way::OtherHost, "port0", &frame(b, &made), LinkType::Ethernet);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Arrival, second(2)]);

    // Long after, the sender has moved back.
    let mut capture = Capture { is_told: false, ..Capture::new() };
    capture.bytes(Way::OtherHost, "port1", &frame(b, &sent(2)), LinkType::Ethernet);
    capture.time += 2 * JITTER;
    capture.bytes(Way::OtherHost, "port0", &frame(b, &made), LinkType::Ethernet);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival; 2]);

    // What goes to a group, the bridge floods: at another port it does not tell that the sender moved.
    let group = craft(CLIENT, "224.0.0.251", Message::udp(5353, 5353));
    let mut capture = Capture { is_told: false, ..Capture::new() };
    capture.bytes(Way::OtherHost, "port0", &frame(b, &sent(2)), LinkType::Ethernet);
    capture.bytes(Way::In, "port1", &frame([1, 0, 0x5e, 0, 0, 0xfb], &group), LinkType::Ethernet);
    capture.bytes(Way::OtherHost, "port1", &frame(b, &made), LinkType::Ethernet);
    assert_eq!(sightings(&capture.take())[2], second(1));
}

#[test]
fn the_same_frame_by_the_same_port_came_twice() {
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    let mut capture = three_ports();
    for port in ["port0", "port0", "port1"] {
        capture.frame(Way::OtherHost, port, &craft);
    }
    let seen = sightings(&capture.take());
    assert_eq!(seen, [Sighting::Arrival, Sighting::Arrival, second(1)]);
    // Where it is shown long after, that port received it from outside.
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.time += 2 * JITTER;
    capture.frame(Way::OtherHost, "port1", &craft);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival; 2]);
}

#[test]
fn the_port_by_which_a_packet_left_counts_and_not_where_its_destination_was_heard() {
    let there = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    let back = craft("10.0.0.3", CLIENT, Message::udp(53, 5000));
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port2", &back);
    capture.frame(Way::OtherHost, "port0", &there);
    capture.frame(Way::OtherHost, "port1", &there);
    let seen = capture.take();
    assert_eq!(numbers(&seen[1]), (2, vec![3], 0, true), "it went by port1 alone");
}
