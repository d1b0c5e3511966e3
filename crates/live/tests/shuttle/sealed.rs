//! Bursts of a tunnel on their way through three lanes: several workers decipher them, evaluate them, seal what was in them
//! for another tunnel, and release them.
//!
//! The protocol, the lanes and the merge are the real ones; the protocol's lock is shuttle's, and nobody holds it while
//! anything is ciphered, as by `ports/tunnel`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use pktio::{Burst, FrameMeta};
use shuttle::sync::{Arc, Mutex};
use shuttle::{check_pct, check_random, thread};
use tunnel::{
    Config, Content, Due, HEADROOM, Offer, Opened, PeerConfig, Prefix, PrivateKey, Received,
    Sealing, Staged, SystemEntropy, TAILROOM, Tunnel,
};

use super::frames::{Frames, merge};
use super::lane::{Lane, Part, Shape};
use super::turn::{Came, Way};
use super::{DEPTH, PATIENCE, locked};

/// A schedule begins with two handshakes, so there are fewer.
const SCHEDULES: usize = 200;
const BURSTS: usize = 4;
const BURST: usize = 3;
const PACKETS: usize = BURSTS * BURST;
const NOW: u64 = 1;
/// Bytes of a packet; its number is the last one.
const PACKET: usize = 21;

/// The state that the workers share.
struct World {
    /// The lanes of deciphering, evaluating and sealing.
    lanes: [Lane<Frames>; 3],
    /// Bursts that are to come, the next one last.
    coming: Mutex<Vec<Vec<Vec<u8>>>>,
    opens: Mutex<Tunnel>,
    seals: Mutex<Tunnel>,
    left: Mutex<Vec<Vec<u8>>>,
}

/// What is noted about a burst: what was deciphered, and the places of what is to be sealed.
#[derive(Default)]
struct Noted {
    opened: Vec<Opened>,
    places: Vec<Sealing>,
}

fn place(of: u8) -> SocketAddr {
    ([192, 0, 2, of], 1).into()
}

fn packet(number: usize) -> Vec<u8> {
    let mut packet = vec![0; PACKET];
    (packet[0], packet[3], packet[PACKET - 1]) = (0x45, PACKET as u8, number as u8);
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet
}

/// Two ends with a session.
fn pair() -> [Tunnel; 2] {
    let keys = [[1; 32], [2; 32]].map(PrivateKey::new);
    let mut ends = [0_u8, 1].map(|of| {
        let (own, other) = (usize::from(of), usize::from(1 - of));
        let config = Config {
            key: keys[own].clone(),
            offer: Offer::BOTH,
            started: 0,
            started_unix: 1_800_000_000_000_000_000,
            mtu: 1_420,
        };
        let mut end = Tunnel::new(config, Box::new(SystemEntropy::new())).expect("randomness");
        let peer = PeerConfig {
            endpoint: Some(place(1 - of)),
            allowed: vec![Prefix::new([10, 0, 0, 2 - of].into(), 32).expect("a prefix")],
            ..PeerConfig::new(keys[other].public())
        };
        end.add_peer(&peer).expect("a peer");
        end
    });
    let [first, second] = &mut ends;
    assert!(matches!(first.stage(&packet(0), NOW), Staged::Wait(_)));
    let Some(Due::Send(initiation)) = first.due(NOW) else { panic!("nothing is due") };
    let Received::Answered { reply, .. } = second.receive(initiation.bytes(), place(0), NOW) else {
        panic!("no answer")
    };
    let Received::Established { reply, .. } = first.receive(reply.bytes(), place(1), NOW) else {
        panic!("no session")
    };
    assert_eq!(open(reply.bytes(), second), None);
    ends
}

/// A datagram, deciphered where it lies.
fn decipher(datagram: &mut [u8], of: &Mutex<Tunnel>) -> Opened {
    let Received::Opening(opening) = locked(of).receive(datagram, place(0), NOW) else {
        panic!("it is known")
    };
    thread::yield_now();
    opening.open(datagram).expect("it is genuine")
}

