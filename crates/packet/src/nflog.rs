//! NFLOG: a packet as a rule of the firewall handed it to a netlink group, with what the kernel knew of it.
//!
//! Contract: a record is a family, a version and the group, then attributes up to the packet. Their headers
//! are in the byte order of the recorder, which no field tells: the order that leads to a packet is taken.
//! Their values are big endian.
//!
//! Source: <https://www.tcpdump.org/linktypes/LINKTYPE_NFLOG.html>; `linux/netfilter/nfnetlink_log.h`.

use crate::field::{be16, be32};
use std::ops::Range;

/// Bytes before the first attribute.
const HEADER_LEN: usize = 4;
/// Length and type of an attribute.
const ATTRIBUTE_LEN: usize = 4;
/// Attributes read before the one with the packet.
const MOST: usize = 64;

const PACKET_HEADER: u16 = 1;
const MARK: u16 = 2;
const INPUT: u16 = 4;
const OUTPUT: u16 = 5;
const PHYSICAL_INPUT: u16 = 6;
const PHYSICAL_OUTPUT: u16 = 7;
const ADDRESS: u16 = 8;
const PAYLOAD: u16 = 9;
const PREFIX: u16 = 10;
const DEVICE_TYPE: u16 = 15;

/// Device type of Ethernet (ARPHRD_ETHER).
const ARPHRD_ETHER: u16 = 1;

/// What a record says of its packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record<'a> {
    /// Address family (`AF_INET` 2, `AF_INET6` 10, `NFPROTO_ARP` 3, `PF_BRIDGE` 7).
    pub family: u8,
    /// The netlink group.
    pub group: u16,
    /// EtherType of the packet, where given.
    pub ethertype: Option<u16>,
    /// The hook that the rule stands at, as `linux/netfilter.h` counts: PREROUTING 0, INPUT 1, FORWARD 2,
    /// OUTPUT 3, POSTROUTING 4.
    pub hook: Option<u8>,
    /// Index of the input interface.
    pub input: Option<u32>,
    /// Index of the output interface.
    pub output: Option<u32>,
    /// Indexes of the bridge ports for input and output.
    pub ports: [Option<u32>; 2],
    /// The packet's mark. The kernel leaves out a mark of 0.
    pub mark: u32,
    /// The rule's log prefix, up to its first zero byte.
    pub prefix: &'a [u8],
    /// Offset of the sender's 6-byte address, where the device was Ethernet.
    pub source_mac: Option<usize>,
    /// Where the packet stands in the record.
    pub packet: Range<usize>,
}

impl<'a> Record<'a> {
    /// Reads a record; `None` if it has no packet, or is cut before that.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let orders = [u16::from_le_bytes, u16::from_be_bytes];
        orders.into_iter().find_map(|order| Self::read_in(bytes, order))
    }

    fn read_in(bytes: &'a [u8], order: fn([u8; 2]) -> u16) -> Option<Self> {
        let [family, _version, group @ ..] = *bytes.first_chunk::<HEADER_LEN>()?;
        let mut record = Self { family, group: u16::from_be_bytes(group), ..Self::default() };
        let (mut at, mut address, mut is_ethernet) = (HEADER_LEN, None, true);
        for _ in 0..MOST {
            let [length, kind] = *bytes.get(at..)?.first_chunk::<ATTRIBUTE_LEN>()?.as_chunks().0
            else {
                return None;
            };
            let length = usize::from(order(length));
            let start = at + ATTRIBUTE_LEN;
            let end = at + length;
            if length < ATTRIBUTE_LEN {
                return None;
            }
            if order(kind) == PAYLOAD {
                record.packet = start..end.min(bytes.len());
                record.source_mac = address.filter(|_| is_ethernet);
                return Some(record);
            }
            let value = bytes.get(start..end)?;
            let index = || Some(be32(value, 0..4)).filter(|index| *index != 0);
            match order(kind) {
                PACKET_HEADER => {
                    record.ethertype = Some(be16(value, 0..2));
                    record.hook = value.get(2).copied();
                }
                MARK => record.mark = be32(value, 0..4),
                INPUT => record.input = index(),
                OUTPUT => record.output = index(),
                PHYSICAL_INPUT => record.ports[0] = index(),
                PHYSICAL_OUTPUT => record.ports[1] = index(),
                // Its length, two bytes of padding, eight of address.
                ADDRESS if be16(value, 0..2) == 6 && value.len() >= 10 => address = Some(start + 4),
                PREFIX => record.prefix = value.split(|byte| *byte == 0).next().unwrap_or_default(),
                DEVICE_TYPE => is_ethernet = be16(value, 0..2) == ARPHRD_ETHER,
                _ => {}
            }
            at += length.next_multiple_of(4);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of these attributes, in the byte order of `order`.
    fn record(order: fn(u16) -> [u8; 2], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 5];
        for (kind, value) in attributes {
            bytes.extend(order(value.len() as u16 + 4));
            bytes.extend(order(*kind));
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    const ATTRIBUTES: &[(u16, &[u8])] = &[
        (PACKET_HEADER, &[0x08, 0x00, 2, 0]),
        (PREFIX, b"fwd \0"),
        (INPUT, &[0, 0, 0, 2]),
        (OUTPUT, &[0, 0, 0, 3]),
        (MARK, &[0, 0, 0, 7]),
        (ADDRESS, &[0, 6, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0]),
        (DEVICE_TYPE, &[0, 1]),
        (PAYLOAD, &[0x45; 21]),
    ];

    #[test]
    fn both_byte_orders_are_read() {
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes = record(order, ATTRIBUTES);
            let read = Record::read(&bytes).unwrap();
            assert_eq!((read.family, read.group, read.ethertype), (2, 5, Some(0x0800)));
            assert_eq!(
                (read.hook, read.input, read.output, read.mark),
                (Some(2), Some(2), Some(3), 7)
            );
            assert_eq!(read.prefix, b"fwd ");
            assert_eq!(&bytes[read.source_mac.unwrap()..][..6], &[1, 2, 3, 4, 5, 6]);
            assert_eq!(&bytes[read.packet], &[0x45; 21]);
        }
    }

    #[test]
    fn a_record_cut_anywhere_has_a_part_of_its_packet_or_none() {
        let bytes = record(u16::to_le_bytes, ATTRIBUTES);
        let start = Record::read(&bytes).unwrap().packet.start;
        for length in 0..bytes.len() {
            let read = Record::read(&bytes[..length]);
            assert_eq!(read.is_some(), length >= start, "{length}");
            assert!(read.is_none_or(|read| read.packet.end <= length));
        }
    }
}
