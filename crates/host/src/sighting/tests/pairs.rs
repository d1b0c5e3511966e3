//! Which arrival a frame shows leaving.

use super::*;

#[test]
fn what_left_tells_what_translation_drew() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 80), 1, 0));
    let routed = Craft { ttl: 63, ..segment((ROUTER, 61_234), (SERVER, 80), 1, 0) };
    capture.frame(Way::Out, "wan0", &routed);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, second(1)]);
    let left = seen[0].left.unwrap();
    assert_eq!((left.number, left.device, left.bridged), (2, 3, false));
    assert_eq!(left.ends.source, ROUTER.parse::<IpAddr>().unwrap());
    assert_eq!(left.ends.ports, Some([61_234, 80]));
}

#[test]
fn equal_packets_pair_again_once_the_first_are_forgotten() {
    let mut capture = Capture::new();
    let arrived = segment((CLIENT, 4000), (SERVER, 80), 1, 0);
    let left = Craft { ttl: 63, ..segment((CLIENT, 4000), (SERVER, 80), 1, 0) };
    let pass = |capture: &mut Capture| {
        let number = capture.frame(Way::In, "lan0", &arrived);
        capture.frame(Way::Out, "wan0", &left);
        let seen: Vec<_> = std::iter::from_fn(|| capture.sightings.take()).collect();
        assert_eq!(sightings(&seen), [Sighting::Arrival, second(number)]);
    };
    pass(&mut capture);
    // Of more than are looked at, each is entered by its ends, too.
    for port in 0..MOST as u16 + 3 {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 2, 0));
        capture.sightings.take();
    }
    assert_eq!(capture.sightings.by_ends.len(), 3);
    for number in 0..2 * KEPT as u64 {
        capture.sightings.see_other(number);
        capture.sightings.take();
    }
    let Sightings { by_ends, by_bytes, by_content, .. } = &capture.sightings;
    assert_eq!([by_ends.len(), by_bytes.len(), by_content.len()], [0; 3], "no table has any more");
    pass(&mut capture);
}

#[test]
fn what_leaves_too_late_is_another_packet() {
    for (waits, expected) in [(LONGEST / 2, second(1)), (LONGEST + 1, Sighting::Own)] {
        let mut capture = Capture::new();
        capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 80), 1, 0));
        capture.time += waits;
        capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 80), 1, 0));
        assert_eq!(sightings(&capture.take())[1], expected, "{waits}");
    }
}

#[test]
fn of_equal_contents_those_with_most_ends_alike_pair() {
    let (one, other) = (segment((CLIENT, 4000), (SERVER, 80), 1, 0), ("10.0.0.3", 4001));
    let other = segment(other, (SERVER, 80), 1, 0);
    for arrivals in [[&one, &other], [&other, &one]] {
        let mut capture = Capture::new();
        for arrival in arrivals {
            capture.frame(Way::In, "lan0", arrival);
        }
        capture.frame(Way::Out, "wan0", &Craft { ttl: 63, ..one.clone() });
        let own = 1 + u64::from(std::ptr::eq(arrivals[1], &one));
        assert_eq!(sightings(&capture.take())[2], second(own));
    }
    // Likewise where what left is shown first.
    for left in [[&one, &other], [&other, &one]] {
        let mut capture = Capture::new();
        for left in left {
            capture.frame(Way::Out, "wan0", left);
        }
        capture.frame(Way::In, "lan0", &one);
        let own = usize::from(std::ptr::eq(left[1], &one));
        let seen = sightings(&capture.take());
        assert_eq!((seen[own], seen[1 - own]), (second(3), Sighting::Own));
    }
}

/// RFC 4291 section 2.5.6: a router forwards nothing from or to a link-local address, and translates none.
#[test]
fn what_is_of_its_link_does_not_leave_translated() {
    let echo = |kind: u8| Message::Icmp { kind, code: 0, id: 7, sequence: 1 };
    let left = |came: &str, left: &str| {
        let mut capture = Capture::new();
        capture.frame(Way::In, "lan0", &craft(came, "2001:db8::9", echo(128)));
        let left = Craft { ttl: 63, ..craft(left, "2001:db8::9", echo(128)) };
        capture.frame(Way::Out, "wan0", &left);
        sightings(&capture.take())[1]
    };
    assert_eq!(left("2001:db8:1::2", "2001:db8::1"), second(1));
    assert_eq!(left("fe80::2", "2001:db8::1"), Sighting::Own);
    let to_group = |group| {
        let mut capture = Capture::new();
        for (way, device, source) in
            [(Way::In, "lan0", "2001:db8:1::2"), (Way::Out, "wan0", "2001:db8::1")]
        {
            capture.frame(way, device, &craft(source, group, Message::udp(5353, 5353)));
        }
        sightings(&capture.take())[1]
    };
    assert_eq!(
        ["ff02::fb", "ff12::fb", "ff05::fb"].map(to_group),
        [Sighting::Own, Sighting::Own, second(1)]
    );
    assert_eq!(left("2001:db8:1::2", "fe80::1"), Sighting::Own);
}

