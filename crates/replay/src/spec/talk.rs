//! [`Talk`]: the TCP numbers that packets of a conversation have where nobody gives them.
//!
//! Contract: they are for tracking alone. To rules, numbers that are not given are not known. Memory is bounded:
//! each of three maps keeps at most twice [`MOST`] entries.

use super::described::Spec;
use super::lack::Lack;
use dataplane::{Arrival, Config};
use packet::tcp::{self, Flags};
use packet::{Checksums, FlowKey, L4, Link, Packet};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::SocketAddr;

/// Packets of a conversation, each as a frame and with its arrival: its number from 1, and its time. TCP numbers that
/// are not given follow from the packets before.
pub fn arrivals<'s>(
    specs: impl IntoIterator<Item = &'s Spec>,
    config: &Config,
) -> impl Iterator<Item = (&'s Spec, Vec<u8>, Arrival<'s>)> {
    let (mut time, mut talk) = (0_u64, Talk::default());
    (1..).zip(specs).map(move |(number, spec)| {
        time = time.saturating_add(spec.after);
        (spec, talk.next(spec), spec.arrival(number, time, config))
    })
}

/// Ends of connections after which the older ones are forgotten.
const MOST: usize = 1 << 17;

/// Bytes back that are sent again, at most: beyond, numbers count from elsewhere.
const BACK: u32 = 1 << 20;

/// The numbers with which each end of a connection goes on.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    packets: u64,
    by_ends: Latest<(SocketAddr, SocketAddr)>,
    by_source: Latest<SocketAddr>,
    by_destination: Latest<SocketAddr>,
}

/// What a packet said.
#[derive(Debug, Clone, Copy)]
struct Said {
    /// Place among all packets.
    number: u64,
    /// The sequence number after it.
    next: u32,
    /// The sequence number that it expects of the other end.
    expects: Option<u32>,
    /// The number after it as lines print them, which may count from another one.
    printed: Option<u32>,
}

/// The latest packet for each key; packets of keys that were not used for long are forgotten.
#[derive(Debug)]
struct Latest<K> {
    young: HashMap<K, Said>,
    old: HashMap<K, Said>,
}

impl<K> Default for Latest<K> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Hash + Eq> Latest<K> {
    fn get(&self, key: &K) -> Option<Said> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    fn insert(&mut self, key: K, said: Said) {
        if self.young.len() == MOST && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, said);
    }
}

impl Talk {
    /// The frame of the next packet.
    pub(crate) fn next(&mut self, spec: &Spec) -> Vec<u8> {
        self.next_printed(spec, None)
    }

    /// The frame of the next packet, of which a line prints where it begins and ends: less than before is sent again.
    pub(crate) fn next_printed(&mut self, spec: &Spec, printed: Option<[u32; 2]>) -> Vec<u8> {
        let mut frame = spec.frame.clone();
        let mut bytes = frame.clone();
        let packet = Packet::parse(&mut bytes, spec.wire_len, Link::Ethernet, Checksums::Ignore);
        let (L4::Upper(upper), Some(key)) = (packet.headers().l4, FlowKey::of(&packet).known())
        else {
            return frame;
        };
        let header = packet.upper::<{ tcp::MIN_HEADER_LEN }>(&upper, 0).known();
        let Some(header) = header.filter(|_| key.protocol == tcp::PROTOCOL) else { return frame };
        let Some(header) = tcp::Header::new_checked(&header) else { return frame };
        let from = SocketAddr::new(key.source, key.source_port);
        let to = SocketAddr::new(key.destination, key.destination_port);
        let mut put = |at: usize, number: u32| {
            if let Some(place) = frame.get_mut(upper.offset + at..upper.offset + at + 4) {
                place.copy_from_slice(&number.to_be_bytes());
            }
            number
        };
        let other = self.answered(from, to);
        // An end that nobody heard yet goes on with what the other one expects.
        let before = self.by_ends.get(&(from, to));
        let own = before.map(|said| said.next).or_else(|| other?.expects);
        // A SYN that is sent again says the same.
        let is_open = !header.flags().contains(Flags::SYN) && spec.lacks.contains(&Lack::Seq);
        let printed = printed.filter(|_| is_open);
        let highest = before.and_then(|said| said.printed).filter(|_| is_open);
        let back = printed.zip(highest).map_or(0, |([start, _], highest)| back(start, highest));
        let sequence = match own.filter(|_| is_open) {
            Some(next) => put(tcp::SEQUENCE.start, next.wrapping_sub(back)),
            None => header.sequence(),
        };
        let is_answer = header.flags().contains(Flags::ACK);
        let expects = match other.filter(|_| is_answer && spec.lacks.contains(&Lack::Ack)) {
            Some(other) => put(tcp::ACKNOWLEDGEMENT.start, other.next),
            None => header.acknowledgement(),
        };
        let count = |flag| u32::from(header.flags().contains(flag));
        let counted = count(Flags::SYN) + count(Flags::FIN);
        let start = upper.offset + header.header_len();
        let payload = packet.headers().end.saturating_sub(start) as u32;
        let next = sequence.wrapping_add(payload.wrapping_add(counted));
        let end = printed.map(|[_, end]| end.wrapping_add(counted)).or(highest);
        // What is sent again may end before what was sent.
        let is_within = |own: &u32| back > 0 && own.wrapping_sub(next) <= BACK;
        let (next, printed) = own.filter(is_within).map_or((next, end), |own| (own, highest));
        self.packets += 1;
        let expects = is_answer.then_some(expects);
        let said = Said { number: self.packets, next, expects, printed };
        self.by_ends.insert((from, to), said);
        self.by_source.insert(from, said);
        self.by_destination.insert(to, said);
        frame
    }

    /// The last packet of the other end, which may have another address by now.
    fn answered(&self, from: SocketAddr, to: SocketAddr) -> Option<Said> {
        let by_one = || [self.by_source.get(&to), self.by_destination.get(&from)];
        let by_one = || by_one().into_iter().flatten().max_by_key(|said| said.number);
        self.by_ends.get(&(to, from)).or_else(by_one)
    }
}

/// How far a segment begins before the highest number so far.
fn back(start: u32, highest: u32) -> u32 {
    let back = highest.wrapping_sub(start);
    if back > BACK { 0 } else { back }
}