/// The packet in a deciphered datagram, if it holds one.
fn release(opened: Opened, datagram: &[u8], of: &mut Tunnel) -> Option<Vec<u8>> {
    let delivered = of.release(opened, datagram, NOW).expect("it is new");
    match delivered.content.expect("its peer may send it") {
        Content::Packet(range) => Some(datagram[range].to_vec()),
        _ => None,
    }
}

/// The packet in a datagram that an end opens.
fn open(datagram: &[u8], end: &mut Tunnel) -> Option<Vec<u8>> {
    let mut datagram = datagram.to_vec();
    let Received::Opening(opening) = end.receive(&datagram, place(0), NOW) else {
        panic!("it is known")
    };
    let opened = opening.open(&mut datagram).expect("it is genuine");
    release(opened, &datagram, end)
}

/// A packet's place among all that are sealed.
fn place_of(packet: &[u8], tunnel: &mut Tunnel) -> Sealing {
    match tunnel.stage(packet, NOW) {
        Staged::Seal(sealing) => sealing,
        _ => panic!("there is a session"),
    }
}

/// A packet, sealed.
fn seal(packet: &[u8], place: Sealing) -> Vec<u8> {
    let mut buffer = vec![0; HEADROOM + packet.len() + TAILROOM];
    let inner = HEADROOM..HEADROOM + packet.len();
    buffer[inner.clone()].copy_from_slice(packet);
    let sealed = place.seal(&mut buffer, inner).expect("room");
    buffer[sealed].to_vec()
}

impl World {
    /// Makes a world, and the end that everything is sent to.
    fn new(parts: usize) -> (Arc<Self>, Tunnel) {
        let ([mut from, opens], [seals, to]) = (pair(), pair());
        let sealed = |number| seal(&packet(number), place_of(&packet(number), &mut from));
        let all: Vec<_> = (0..PACKETS).map(sealed).collect();
        let coming = all.chunks(BURST).rev().map(<[_]>::to_vec).collect();
        let shape = |parts| Shape { room: 3, ready: 2, flood: PATIENCE, parts, patience: PATIENCE };
        let world = Self {
            lanes: [1, parts, 1].map(|parts| Lane::new(shape(parts))),
            coming: Mutex::new(coming),
            opens: Mutex::new(opens),
            seals: Mutex::new(seals),
            left: Mutex::new(Vec::new()),
        };
        (Arc::new(world), to)
    }

    fn is_over(&self) -> bool {
        locked(&self.left).len() == PACKETS
    }

    /// All packets have left, in their order, each by a nonce of its own, of that order, too.
    fn check(&self, mut to: Tunnel) {
        let left = locked(&self.left);
        let counters: BTreeSet<&[u8]> = left.iter().map(|datagram| &datagram[8..16]).collect();
        assert_eq!(counters.len(), left.len(), "a nonce was used again");
        let counter = |datagram: &Vec<u8>| datagram[8..16].try_into().map(u64::from_le_bytes).ok();
        assert!(left.iter().map(counter).is_sorted(), "a place is not that of the order");
        let came = left.iter().map(|datagram| open(datagram, &mut to));
        let came: Vec<_> = came.map(|packet| packet.map(|it| it[PACKET - 1])).collect();
        assert_eq!(came, (0..PACKETS as u8).map(Some).collect::<Vec<_>>());
    }
}

/// Replaces each frame of a burst by another.
fn each(burst: &mut Burst, mut made: impl FnMut(&[u8]) -> Vec<u8>) {
    let mut out = Burst::with_capacity(0);
    burst.iter().for_each(|frame| out.push(&made(frame.bytes), *frame.meta));
    *burst = out;
}

struct Hand<'w> {
    world: &'w World,
    /// The lane's place.
    at: usize,
}

