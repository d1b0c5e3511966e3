//! Captures made of few addresses and ports, so that packets meet: conversations, errors, fragments, copies.

use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType, Timestamp};
use proptest::prelude::*;
use tempfile::TempDir;

/// Packets of one capture.
const EACH: usize = 10;
/// Packets of which something is cut off.
const SNAP: usize = 30;

/// A packet to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// One of four hosts on either side.
    pub(crate) client: u8,
    pub(crate) server: u8,
    pub(crate) port: u8,
    pub(crate) is_reply: bool,
    pub(crate) kind: u8,
    pub(crate) fragment: bool,
    pub(crate) cooked: bool,
    pub(crate) is_cut: bool,
    pub(crate) v6: bool,
    /// The packet's capture has no times, if it is the first in there.
    pub(crate) is_timeless: bool,
    /// Milliseconds after the packet before; negative ones run backwards.
    pub(crate) after: i16,
}

impl Packet {
    /// A datagram from one of many ports.
    pub(crate) fn udp(port: u8) -> Self {
        Self {
            client: 1,
            server: 1,
            port,
            is_reply: false,
            kind: 2,
            fragment: false,
            cooked: false,
            is_cut: false,
            v6: false,
            is_timeless: false,
            after: 1,
        }
    }

    fn addresses(self) -> Addresses {
        let (client, server) = (10 << 8 | u16::from(self.client), 20 << 8 | u16::from(self.server));
        let ends = if self.is_reply { [server, client] } else { [client, server] };
        if self.v6 {
            let [source, destination] = ends.map(|end| {
                let mut address = [0x20; 16];
                address[14..].copy_from_slice(&end.to_be_bytes());
                address
            });
            return Addresses::V6 { source, destination };
        }
        let [source, destination] = ends.map(|end| {
            let [net, host] = end.to_be_bytes();
            [net, 0, 0, host]
        });
        Addresses::V4 { source, destination }
    }

    fn message(self) -> Message {
        let (client, server) = (2000 + u16::from(self.port), 1000 + u16::from(self.port % 4));
        let [source, destination] = if self.is_reply { [server, client] } else { [client, server] };
        match self.kind {
            0 => Message::tcp(source, destination, Flags::SYN),
            1 => Message::tcp(source, destination, Flags::ACK),
            2 => Message::udp(source, destination),
            3 => Message::Icmp { kind: 8, code: 0, id: source, sequence: 1 },
            4 => Message::tcp(source, destination, Flags::SYN.union(Flags::ACK)),
            _ => Message::tcp(source, destination, Flags::RST),
        }
    }

    fn frame(self) -> Vec<u8> {
        let mut craft = Craft::new(self.addresses(), self.message());
        if self.kind == 6 && !self.v6 {
            // An error about a datagram that went the other way.
            let quoted = Craft {
                ethernet: None,
                ..Craft::new(Self { is_reply: !self.is_reply, ..self }.addresses(), {
                    Self { kind: 2, is_reply: !self.is_reply, ..self }.message()
                })
            };
            let header = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted.frame()].concat();
            craft.message = Message::Other { protocol: 1, header };
        }
        if self.fragment {
            craft.payload_len = 24;
            let offset = if self.port.is_multiple_of(2) { 0 } else { 32 };
            craft.fragment = Some(Fragment { offset, more: offset == 0 });
            craft.id = 7;
        }
        if self.cooked {
            craft.ethernet = None;
            let outgoing = if self.is_reply { 4 } else { 0 };
            let ethertype: [u8; 2] = if self.v6 { [0x86, 0xdd] } else { [8, 0] };
            let cooked = [&[0, outgoing, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &ethertype];
            return [cooked.concat(), craft.frame()].concat();
        }
        craft.frame()
    }
}

/// Up to 250 packets.
pub(crate) fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let odd = proptest::bool::weighted;
    let ends = (0u8..4, 0u8..4, 0u8..6, any::<bool>());
    let packet = move |fragments: f64, cooked: f64| {
        (
            (ends.clone(), 0u8..7, odd(fragments), odd(cooked)),
            (odd(0.03), odd(0.05), odd(0.1), -3i16..2000),
        )
            .prop_map(
                |((ends, kind, fragment, cooked), (is_cut, v6, is_timeless, after))| {
                    let (client, server, port, is_reply) = ends;
                    Packet {
                        client,
                        server,
                        port,
                        is_reply,
                        kind,
                        fragment,
                        cooked,
                        is_cut,
                        v6,
                        is_timeless,
                        after,
                    }
                },
            )
    };
    // Most captures hold nothing that makes one worker do it all.
    let captures =
        prop_oneof![4 => Just((0.0, 0.0)), 1 => Just((0.05, 0.0)), 1 => Just((0.0, 0.2))];
    captures.prop_flat_map(move |(fragments, cooked)| {
        proptest::collection::vec(packet(fragments, cooked), 0..250)
    })
}

/// Captures in a directory that goes with them.
pub(crate) struct Made {
    pub(crate) dir: TempDir,
    pub(crate) captures: Vec<String>,
}

impl Made {
    pub(crate) fn new(packets: &[Packet]) -> Self {
        let dir = TempDir::new().unwrap();
        let mut now = 1_795_255_200_000_000_000;
        let captures = packets.chunks(EACH).enumerate().map(|(index, packets)| {
            let path = dir.path().join(format!("{index}.pcapng"));
            let capture = match packets.first() {
                Some(first) if first.is_timeless => timeless(packets),
                _ => capture(packets, &mut now),
            };
            std::fs::write(&path, capture).unwrap();
            path.display().to_string()
        });
        let captures = captures.collect();
        Self { dir, captures }
    }
}

/// A pcapng of simple packet blocks, which have no time: one interface, of Ethernet.
fn timeless(packets: &[Packet]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        [&kind.to_le_bytes(), &length.to_le_bytes(), body, &padding, &length.to_le_bytes()].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut bytes = [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 0, 0])].concat();
    for packet in packets {
        let frame = Packet { cooked: false, ..*packet }.frame();
        let body = [&(frame.len() as u32).to_le_bytes()[..], &frame].concat();
        bytes.extend(block(3, &body));
    }
    bytes
}

fn capture(packets: &[Packet], now: &mut i64) -> Vec<u8> {
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    for (name, link_type) in [("lan0", LinkType::ETHERNET), ("any", LinkType::LINUX_SLL)] {
        let name = Some(name.to_owned());
        writer.add_interface(&Interface { name, link_type, snaplen: 0 }).unwrap();
    }
    for packet in packets {
        *now += i64::from(packet.after) * 1_000_000;
        let mut bytes = packet.frame();
        let wire_length = bytes.len() as u32;
        bytes.truncate(if packet.is_cut { SNAP } else { usize::MAX });
        let timestamp = Some(Timestamp::from_nanos(*now));
        let meta = FrameMeta { timestamp, wire_length, ..FrameMeta::default() };
        writer.write(u32::from(packet.cooked), Frame { bytes: &bytes, meta: &meta }, None).unwrap();
    }
    writer.finish().unwrap()
}
