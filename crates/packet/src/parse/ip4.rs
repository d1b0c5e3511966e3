//! IPv4: the tests of Linux `net/ipv4/ip_input.c`, `ip_rcv_core`, in its order.

use super::checks::{Checksums, whole};
use crate::bytes::{Read, ReadAt, Snap};
use crate::checksum;
use crate::field::{be16, byte};
use crate::headers::{Headers, L3, L3Fault, L4, Upper};
use crate::ipv4::{self, MIN_HEADER_LEN};

/// Finds the IPv4 header at `headers.network` and the upper-layer header after it.
#[inline]
pub(super) fn parse(
    frame: Snap<'_>,
    checksums: Checksums,
    headers: &mut Headers,
) -> Result<(), L3> {
    let network = headers.network;
    let header = match frame.read_at::<MIN_HEADER_LEN>(network) {
        Read::Unknown => return Err(first_byte(frame, network)),
        read => whole(read)?,
    };
    let header_len = ipv4::header_len(byte(&header, ipv4::VERSION_IHL));
    accept(frame, network, header_len, &header, checksums)?;
    let total_len = usize::from(be16(&header, ipv4::TOTAL_LEN));
    headers.offload = total_len == 0;
    if !headers.offload {
        headers.end = network + total_len;
    }
    headers.l3 = L3::Ipv4 { header_len };
    headers.l4 = upper(&header, network + header_len);
    Ok(())
}

/// The tests of `ip_rcv_core` on a header of which the fixed part is known.
#[inline]
fn accept(
    frame: Snap<'_>,
    network: usize,
    header_len: usize,
    header: &[u8; MIN_HEADER_LEN],
    checksums: Checksums,
) -> Result<(), L3> {
    version_and_len(byte(header, ipv4::VERSION_IHL)).map_err(L3::Fault)?;
    let available = frame.end() - network;
    if header_len > available {
        return Err(L3::Fault(L3Fault::HeaderLength));
    }
    if checksums == Checksums::Verify {
        verify(frame.slice(network, header_len))?;
    }
    let total_len = usize::from(be16(header, ipv4::TOTAL_LEN));
    // A total length of 0 with bytes after the header is a packet that the capturing host had not cut
    // to segments yet.
    let is_offload = total_len == 0 && available > header_len;
    if !is_offload && (total_len > available || total_len < header_len) {
        return Err(L3::Fault(L3Fault::Length));
    }
    Ok(())
}

fn version_and_len(version_ihl: u8) -> Result<(), L3Fault> {
    if version_ihl >> 4 != 4 {
        return Err(L3Fault::Version);
    }
    if ipv4::header_len(version_ihl) < MIN_HEADER_LEN {
        return Err(L3Fault::HeaderLength);
    }
    Ok(())
}

/// The header was on the wire but is not all captured; its first byte may still refuse it.
fn first_byte(frame: Snap<'_>, network: usize) -> L3 {
    match frame.read_at::<1>(network) {
        Read::Known([first]) => version_and_len(first).map_or_else(L3::Fault, |()| L3::Unknown),
        Read::Unknown | Read::Absent => L3::Unknown,
    }
}

fn verify(header: Read<&[u8]>) -> Result<(), L3> {
    match header {
        Read::Known(bytes) if checksum::sum(bytes) == 0xffff => Ok(()),
        Read::Known(_) | Read::Absent => Err(L3::Fault(L3Fault::Checksum)),
        Read::Unknown => Err(L3::Unknown),
    }
}

