//! Real frames in 8,192 buffers as a driver has them, received round and round: TCP, UDP with and without a checksum,
//! ICMP, IPv6, ARP, some of them tagged.
//!
//! Contract: one thread. [`Frames::poll`] takes back the burst of before: what was dropped is received anew, with the
//! bytes that it had at first, what passed comes round as it left. Java reads and writes frames by the addresses of
//! [`Frames::descriptors`], only while no function of this library runs.

use packet::checksum::{add, update};
use packet::craft::{Addresses, Craft, Ethernet, Message, arp_frame};
use packet::tcp::Flags;
use packet::udp;

use crate::nat::{self, DROP, Descriptor, NONE, PASS};
use crate::pool::{FNV_OFFSET, fnv};

/// The most frames of a burst.
pub const BURST: usize = 256;
/// How many buffers there are.
pub const COUNT: usize = 8192;
const HEADROOM: usize = 128;
/// An odd number of cache lines, so that the frames' first lines share no set.
const STRIDE: usize = 2240;
const LINE: usize = 64;
/// Bytes that the job may change lie within these.
const HEAD: usize = 64;

/// Buffers, and the burst that is with Java.
#[derive(Debug)]
pub struct Frames {
    memory: Vec<u8>,
    start: usize,
    /// What each frame begins with when it is received.
    heads: Vec<[u8; HEAD]>,
    /// The descriptor of each frame, ready to be handed out.
    ready: Vec<Descriptor>,
    descriptors: Box<[Descriptor; BURST]>,
    waiting: usize,
    next: usize,
    /// Frames passed, and dropped.
    counts: [u64; 2],
}

impl Frames {
    /// All buffers with the same frames every time.
    #[must_use]
    pub fn new() -> Self {
        let memory = vec![0; COUNT * STRIDE + LINE];
        let start = memory.as_ptr().align_offset(LINE);
        let descriptors = Box::new([Descriptor::default(); BURST]);
        let (heads, ready) = (Vec::with_capacity(COUNT), Vec::with_capacity(COUNT));
        let mut frames =
            Self { memory, start, heads, ready, descriptors, waiting: 0, next: 0, counts: [0; 2] };
        let mut random = Random::new(2);
        for number in 0..COUNT {
            frames.add(number, &made(&mut random));
        }
        frames
    }

    fn add(&mut self, number: usize, made: &Made) {
        let at = self.at(number);
        let room = &mut self.memory[at..at + STRIDE - HEADROOM];
        room[..made.bytes.len()].copy_from_slice(&made.bytes);
        let mut head = [0; HEAD];
        head.copy_from_slice(&room[..HEAD]);
        self.heads.push(head);
        let length = made.bytes.len() as u32;
        self.ready.push(Descriptor {
            address: room.as_mut_ptr() as u64,
            length,
            wire_length: length,
            headroom: HEADROOM as u16,
            tailroom: (room.len() - made.bytes.len()) as u16,
            number: number as u64,
            ..made.descriptor
        });
    }

    fn at(&self, number: usize) -> usize {
        self.start + number * STRIDE + HEADROOM
    }

    /// Takes the last burst back and hands out up to `most` frames; how many.
    #[inline]
    pub fn poll(&mut self, most: usize) -> usize {
        for index in 0..self.waiting {
            let Descriptor { verdict, number, .. } = self.descriptors[index];
            self.counts[usize::from(verdict == DROP)] += 1;
            if verdict != PASS {
                let number = number as usize % COUNT;
                let at = self.at(number);
                self.memory[at..at + HEAD].copy_from_slice(&self.heads[number]);
            }
        }
        self.waiting = most.min(BURST);
        for descriptor in &mut self.descriptors[..self.waiting] {
            *descriptor = self.ready[self.next];
            self.next = (self.next + 1) % COUNT;
        }
        self.waiting
    }

    /// Where [`Frames::poll`] leaves descriptors.
    pub fn descriptors(&mut self) -> *mut Descriptor {
        self.descriptors.as_mut_ptr()
    }

    /// The job in Rust, on so many frames in such bursts; ends with an empty burst, as every way to do it.
    pub fn floor(&mut self, packets: u64, burst: usize) {
        let mut left = packets;
        while left > 0 {
            let polled = self.poll(burst.min(usize::try_from(left).unwrap_or(BURST)));
            for descriptor in &mut self.descriptors[..polled] {
                let number = descriptor.number as usize % COUNT;
                let at = self.start + number * STRIDE + HEADROOM;
                let frame = &mut self.memory[at..at + descriptor.length as usize];
                descriptor.verdict = nat::handle(descriptor, frame);
            }
            left -= polled as u64;
        }
        self.poll(0);
    }

