//! Frames of a host that is captured on all its devices: what each of them is.
//!
//! Each frame is decided once, in its order; what it is does not depend on the keys of hashes, and the packet that it shows
//! is another frame. Where the host has two links and nothing else, and all are datagrams, a slow reading that looks at
//! every earlier frame says the same.

use std::collections::HashMap;
use std::net::IpAddr;

use host::sighting::{Copied, Devices, Frame, Link, Seen, Sighting, Sightings, Way};
use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::{Checksums, Link as LinkType, parse};

/// Frames of an input: fewer than the search for one looks at.
const MOST: usize = 60;
/// As the pairing has them, in nanoseconds.
const JITTER: u64 = 10_000_000;
const LONGEST: u64 = 4_000_000_000;

const WAYS: [Way; 4] = [Way::In, Way::Out, Way::OtherHost, Way::Unknown];
const PLAIN: [&str; 2] = ["lan0", "wan0"];
const ALL: [&str; 8] = ["lan0", "wan0", "lo", "br0", "port0", "port1", "lan0.7", "new0"];
const ENDS: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 0, 2], [203, 0, 113, 1], [203, 0, 113, 9]];

/// A frame as an input says it.
struct Given {
    number: u64,
    time: u64,
    way: Way,
    device: &'static str,
    craft: Craft,
    bytes: Vec<u8>,
}

/// A byte: whether the host is plain; then frames, six bytes each: way and kind, device, ends, ports, content, pause.
pub(super) fn sightings(data: &[u8]) {
    let [kind, rest @ ..] = data else { return };
    let is_plain = kind & 1 == 0;
    let mut time = 1_000_000_000;
    let frames = (1..).zip(rest.as_chunks::<6>().0.iter().take(MOST)).map(|(number, step)| {
        time += u64::from(step[5]).pow(4);
        given(number, time, *step, is_plain)
    });
    let frames: Vec<Given> = frames.collect();
    let seen = seen(&frames, is_plain);
    assert_eq!(self::seen(&frames, is_plain), seen, "by other keys");
    assert_eq!(seen.len(), frames.len(), "each is decided once");
    for (frame, seen) in frames.iter().zip(&seen) {
        names_another(frame, seen, &frames);
    }
    if is_plain {
        let found: Vec<Said> = seen.iter().map(Said::from).collect();
        assert_eq!(found, slow(&frames));
    }
}

fn given(number: u64, time: u64, step: [u8; 6], is_plain: bool) -> Given {
    let [kind, device, ends, ports, content, _] = step;
    let [from, to] = [ends & 3, ends >> 2 & 3].map(|at| ENDS[usize::from(at)]);
    let [from_port, to_port] = [ports & 3, ports >> 2 & 3].map(|at| 1000 + u16::from(at));
    let message = match kind >> 2 & 3 {
        3 if !is_plain => Message::Tcp {
            source_port: from_port,
            destination_port: to_port,
            flags: packet::tcp::Flags(content & 0x1f),
            sequence: u32::from(ports >> 4) * 500,
            acknowledgement: 7,
            window: 100,
        },
        _ => Message::udp(from_port, to_port),
    };
    let addresses = Addresses::new(IpAddr::from(from), IpAddr::from(to)).expect("one family");
    let is_part = !is_plain && kind & 0x30 == 0x30;
    let fragment =
        is_part.then(|| Fragment { offset: u16::from(ports >> 6) * 8, more: kind & 64 == 0 });
    let craft = Craft {
        ethernet: None,
        id: u32::from(content & 3),
        payload_len: usize::from(content >> 2 & 3) * if is_plain { 8 } else { 600 },
        ttl: 64 - (ends >> 4 & 1),
        fragment,
        ..Craft::new(addresses, message)
    };
    let device = match is_plain {
        true => PLAIN[usize::from(device) % PLAIN.len()],
        false => ALL[usize::from(device) % ALL.len()],
    };
    Given { number, time, way: WAYS[usize::from(kind & 3)], device, bytes: craft.frame(), craft }
}

