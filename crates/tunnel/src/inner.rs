//! What is sealed: an IP packet, then zeros up to a multiple of 16 bytes. The packet's own header says where it
//! ends, and whose it is; the rooms after this one read the rest. Nothing at all is a keepalive. What begins as no
//! IP packet does is a probe of the path, by its own length, or the answer to one.

use std::net::IpAddr;

use crate::message::at;

/// An IP packet, as far as the overlay reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// The packet's source.
    pub source: IpAddr,
    /// The packet's destination.
    pub destination: IpAddr,
    /// The length in bytes that the header says; at most the bytes that there are.
    pub len: usize,
}

impl Inner {
    /// Reads the header of a packet; bytes may follow it.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let inner = match bytes.first()? >> 4 {
            4 => Self {
                source: at::<4>(bytes, 12)?.into(),
                destination: at::<4>(bytes, 16)?.into(),
                len: usize::from(u16::from_be_bytes(at(bytes, 2)?)),
            },
            6 => Self {
                source: at::<16>(bytes, 8)?.into(),
                destination: at::<16>(bytes, 24)?.into(),
                len: 40 + usize::from(u16::from_be_bytes(at(bytes, 4)?)),
            },
            _ => return None,
        };
        (inner.len >= 20 && inner.len <= bytes.len()).then_some(inner)
    }
}

/// A probe, or that one came, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Sent(u32),
    Came(u32),
}

/// Bytes of an answer to a probe, and of the shortest one.
pub(crate) const PROBE: usize = 16;

impl Probe {
    /// Reads the first bytes of a plain text.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let number = u32::from_le_bytes(at(bytes, 4)?);
        match at(bytes, 0)? {
            [1, 0, 0, 0] => Some(Self::Sent(number)),
            [2, 0, 0, 0] => Some(Self::Came(number)),
            _ => None,
        }
    }

    /// The first bytes of its plain text.
    pub(crate) fn bytes(self) -> [u8; PROBE] {
        let (kind, number) = match self {
            Self::Sent(number) => (1, number),
            Self::Came(number) => (2, number),
        };
        let mut bytes = [0; PROBE];
        bytes[0] = kind;
        bytes[4..8].copy_from_slice(&number.to_le_bytes());
        bytes
    }
}

/// Bytes that a packet of `len` is sealed as: a multiple of 16, unless that is more than `most` and `len` is not.
pub(crate) fn padded(len: usize, most: usize) -> usize {
    len.next_multiple_of(16).min(most.max(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(len: u16, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; bytes];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet
    }

    #[test]
    fn a_header_says_how_long_its_packet_is() {
        let inner = Inner::parse(&v4(21, 32)).unwrap();
        assert_eq!((inner.len, inner.source), (21, [10, 0, 0, 1].into()));
        assert_eq!(Inner::parse(&v4(33, 32)), None, "longer than what there is");
        assert_eq!(Inner::parse(&v4(19, 32)), None, "shorter than a header");
        let mut v6 = vec![0; 64];
        v6[0] = 0x60;
        v6[5] = 20;
        assert_eq!(Inner::parse(&v6).unwrap().len, 60);
        v6[4] = 1;
        assert_eq!(Inner::parse(&v6), None);
        for cut in 0..20 {
            assert_eq!(Inner::parse(&v4(20, 32)[..cut]), None);
        }
    }

    #[test]
    fn padding_ends_at_the_greatest_packet() {
        let lens = [(0, 0), (1, 16), (16, 16), (1_409, 1_420), (1_420, 1_420), (1_500, 1_500)];
        for (len, sealed) in lens {
            assert_eq!(padded(len, 1_420), sealed);
        }
    }
}
