//! Packets for the inside of a tunnel.

use std::net::IpAddr;

use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, parse, tcp, udp};
use pktio::{Burst, ChecksumState, LiveMeta, Pool, SegmentKind, Segments};
use proptest::prelude::*;

use super::ends::{MTU, inside, raw};

/// A packet of one flow: who it is of, its kind, and how long it is at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) flow: u8,
    pub(super) kind: Kind,
    pub(super) is_v6: bool,
    pub(super) payload: usize,
    pub(super) memory: Memory,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Tcp,
    Udp,
    Icmp,
    First,
    Later,
    /// A packet with nothing but the header of IP.
    Bare,
}

/// Where the bytes of a frame lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Memory {
    /// Bytes that lie in the burst.
    Lent,
    /// Bytes in a chunk with room around them.
    Roomy,
    /// Bytes in a chunk without any room before them.
    Tight,
}

pub(super) fn spec() -> impl Strategy<Value = Spec> {
    use Kind::{Bare, First, Icmp, Later, Tcp, Udp};
    let kind = prop::sample::select(vec![Tcp, Tcp, Tcp, Udp, Udp, Icmp, First, Later, Bare]);
    let memory = prop::sample::select(vec![Memory::Lent, Memory::Roomy, Memory::Tight]);
    // Runs of packets of one length are what is joined.
    let payload = prop_oneof![Just(1_000_usize), Just(0), 0..2_000_usize];
    (0..3_u8, kind, any::<bool>(), payload, memory).prop_map(
        |(flow, kind, is_v6, payload, memory)| Spec { flow, kind, is_v6, payload, memory },
    )
}

/// The next identifications and sequence numbers of packets.
#[derive(Default)]
pub(super) struct Numbers {
    id: u32,
    sequences: std::collections::HashMap<(u8, bool), u32>,
}

impl Numbers {
    /// A packet from the inside of `from` to that of `to`, no longer than a tunnel takes.
    pub(super) fn packet(&mut self, (from, to): (u8, u8), spec: Spec) -> Vec<u8> {
        let addresses = between(from, to, spec.flow, spec.is_v6);
        self.id += 1;
        let port = 4_000 + u16::from(spec.flow);
        let sequence = self.sequences.entry((spec.flow, spec.is_v6)).or_default();
        let message = match spec.kind {
            Kind::Tcp => Message::Tcp {
                source_port: port,
                destination_port: 80,
                flags: Flags::ACK,
                sequence: *sequence,
                acknowledgement: 7,
                window: 500,
            },
            Kind::Udp | Kind::First | Kind::Later => Message::udp(port, 53),
            Kind::Icmp => Message::Icmp { kind: 8, code: 0, id: port, sequence: self.id as u16 },
            Kind::Bare => Message::Other { protocol: 253, header: Vec::new() },
        };
        let fragment = match spec.kind {
            Kind::First => Some(Fragment { offset: 0, more: true }),
            Kind::Later => Some(Fragment { offset: 800, more: false }),
            _ => None,
        };
        let mut craft =
            Craft { ethernet: None, id: self.id, fragment, ..Craft::new(addresses, message) };
        let room = usize::from(MTU) - craft.header_len();
        craft.payload_len = match spec.kind {
            Kind::Bare => 0,
            _ => spec.payload.min(room),
        };
        if spec.kind == Kind::Tcp {
            *sequence = sequence.wrapping_add(craft.payload_len as u32);
        }
        craft.frame()
    }
}

fn between(from: u8, to: u8, host: u8, is_v6: bool) -> Addresses {
    let [source, destination] = [from, to].map(|of| inside(of, host, is_v6));
    Addresses::new(source, destination).expect("of one family")
}

/// An echo request from the inside of `from` to that of `to`.
pub(super) fn ping(from: u8, to: u8, sequence: u16) -> Vec<u8> {
    let message = Message::Icmp { kind: 8, code: 0, id: 1, sequence };
    Craft { ethernet: None, payload_len: 56, ..Craft::new(between(from, to, 9, false), message) }
        .frame()
}

/// A UDP datagram of `len` bytes of payload.
pub(super) fn datagram(from: u8, to: u8, is_v6: bool, len: usize) -> Craft {
    let message = Message::udp(1_111, 2_222);
    Craft { ethernet: None, payload_len: len, ..Craft::new(between(from, to, 9, is_v6), message) }
}

/// A segment of TCP.
pub(super) fn segment(from: u8, to: u8, is_v6: bool, len: usize) -> Craft {
    let message = Message::tcp(1_111, 80, Flags::ACK);
    Craft { ethernet: None, payload_len: len, ..Craft::new(between(from, to, 9, is_v6), message) }
}

/// Between these addresses.
pub(super) fn from_to(source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let addresses = Addresses::new(source, destination).expect("of one family");
    Craft { ethernet: None, payload_len: 30, ..Craft::new(addresses, Message::udp(1, 2)) }.frame()
}

/// A frame that stands for several, unfinished as the kernel hands it over.
pub(super) fn superframe(craft: &Craft, size: u16) -> (Vec<u8>, LiveMeta) {
    let bytes = craft.frame();
    let is_v6 = matches!(craft.addresses, Addresses::V6 { .. });
    let (kind, field) = match (&craft.message, is_v6) {
        (Message::Tcp { .. }, false) => (SegmentKind::TcpV4, tcp::CHECKSUM),
        (Message::Tcp { .. }, true) => (SegmentKind::TcpV6, tcp::CHECKSUM),
        _ => (SegmentKind::UdpDatagrams, udp::CHECKSUM),
    };
    let packet::L4::Upper(upper) = parse(Link::Raw, &bytes, bytes.len(), Checksums::Ignore).l4
    else {
        panic!("no upper layer")
    };
    let checksum =
        ChecksumState::Unfinished { start: upper.offset as u16, offset: field.start as u16 };
    let segments = Some(Segments { size, kind });
    (bytes, LiveMeta { checksum, segments, ..LiveMeta::default() })
}

/// A burst of these, which lie where it is said.
pub(super) fn burst<'f>(
    frames: impl IntoIterator<Item = (&'f [u8], Memory, LiveMeta)>,
    roomy: &Pool,
    tight: &Pool,
) -> Burst {
    let mut burst = Burst::new();
    fill(&mut burst, frames, roomy, tight);
    burst
}

/// Fills an existing burst.
pub(super) fn fill<'f>(
    burst: &mut Burst,
    frames: impl IntoIterator<Item = (&'f [u8], Memory, LiveMeta)>,
    roomy: &Pool,
    tight: &Pool,
) {
    for (bytes, memory, live) in frames {
        let pool = match memory {
            Memory::Lent => {
                burst.push(bytes, raw(bytes.len()));
                continue;
            }
            Memory::Roomy => roomy,
            Memory::Tight => tight,
        };
        let mut frame = pool.take().expect("a chunk");
        assert!(frame.extend(bytes));
        frame.meta = raw(bytes.len());
        *frame.live_mut() = live;
        burst.push_frame(frame);
    }
}
