//! [`Fragments`]: where frames are steered by ports, the fragments of a packet follow the first one, which alone has
//! ports.
//!
//! Contract: one worker, its keeper, sees all fragments of a packet, by source, destination, identification and
//! protocol. Fragments that come before the first are held, as copies; the first releases them, in the order in which
//! they came. Nothing is reassembled here: their owner does that. At most [`MOST_PACKETS`] packets and [`MOST_BYTES`]
//! are known, none longer than [`LIFETIME`]; the oldest make room, and their held fragments are dropped.
//!
//! Source: RFC 791 and RFC 8200 (section 4.5) for what fragments of a packet have in common; `ipfrag_time` and
//! `ipfrag_high_thresh` of Linux for the bounds.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use conntrack::Tuple;
use packet::ipv6_ext::{self, Find};
use packet::{L3, Packet, Read};

use crate::forward::handover_frame::HandoverFrame;
use dataplane::is_fragment;

/// Packets whose owner is known, or waited for.
const MOST_PACKETS: usize = 4096;

/// Bytes that are held, at most.
const MOST_BYTES: usize = 4 << 20;

/// How long a packet is known, in nanoseconds.
const LIFETIME: u64 = 30_000_000_000;

/// What identifies a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    id: Id,
    is_first: bool,
}

/// The identity of a packet's fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Id {
    /// Source and destination; an IPv4 address fills the first bytes, the others are zeros.
    addresses: [u8; 32],
    number: u32,
    protocol: u8,
    is_v6: bool,
}

/// Where a fragment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goes {
    /// To this worker, after the frames in [`Fragments::released`].
    To(usize),
    /// Nowhere before the first one has come: [`Fragments::hold`] keeps it.
    Nowhere,
}

/// What is known of a packet: its owner, or its held fragments.
#[derive(Debug)]
enum Known {
    Owner(usize),
    /// The first fragment has not come yet.
    Held(Vec<HandoverFrame>),
}

/// Packets in fragments.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    packets: HashMap<Id, Known>,
    /// The oldest first, with the time at which each is forgotten.
    order: VecDeque<(u64, Id)>,
    /// Bytes held.
    bytes: usize,
    /// Frames that were held until now, with their owners.
    pub(crate) released: Vec<(usize, HandoverFrame)>,
    /// Frames that were held for too long.
    pub(crate) dropped: Vec<HandoverFrame>,
}

impl Piece {
    /// `None` for a whole packet, and for a fragment that cannot be identified.
    pub(crate) fn of(packet: &Packet<'_>) -> Option<Self> {
        if !is_fragment(packet) {
            return None;
        }
        let network = packet.headers().network;
        let mut addresses = [0; 32];
        match packet.headers().l3 {
            L3::Ipv4 { .. } => {
                let Read::Known(header) = packet.net::<20>(0) else { return None };
                addresses[..8].copy_from_slice(&header[12..]);
                let number = u32::from(u16::from_be_bytes([header[4], header[5]]));
                let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
                let id = Id { addresses, number, protocol: header[9], is_v6: false };
                Some(Self { id, is_first })
            }
            L3::Ipv6 => {
                let find = ipv6_ext::find(packet, network, Some(ipv6_ext::FRAGMENT));
                let Find::Found { offset, .. } = find else { return None };
                let Read::Known(header) = packet.read::<8>(offset) else { return None };
                let Read::Known(both) = packet.net::<32>(8) else { return None };
                addresses.copy_from_slice(&both);
                let [protocol, _, high, low, number @ ..] = header;
                let is_first = u16::from_be_bytes([high, low]) & 0xfff8 == 0;
                let number = u32::from_be_bytes(number);
                let id = Id { addresses, number, protocol, is_v6: true };
                Some(Self { id, is_first })
            }
            _ => None,
        }
    }

    /// The packet's addresses, as the tuple of a packet without ports.
    pub(crate) fn tuple(&self) -> Tuple {
        let Id { addresses, protocol, is_v6, .. } = self.id;
        let [source, destination]: [IpAddr; 2] = if is_v6 {
            let (source, destination) = addresses.split_at(16);
            [source, destination].map(|half| {
                let mut octets = [0; 16];
                octets.copy_from_slice(half);
                octets.into()
            })
        } else {
            let [a, b, c, d, e, f, g, h, ..] = addresses;
            [[a, b, c, d], [e, f, g, h]].map(IpAddr::from)
        };
        Tuple::new(source, destination, protocol, [0; 2])
    }

    /// A number that all fragments of a packet share.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.id.hash(&mut hasher);
        hasher.finish()
    }
}

impl Fragments {
    /// Where a fragment goes that comes at `now`, in nanoseconds; `owner` is the owner of the packet where this is the
    /// first.
    pub(crate) fn place(&mut self, piece: Piece, now: u64, owner: impl FnOnce() -> usize) -> Goes {
        self.make_room(now);
        if piece.is_first {
            let owner = owner();
            let known = self.packets.insert(piece.id, Known::Owner(owner));
            match known {
                Some(Known::Held(frames)) => {
                    self.bytes -= frames.iter().map(HandoverFrame::len).sum::<usize>();
                    self.released.extend(frames.into_iter().map(|frame| (owner, frame)));
                }
                Some(Known::Owner(_)) => {}
                None => self.order.push_back((now.saturating_add(LIFETIME), piece.id)),
            }
            return Goes::To(owner);
        }
        match self.packets.get(&piece.id) {
            Some(Known::Owner(owner)) => Goes::To(*owner),
            _ => Goes::Nowhere,
        }
    }

