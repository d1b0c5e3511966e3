//! Devices that stand on others.

use super::*;

#[test]
fn devices_stand_on_each_other_as_the_links_say() {
    let mut devices = host();
    let [lan, wan, bridge, port, vlan] =
        ["lan0", "wan0", "br0", "port0", "lan0.7"].map(|name| devices.named(name));
    let stands = |devices: &Devices, below: u32, vlan, above: u32| {
        let upper = devices.upper(below, vlan);
        let ways = [devices.may_feed(below, upper, above), devices.is_below(below, upper, above)];
        assert_eq!(ways[0], ways[1]);
        ways[0]
    };
    assert!(stands(&devices, port, None, bridge) && !stands(&devices, bridge, None, port));
    assert!(!stands(&devices, lan, None, bridge) && !stands(&devices, lan, None, wan));
    assert!(!stands(&devices, port, None, wan), "it feeds another");
    assert!(stands(&devices, lan, Some(7), vlan));
    assert!(stands(&devices, lan, None, vlan), "a card may have taken the tag off");
    assert!(!stands(&devices, wan, None, vlan));
    // Without a link for it a VLAN is another host's; 0 is none, and a bridge passes on what it does not know.
    let strange = [(lan, Some(5)), (lan, Some(0x2007)), (lan, Some(0x2000)), (port, Some(5))];
    let strange = strange.map(|(device, tag)| devices.is_of_no_vlan(device, tag));
    assert_eq!(strange, [true, false, false, false]);
    assert_eq!((devices.at(3), devices.len()), (wan, 8), "by its index");
    assert_eq!([devices.at(99), devices.at(99)], [9; 2], "a new one");
    assert_eq!(
        (devices.len(), devices.upper(lan, Some(0x2007))),
        (9, Some(vlan)),
        "with a priority"
    );

    // Where nobody says how they stand, any two may, and none surely does.
    let mut unknown = Devices::default();
    assert!(unknown.is_empty());
    let [one, other] = ["a", "b"].map(|name| unknown.named(name));
    assert!(!unknown.is_empty());
    assert!(unknown.may_feed(one, None, other) && !unknown.may_feed(one, None, one));
    assert!(!unknown.is_below(one, None, other));
}

#[test]
fn what_a_macvlan_sends_its_parent_shows_too() {
    let mut capture = Capture::new();
    let sent = craft(ROUTER, SERVER, Message::udp(53, 5000));
    capture.frame(Way::Out, "mv0", &sent);
    capture.frame(Way::Out, "wan0", &sent);
    assert_eq!(sightings(&capture.take()), [Sighting::Own, Sighting::Lower { of: Some(1) }]);

    // The checksum is finished in between; a packet with another time to live is another.
    let mut unfinished = sent.frame();
    unfinished[26..28].copy_from_slice(&[1, 2]);
    for (ttl, expected) in [(64, Sighting::Lower { of: Some(1) }), (63, Sighting::Own)] {
        let mut capture = Capture::new();
        capture.bytes(Way::Out, "mv0", &unfinished, LinkType::Raw);
        capture.frame(Way::Out, "wan0", &Craft { ttl, ..sent.clone() });
        assert_eq!(sightings(&capture.take()), [Sighting::Own, expected], "{ttl}");
    }
}

#[test]
fn what_comes_by_a_device_without_link_addresses_and_goes_back_is_one_packet() {
    let came = segment((CLIENT, 4000), ("10.0.0.3", 80), 1, 0);
    let seen = |is_told, ttl| {
        let mut capture = Capture { is_told, ..Capture::new() };
        capture.frame(Way::In, "wan0", &came);
        capture.frame(Way::In, "wan0", &Craft { ttl, ..came.clone() });
        sightings(&capture.take())
    };
    assert_eq!(seen(false, 63), [Sighting::Arrival, second(1)]);
    assert_eq!(seen(false, 64), [Sighting::Arrival; 2], "sent again");
    assert_eq!(seen(true, 63), [Sighting::Arrival; 2], "the capture says so");
}

