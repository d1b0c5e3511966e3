//! [`Outer`]: what precedes the datagrams of a sealed frame, in memory alone: their source or destination.
//!
//! | byte | |
//! |---|---|
//! | 0 | 4 or 6 |
//! | 1 | the TOS byte or traffic class of the outer packets |
//! | 2 | port, 2 bytes |
//! | 4 | bytes of each datagram but the last, 2 bytes |
//! | 6 | 1: there is an address of our own |
//! | 8 | address of the other end, 16 bytes |
//! | 24 | our own address, 16 bytes, and the index of its interface or 0, 4 bytes |
//! | 44 | the interface of the other end's address, if that is one of a link (IPv6), 4 bytes |
//!
//! Numbers are in host byte order: the header never leaves the process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;

use pktio::FrameBuf;
use pktio::datagram::{Arrived, Source};
use tunnel::message::Message;

/// Length of the header in bytes.
pub(super) const OUTER: usize = 48;

/// The source or destination of the datagrams of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outer {
    /// The other end.
    pub(super) peer: SocketAddr,
    /// Our own address, where it is known.
    pub(super) own: Option<Source>,
    pub(super) tos: u8,
    /// Bytes of each datagram but the last.
    pub(super) segment: u16,
}

impl Outer {
    pub(super) fn of(arrived: &Arrived) -> Self {
        let Arrived { from, at, tos, segment } = *arrived;
        Self { peer: from, own: at, tos, segment: segment.min(usize::from(u16::MAX)) as u16 }
    }

    /// Writes the header before a frame; false if there is no room.
    pub(super) fn put_before(&self, frame: &mut FrameBuf) -> bool {
        frame.grow_front(OUTER).is_some_and(|bytes| self.write(bytes))
    }

    /// Writes the header to the first bytes of `bytes`; false if there are too few.
    pub(super) fn write(&self, bytes: &mut [u8]) -> bool {
        let Some(head) = bytes.first_chunk_mut::<OUTER>() else { return false };
        head.fill(0);
        head[0] = if self.peer.is_ipv4() { 4 } else { 6 };
        head[1] = self.tos;
        head[2..4].copy_from_slice(&self.peer.port().to_ne_bytes());
        head[4..6].copy_from_slice(&self.segment.to_ne_bytes());
        head[8..24].copy_from_slice(&wide(self.peer.ip()));
        if let SocketAddr::V6(peer) = self.peer {
            head[44..48].copy_from_slice(&peer.scope_id().to_ne_bytes());
        }
        if let Some(Source { address, interface }) = self.own {
            head[6] = 1;
            head[24..40].copy_from_slice(&wide(address));
            head[40..44].copy_from_slice(&interface.map_or(0, NonZeroU32::get).to_ne_bytes());
        }
        true
    }

    /// Reads the header; the datagrams follow it.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<OUTER>()?;
        let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let address = |at: usize| {
            let wide: [u8; 16] = head[at..at + 16].try_into().ok()?;
            match head[0] {
                4 => Some(IpAddr::V4(Ipv4Addr::from(*wide.first_chunk::<4>()?))),
                6 => Some(IpAddr::V6(Ipv6Addr::from(wide))),
                _ => None,
            }
        };
        let interface = NonZeroU32::new(u32::from_ne_bytes(*head[40..].first_chunk()?));
        let own = match head[6] {
            1 => Some(Source { address: address(24)?, interface }),
            _ => None,
        };
        let (tos, segment) = (head[1], half(4));
        let mut peer = SocketAddr::new(address(8)?, half(2));
        if let SocketAddr::V6(peer) = &mut peer {
            peer.set_scope_id(u32::from_ne_bytes(*head[44..].first_chunk()?));
        }
        Some(Self { peer, own, tos, segment })
    }
}

/// The address in the first of 16 bytes.
fn wide(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut wide = [0; 16];
            wide[..4].copy_from_slice(&address.octets());
            wide
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// The kind that a datagram claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    /// A handshake message, or a cookie.
    Handshake,
    /// No message of the protocol, by its first bytes or its length.
    Noise,
}

pub(super) fn kind(datagram: &[u8]) -> Kind {
    match Message::parse(datagram) {
        Ok(Message::Data { .. }) => Kind::Data,
        Ok(Message::Initiation(_) | Message::Response(_) | Message::Cookie(_)) => Kind::Handshake,
        Err(_) => Kind::Noise,
    }
}

/// Whether a datagram is sealed data, or claims to be.
pub(super) fn is_data(datagram: &[u8]) -> bool {
    kind(datagram) == Kind::Data
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outer() -> impl Strategy<Value = Outer> {
        let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>())
            .prop_map(|(peer, own)| (IpAddr::from(peer), IpAddr::from(own)));
        let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>())
            .prop_map(|(peer, own)| (IpAddr::from(peer), IpAddr::from(own)));
        let rest = (any::<u16>(), any::<u32>(), any::<Option<u32>>(), any::<u8>(), any::<u16>());
        (prop_oneof![v4, v6], rest).prop_map(
            |((peer, address), (port, scope, own, tos, segment))| {
                let own =
                    own.map(|interface| Source { address, interface: NonZeroU32::new(interface) });
                let mut peer = SocketAddr::new(peer, port);
                if let SocketAddr::V6(peer) = &mut peer {
                    peer.set_scope_id(scope);
                }
                Outer { peer, own, tos, segment }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(outer in outer(), more in 0..9_usize) {
            let mut bytes = vec![0xee; OUTER + more];
            prop_assert!(outer.write(&mut bytes));
            prop_assert_eq!(Outer::read(&bytes), Some(outer));
            prop_assert_eq!(Outer::read(&bytes[..OUTER - 1]), None);
        }

        #[test]
        fn noise_is_read_as_something_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Outer::read(&bytes);
        }
    }
}