    /// Holds a fragment for which [`Fragments::place`] said so at the same time.
    pub(crate) fn hold(&mut self, piece: Piece, now: u64, frame: HandoverFrame) {
        self.bytes += frame.len();
        let known = self.packets.entry(piece.id).or_insert_with(|| {
            self.order.push_back((now.saturating_add(LIFETIME), piece.id));
            Known::Held(Vec::new())
        });
        match known {
            Known::Held(frames) => frames.push(frame),
            Known::Owner(owner) => self.released.push((*owner, frame)),
        }
    }

    /// Drops all that is held.
    pub(crate) fn give_up(&mut self) {
        while self.forget_oldest() {}
    }

    fn make_room(&mut self, now: u64) {
        while self.order.front().is_some_and(|(until, _)| {
            *until <= now || self.order.len() >= MOST_PACKETS || self.bytes > MOST_BYTES
        }) {
            self.forget_oldest();
        }
    }

    /// Forgets the oldest packet; returns whether there was one.
    fn forget_oldest(&mut self) -> bool {
        let Some((_, id)) = self.order.pop_front() else { return false };
        if let Some(Known::Held(frames)) = self.packets.remove(&id) {
            self.bytes -= frames.iter().map(HandoverFrame::len).sum::<usize>();
            self.dropped.extend(frames);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::craft::{Addresses, Craft, Fragment, Message};
    use packet::{Checksums, Link};
    use pktio::Taken;

    fn piece(number: u32, is_first: bool) -> Piece {
        Piece { id: Id { addresses: [0; 32], number, protocol: 17, is_v6: false }, is_first }
    }

    fn frame(bytes: &[u8]) -> HandoverFrame {
        let taken = Taken::Lent { bytes, meta: pktio::FrameMeta::default() };
        HandoverFrame { wire: 0, from: 0, is_placed: true, frame: taken.into_buf() }
    }

    #[test]
    fn fragments_of_a_packet_have_one_name_and_those_of_no_other() {
        for [from, to, other] in
            [["10.0.0.1", "10.0.0.2", "10.0.0.3"], ["fd00::1", "fd00::2", "fd00::3"]]
        {
            let piece = |to: &str, id, offset, more| {
                let addresses = Addresses::new(from.parse().unwrap(), to.parse().unwrap()).unwrap();
                let whole = Craft::new(addresses, Message::udp(4000, 53));
                let fragment = (offset > 0 || more).then_some(Fragment { offset, more });
                let mut bytes = Craft { id, payload_len: 32, fragment, ..whole }.frame();
                let len = bytes.len();
                Piece::of(&Packet::parse(&mut bytes, len, Link::Wire, Checksums::Ignore))
            };
            let first = piece(to, 7, 0, true).unwrap();
            let last = piece(to, 7, 40, false).unwrap();
            assert_eq!((first.is_first, last.is_first, first.id == last.id), (true, false, true));
            assert_eq!(first.tuple(), last.tuple());
            assert_eq!(first.tuple().source(), from.parse::<IpAddr>().unwrap());
            assert_ne!(piece(to, 8, 40, false).unwrap().id, last.id);
            assert_ne!(piece(other, 7, 40, false).unwrap().id, last.id);
            assert_eq!(piece(to, 7, 0, false), None, "it is whole");
        }
    }

    fn released(fragments: &mut Fragments) -> Vec<(usize, u8)> {
        let released = fragments.released.drain(..);
        released.map(|(owner, handed)| (owner, handed.frame.bytes()[0])).collect()
    }

    #[test]
    fn the_first_fragment_tells_where_all_go_and_those_before_it_keep_their_order() {
        let mut fragments = Fragments::default();
        for byte in [1, 2] {
            assert_eq!(fragments.place(piece(7, false), 1, || unreachable!()), Goes::Nowhere);
            fragments.hold(piece(7, false), 1, frame(&[byte; 8]));
        }
        assert_eq!(fragments.place(piece(8, true), 1, || 1), Goes::To(1));
        assert!(released(&mut fragments).is_empty(), "another packet's");
        assert_eq!(fragments.place(piece(7, true), 1, || 3), Goes::To(3));
        assert_eq!(released(&mut fragments), [(3, 1), (3, 2)]);
        assert_eq!(fragments.place(piece(7, false), 2, || unreachable!()), Goes::To(3));
        assert_eq!((fragments.bytes, fragments.dropped.len()), (0, 0));
        assert_eq!(fragments.place(piece(7, true), 2, || 4), Goes::To(4), "a number used again");
    }

    #[test]
    fn what_is_held_is_bounded_in_time_bytes_and_packets() {
        let mut fragments = Fragments::default();
        fragments.hold(piece(1, false), 5, frame(&[1]));
        fragments.place(piece(2, false), LIFETIME + 4, || unreachable!());
        assert_eq!(fragments.dropped.len(), 0);
        fragments.place(piece(2, false), LIFETIME + 5, || unreachable!());
        assert_eq!((fragments.dropped.len(), fragments.packets.len()), (1, 0));

        let long = vec![0; 1 << 20];
        for number in 0..20 {
            fragments.place(piece(number, false), 1, || unreachable!());
            fragments.hold(piece(number, false), 1, frame(&long));
            assert!(fragments.bytes <= MOST_BYTES + long.len());
        }
        for number in 0..3 * MOST_PACKETS as u32 {
            fragments.place(piece(number, true), 1, || 0);
            assert!(fragments.packets.len() <= MOST_PACKETS);
            assert_eq!(fragments.packets.len(), fragments.order.len());
        }
        fragments.give_up();
        assert_eq!((fragments.bytes, fragments.packets.len()), (0, 0));
    }
}
