//! What libFuzzer makes up, read as steps of a hostile peer and of programs of the host.
//!
//! | first byte, mod 8 | then | step |
//! |---|---|---|
//! | 0 | length 2, text | a datagram: the text, sealed |
//! | 1 | packet | a datagram: the packet, sealed |
//! | 2 | back 1 | a datagram that was sealed before |
//! | 3 | back 1, length 2 or place 2 and bits 1, by the next bit | an earlier datagram that was cut, or damaged |
//! | 4 | kind 1, or length 1 and bytes, by the next bit | a handshake message of noise, or noise |
//! | 5 | segment 2 (0: of the first), TOS 1 | the datagrams so far are a message |
//! | 6 | segment 2 (0: it stands for one), packet, or length 2 and bytes by the next bit | a frame of the host's |
//! | 7 | bytes of the longest packet 2 | the path is narrower |
//!
//! A packet is: flow and kind 1, length of payload 2, TOS 1, flags of TCP 1, options 1 and as many words, changes 1 and for
//! each a place 2 and a byte. What is left at the end is a message, too.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;

use packet::Superframe;
use packet::{tcp, udp};

use super::super::fit::headers_of;
use super::outbound::Given;
use super::settings::inside;
use super::{Arena, HOSTILE, Message, Piece, VICTIM};

/// Messages that are received at once, at most, as by a port.
const BURST: usize = 16;
/// Inputs, and nanoseconds, that one session is for.
const INPUTS: u32 = 2_000;
const AGE: u64 = 60_000_000_000;
/// Bytes of the longest payload of a packet, and of the longest text.
const LONGEST: u16 = 2_000;
const TEXT: u16 = 9_000;
/// Bytes of the longest frame of the host's.
const FRAME: u16 = 64_000;

thread_local! {
    static ARENA: RefCell<Option<(Arena, u32)>> = const { RefCell::new(None) };
}

/// Carries out the steps of an input, and checks that the tunnel goes on.
pub(crate) fn envelope(data: &[u8]) {
    ARENA.with_borrow_mut(|kept| {
        let is_old = |(arena, uses): &(Arena, u32)| *uses == INPUTS || arena.site.now() > AGE;
        // An arena that a panic left is not used again.
        let (mut arena, uses) = match kept.take().filter(|kept| !is_old(kept)) {
            Some(kept) => kept,
            None => (Arena::new(), 0),
        };
        let mut steps = Steps { left: data, id: 0, sequences: HashMap::new() };
        steps.run(&mut arena);
        arena.narrow(u16::MAX);
        let last = steps.packet_of(&[3, 0, 9, 0, 0, 0, 0]);
        arena.receives(&[Message { pieces: vec![Piece::Sealed(last)], ..Message::default() }]);
        arena.forget();
        *kept = Some((arena, uses + 1));
    });
}

struct Steps<'d> {
    left: &'d [u8],
    /// Identification of the next packet.
    id: u16,
    /// Sequence number of the next segment of each flow.
    sequences: HashMap<u8, u32>,
}

impl<'d> Steps<'d> {
    fn run(&mut self, arena: &mut Arena) {
        let (mut pieces, mut messages) = (Vec::new(), Vec::new());
        while !self.left.is_empty() {
            let kind = self.byte();
            let is_other = kind & 8 != 0;
            match kind % 8 {
                0 => {
                    let len = self.half() % TEXT;
                    pieces.push(Piece::Sealed(self.bytes(len)));
                }
                1 => pieces.push(Piece::Sealed(self.packet(HOSTILE, VICTIM, LONGEST))),
                2 => pieces.push(Piece::Again(self.byte())),
                3 if is_other => pieces.push(Piece::Turned(self.byte(), self.half(), self.byte())),
                3 => pieces.push(Piece::Cut(self.byte(), self.half())),
                4 if is_other => pieces.push(Piece::Handshake(self.byte(), kind & 16 != 0)),
                4 => {
                    let len = self.byte().into();
                    pieces.push(Piece::Noise(self.bytes(len)));
                }
                5 => {
                    let (segment, tos) = (self.half(), self.byte());
                    let segment = Some(segment).filter(|size| *size > 0);
                    messages.push(Message { pieces: std::mem::take(&mut pieces), segment, tos });
                }
                6 => {
                    let segment = Some(self.half()).filter(|size| *size > 0);
                    let bytes = if is_other {
                        let len = self.half() % TEXT;
                        self.bytes(len)
                    } else {
                        self.packet(VICTIM, HOSTILE, FRAME)
                    };
                    arena.sends(&Given { bytes, segment, is_roomy: kind & 16 != 0 });
                }
                _ => arena.narrow(self.half()),
            }
            if messages.len() == BURST {
                arena.receives(&std::mem::take(&mut messages));
            }
        }
        messages.push(Message { pieces, ..Message::default() });
        arena.receives(&messages);
    }

