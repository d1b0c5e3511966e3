//! Tests by hand-made captures of one host, frame by frame.

mod bridges;
mod devices;
mod own;
mod pairs;
mod parts;
mod prints;
mod rewritten;

use std::net::IpAddr;

use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link as LinkType, parse};
use proptest::prelude::*;

use super::frame::{JITTER, LONGEST};
use super::print::{Keys, Print};
use super::table::{MOST, REMEMBERED};
use super::*;

const CLIENT: &str = "10.0.0.2";
const ROUTER: &str = "203.0.113.1";
const SERVER: &str = "203.0.113.9";

fn link<'a>(index: u32, name: &'a str, master: Option<&'a str>) -> Link<'a> {
    Link { index: Some(index), name, master, vlan: None, parent: None, is_loopback: false }
}

/// A host with a bridge of two ports, a LAN and a WAN.
fn host() -> Devices {
    Devices::of([
        Link { is_loopback: true, ..link(1, "lo", None) },
        link(2, "lan0", None),
        link(3, "wan0", None),
        link(4, "br0", None),
        link(5, "port0", Some("br0")),
        link(6, "port1", Some("br0")),
        Link { vlan: Some(("lan0", 7)), ..link(8, "lan0.7", None) },
        Link { parent: Some("wan0"), ..link(9, "mv0", None) },
    ])
}

/// A capture of that host, frame by frame, 10 microseconds apart.
struct Capture {
    sightings: Sightings,
    number: u64,
    time: u64,
    is_told: bool,
    /// The device for copies, and whether routes say that a frame there is one.
    copies_by: Option<(&'static str, Copied)>,
}

impl Capture {
    fn new() -> Self {
        Self {
            sightings: Sightings::new(host()),
            number: 0,
            time: 0,
            is_told: true,
            copies_by: None,
        }
    }

    fn frame(&mut self, way: Way, device: &str, craft: &Craft) -> u64 {
        self.bytes(way, device, &craft.frame(), LinkType::Raw)
    }

    fn bytes(&mut self, way: Way, device: &str, bytes: &[u8], link: LinkType) -> u64 {
        let headers = parse(link, bytes, bytes.len(), Checksums::Ignore);
        let copied = self.copies_by.filter(|(name, _)| way == Way::Out && *name == device);
        let copied = copied.map_or(Copied::No, |(_, copied)| copied);
        let device = self.sightings.devices_mut().named(device);
        self.number += 1;
        self.time += 10_000;
        let (number, time) = (self.number, self.time);
        let is_told = self.is_told;
        let headers = &headers;
        let frame =
            Frame { number, time, bytes, headers, way, is_told, device, copied, is_joined: false };
        self.sightings.see(&frame);
        number
    }

    fn take(mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.sightings.take()).collect()
    }
}

fn craft(source: &str, destination: &str, message: Message) -> Craft {
    let [source, destination] = [source, destination].map(|addr| addr.parse::<IpAddr>().unwrap());
    let addresses = Addresses::new(source, destination).unwrap();
    Craft { ethernet: None, payload_len: 20, ..Craft::new(addresses, message) }
}

fn segment(source: (&str, u16), destination: (&str, u16), sequence: u32, len: usize) -> Craft {
    let message = Message::Tcp {
        source_port: source.1,
        destination_port: destination.1,
        flags: Flags::ACK,
        sequence,
        acknowledgement: 77,
        window: 1000,
    };
    Craft { payload_len: len, ..craft(source.0, destination.0, message) }
}

fn sightings(seen: &[Seen]) -> Vec<Sighting> {
    seen.iter().map(|seen| seen.sighting).collect()
}

fn second(of: u64) -> Sighting {
    Sighting::Second { of: Some(of) }
}

#[test]
fn a_frame_whose_way_is_not_told_is_left_to_its_addresses() {
    let mut capture = Capture::new();
    capture.frame(Way::Unknown, "lan0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    capture.frame(Way::Unknown, "wan0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    assert_eq!(sightings(&capture.take()), [Sighting::Unknown; 2]);
}

#[test]
fn frames_of_which_nothing_can_be_read_keep_their_place_and_are_forgotten() {
    let mut capture = Capture::new();
    capture.sightings.see_other(1);
    capture.frame(Way::In, "lan0", &segment((CLIENT, 1), (SERVER, 2), 1, 10));
    capture.sightings.see_other(3);
    assert_eq!(capture.sightings.waiting(), 3);
    let seen: Vec<_> = std::iter::from_fn(|| capture.sightings.take()).collect();
    assert_eq!(sightings(&seen), [Sighting::Unknown, Sighting::Arrival, Sighting::Unknown]);
    for number in 0..2 * KEPT as u64 {
        capture.sightings.see_other(number);
        assert_eq!(capture.sightings.take(), Some(Seen::default()));
    }
    assert!(capture.sightings.entries.len() <= KEPT + 1, "{}", capture.sightings.entries.len());
}

#[test]
fn frames_of_which_nothing_can_be_read_may_be_passed_at_once() {
    let mut capture = Capture::new();
    capture.sightings.see_others([1, 2, 3, 4, 5].into_iter());
    capture.sightings.pass(3);
    assert_eq!(capture.sightings.waiting(), 2);
    assert_eq!(capture.sightings.take(), Some(Seen::default()));
    capture.sightings.pass(9);
    assert_eq!((capture.sightings.waiting(), capture.sightings.take()), (0, None));
}

proptest! {
    /// Whatever comes, and however hashes are keyed: no panic, the same answers, one for each frame, and a second
    /// sighting is one of an arrival.
    #[test]
    fn answers_do_not_depend_on_the_key(
        frames in proptest::collection::vec((0..4_u8, 0..4_usize, 0..3_u8, 0..3_u16, 0..3_u32), 0..60)
    ) {
        let run = || {
            let mut capture = Capture::new();
            for (way, device, host, port, sequence) in &frames {
                let way = [Way::In, Way::Out, Way::OtherHost, Way::Unknown][usize::from(*way)];
                let device = ["lan0", "wan0", "br0", "port0"][*device];
                let source = format!("10.0.0.{host}");
                let craft = segment((&source, 4000 + port), (SERVER, 80), sequence * 10, 10);
                capture.frame(way, device, &craft);
            }
            capture.take()
        };
        let seen = run();
        prop_assert_eq!(seen.len(), frames.len());
        prop_assert_eq!(&seen, &run());
        for one in &seen {
            if let Sighting::Second { of: Some(of) } = one.sighting {
                let arrival = &seen[of as usize - 1];
                let came = matches!(arrival.sighting, Sighting::Arrival | Sighting::Lower { .. });
                prop_assert!(came);
            }
        }
    }
}