/// RFC 3022 section 4.1: of a query the identifier is translated, and the sequence number stays.
#[test]
fn a_masqueraded_ping_leaves_with_another_identifier() {
    let echo = |kind, id, sequence| Message::Icmp { kind, code: 0, id, sequence };
    for (kind, [client, router, server]) in
        [(8, [CLIENT, ROUTER, SERVER]), (128, ["2001:db8:1::2", "2001:db8::1", "2001:db8::9"])]
    {
        for (sequence, expected) in [(1, second(1)), (2, Sighting::Own)] {
            let mut capture = Capture::new();
            capture.frame(Way::In, "lan0", &craft(client, server, echo(kind, 7, 1)));
            let left = Craft { ttl: 63, ..craft(router, server, echo(kind, 9, sequence)) };
            capture.frame(Way::Out, "wan0", &left);
            assert_eq!(sightings(&capture.take())[1], expected, "{kind}");
        }
    }
}

#[test]
fn among_many_equal_packets_the_one_with_the_same_ends_is_found() {
    let mut capture = Capture::new();
    let many = 200;
    for port in 0..many {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
    }
    capture.frame(Way::Out, "wan0", &segment((CLIENT, many - 5), (SERVER, 80), 1, 0));
    let seen = capture.take();
    let left: Vec<_> = (1..).zip(&seen).filter(|(_, seen)| seen.left.is_some()).collect();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].0, seen[usize::from(many)].sighting), (196, second(196)));
}

#[test]
fn equal_packets_pair_in_order_and_a_tie_teaches_nothing() {
    // A scan: one sequence number, several clients, each given a port of its own.
    let mut capture = Capture::new();
    for port in [4000, 4001] {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
    }
    for port in [50_001, 50_000] {
        capture.frame(Way::Out, "wan0", &segment((ROUTER, port), (SERVER, 80), 1, 0));
    }
    let seen = capture.take();
    assert_eq!(sightings(&seen[2..]), [second(1), second(2)]);
    assert_eq!(seen[0].left, None, "either may be meant");

    // Where only one fits in all its ends, there is none.
    let mut capture = Capture::new();
    for port in [4000, 4001] {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
    }
    capture.frame(Way::Out, "wan0", &segment((CLIENT, 4001), (SERVER, 80), 1, 0));
    let seen = capture.take();
    assert_eq!((seen[0].left, seen[1].left.map(|left| left.number)), (None, Some(3)));
    assert_eq!(seen[2].sighting, second(2));
}

#[test]
fn a_capture_may_show_what_left_a_little_before_what_came() {
    let routed = |ttl| Craft { ttl, ..segment((ROUTER, 4000), (SERVER, 80), 1, 0) };
    let came = segment((CLIENT, 4000), (SERVER, 80), 1, 0);
    let show = |translates: bool, left: &Craft, apart: u64| {
        let mut capture = Capture::new();
        if !translates {
            let none = Families { v4: false, v6: false };
            capture.sightings = capture.sightings.with_translation(none);
        }
        capture.frame(Way::Out, "wan0", left);
        capture.time += apart;
        capture.frame(Way::In, "lan0", &came);
        sightings(&capture.take())
    };
    let (pair, none) = ([second(2), Sighting::Arrival], [Sighting::Own, Sighting::Arrival]);
    assert_eq!(show(true, &routed(63), JITTER / 2), pair);
    assert_eq!(show(true, &routed(63), JITTER * 2), none, "too long before");
    // As much is alike in what the host sent by itself just before, such as a reset in another's name.
    assert_eq!(show(true, &routed(64), JITTER / 2), none, "no hop lies between them");
    assert_eq!(show(false, &routed(63), JITTER / 2), none, "nobody translates it");
    let untouched = Craft { ttl: 63, ..came.clone() };
    assert_eq!(show(false, &untouched, JITTER / 2), pair);
}