impl Hand<'_> {
    fn receive(&self, parts: &mut [Frames]) -> Came {
        let (Some(datagrams), [all]) = (locked(&self.world.coming).pop(), parts) else {
            return Came::default();
        };
        datagrams.iter().for_each(|datagram| all.burst.push(datagram, FrameMeta::default()));
        all.is_closed = true;
        Came { frames: BURST, is_more: true }
    }

    /// Stages what the lane before this one has done.
    fn pull(&self, parts: &mut [Frames]) -> Came {
        let Some(mut releaser) = self.world.lanes[self.at - 1].release() else {
            return Came::default();
        };
        let Some(done) = releaser.next(Duration::ZERO) else { return Came::default() };
        let mut done: Vec<_> = done
            .iter_mut()
            .map(|part| match part {
                Part::Done(part) => part,
                Part::Overdue { .. } => panic!("there is time"),
            })
            .collect();
        match (self.at, parts) {
            (1, parts) => self.share_out(done[0], parts),
            (_, [all]) => {
                merge(done.iter_mut().map(|part| part.leaving()), &mut all.burst);
                let places = &mut all.notes.of::<Noted>().places;
                for frame in all.burst.iter() {
                    places.push(place_of(frame.bytes, &mut locked(&self.world.seals)));
                    thread::yield_now();
                }
            }
            _ => panic!("one part"),
        }
        Came { frames: BURST, is_more: true }
    }

    /// Whose a packet is can only be seen once it is released.
    fn share_out(&self, done: &mut Frames, parts: &mut [Frames]) {
        let Frames { burst, notes, .. } = done;
        for (frame, opened) in burst.iter().zip(notes.of::<Noted>().opened.drain(..)) {
            let packet = release(opened, frame.bytes, &mut locked(&self.world.opens));
            thread::yield_now();
            let packet = packet.expect("a packet");
            let number = packet[PACKET - 1];
            let meta = FrameMeta { number: number.into(), ..FrameMeta::default() };
            parts[usize::from(number) % parts.len()].burst.push(&packet, meta);
        }
    }
}

impl Way<Frames> for Hand<'_> {
    type Error = Infallible;

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn stage(&mut self, parts: &mut [Frames]) -> Result<Came, Infallible> {
        Ok(if self.at == 0 { self.receive(parts) } else { self.pull(parts) })
    }

    fn refuse(&mut self) -> Result<Came, Infallible> {
        Ok(Came::default())
    }

    fn work(&mut self, part: &mut Frames) {
        let mut notes = std::mem::take(&mut part.notes);
        let Noted { opened, places } = notes.of::<Noted>();
        match self.at {
            0 => each(&mut part.burst, |sealed| {
                let mut datagram = sealed.to_vec();
                opened.push(decipher(&mut datagram, &self.world.opens));
                datagram
            }),
            1 => thread::yield_now(),
            _ => {
                let mut places = places.drain(..);
                each(&mut part.burst, |packet| seal(packet, places.next().expect("a place")));
            }
        }
        part.notes = notes;
    }

    fn late(&mut self, _: Frames) {
        panic!("there is time");
    }

    fn releases(&self) -> bool {
        self.at == 2
    }

    fn release(&mut self, parts: &mut [Part<Frames>]) -> Result<(), Infallible> {
        for part in parts {
            let Part::Done(part) = part else { panic!("there is time") };
            let sealed = part.leaving().iter().map(|frame| frame.bytes.to_vec());
            locked(&self.world.left).extend(sealed);
        }
        Ok(())
    }
}

fn through(workers: usize, parts: usize) {
    let program = move || {
        let (world, to) = World::new(parts);
        let work = |worker| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                while !world.is_over() {
                    for (at, lane) in world.lanes.iter().enumerate() {
                        let Ok(_) = lane.turn(worker, true, &mut Hand { world: &world, at });
                        thread::yield_now();
                    }
                }
            })
        };
        let hands: Vec<_> = (0..workers).map(work).collect();
        hands.into_iter().for_each(|hand| hand.join().expect("a worker"));
        world.check(to);
    };
    check_random(program, SCHEDULES);
    check_pct(program, SCHEDULES, DEPTH);
}

/// A worker has all of a burst in each lane.
#[test]
fn bursts_that_are_opened_and_sealed_side_by_side_leave_in_their_order() {
    through(3, 1);
}

/// A deciphered burst's packets are shared out, and leave in their order.
#[test]
fn packets_that_are_shared_out_leave_in_their_order() {
    through(2, 2);
}
