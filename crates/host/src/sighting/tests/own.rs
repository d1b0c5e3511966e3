//! What the host sends itself.

use super::*;

#[test]
fn what_no_arrival_explains_is_the_hosts_own() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &craft(CLIENT, ROUTER, Message::udp(5000, 53)));
    capture.frame(Way::Out, "lan0", &craft(ROUTER, CLIENT, Message::udp(53, 5000)));
    // An answer with the payload of the question, as an echo server gives it.
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn an_answer_by_the_same_ports_is_no_packet_that_went_on() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &craft(CLIENT, ROUTER, Message::udp(123, 123)));
    capture.frame(Way::Out, "lan0", &craft(ROUTER, CLIENT, Message::udp(123, 123)));
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn an_answer_that_left_just_before_is_not_what_came() {
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 80), (SERVER, 4000), 0, 0));
    capture.frame(Way::In, "wan0", &segment((SERVER, 4000), (CLIENT, 80), 0, 0));
    let seen = capture.take();
    assert_eq!((seen[0].sighting, seen[1].left), (Sighting::Own, None));
}

#[test]
fn neighbour_discovery_is_passed_on_by_no_router() {
    let solicit = |source| {
        craft(source, "ff02::16", Message::Icmp { kind: 143, code: 0, id: 0, sequence: 1 })
    };
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &solicit("fe80::2"));
    capture.frame(Way::Out, "lan0", &solicit("fe80::1"));
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn a_dhcp_client_without_an_address_sends_below_all_hooks() {
    let request = |source| craft(source, "255.255.255.255", Message::udp(68, 67));
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &request("0.0.0.0"));
    capture.frame(Way::Out, "wan0", &request(ROUTER));
    capture.frame(Way::In, "lan0", &Craft { id: 3, ..request("0.0.0.0") });
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Lower { of: None }, Sighting::Own, Sighting::Arrival]);
}

#[test]
fn loopback_is_one_packet_of_the_hosts_own() {
    let craft = craft("127.0.0.1", "127.0.0.1", Message::udp(5000, 53));
    let mut capture = Capture::new();
    capture.frame(Way::Out, "lo", &craft);
    capture.frame(Way::In, "lo", &craft);
    assert_eq!(sightings(&capture.take()), [Sighting::Own, second(1)]);
    // A capture on all interfaces leaves out what goes out by `lo`.
    let mut capture = Capture::new();
    capture.frame(Way::In, "lo", &craft);
    assert_eq!(sightings(&capture.take()), [Sighting::Own]);
}

fn reset(source: (&str, u16), destination: (&str, u16), sequence: u32) -> Craft {
    let craft = segment(source, destination, sequence, 0);
    let Message::Tcp { source_port, destination_port, sequence, window, .. } = craft.message else {
        unreachable!()
    };
    let (flags, acknowledgement) = (Flags::RST, 0);
    let message =
        Message::Tcp { source_port, destination_port, flags, sequence, acknowledgement, window };
    Craft { message, ..craft }
}

/// REJECT with a reset, and a packet of a translated connection that is invalid and so for the host: it answers with the
/// connection's ends.
#[test]
fn a_reset_of_a_translated_flow_is_the_hosts_where_none_came() {
    let server = ("10.0.0.9", 8080);
    for (comes, expected) in [(true, Sighting::Second { of: None }), (false, Sighting::Own)] {
        let mut capture = Capture::new();
        capture.frame(Way::In, "lan0", &segment(server, (CLIENT, 4000), 1, 20));
        capture.frame(Way::Out, "wan0", &segment((ROUTER, 80), (CLIENT, 4000), 1, 20));
        capture.frame(Way::In, "wan0", &segment((CLIENT, 4000), (ROUTER, 80), 7, 5));
        if comes {
            // A helper had changed what went before: other numbers.
            capture.frame(Way::In, "lan0", &reset(server, (CLIENT, 4000), 21));
        }
        capture.frame(Way::Out, "wan0", &reset((ROUTER, 80), (CLIENT, 4000), 77));
        let last = capture.take().pop().unwrap();
        assert_eq!((last.sighting, last.left), (expected, None), "{comes}");
    }
}

/// Errors have no ports: those that went through with these addresses tell nothing of another one.
#[test]
fn an_error_of_the_hosts_own_between_ends_of_others_is_not_lost() {
    let error = |source, id| {
        let message = Message::Icmp { kind: 3, code: 3, id: 0, sequence: 0 };
        Craft { id, ..craft(source, CLIENT, message) }
    };
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &error("10.0.0.9", 1));
    capture.frame(Way::Out, "wan0", &error(ROUTER, 1));
    capture.frame(Way::Out, "wan0", &error(ROUTER, 2));
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, second(1), Sighting::Own]);
}

/// A packet that waited for a neighbour in vain is quoted by lo, and no tap showed it; one that left was seen.
#[test]
fn an_error_by_lo_tells_of_a_packet_that_no_frame_shows() {
    let sent = segment((ROUTER, 4000), (SERVER, 80), 1, 0);
    let quoted = sent.frame();
    let header = Message::Other { protocol: 1, header: vec![3, 1, 0, 0, 0, 0, 0, 0] };
    let mut error = Craft { payload_len: quoted.len(), ..craft(ROUTER, ROUTER, header) }.frame();
    error[28..].copy_from_slice(&quoted);
    for is_shown in [true, false] {
        let mut capture = Capture::new();
        if is_shown {
            capture.frame(Way::Out, "wan0", &sent);
        }
        capture.bytes(Way::In, "lo", &error, LinkType::Raw);
        let last = capture.take().pop().unwrap();
        assert_eq!((last.sighting, last.quotes_unseen), (Sighting::Own, !is_shown));
    }
}

