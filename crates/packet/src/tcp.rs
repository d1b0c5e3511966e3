//! TCP headers, flags and options.
//!
//! Source: RFC 9293; flag names as iptables' `--tcp-flags` has them.

use crate::field::{be16, be32, byte};
use crate::options::Options;
use std::fmt;
use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 6;

/// Source port, big endian.
pub const SOURCE_PORT: Range<usize> = 0..2;
/// Destination port, big endian.
pub const DESTINATION_PORT: Range<usize> = 2..4;
/// Sequence number, big endian.
pub const SEQUENCE: Range<usize> = 4..8;
/// Acknowledgement number, big endian.
pub const ACKNOWLEDGEMENT: Range<usize> = 8..12;
/// Header length in 32-bit words (high nibble) and reserved bits.
pub const DATA_OFFSET: Range<usize> = 12..13;
/// Flags.
pub const FLAGS: Range<usize> = 13..14;
/// Receive window, big endian.
pub const WINDOW: Range<usize> = 14..16;
/// Checksum, big endian.
pub const CHECKSUM: Range<usize> = 16..18;
/// Urgent pointer, big endian.
pub const URGENT: Range<usize> = 18..20;
/// Length of the header without options, in bytes.
pub const MIN_HEADER_LEN: usize = 20;

/// Option type of the maximum segment size, whose body is 2 bytes, big endian.
pub const OPTION_MSS: u8 = 2;

/// The flags byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more bytes from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Every flag with its name, lowest bit first.
    pub const NAMES: [(Self, &'static str); 8] = [
        (Self::FIN, "fin"),
        (Self::SYN, "syn"),
        (Self::RST, "rst"),
        (Self::PSH, "psh"),
        (Self::ACK, "ack"),
        (Self::URG, "urg"),
        (Self::ECE, "ece"),
        (Self::CWR, "cwr"),
    ];

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Comma-separated names in the order of [`Flags::NAMES`], `none` without any.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (flag, name) in Self::NAMES {
            if self.contains(flag) {
                write!(f, "{comma}{name}")?;
                comma = ",";
            }
        }
        if self.0 == 0 { f.write_str("none") } else { Ok(()) }
    }
}

/// A TCP header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold the 20 bytes of its fixed part. The data offset
    /// is not tested: the kernel matches on the ports of a header with a bad one.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Sequence number.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        be32(self.fixed, SEQUENCE)
    }

    /// Acknowledgement number.
    #[must_use]
    pub fn acknowledgement(&self) -> u32 {
        be32(self.fixed, ACKNOWLEDGEMENT)
    }

    /// Header length in bytes as the data offset says it: 0..=60, of which below 20 is malformed.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(byte(self.fixed, DATA_OFFSET) >> 4) * 4
    }

    /// Flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags(byte(self.fixed, FLAGS))
    }

    /// Receive window, not scaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        be16(self.fixed, WINDOW)
    }

    /// The options. Where the data offset is below 5 or points past the bytes, the one item is
    /// [`BadOption`](crate::options::BadOption).
    #[must_use]
    pub fn options(&self) -> Options<'a> {
        let len = self.header_len().checked_sub(MIN_HEADER_LEN);
        len.and_then(|len| self.rest.get(..len)).map_or_else(Options::unreadable, Options::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{BadOption, HeaderOption};

    fn segment() -> Vec<u8> {
        let mut bytes =
            vec![0xc8, 0, 0x15, 0x38, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x12, 1, 0, 0xab, 0xcd, 0, 0];
        bytes.extend_from_slice(&[2, 4, 0x05, 0xb4, 0xff]);
        bytes
    }

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let bytes = segment();
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!((header.sequence(), header.acknowledgement()), (1, 2));
        assert_eq!((header.header_len(), header.window()), (24, 256));
        assert_eq!(header.flags().to_string(), "syn,ack");
        let options: Vec<_> = header.options().collect();
        assert_eq!(options, [Ok(HeaderOption { kind: OPTION_MSS, body: &[0x05, 0xb4] })]);
        assert!(Header::new_checked(&bytes[..19]).is_none());
    }

    #[test]
    fn a_bad_data_offset_spoils_the_options_only() {
        for data_offset in [0x40, 0x00, 0x70] {
            let mut bytes = segment();
            bytes[12] = data_offset;
            let header = Header::new_checked(&bytes).unwrap();
            assert_eq!(header.options().next(), Some(Err(BadOption)), "{data_offset:#x}");
        }
        let mut bytes = segment();
        bytes[12] = 0x50;
        assert_eq!(Header::new_checked(&bytes).unwrap().options().next(), None);
    }

    #[test]
    fn flags_print_lowest_bit_first() {
        assert_eq!(Flags(0xff).to_string(), "fin,syn,rst,psh,ack,urg,ece,cwr");
        assert_eq!(Flags(0).to_string(), "none");
        assert!(Flags(0x12).contains(Flags::SYN.union(Flags::ACK)));
        assert!(!Flags(0x02).contains(Flags::SYN.union(Flags::ACK)));
    }
}
