//! Frames that programs of the host make a tunnel send: of any bytes, said to stand for segments of any size, on a path
//! of any length.

use ::tunnel::{Content, Inner, Received};
use pktio::{Burst, Envelope, FrameMeta, LinkType, LiveMeta, Lost, SegmentKind, Segments};

use super::super::mss;
use super::super::outer::{OUTER, Outer};
use super::{Arena, cut, is_theirs};
use crate::ports::too_long::TooLong;

/// A frame of the host's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of payload of each packet that it stands for, if it stands for several.
    pub(crate) segment: Option<u16>,
    /// Whether there is room around it to be sealed in.
    pub(crate) is_roomy: bool,
}

impl Arena {
    /// Makes the tunnel send a frame, and compares what arrives, and what does not, with what is expected.
    pub(crate) fn sends(&mut self, given: &Given) {
        let mut burst = Burst::with_capacity(0);
        self.push(given, &mut burst);
        let (mut lost, mut answers) = (Vec::new(), TooLong::default());
        let waiting = self.worker.seal(&mut burst, &mut |why, frame| {
            if let Lost::TooLong { most } = why {
                answers.note(frame, most);
            }
            lost.push(why);
        });
        assert_eq!(waiting, 0, "there is a session");
        assert!(burst.len() + lost.len() > 0, "it is accounted for");
        let frames: Vec<_> = burst.iter().map(|frame| frame.bytes.to_vec()).collect();
        burst.clear();
        for pool in [&self.pool, &self.worker.pool] {
            assert_eq!(pool.free(), pool.chunks());
        }
        let packets: Vec<_> = frames.iter().flat_map(|frame| self.opened(frame)).collect();
        self.check(given, &packets, &lost);
        let mut answer = Vec::new();
        while answers.answer(&mut answer).is_some() {
            assert!(Inner::parse(&answer).is_some(), "an error is a packet");
        }
    }

    fn push(&self, given: &Given, burst: &mut Burst) {
        let pool = if given.is_roomy { &self.worker.pool } else { &self.pool };
        let mut frame = pool.take().expect("a chunk");
        assert!(frame.extend(&given.bytes));
        frame.meta = FrameMeta {
            link_type: LinkType::RAW,
            wire_length: given.bytes.len() as u32,
            ..FrameMeta::default()
        };
        let kind = SegmentKind::UdpDatagrams;
        let segments = given.segment.map(|size| Segments { size, kind });
        *frame.live_mut() = LiveMeta { segments, ..LiveMeta::default() };
        burst.push_frame(frame);
    }

    /// The packets of a sealed frame, as the other end opens them.
    fn opened(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let outer = Outer::read(frame).expect("it says where it goes");
        let (segment, now) = (usize::from(outer.segment), self.site.now());
        assert!(segment > 0 && outer.peer == self.arrived(0, 0).from);
        let packet = |datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            let Received::Opening(opening) = self.hostile.receive(&datagram, outer.peer, now)
            else {
                panic!("it is no data")
            };
            let opened = opening.open(&mut datagram).expect("it is genuine");
            let delivered = self.hostile.release(opened, &datagram, now).expect("it is new");
            let Ok(Content::Packet(range)) = delivered.content else { panic!("no packet") };
            datagram[range].to_vec()
        };
        frame[OUTER..].chunks(segment).map(packet).collect()
    }

    fn check(&self, given: &Given, packets: &[Vec<u8>], lost: &[Lost]) {
        let most = usize::from(self.most);
        assert!(packets.iter().all(|packet| packet.len() <= most), "what the path takes");
        let Some(inner) = Inner::parse(&given.bytes) else {
            return assert_eq!((packets.len(), lost), (0, &[Lost::NotIp][..]));
        };
        if !is_theirs(inner.destination) {
            return assert_eq!((packets.len(), lost), (0, &[Lost::NoPeer][..]));
        }
        let whole = &given.bytes[..inner.len];
        let Some(size) = given.segment else {
            if inner.len <= most {
                let mut whole = whole.to_vec();
                mss::clamp(&mut whole, self.most);
                assert_eq!((packets, lost), (&[whole][..], &[][..]));
            }
            let is_one = lost.len() <= 1 && (lost.is_empty() || packets.is_empty());
            return assert!(is_one, "{lost:?}");
        };
        let segments = Some(Segments { size, kind: SegmentKind::UdpDatagrams });
        let pieces = || cut(whole, Some(&LiveMeta { segments, ..LiveMeta::default() }));
        match lost {
            [] => self.are_pieces(packets, &pieces(), true),
            // Each piece is a packet: the pieces that there was memory for leave.
            [Lost::NoRoom] => self.are_pieces(packets, &pieces(), false),
            [_] => assert!(packets.is_empty(), "{lost:?}"),
            _ => panic!("{lost:?}"),
        }
    }

    /// Checks that packets are those pieces, or the first of them, unless some are so long that they are cut again.
    fn are_pieces(&self, packets: &[Vec<u8>], pieces: &[Vec<u8>], are_all: bool) {
        if pieces.iter().any(|piece| piece.len() > usize::from(self.most)) {
            return;
        }
        assert!(pieces.starts_with(packets), "{} of {}", packets.len(), pieces.len());
        assert_eq!(packets.len() == pieces.len(), are_all);
    }
}