#[test]
fn what_goes_to_a_group_comes_to_a_macvlan_and_to_its_parent() {
    let shown_apart = |apart: u64, to: &str, to_mac: [u8; 6], devices: [&str; 2]| {
        let sent = craft(SERVER, to, Message::udp(53, 5000)).frame();
        let frame = [&to_mac[..], &[2, 0, 0, 0, 0, 9], &[8, 0], &sent].concat();
        let mut capture = Capture::new();
        // One in another namespace hands it over with a checksum that is not finished.
        let mut unfinished = frame.clone();
        unfinished[14 + 26] ^= u8::from(devices[0] == "mv0");
        capture.time = JITTER;
        capture.bytes(Way::In, devices[0], &unfinished, LinkType::Ethernet);
        capture.time += apart - 10_000;
        capture.bytes(Way::In, devices[1], &frame, LinkType::Ethernet);
        sightings(&capture.take())
    };
    let shown = |to, to_mac, devices| shown_apart(10_000, to, to_mac, devices);
    let group = [1, 0, 94, 1, 1, 1];
    assert_eq!(shown("239.1.1.1", group, ["wan0", "mv0"]), [Sighting::Arrival; 2]);
    let of_other = [Sighting::Arrival, Sighting::OtherHost];
    assert_eq!(shown("239.1.1.1", group, ["mv0", "wan0"]), of_other, "of another macvlan");
    for (apart, expected) in [(JITTER, of_other), (JITTER + 1, [Sighting::Arrival; 2])] {
        assert_eq!(shown_apart(apart, "239.1.1.1", group, ["mv0", "wan0"]), expected);
    }
    let elsewhere = shown("239.1.1.1", group, ["lan0", "wan0"]);
    assert_eq!(elsewhere, [Sighting::Arrival; 2], "another link received it, too");
    let lower = Sighting::Lower { of: Some(2) };
    assert_eq!(shown(ROUTER, [2, 0, 0, 0, 0, 1], ["wan0", "mv0"]), [lower, Sighting::Arrival]);
}

#[test]
fn a_link_of_its_own_address_has_a_parent_that_is_no_port() {
    let mut devices = Devices::of([
        link(1, "br0", None),
        link(2, "port0", Some("br0")),
        link(3, "wan0", None),
        link(4, "lan0", None),
        Link { parent: Some("wan0"), ..link(5, "mv0", None) },
        Link { parent: Some("port0"), ..link(6, "mv1", None) },
    ]);
    let parents = ["br0", "port0", "wan0", "lan0", "mv0"].map(|name| devices.named(name));
    assert_eq!(parents.map(|it| devices.is_parent(it)), [false, false, true, false, false]);
    assert_eq!(parents.map(|it| devices.is_fed(it)), [true, false, false, false, false]);
    assert_eq!(parents.map(|it| devices.ports(it)), [1, 0, 0, 0, 0]);
}

#[test]
fn of_one_time_a_port_may_show_what_its_bridge_sends_before_it() {
    let sent = craft("10.0.0.1", CLIENT, Message::udp(53, 5000));
    let mut capture = Capture::new();
    capture.frame(Way::Out, "port0", &sent);
    capture.time -= 10_000;
    capture.frame(Way::Out, "br0", &sent);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Lower { of: Some(2) }, Sighting::Own]);
}

#[test]
fn what_a_bridge_sends_to_a_group_each_port_shows_below_it() {
    let sent = craft("10.0.0.1", "10.0.0.255", Message::udp(137, 137));
    let mut capture = Capture::new();
    for device in ["br0", "port0", "port1"] {
        capture.frame(Way::Out, device, &sent);
    }
    let lower = Sighting::Lower { of: Some(1) };
    assert_eq!(sightings(&capture.take()), [Sighting::Own, lower, lower]);
}
