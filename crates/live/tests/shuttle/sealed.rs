//! Bursts of a tunnel at a lane: several workers open them, seal what was in them for another tunnel, and release them.
//!
//! The protocol and the lane are the real ones; the protocol's lock is shuttle's, and nobody holds it while
//! anything is ciphered, as by `run/tunnel`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use pktio::{Burst, FrameMeta};
use shuttle::sync::{Arc, Mutex};
use shuttle::{check_pct, check_random, thread};
use tunnel::{
    Config, Content, Due, HEADROOM, Offer, PeerConfig, Prefix, PrivateKey, Received, Staged,
    SystemEntropy, TAILROOM, Tunnel,
};

use super::frames::Frames;
use super::lane::{Lane, Shape};
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
    lane: Lane<Frames>,
    /// Bursts that are to come, the next one last.
    coming: Mutex<Vec<Vec<Vec<u8>>>>,
    opens: Mutex<Tunnel>,
    seals: Mutex<Tunnel>,
    left: Mutex<Vec<Vec<u8>>>,
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
    assert_eq!(open(&mut reply.bytes().to_vec(), |run| run(second)), None);
    ends
}

/// The packet in a datagram, if it holds one; `with` gives the protocol for a moment.
fn open(datagram: &mut [u8], mut with: impl FnMut(&mut dyn FnMut(&mut Tunnel))) -> Option<Vec<u8>> {
    let (mut opening, mut delivered) = (None, None);
    with(&mut |tunnel| match tunnel.receive(datagram, place(0), NOW) {
        Received::Opening(staged) => opening = Some(staged),
        _ => panic!("it is known"),
    });
    let mut opened = opening?.open(datagram).ok();
    with(&mut |tunnel| {
        let opened = opened.take().expect("it is genuine");
        delivered = Some(tunnel.release(opened, datagram, NOW).expect("it is new"));
    });
    match delivered?.content.expect("its peer may send it") {
        Content::Packet(range) => Some(datagram[range].to_vec()),
        _ => None,
    }
}

/// A packet, sealed.
fn seal(packet: &[u8], with: impl FnOnce(&mut dyn FnMut(&mut Tunnel))) -> Vec<u8> {
    let mut place = None;
    with(&mut |tunnel| match tunnel.stage(packet, NOW) {
        Staged::Seal(sealing) => place = Some(sealing),
        _ => panic!("there is a session"),
    });
    let mut buffer = vec![0; HEADROOM + packet.len() + TAILROOM];
    let inner = HEADROOM..HEADROOM + packet.len();
    buffer[inner.clone()].copy_from_slice(packet);
    let sealed = place.expect("a place").seal(&mut buffer, inner).expect("room");
    buffer[sealed].to_vec()
}

/// Gives a protocol that several share, and others a turn afterwards.
fn shared<'m>(of: &'m Mutex<Tunnel>) -> impl FnMut(&mut dyn FnMut(&mut Tunnel)) + 'm {
    |run| {
        run(&mut locked(of));
        thread::yield_now();
    }
}

impl World {
    /// Makes a world, and the end that everything is sent to.
    fn new() -> (Arc<Self>, Tunnel) {
        let ([mut from, opens], [seals, to]) = (pair(), pair());
        let sealed = |number| seal(&packet(number), |run| run(&mut from));
        let all: Vec<_> = (0..PACKETS).map(sealed).collect();
        let coming = all.chunks(BURST).rev().map(<[_]>::to_vec).collect();
        let world = Self {
            lane: Lane::new(Shape { room: 3, patience: PATIENCE }),
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

    /// All packets have left, in their order, each by a nonce of its own.
    fn check(&self, mut to: Tunnel) {
        let left = locked(&self.left);
        let counters: BTreeSet<&[u8]> = left.iter().map(|datagram| &datagram[8..16]).collect();
        assert_eq!(counters.len(), left.len(), "a nonce was used again");
        let came = left.iter().map(|datagram| open(&mut datagram.clone(), |run| run(&mut to)));
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

struct Hand<'w>(&'w World);

impl Hand<'_> {
    fn open(&self, burst: &mut Burst) {
        each(burst, |sealed| open(&mut sealed.to_vec(), shared(&self.0.opens)).expect("a packet"));
    }
}

impl Way<Frames> for Hand<'_> {
    type Error = Infallible;

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn stage(&mut self, frames: &mut Frames) -> Result<Came, Infallible> {
        let Some(datagrams) = locked(&self.0.coming).pop() else { return Ok(Came::default()) };
        datagrams.iter().for_each(|datagram| frames.burst.push(datagram, FrameMeta::default()));
        frames.is_closed = true;
        Ok(Came { frames: BURST, is_more: true })
    }

    fn refuse(&mut self) -> Result<Came, Infallible> {
        Ok(Came::default())
    }

    fn work(&mut self, frames: &mut Frames) {
        if std::mem::take(&mut frames.is_closed) {
            self.open(&mut frames.burst);
        }
        each(&mut frames.burst, |packet| seal(packet, shared(&self.0.seals)));
    }

    fn late(&mut self, _: Frames) {
        panic!("there is time");
    }

    fn release(&mut self, frames: &mut Frames) -> Result<(), Infallible> {
        let all = frames.leaving().iter().map(|frame| frame.bytes.to_vec());
        locked(&self.0.left).extend(all);
        Ok(())
    }
}

fn through(workers: usize) {
    let program = move || {
        let (world, to) = World::new();
        let work = |_| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                while !world.is_over() {
                    let Ok(_) = world.lane.turn(true, &mut Hand(&world));
                    thread::yield_now();
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

/// A worker has all of a burst, which it opens and seals.
#[test]
fn bursts_that_are_opened_and_sealed_side_by_side_leave_in_their_order() {
    through(3);
}