#[test]
fn a_hairpin_back_to_the_sender_is_no_answer() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (ROUTER, 8080), 1, 0));
    let back = Craft { ttl: 63, ..segment((ROUTER, 4000), (CLIENT, 80), 1, 0) };
    capture.frame(Way::Out, "lan0", &back);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, second(1)]);
}

#[test]
fn what_came_for_this_host_goes_on_before_what_came_for_another() {
    let mut capture = Capture::new();
    let came = craft(CLIENT, SERVER, Message::udp(7007, 7));
    capture.frame(Way::OtherHost, "lan0", &came);
    capture.frame(Way::In, "lan0", &came);
    capture.frame(Way::Out, "wan0", &Craft { ttl: 63, ..came });
    let wanted = [Sighting::OtherHost, Sighting::Arrival, second(2)];
    assert_eq!(sightings(&capture.take()), wanted);
}

#[test]
fn of_equal_packets_that_of_the_flow_which_left_so_before_is_meant() {
    let flows = [((CLIENT, 4000), 61_000), (("10.0.0.3", 4001), 61_001)];
    for [first, second_one] in [[0, 1], [1, 0]] {
        let mut capture = Capture::new();
        for (at, (source, port)) in flows.iter().enumerate() {
            capture.frame(Way::In, "lan0", &segment(*source, (SERVER, 80), 10 + at as u32, 0));
            let left = segment((ROUTER, *port), (SERVER, 80), 10 + at as u32, 0);
            capture.frame(Way::Out, "wan0", &left);
        }
        for at in [first, second_one] {
            capture.frame(Way::In, "lan0", &segment(flows[at].0, (SERVER, 80), 5, 0));
        }
        for (_, port) in flows {
            capture.frame(Way::Out, "wan0", &segment((ROUTER, port), (SERVER, 80), 5, 0));
        }
        let seen = sightings(&capture.take());
        let expected = if first == 0 { [second(5), second(6)] } else { [second(6), second(5)] };
        assert_eq!(seen[6..], expected);
    }
}

#[test]
fn what_left_before_it_came_is_the_first_that_is_as_much_alike_and_near_enough() {
    let left = |port| Craft { ttl: 63, ..segment((ROUTER, port), (SERVER, 80), 1, 0) };
    let came = segment((CLIENT, 4000), (SERVER, 80), 1, 0);
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &left(61_000));
    capture.frame(Way::Out, "wan0", &left(61_001));
    capture.frame(Way::In, "lan0", &came);
    assert_eq!(sightings(&capture.take()), [second(3), Sighting::Own, Sighting::Arrival]);
    for (apart, expected) in [(JITTER, second(2)), (JITTER + 1, Sighting::Own)] {
        let mut capture = Capture::new();
        capture.frame(Way::Out, "wan0", &left(61_000));
        capture.time += apart - 10_000;
        capture.frame(Way::In, "lan0", &came);
        assert_eq!(sightings(&capture.take())[0], expected);
    }
}

/// What has left does not stand in the way of what is like it.
#[test]
fn of_equal_packets_one_after_the_other_each_leaves() {
    let mut capture = Capture::new();
    for round in 0..2 * MOST as u64 {
        let port = 4000 + round as u16;
        let came = capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
        capture.frame(Way::Out, "wan0", &segment((ROUTER, port ^ 0x4000), (SERVER, 80), 1, 0));
        let seen: Vec<_> = std::iter::from_fn(|| capture.sightings.take()).collect();
        assert_eq!(sightings(&seen), [Sighting::Arrival, second(came)]);
    }
}

/// Numbers alone tie what left before to what came only where an end is alike; a hairpin may change all of them.
#[test]
fn where_no_end_is_alike_what_left_later_alone_may_be_meant() {
    let (came, left) = (segment((CLIENT, 4000), (ROUTER, 8080), 9, 0), ("10.0.0.1", 61_000));
    let back = Craft { ttl: 63, ..segment(left, (CLIENT, 80), 9, 0) };
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &came);
    capture.frame(Way::Out, "lan0", &back);
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, second(1)]);
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &Craft { ttl: 63, ..segment(left, (SERVER, 80), 9, 0) });
    capture.frame(Way::In, "lan0", &came);
    assert_eq!(sightings(&capture.take()), [Sighting::Own, Sighting::Arrival]);
}