    /// The address of the first buffer, and the bytes of all.
    pub fn whole(&mut self) -> (*mut u8, usize) {
        (self.memory[self.start..].as_mut_ptr(), COUNT * STRIDE)
    }

    /// FNV-1a of every frame, and of how many passed and were dropped.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let frames = self.ready.iter().enumerate().flat_map(|(number, descriptor)| {
            let at = self.at(number);
            &self.memory[at..at + descriptor.length as usize]
        });
        let hash = frames.fold(FNV_OFFSET, |hash, byte| fnv(hash, *byte));
        let counts = self.counts.iter().flat_map(|count| count.to_le_bytes());
        counts.fold(hash, fnv)
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self::new()
    }
}

/// A frame, and what is known of it but for its place.
struct Made {
    bytes: Vec<u8>,
    descriptor: Descriptor,
}

fn made(random: &mut Random) -> Made {
    let vlan = (random.below(8) == 0).then_some(5);
    let ethernet = Ethernet { vlan, ..Ethernet::default() };
    let network = if vlan.is_some() { 18 } else { 14 };
    let kind = random.below(16);
    if kind == 0 {
        let bytes = arp_frame(ethernet, 1, [10, 0, 0, 1], [10, 0, 0, 2]);
        let descriptor = Descriptor {
            network: NONE,
            transport: NONE,
            ether_type: 0x0806,
            protocol: 255,
            ..Descriptor::default()
        };
        return Made { bytes, descriptor };
    }
    let (message, protocol) = message(kind, random);
    let mut craft = Craft::new(addresses(kind, random), message);
    craft.ethernet = Some(ethernet);
    craft.ttl = 32 + random.below(200) as u8;
    craft.payload_len = [0, 18, 100, 500, 1400][random.below(5)];
    let is_v6 = kind == 1;
    let transport = network + if is_v6 { 40 } else { 20 };
    let ether_type = if is_v6 { 0x86dd } else { 0x0800 };
    let descriptor =
        Descriptor { network, transport, ether_type, protocol, ..Descriptor::default() };
    let mut bytes = craft.frame();
    let at = usize::from(transport) + udp::CHECKSUM.start;
    match kind {
        3 => bytes[at..at + 2].fill(0),
        4 if craft.payload_len > 1 => come_to_zero(&mut bytes, &descriptor, at),
        _ => {}
    }
    Made { bytes, descriptor }
}

/// Changes the first word of a datagram's payload so that the job computes 0 as its checksum, which is sent as 0xffff.
fn come_to_zero(bytes: &mut [u8], descriptor: &Descriptor, checksum: usize) {
    let payload = checksum + 2;
    let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut rewritten = bytes.to_vec();
    nat::handle(descriptor, &mut rewritten);
    let (old, before) = (word(bytes, payload), word(bytes, checksum));
    let new = add(old, word(&rewritten, checksum));
    bytes[payload..payload + 2].copy_from_slice(&new.to_be_bytes());
    bytes[checksum..payload].copy_from_slice(&update(before, old, new).to_be_bytes());
}

/// One in sixteen is ICMP, five are UDP (one over IPv6, one without a checksum), the others TCP.
fn message(kind: usize, random: &mut Random) -> (Message, u8) {
    let source = 1024 + random.below(60_000) as u16;
    let destination = [23, 53, 80, 80, 137, 443, 443, 443, 8080, 51820][random.below(10)];
    match kind {
        2 => (Message::Icmp { kind: 8, code: 0, id: source, sequence: 1 }, 1),
        1 | 3..=6 => (Message::udp(source, destination), 17),
        _ => (Message::tcp(source, destination, Flags::ACK), 6),
    }
}

fn addresses(kind: usize, random: &mut Random) -> Addresses {
    let [a, b, c, d] = (random.word() as u32).to_be_bytes();
    if kind == 1 {
        let of = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        return Addresses::V6 { source: of(a), destination: of(b) };
    }
    let network = if random.below(16) == 0 { [10, 66] } else { [198, 51] };
    Addresses::V4 { source: [10, 0, a, b], destination: [network[0], network[1], c, d] }
}

/// The same noise every time (splitmix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Noise of this number.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.word() >> 32) as usize % end
    }
}

#[cfg(test)]
mod tests;