    /// The next byte; zeros after the last one.
    fn byte(&mut self) -> u8 {
        let Some((byte, left)) = self.left.split_first() else { return 0 };
        self.left = left;
        *byte
    }

    fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// The next `len` bytes, or all that are left.
    fn bytes(&mut self, len: u16) -> Vec<u8> {
        let (bytes, left) = self.left.split_at(self.left.len().min(len.into()));
        self.left = left;
        bytes.to_vec()
    }

    /// A packet described by `bytes` instead of the bytes that are left.
    fn packet_of(&mut self, bytes: &'d [u8]) -> Vec<u8> {
        self.left = bytes;
        self.packet(HOSTILE, VICTIM, LONGEST)
    }

    /// A packet between two insides whose lengths and checksums are right, except for changes.
    fn packet(&mut self, from: u8, to: u8, longest: u16) -> Vec<u8> {
        let (kind, len, tos, flags) =
            (self.byte(), self.half() % longest, self.byte(), self.byte());
        let (flow, is_v6, is_tcp) = (kind & 3, kind & 4 != 0, kind & 8 != 0);
        let words = u16::from(self.byte() % 11);
        let options = self.bytes(4 * words);
        let mut upper = vec![0x40 | flow, 0, 0, 80];
        if is_tcp {
            let sequence = self.sequences.entry(kind & 15).or_default();
            upper.extend(sequence.to_be_bytes());
            *sequence = sequence.wrapping_add(len.into());
            upper.extend([0, 0, 0, 7, 0, flags, 1, 0, 0, 0, 0, 0]);
            upper.extend(options);
            upper.resize(upper.len().next_multiple_of(4), 0);
            upper[tcp::DATA_OFFSET.start] = (upper.len() as u8 / 4) << 4;
        } else {
            upper.extend((udp::HEADER_LEN as u16 + len).to_be_bytes());
            upper.extend([0, 0]);
        }
        upper.resize(upper.len() + usize::from(len), kind);
        let protocol = if is_tcp { tcp::PROTOCOL } else { udp::PROTOCOL };
        let is_fixed = kind & 16 != 0;
        let mut packet = self.network((from, to, is_v6), (tos, is_fixed), (protocol, upper.len()));
        packet.extend(upper);
        let mut packet = finished(&packet);
        for _ in 0..self.byte() % 4 {
            let (at, byte) = (usize::from(self.half()) % packet.len(), self.byte());
            packet[at] = byte;
        }
        packet
    }

    /// Builds the header of IP.
    fn network(
        &mut self,
        (from, to, is_v6): (u8, u8, bool),
        (tos, is_fixed): (u8, bool),
        (protocol, len): (u8, usize),
    ) -> Vec<u8> {
        let mut header = if is_v6 {
            let [high, low] = (len as u16).to_be_bytes();
            vec![0x60 | tos >> 4, tos << 4, 0, 0, high, low, protocol, 64]
        } else {
            self.id = self.id.wrapping_add(1);
            let [high, low] = (20 + len as u16).to_be_bytes();
            let [id_high, id_low] = self.id.to_be_bytes();
            let flags = if is_fixed { 0x40 } else { 0 };
            vec![0x45, tos, high, low, id_high, id_low, flags, 0, 64, protocol, 0, 0]
        };
        for address in [inside(from, 1, is_v6), inside(to, 1, is_v6)] {
            match address {
                IpAddr::V4(address) => header.extend(address.octets()),
                IpAddr::V6(address) => header.extend(address.octets()),
            }
        }
        header
    }
}

/// A packet with its checksums.
fn finished(packet: &[u8]) -> Vec<u8> {
    let mut finished = packet.to_vec();
    let headers = headers_of(packet);
    let whole = Superframe::new(packet, &headers, u16::MAX).expect("a packet");
    assert_eq!(whole.write(0, &mut finished), Some(packet.len()));
    finished
}
