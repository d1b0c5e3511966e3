//! The short way through [`parse()`](super::parse()) for what most frames are: an IPv4 header without options right after
//! an Ethernet header.
//!
//! Contract: it finds what the layers find, or nothing. A property test holds it to them.

use super::checks::Checksums;
use super::{ip4, link_layer};
use crate::checksum;
use crate::field::{array, be16, byte};
use crate::headers::{Headers, L3};
use crate::link::LinkHeader;
use crate::{ethernet, ethertype, ipv4};

const NETWORK: usize = ethernet::HEADER_LEN;
const UPPER: usize = NETWORK + ipv4::MIN_HEADER_LEN;
/// Version 4 and five words.
const NO_OPTIONS: u8 = 0x45;

/// Finds the headers of a frame that is `wire_len` bytes long on the wire, no fewer than were captured. False, and
/// nothing is written, if it is another one, or the stack would refuse it.
#[inline]
pub(super) fn parse(
    bytes: &[u8],
    wire_len: usize,
    checksums: Checksums,
    headers: &mut Headers,
) -> bool {
    let Some(bytes) = bytes.first_chunk::<UPPER>() else { return false };
    let Some((link, header)) = bytes.split_first_chunk::<NETWORK>() else { return false };
    let Some(header) = header.first_chunk::<{ ipv4::MIN_HEADER_LEN }>() else { return false };
    if be16(link, ethernet::TYPE) != ethertype::IPV4
        || byte(header, ipv4::VERSION_IHL) != NO_OPTIONS
        || checksums == Checksums::Verify && checksum::sum(header) != 0xffff
    {
        return false;
    }
    // A length of 0 marks a packet that has not been cut into segments yet.
    let end = NETWORK + usize::from(be16(header, ipv4::TOTAL_LEN));
    if !(UPPER..=wire_len).contains(&end) {
        return false;
    }
    let addresses: [u8; 12] = array(link, ethernet::DESTINATION.start..ethernet::SOURCE.end);
    *headers = Headers {
        link: LinkHeader {
            ethernet: Some(0),
            source_mac: Some(ethernet::SOURCE.start),
            ethertype: ethertype::IPV4,
            packet_type: Some(link_layer::packet_type(array(link, ethernet::DESTINATION))),
            loopback: addresses == [0; 12],
            ..LinkHeader::default()
        },
        network: NETWORK,
        end,
        l3: L3::Ipv4 { header_len: ipv4::MIN_HEADER_LEN },
        l4: ip4::upper(header, UPPER),
        offload: false,
        overrun: false,
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::L4;
    use crate::link::Link;
    use proptest::prelude::*;

    /// A frame of UDP whose header checksum is right.
    fn frame() -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let mut header =
            [0x45, 0, 0, 36, 1, 2, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2].to_vec();
        let checksum = !checksum::sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend(header);
        bytes.resize(UPPER + 16, 7);
        bytes
    }

    fn both(link: Link, bytes: &[u8], wire_len: usize, checksums: Checksums) -> [Headers; 2] {
        let mut slow = Headers::default();
        super::super::frame::find(&mut slow, link, bytes, wire_len.max(bytes.len()), checksums);
        [super::super::parse(link, bytes, wire_len, checksums), slow]
    }

    #[test]
    fn a_usual_frame_takes_the_short_way() {
        let mut headers = Headers::default();
        let bytes = frame();
        assert!(parse(&bytes, bytes.len(), Checksums::Verify, &mut headers));
        assert!(matches!(headers.l4, L4::Upper(upper) if upper.offset == UPPER));
        assert!(!parse(&bytes[..UPPER - 1], bytes.len(), Checksums::Ignore, &mut headers));
    }

    proptest! {
        #[test]
        fn it_finds_what_the_layers_find(
            changes in prop::collection::vec((0..UPPER, prop_oneof![any::<u8>(), 0u8..3]), 0..4),
            captured in prop_oneof![3 => Just(UPPER + 16), 1 => 0..UPPER + 17],
            wire_len in 0..2 * UPPER,
            group in prop_oneof![Just(None), Just(Some(0u8)), Just(Some(0xff)), Just(Some(1))],
            wire in any::<bool>(),
            checksums in prop_oneof![
                Just(Checksums::Ignore), Just(Checksums::Arrivals), Just(Checksums::Verify),
            ],
        ) {
            let mut bytes = frame();
            if let Some(group) = group {
                bytes[..12].fill(group);
            }
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes.truncate(captured);
            let link = if wire { Link::Wire } else { Link::Ethernet };
            let [fast, slow] = both(link, &bytes, wire_len, checksums);
            prop_assert_eq!(fast, slow);
        }
    }
}