/// The upper-layer header at `offset`, or which fragment it is.
#[inline]
pub(super) fn upper(header: &[u8; MIN_HEADER_LEN], offset: usize) -> L4 {
    let protocol = byte(header, ipv4::PROTOCOL);
    match be16(header, ipv4::FRAGMENT) & ipv4::OFFSET_MASK {
        0 => L4::Upper(Upper { protocol, offset }),
        offset => L4::Fragment { protocol, offset },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;
    use crate::parse as parse_frame;

    /// A 40-byte packet, header checksum correct.
    fn packet() -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 40, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let checksum = !checksum::sum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.resize(40, 0);
        bytes
    }

    fn headers(bytes: &[u8], wire_len: usize) -> Headers {
        parse_frame(Link::Ipv4, bytes, wire_len, Checksums::Verify)
    }

    fn l3_with(patch: &[(usize, u8)]) -> L3 {
        let mut bytes = packet();
        for (at, value) in patch {
            bytes[*at] = *value;
        }
        parse_frame(Link::Ipv4, &bytes, bytes.len(), Checksums::Ignore).l3
    }

    #[test]
    fn a_good_header_is_followed_by_its_upper_layer() {
        let found = headers(&packet(), 40);
        assert_eq!(found.l3, L3::Ipv4 { header_len: 20 });
        assert_eq!(found.l4, L4::Upper(Upper { protocol: 6, offset: 20 }));
        assert_eq!((found.network, found.end, found.offload), (0, 40, false));
    }

    #[test]
    fn what_the_kernel_drops_before_its_hooks_is_a_fault() {
        assert_eq!(l3_with(&[(0, 0x55)]), L3::Fault(L3Fault::Version));
        assert_eq!(l3_with(&[(0, 0x44)]), L3::Fault(L3Fault::HeaderLength));
        assert_eq!(l3_with(&[(0, 0x4b)]), L3::Fault(L3Fault::HeaderLength));
        assert_eq!(l3_with(&[(3, 41)]), L3::Fault(L3Fault::Length));
        assert_eq!(l3_with(&[(3, 19)]), L3::Fault(L3Fault::Length));
        assert_eq!(l3_with(&[(0, 0x46), (3, 20)]), L3::Fault(L3Fault::Length));
    }

    #[test]
    fn a_checksum_matters_only_when_verified() {
        let mut bytes = packet();
        bytes[8] = 63;
        assert_eq!(headers(&bytes, 40).l3, L3::Fault(L3Fault::Checksum));
        assert_eq!(l3_with(&[(8, 63)]), L3::Ipv4 { header_len: 20 });
        bytes[8] = 64;
        bytes[0] = 0x46;
        assert_eq!(headers(&bytes[..22], 40).l3, L3::Unknown);
    }

    #[test]
    fn padding_is_trimmed_and_a_zero_length_takes_the_frame() {
        let mut bytes = packet();
        bytes.resize(60, 0);
        assert_eq!(headers(&bytes, 60).end, 40);
        bytes[2..4].copy_from_slice(&[0, 0]);
        let found = parse_frame(Link::Ipv4, &bytes, 70, Checksums::Ignore);
        assert_eq!((found.end, found.offload), (70, true));
        let found = parse_frame(Link::Ipv4, &bytes[..20], 20, Checksums::Ignore);
        assert_eq!(found.l3, L3::Fault(L3Fault::Length));
    }

    #[test]
    fn only_the_first_fragment_has_an_upper_layer() {
        let fragment = |field: [u8; 2]| {
            let mut bytes = packet();
            bytes[6..8].copy_from_slice(&field);
            parse_frame(Link::Ipv4, &bytes, 40, Checksums::Ignore).l4
        };
        assert_eq!(fragment([0x20, 0]), L4::Upper(Upper { protocol: 6, offset: 20 }));
        assert_eq!(fragment([0x20, 1]), L4::Fragment { protocol: 6, offset: 1 });
        assert_eq!(fragment([0x1f, 0xff]), L4::Fragment { protocol: 6, offset: 8191 });
    }

    #[test]
    fn a_cut_header_is_a_fault_on_the_wire_and_unknown_in_the_capture() {
        let bytes = packet();
        for len in 0..20 {
            assert_eq!(headers(&bytes[..len], len).l3, L3::Fault(L3Fault::Truncated));
            assert_eq!(headers(&bytes[..len], 40).l3, L3::Unknown);
        }
        assert_eq!(headers(&[0x65], 40).l3, L3::Fault(L3Fault::Version));
        assert_eq!(headers(&bytes[..20], 40).l3, L3::Ipv4 { header_len: 20 });
    }
}
