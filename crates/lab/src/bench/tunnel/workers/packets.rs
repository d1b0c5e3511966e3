//! Packets with numbers: datagrams of a tunnel's inside, one by one or as superframes that stand for many.

use packet::craft::{Addresses, Craft, Message};
use pktio::{ChecksumState, FrameBuf, FrameMeta, LinkType, LiveMeta, SegmentKind, Segments};

/// Bytes of the headers of IPv4 and UDP, and of Ethernet's.
const HEADERS: usize = 28;
const ETHERNET: usize = 14;
/// Where an IPv4 header has its length and its checksum, and where a UDP header has its own.
const LENGTH: usize = 2;
const SUM: usize = 10;
const UDP_LENGTH: usize = 24;
const UDP_SUM: usize = 26;
/// Bytes of a number.
const NUMBER: usize = 8;
/// Addresses of each end: a flow has one of each.
const FLOWS: u64 = 16;

/// What packets are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Bytes of each.
    pub(super) bytes: usize,
    /// How many stand in a frame.
    pub(super) joined: usize,
}

/// Those that are measured: datagrams that a program sends one by one, and the segments of a stream.
pub(super) const KINDS: [Kind; 2] =
    [Kind { bytes: 200, joined: 1 }, Kind { bytes: 1400, joined: 45 }];

/// Frames of one kind, with numbers from 0 on.
pub(super) struct Numbered {
    kind: Kind,
    next: u64,
    /// A frame of each flow.
    like: Vec<Vec<u8>>,
}

impl Numbered {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, next: 0, like: (0..FLOWS).map(|flow| like(kind, flow as u8)).collect() }
    }

    /// The number of packets so far.
    pub(super) fn made(&self) -> u64 {
        self.next
    }

    /// Makes a frame of one flow; whether there was room for it.
    pub(super) fn fill(&mut self, frame: &mut FrameBuf) -> bool {
        let Kind { bytes, joined } = self.kind;
        let flow = (self.next / joined as u64 % FLOWS) as usize;
        if !frame.extend(&self.like[flow]) {
            return false;
        }
        let payload = frame.bytes_mut().get_mut(HEADERS..).unwrap_or_default();
        for piece in payload.chunks_mut(bytes - HEADERS) {
            if let Some(number) = piece.first_chunk_mut::<NUMBER>() {
                *number = self.next.to_be_bytes();
            }
            self.next += 1;
        }
        let wire_length = frame.bytes().len() as u32;
        frame.meta = FrameMeta { link_type: LinkType::RAW, wire_length, ..FrameMeta::default() };
        if joined > 1 {
            let size = (bytes - HEADERS) as u16;
            *frame.live_mut() = LiveMeta {
                segments: Some(Segments { size, kind: SegmentKind::UdpDatagrams }),
                checksum: ChecksumState::Unfinished { start: 20, offset: 6 },
                ..LiveMeta::default()
            };
        }
        true
    }
}

/// A frame of a flow.
fn like(Kind { bytes, joined }: Kind, flow: u8) -> Vec<u8> {
    let addresses = Addresses::V4 { source: [10, 1, 0, flow], destination: [10, 2, 0, flow] };
    let payload_len = (bytes - HEADERS) * joined;
    let craft = Craft { payload_len, ..Craft::new(addresses, Message::udp(4000, 2222)) };
    let mut frame = craft.frame().split_off(ETHERNET);
    let total = HEADERS + payload_len;
    frame[LENGTH..LENGTH + 2].copy_from_slice(&(total as u16).to_be_bytes());
    frame[UDP_LENGTH..UDP_LENGTH + 2].copy_from_slice(&(total as u16 - 20).to_be_bytes());
    frame[SUM..SUM + 2].fill(0);
    let sum = !packet::checksum::sum(&frame[..20]);
    frame[SUM..SUM + 2].copy_from_slice(&sum.to_be_bytes());
    // Without a checksum of their own, so that numbers may differ (RFC 768).
    frame[UDP_SUM..UDP_SUM + 2].fill(0);
    frame
}

/// The numbers of the packets that a frame stands for.
pub(super) fn numbers(bytes: &[u8], live: Option<&LiveMeta>) -> impl Iterator<Item = u64> {
    let payload = bytes.get(HEADERS..).unwrap_or_default();
    let size = live.and_then(|live| live.segments).map_or(payload.len(), |it| it.size.into());
    let pieces = payload.chunks(size.max(1));
    pieces.filter_map(|piece| Some(u64::from_be_bytes(*piece.first_chunk::<NUMBER>()?)))
}
