//! Rewrites in place, with the IPv4 header checksum kept by RFC 1624 updates: a checksum that was wrong
//! before stays wrong by the same amount, as in a router.
//!
//! Contract: a rewrite that needs bytes which were not captured, or lie beyond the packet, changes
//! nothing and returns false. [`Headers`](crate::Headers) are not found again: rewriting a length, a
//! protocol or a fragment field does not move a header.

use crate::bytes::Packet;
use crate::field::be16;
use crate::headers::L3;
use crate::{checksum, ipv4, ipv6};
use std::ops::Range;

impl Packet<'_> {
    /// Sets the IPv4 time to live or IPv6 hop limit. False where there is no captured IP header.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) -> bool {
        match self.headers().l3 {
            L3::Ipv4 { .. } => self.set_ipv4_byte::<{ ipv4::TTL.start }>(ttl),
            L3::Ipv6 => self.write_net(ipv6::HOP_LIMIT.start, &[ttl]),
            _ => false,
        }
    }

    /// Sets the IPv4 type of service or IPv6 traffic class. False where there is no captured IP header.
    pub fn set_tos(&mut self, tos: u8) -> bool {
        match self.headers().l3 {
            L3::Ipv4 { .. } => self.set_ipv4_byte::<{ ipv4::TOS.start }>(tos),
            L3::Ipv6 => self.set_traffic_class(tos),
            _ => false,
        }
    }

    /// Sets one byte of the IPv4 header. What [`Packet::write_net`] does, in a tenth of the time: every packet that is
    /// forwarded comes here.
    #[inline]
    fn set_ipv4_byte<const AT: usize>(&mut self, byte: u8) -> bool {
        let start = self.network_offset();
        let end = self.headers().end;
        let header = self.bytes.get_mut(start..).and_then(|b| b.first_chunk_mut());
        let Some(header) = header.filter(|_| end.saturating_sub(start) >= ipv4::MIN_HEADER_LEN)
        else {
            return false;
        };
        let header: &mut [u8; ipv4::MIN_HEADER_LEN] = header;
        let word = AT / 2 * 2..AT / 2 * 2 + 2;
        let before = be16(header, word.clone());
        header[AT] = byte;
        let after = be16(header, word);
        if before != after {
            let stored = be16(header, ipv4::CHECKSUM);
            header[ipv4::CHECKSUM]
                .copy_from_slice(&checksum::update(stored, before, after).to_be_bytes());
        }
        true
    }

    /// The traffic class lies across two bytes, between the version and the flow label.
    fn set_traffic_class(&mut self, class: u8) -> bool {
        let start = self.network_offset();
        let Some([first, second]) = self.bytes.get(start..).and_then(|b| b.first_chunk()) else {
            return false;
        };
        let bytes = [(first & 0xf0) | (class >> 4), (class << 4) | (second & 0x0f)];
        self.write_net(ipv6::VERSION_CLASS_LABEL.start, &bytes)
    }

    /// Writes `bytes` at `offset` from the network header. Where they lie in an IPv4 header its checksum
    /// is updated, except by what is written over the checksum itself. Upper-layer checksums, whose
    /// pseudo header an address is part of, are left alone.
    #[inline]
    pub fn write_net(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let Some(range) = self.writable(offset, bytes.len()) else { return false };
        let before = self.header_words(offset, bytes.len());
        let Some(target) = self.bytes.get_mut(range) else { return false };
        target.copy_from_slice(bytes);
        let after = self.header_words(offset, bytes.len());
        self.update_header_checksum(before, after);
        true
    }

    /// Writes `bytes` at `offset` of the frame, which must lie before the network header.
    pub fn write_link(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let stop = offset.saturating_add(bytes.len());
        if stop > self.network_offset() {
            return false;
        }
        let Some(target) = self.bytes.get_mut(offset..stop) else { return false };
        target.copy_from_slice(bytes);
        true
    }

    /// The range in the frame of `len` bytes of the packet, if they were captured.
    fn writable(&self, offset: usize, len: usize) -> Option<Range<usize>> {
        let start = self.network_offset().checked_add(offset)?;
        let stop = start.checked_add(len)?;
        (stop <= self.bytes.len().min(self.headers().end)).then_some(start..stop)
    }

    /// Sum of the IPv4 header's 16-bit words that a write touches, the checksum's own left out.
    fn header_words(&self, offset: usize, len: usize) -> u16 {
        let L3::Ipv4 { header_len } = self.headers().l3 else { return 0 };
        let stop = offset.saturating_add(len).min(header_len);
        (offset / 2 * 2..stop)
            .step_by(2)
            .filter(|word| *word != ipv4::CHECKSUM.start)
            .fold(0, |sum, word| checksum::add(sum, self.header_word(word)))
    }

    /// The header word at `offset`. Where its second byte was not captured it counts as 0: it does not
    /// change, so the difference is the same.
    fn header_word(&self, offset: usize) -> u16 {
        match self.bytes.get(self.network_offset() + offset..) {
            Some([first, second, ..]) => u16::from_be_bytes([*first, *second]),
            Some([first]) => u16::from_be_bytes([*first, 0]),
            _ => 0,
        }
    }

    fn update_header_checksum(&mut self, before: u16, after: u16) {
        if before == after {
            return;
        }
        let start = self.network_offset() + ipv4::CHECKSUM.start;
        let stored = be16(self.bytes, start..start + 2);
        if let Some(place) = self.bytes.get_mut(start..start + 2) {
            place.copy_from_slice(&checksum::update(stored, before, after).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Checksums, L3, L3Fault, Link, Packet, Read, checksum, parse};

    fn ipv4() -> Vec<u8> {
        let mut bytes =
            vec![0x46, 0, 0, 32, 1, 2, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1];
        let checksum = !checksum::sum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes
    }

    fn rewritten(frame: &[u8], rewrite: impl FnOnce(&mut Packet<'_>) -> bool) -> Vec<u8> {
        let mut bytes = frame.to_vec();
        let mut packet = Packet::parse(&mut bytes, frame.len(), Link::Raw, Checksums::Ignore);
        assert!(rewrite(&mut packet));
        bytes
    }

    #[test]
    fn the_checksum_stays_correct_after_every_write_to_the_header() {
        for offset in 1..24 {
            for len in 0..=4 {
                if offset + len > 10 && offset < 12 {
                    continue;
                }
                let patch = [0xa5; 4];
                let bytes = rewritten(&ipv4(), |p| p.write_net(offset, &patch[..len]));
                assert_eq!(checksum::sum(&bytes[..24]), 0xffff, "{offset}+{len}");
                assert_eq!(bytes[offset..offset + len], patch[..len]);
            }
        }
    }

    #[test]
    fn a_half_captured_option_word_keeps_the_checksum_in_step() {
        let mut bytes = ipv4();
        let mut packet = Packet::parse(&mut bytes[..23], 32, Link::Raw, Checksums::Ignore);
        assert!(packet.write_net(22, &[7]));
        assert_eq!(checksum::sum(&bytes[..24]), 0xffff);
    }

    #[test]
    fn ttl_and_tos_of_ipv4_keep_the_packet_valid() {
        let bytes = rewritten(&ipv4(), |p| p.set_ttl(1) && p.set_tos(0xb8));
        assert_eq!((bytes[1], bytes[8]), (0xb8, 1));
        let headers = parse(Link::Raw, &bytes, bytes.len(), Checksums::Verify);
        assert_eq!(headers.l3, L3::Ipv4 { header_len: 24 });
    }

    #[test]
    fn ttl_and_tos_are_written_as_any_other_byte() {
        for byte in 0..=255 {
            for wrong in [0, 0x40, 0xff] {
                let mut frame = ipv4();
                frame[11] ^= wrong;
                let quick = rewritten(&frame, |p| p.set_ttl(byte) && p.set_tos(!byte));
                let slow =
                    rewritten(&frame, |p| p.write_net(8, &[byte]) && p.write_net(1, &[!byte]));
                assert_eq!(quick, slow);
            }
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut frame = ipv4();
        frame[11] ^= 0x40;
        let bytes = rewritten(&frame, |p| p.set_ttl(1));
        let headers = parse(Link::Raw, &bytes, bytes.len(), Checksums::Verify);
        assert_eq!(headers.l3, L3::Fault(L3Fault::Checksum));
    }

    #[test]
    fn the_traffic_class_leaves_version_and_flow_label_alone() {
        let mut frame = vec![0u8; 40];
        frame[..4].copy_from_slice(&[0x61, 0x2f, 0xab, 0xcd]);
        frame[6] = 59;
        let bytes = rewritten(&frame, |p| p.set_tos(0xb8) && p.set_ttl(7));
        assert_eq!(bytes[..4], [0x6b, 0x8f, 0xab, 0xcd]);
        assert_eq!(bytes[7], 7);
    }

    #[test]
    fn what_was_not_captured_cannot_be_written() {
        let mut bytes = ipv4();
        let mut packet = Packet::parse(&mut bytes[..26], 32, Link::Raw, Checksums::Ignore);
        assert!(packet.write_net(25, &[9]));
        assert!(!packet.write_net(25, &[9, 9]));
        assert!(!packet.write_net(usize::MAX, &[9, 9]));
        assert_eq!(packet.net::<1>(25), Read::Known([9]));
        let mut other = [0x50; 20];
        let mut packet = Packet::parse(&mut other, 20, Link::Raw, Checksums::Ignore);
        assert!(!packet.set_ttl(3) && !packet.set_tos(3));
    }
}
