//! What accompanies a datagram besides its bytes: control messages, as the kernel lays them out.
//!
//! Contract: bytes to values and back, without a system call. Unknown messages are skipped, and a message that does not
//! end where it says ends the list.
//!
//! | level, kind | value | sent | received |
//! |---|---|---|---|
//! | UDP, `UDP_SEGMENT` | u16: bytes of each datagram | yes | |
//! | UDP, `UDP_GRO` | int: bytes of each datagram | | yes |
//! | IP, `IP_PKTINFO` | interface, address to send from, destination | yes | by a socket of IPv4 alone |
//! | IPv6, `IPV6_PKTINFO` | address, interface | yes | also of IPv4, mapped |
//! | IP, `IP_TOS` | sent as int, received as a byte | yes | yes |
//! | IPv6, `IPV6_TCLASS` | int | yes | yes |
//!
//! Source: `cmsg(3)`, `udp(7)`, `ip(7)`, `ipv6(7)`; Linux `net/ipv4/ip_sockglue.c` (`ip_cmsg_send`),
//! `net/ipv6/datagram.c` (`ip6_datagram_recv_common_ctl`).

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;

use libc::c_int;

use super::address::unmapped;
use super::message::Source;

/// Bytes for all control messages of a datagram: three of them, of 20 bytes at most and 16 of header.
pub(super) const ROOM: usize = 128;

/// A header: length with itself, level, kind.
const HEADER: usize = size_of::<usize>() + 2 * size_of::<c_int>();

/// The control messages of one datagram. Aligned as the kernel writes them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control {
    pub(super) bytes: [u8; ROOM],
    /// Bytes that are used.
    pub(super) length: usize,
}

/// What came with a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accompanied {
    pub(super) at: Option<Source>,
    pub(super) tos: u8,
    /// Bytes of each datagram, if there are several.
    pub(super) segment: Option<usize>,
}

/// Where the next header begins after `length` bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

impl Control {
    pub(super) const EMPTY: Self = Self { bytes: [0; ROOM], length: 0 };

    /// For datagrams to an address of IPv4 or IPv6, `from` an address of the same family, cut to `segment` bytes.
    pub(super) fn new(is_v4: bool, from: Option<Source>, tos: u8, segment: Option<u16>) -> Self {
        let mut control = Self::EMPTY;
        if let Some(bytes) = segment {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
        }
        if tos > 0 {
            let (level, kind) = if is_v4 {
                (libc::SOL_IP, libc::IP_TOS)
            } else {
                (libc::SOL_IPV6, libc::IPV6_TCLASS)
            };
            control.push(level, kind, &c_int::from(tos).to_ne_bytes());
        }
        if let Some(from) = from {
            control.push_source(from);
        }
        control
    }

    fn push_source(&mut self, from: Source) {
        let interface = from.interface.map_or(0, NonZeroU32::get).to_ne_bytes();
        match from.address {
            IpAddr::V4(address) => {
                let mut value = [0; 12];
                value[..4].copy_from_slice(&interface);
                value[4..8].copy_from_slice(&address.octets());
                self.push(libc::SOL_IP, libc::IP_PKTINFO, &value);
            }
            IpAddr::V6(address) => {
                let mut value = [0; 20];
                value[..16].copy_from_slice(&address.octets());
                value[16..].copy_from_slice(&interface);
                self.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, &value);
            }
        }
    }

    /// Appends a message; there is room for all of [`Control::new`].
    pub(super) fn push(&mut self, level: c_int, kind: c_int, value: &[u8]) {
        let Some(room) = self.bytes.get_mut(self.length..) else { return };
        let (length, value_at) = (HEADER + value.len(), size_of::<usize>());
        let Some(room) = room.get_mut(..aligned(length)) else { return };
        room[..value_at].copy_from_slice(&length.to_ne_bytes());
        room[value_at..][..4].copy_from_slice(&level.to_ne_bytes());
        room[value_at + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER..length].copy_from_slice(value);
        self.length += aligned(length);
    }

    /// Level, kind and value of each.
    pub(super) fn entries(&self) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
        let mut rest = self.bytes.get(..self.length).unwrap_or_default();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk()?;
            let length = usize::from_ne_bytes(*length);
            let (level, after) = after.split_first_chunk()?;
            let (kind, _) = after.split_first_chunk()?;
            let value = rest.get(HEADER..length)?;
            rest = rest.get(aligned(length)..).unwrap_or_default();
            Some((c_int::from_ne_bytes(*level), c_int::from_ne_bytes(*kind), value))
        })
    }

    /// What they say.
    pub(super) fn read(&self) -> Accompanied {
        let mut read = Accompanied::default();
        for (level, kind, value) in self.entries() {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    read.segment = number(value).and_then(|bytes| usize::try_from(bytes).ok());
                }
                (libc::SOL_IP, libc::IP_TOS) => read.tos = value.first().copied().unwrap_or(0),
                (libc::SOL_IPV6, libc::IPV6_TCLASS) => read.tos = number(value).unwrap_or(0) as u8,
                (libc::SOL_IP, libc::IP_PKTINFO) => read.at = source_v4(value).or(read.at),
                (libc::SOL_IPV6, libc::IPV6_PKTINFO) => read.at = source_v6(value).or(read.at),
                _ => {}
            }
        }
        read
    }
}