fn devices(is_plain: bool) -> Devices {
    let link = |name, master| Link {
        index: None,
        name,
        master,
        vlan: None,
        parent: None,
        is_loopback: name == "lo",
    };
    let plain = PLAIN.map(|name| link(name, None));
    let more = [
        link("lo", None),
        link("br0", None),
        link("port0", Some("br0")),
        link("port1", Some("br0")),
        Link { vlan: Some(("lan0", 7)), ..link("lan0.7", None) },
    ];
    Devices::of(plain.into_iter().chain(more.into_iter().filter(|_| !is_plain)))
}

fn seen(frames: &[Given], is_plain: bool) -> Vec<Seen> {
    let mut sightings = Sightings::new(devices(is_plain));
    for Given { number, time, way, device, bytes, .. } in frames {
        let headers = parse(LinkType::Raw, bytes, bytes.len(), Checksums::Ignore);
        let device = sightings.devices_mut().named(device);
        sightings.see(&Frame {
            number: *number,
            time: *time,
            bytes,
            headers: &headers,
            way: *way,
            is_told: true,
            device,
            copied: Copied::No,
            is_joined: false,
        });
    }
    assert_eq!(sightings.waiting(), frames.len());
    std::iter::from_fn(|| sightings.take()).collect()
}

/// What a frame shows besides itself is another one, which is there.
fn names_another(frame: &Given, seen: &Seen, frames: &[Given]) {
    let of = match seen.sighting {
        Sighting::Second { of } | Sighting::Lower { of } => of,
        _ => None,
    };
    for number in of.into_iter().chain(seen.left.map(|left| left.number)) {
        assert_ne!(number, frame.number);
        assert!((1..=frames.len() as u64).contains(&number));
    }
}

/// What is compared with the slow reading: what a frame is, and which one shows it leaving.
#[derive(Debug, PartialEq)]
struct Said {
    sighting: Sighting,
    left: Option<u64>,
}

impl From<&Seen> for Said {
    fn from(seen: &Seen) -> Self {
        Self { sighting: seen.sighting, left: seen.left.map(|left| left.number) }
    }
}

/// Addresses and ports.
type Ends = ([u8; 4], [u8; 4], [u16; 2]);

impl Given {
    fn ends(&self) -> Ends {
        let (Addresses::V4 { source, destination }, Message::Udp { source_port, destination_port }) =
            (self.craft.addresses, &self.craft.message)
        else {
            unreachable!("a plain host has datagrams of IPv4 alone")
        };
        (source, destination, [*source_port, *destination_port])
    }

    /// What translation leaves alone is the same.
    fn is_like(&self, other: &Self) -> bool {
        (self.craft.id, self.craft.payload_len) == (other.craft.id, other.craft.payload_len)
    }

    fn is_out(&self) -> bool {
        self.way == Way::Out
    }

    /// What left before it came has its ends, or is one hop on: the host may translate.
    fn fits_before(&self, came: &Self) -> bool {
        self.ends() == came.ends() || self.craft.ttl + 1 == came.craft.ttl
    }

    fn comes(&self) -> bool {
        matches!(self.way, Way::In | Way::OtherHost)
    }
}

/// How many of addresses and ports are alike; none of those of an answer, whose ports are swapped, too, or are others.
fn alike(came: Ends, left: Ends) -> Option<usize> {
    let is_turned = came.0 == left.1 && came.1 == left.0 && came.0 != came.1;
    let same = [came.0 == left.0, came.1 == left.1, came.2[0] == left.2[0], came.2[1] == left.2[1]];
    let same = same.into_iter().filter(|is_same| *is_same).count();
    let is_answer = is_turned && (came.2 == [left.2[1], left.2[0]] || same == 0);
    (!is_answer).then_some(same)
}