#[test]
fn a_copy_that_a_rule_sends_is_not_the_packet_as_it_left() {
    let came = segment((CLIENT, 4000), (SERVER, 80), 1, 0);
    let routed = Craft { ttl: 63, ..segment((ROUTER, 61_234), (SERVER, 80), 1, 0) };
    for copied in [Copied::Yes, Copied::Maybe] {
        let mut capture = Capture { copies_by: Some(("mv0", copied)), ..Capture::new() };
        capture.frame(Way::In, "lan0", &came);
        capture.frame(Way::Out, "mv0", &Craft { ttl: 63, ..came.clone() });
        capture.frame(Way::Out, "wan0", &routed);
        let seen = capture.take();
        assert_eq!(sightings(&seen), [Sighting::Arrival, Sighting::Own, second(1)]);
        assert_eq!(seen.iter().map(|seen| seen.is_copy).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(seen[0].left.map(|left| left.number), Some(3));
    }
}

#[test]
fn what_leaves_by_a_device_for_copies_need_not_be_one() {
    let came = segment((CLIENT, 4000), (SERVER, 80), 1, 0);
    let leaves = |copied, left: &Craft| {
        let mut capture = Capture { copies_by: Some(("mv0", copied)), ..Capture::new() };
        capture.frame(Way::In, "lan0", &came);
        capture.frame(Way::Out, "mv0", left);
        let seen = capture.take();
        (seen[1].sighting, seen[1].is_copy, seen[1].may_have_come, seen[0].left.is_some())
    };
    let kept = Craft { ttl: 63, ..came.clone() };
    let translated = Craft { ttl: 63, ..segment((ROUTER, 61_234), (SERVER, 80), 1, 0) };
    assert_eq!(leaves(Copied::No, &kept), (second(1), false, false, true), "a route leads there");
    assert_eq!(leaves(Copied::Yes, &kept), (Sighting::Own, true, false, false));
    assert_eq!(leaves(Copied::Maybe, &kept), (Sighting::Own, false, true, false), "either");
    for copied in [Copied::Maybe, Copied::Yes] {
        let pair = (second(1), false, false, true);
        assert_eq!(leaves(copied, &translated), pair, "rules copy before nat does that");
    }
    let own = Craft { id: 3, ..segment((ROUTER, 22), (SERVER, 80), 9, 4) };
    assert_eq!(leaves(Copied::Maybe, &own), (Sighting::Own, false, false, false));
}

/// A reset that left is not the next one, too.
#[test]
fn a_reset_after_the_one_that_came_is_the_hosts() {
    let server = ("10.0.0.9", 8080);
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment(server, (CLIENT, 4000), 1, 20));
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 80), (CLIENT, 4000), 1, 20));
    capture.frame(Way::In, "lan0", &reset(server, (CLIENT, 4000), 21));
    capture.frame(Way::Out, "wan0", &reset((ROUTER, 80), (CLIENT, 4000), 21));
    capture.frame(Way::Out, "wan0", &reset((ROUTER, 80), (CLIENT, 4000), 77));
    assert_eq!(sightings(&capture.take())[3..], [second(3), Sighting::Own]);
}

/// RFC 792, RFC 4443: how long the packet was that an error is about stands in its own header.
#[test]
fn an_error_tells_how_long_the_packet_was_that_it_quotes() {
    use crate::sighting::quoted::quoted;
    let of = |protocol, kind, ends: [&str; 2], quoted_len: usize, cut: usize| {
        let about =
            Craft { id: 9, payload_len: quoted_len, ..craft(ends[0], ends[1], Message::udp(1, 2)) };
        let header = Message::Other { protocol, header: vec![kind, 1, 0, 0, 0, 0, 0, 0] };
        let mut payload = about.frame();
        payload.truncate(cut);
        let error = Craft { payload_len: 0, payload, ..craft(ends[1], ends[0], header) }.frame();
        let headers = parse(LinkType::Raw, &error, error.len(), Checksums::Ignore);
        quoted(&error, &headers).map(|quoted| (quoted.len, quoted.bytes.len()))
    };
    let (v4, v6) = ([CLIENT, SERVER], ["2001:db8:1::2", "2001:db8::9"]);
    assert_eq!(of(1, 3, v4, 20, 1000), Some((48, 48)));
    assert_eq!(of(1, 11, v4, 200, 28), Some((228, 28)), "no more is quoted");
    assert_eq!(of(58, 1, v6, 20, 1000), Some((68, 68)));
    assert_eq!(of(58, 4, v6, 200, 48), Some((248, 48)));
    assert_eq!([of(1, 8, v4, 20, 1000), of(58, 128, v6, 20, 1000)], [None; 2], "no errors");
    assert_eq!(of(1, 3, v4, 20, 5), None);
}

#[test]
fn what_the_host_sends_twice_at_devices_for_copies_is_a_copy_there() {
    let sent = segment((ROUTER, 22), (SERVER, 80), 9, 4);
    for (other, is_copy) in
        [(sent.clone(), true), (segment((ROUTER, 23), (SERVER, 80), 9, 4), false)]
    {
        let mut capture = Capture { copies_by: Some(("mv0", Copied::Maybe)), ..Capture::new() };
        capture.frame(Way::Out, "mv0", &Craft { ttl: 63, ..sent.clone() });
        capture.frame(Way::Out, "wan0", &other);
        let seen = capture.take();
        assert_eq!((seen[0].sighting, seen[0].is_copy), (Sighting::Own, is_copy));
    }
}