fn number(value: &[u8]) -> Option<c_int> {
    value.first_chunk().map(|bytes| c_int::from_ne_bytes(*bytes))
}

/// Where to answer from what came with `struct in_pktinfo`.
fn source_v4(value: &[u8]) -> Option<Source> {
    let (interface, rest) = value.split_first_chunk()?;
    let address: [u8; 4] = *rest.first_chunk()?;
    let interface = NonZeroU32::new(u32::from_ne_bytes(*interface));
    Some(Source { address: Ipv4Addr::from(address).into(), interface })
}

/// Where to answer from what came with `struct in6_pktinfo`.
fn source_v6(value: &[u8]) -> Option<Source> {
    let (address, rest) = value.split_first_chunk()?;
    let interface = NonZeroU32::new(u32::from_ne_bytes(*rest.first_chunk()?));
    Some(Source { address: unmapped(*address), interface })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As gcc lays out `CMSG_DATA` on a machine of 64 bits.
    #[test]
    #[cfg(all(target_pointer_width = "64", target_endian = "little"))]
    fn messages_lie_as_the_kernel_has_them() {
        let from = Source { address: "10.0.0.1".parse().unwrap(), interface: NonZeroU32::new(3) };
        let control = Control::new(true, Some(from), 0x2e, Some(1452));
        let expected = [
            [18, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 103, 0, 0, 0, 0xac, 5, 0, 0, 0, 0, 0, 0]
                .as_slice(),
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x2e, 0, 0, 0, 0, 0, 0, 0],
            &[28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0],
            &[0; 4],
        ]
        .concat();
        assert_eq!(control.bytes[..control.length], expected);
    }

    #[test]
    fn the_longest_has_room() {
        let from = Source { address: "fd77::1".parse().unwrap(), interface: NonZeroU32::new(3) };
        let control = Control::new(false, Some(from), 0xff, Some(9));
        assert_eq!(control.entries().count(), 3);
        assert_eq!(control.read(), Accompanied { at: Some(from), tos: 0xff, segment: None });
    }

    #[test]
    fn what_came_is_read() {
        let mut control = Control::EMPTY;
        control.push(libc::SOL_UDP, libc::UDP_GRO, &1452_i32.to_ne_bytes());
        control.push(libc::SOL_IP, libc::IP_TOS, &[3]);
        control.push(99, 1, b"whatever");
        let mapped =
            [[0; 10].as_slice(), &[0xff, 0xff, 10, 0, 0, 9], &7_u32.to_ne_bytes()].concat();
        control.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, &mapped);
        let at = Source { address: "10.0.0.9".parse().unwrap(), interface: NonZeroU32::new(7) };
        assert_eq!(control.read(), Accompanied { at: Some(at), tos: 3, segment: Some(1452) });
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(
            address: IpAddr, interface: u32, tos: u8, has_source: bool,
        ) {
            let address = address.to_canonical();
            let from = Source { address, interface: NonZeroU32::new(interface) };
            let at = Some(from).filter(|_| has_source);
            let control = Control::new(address.is_ipv4(), at, tos, None);
            prop_assert_eq!(control.read(), Accompanied { at, tos, segment: None });
        }

        #[test]
        fn no_bytes_are_too_odd(
            bytes in proptest::collection::vec(0..30_u8, ROOM), length in 0..=2 * ROOM,
        ) {
            let bytes = bytes.try_into().unwrap();
            let control = Control { bytes, length };
            prop_assert!(control.entries().count() <= ROOM / HEADER);
        }
    }
}