/// Every frame, by a look at all before it.
#[derive(Default)]
struct Slow {
    /// By frame: the arrival that it shows leaving.
    shows: Vec<Option<usize>>,
    /// By frame: a packet that went through, of which nothing more is known.
    goes_through: Vec<bool>,
    /// By arrival: it left, and by which frame if that is sure.
    left: Vec<Option<Option<u64>>>,
    /// Ends of flows as they left, with those that they came with.
    flows: HashMap<Ends, Ends>,
}

fn slow(frames: &[Given]) -> Vec<Said> {
    let mut slow = Slow {
        shows: vec![None; frames.len()],
        goes_through: vec![false; frames.len()],
        left: vec![None; frames.len()],
        flows: HashMap::new(),
    };
    for (at, frame) in frames.iter().enumerate() {
        if frame.comes() {
            slow.came(frames, at);
        } else if frame.is_out() {
            slow.went(frames, at);
        }
    }
    let said = frames.iter().enumerate().map(|(at, frame)| {
        let left = slow.left[at];
        let sighting = match (frame.way, slow.shows[at]) {
            (Way::Unknown, _) => Sighting::Unknown,
            (Way::Out, Some(of)) => Sighting::Second { of: Some(frames[of].number) },
            (Way::Out, None) if slow.goes_through[at] => Sighting::Second { of: None },
            (Way::Out, None) => Sighting::Own,
            (Way::OtherHost, _) if left.is_none() => Sighting::OtherHost,
            _ => Sighting::Arrival,
        };
        Said { sighting, left: left.flatten() }
    });
    said.collect()
}

impl Slow {
    /// One that left may be recorded just before it.
    fn came(&mut self, frames: &[Given], at: usize) {
        let frame = &frames[at];
        let mut best: Option<(usize, usize)> = None;
        for (out, other) in frames[..at].iter().enumerate().filter(|(_, other)| other.is_out()) {
            let is_open = self.shows[out].is_none() && !self.goes_through[out];
            let is_near = frame.time - other.time <= JITTER && other.fits_before(frame);
            if !is_open || !frame.is_like(other) || !is_near {
                continue;
            }
            let score = alike(frame.ends(), other.ends()).filter(|score| *score > 0);
            if let Some(score) = score.filter(|score| best.is_none_or(|(most, _)| *score > most)) {
                best = Some((score, out));
            }
        }
        if let Some((_, out)) = best {
            self.join(frames, at, out, true);
        }
    }

    fn went(&mut self, frames: &[Given], at: usize) {
        let frame = &frames[at];
        let wanted = self.flows.get(&frame.ends()).copied();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (came, other) in frames[..at].iter().enumerate().filter(|(_, other)| other.comes()) {
            let is_open = self.left[came].is_none() && frame.time - other.time <= LONGEST;
            if !is_open || !frame.is_like(other) {
                continue;
            }
            let as_before = 8 * usize::from(wanted == Some(other.ends()));
            // What came for the host goes on before what came for another.
            let is_for_host = usize::from(other.way == Way::In);
            let score = alike(other.ends(), frame.ends()).map(|score| score + as_before);
            let score = score.filter(|score| *score > 0);
            found.extend(score.map(|score| (2 * score + is_for_host, came)));
        }
        let most = found.iter().map(|(score, _)| *score).max();
        let best: Vec<usize> =
            found.iter().filter(|(score, _)| Some(*score) == most).map(|(_, came)| *came).collect();
        match best[..] {
            [first, ..] => {
                let is_sure = best.iter().all(|came| frames[*came].ends() == frames[first].ends());
                self.join(frames, first, at, is_sure);
            }
            [] => self.goes_through[at] = wanted.is_some(),
        }
    }

    fn join(&mut self, frames: &[Given], came: usize, out: usize, is_sure: bool) {
        self.shows[out] = Some(came);
        self.left[came] = Some(is_sure.then_some(frames[out].number));
        let (before, after) = (frames[came].ends(), frames[out].ends());
        if is_sure && before != after {
            self.flows.insert(after, before);
        }
    }
}
