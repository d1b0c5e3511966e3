//! [`TooLong`]: packets that a port does not take because of their length; their senders get an ICMP error.
//!
//! Contract: bounded; packets over the bound are dropped without an error. The error is a bridge's, in the name of the
//! packet's destination, as nothing on a wire is the host's.
//!
//! Source: RFC 1191, RFC 8201.

use packet::reply::{Replier, Reply, Terms, framed, reply};
use packet::{Checksums, Link, Packet};
use pktio::{Frame, FrameMeta};

/// Packets of a burst that get an error, at most.
const MOST: usize = 16;
/// Type and code: destination unreachable, fragmentation needed (RFC 792); packet too big (RFC 4443).
const TOO_BIG_V4: (u8, u8) = (3, 4);
const TOO_BIG_V6: (u8, u8) = (2, 0);
/// `net.ipv4.ip_default_ttl`.
const HOP_LIMIT: u8 = 64;

/// Packets that are to get an error.
#[derive(Debug, Default)]
pub(crate) struct TooLong {
    packets: Vec<(Vec<u8>, FrameMeta, u16)>,
}

impl TooLong {
    /// Notes a packet that is longer than `most`.
    pub(crate) fn note(&mut self, frame: Frame<'_>, most: u16) {
        if self.packets.len() < MOST {
            self.packets.push((frame.bytes.to_vec(), *frame.meta, most));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Builds the error that answers one of the packets in `to`, and returns what is known of the packet.
    pub(crate) fn answer(&mut self, to: &mut Vec<u8>) -> Option<FrameMeta> {
        while let Some((mut bytes, meta, most)) = self.packets.pop() {
            let wire_length = bytes.len();
            let packet = Packet::parse(&mut bytes, wire_length, Link::Raw, Checksums::Ignore);
            let headers = *packet.headers();
            let is_v6 = matches!(headers.l3, packet::L3::Ipv6);
            let (kind, code) = match is_v6 {
                true => TOO_BIG_V6,
                false => TOO_BIG_V4,
            };
            let what = Reply::Error { kind, code, rest: most.into() };
            let terms =
                Terms { replier: Replier::Bridge, hop_limit: HOP_LIMIT, id: 0, verify: false };
            let mut made = Vec::new();
            if reply(&packet, what, &terms, &mut made).is_ok()
                && framed(&bytes, &headers, &made, to).is_ok()
            {
                return Some(meta);
            }
        }
        None
    }
}
