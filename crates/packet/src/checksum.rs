//! The Internet checksum: whole sums, pseudo headers, and updates of a stored checksum.
//!
//! Source: RFC 1071 (sum), RFC 1624 (update), RFC 9293 and RFC 8200 (pseudo headers). Numbers are in
//! host byte order, as read big endian from the packet.

/// Ones' complement sum of the 16-bit words of `bytes`, folded to 16 bits; an odd last byte is padded
/// with zero. A header that includes its own correct checksum sums to 0xffff.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    if bytes.len() >= LONG {
        return sum_long(bytes);
    }
    let (words, rest) = bytes.as_chunks::<2>();
    let total: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    fold(total + rest.first().map_or(0, |last| u64::from(*last) << 8))
}

/// Bytes from which on words of 32 bits are worth it: a quarter of the time at 1,400 bytes.
const LONG: usize = 64;

/// The same in words of 32 bits, in the machine's byte order: the sum does not depend on it (RFC 1071, section 2 B).
fn sum_long(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<4>();
    let total: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    u16::from_be(fold(total + u64::from(u32::from_ne_bytes(last))))
}

/// Adds two folded sums; the first one must be of an even number of bytes.
#[inline]
#[must_use]
pub fn add(a: u16, b: u16) -> u16 {
    fold(u64::from(a) + u64::from(b))
}

/// Sum of the IPv4 pseudo header of a `len`-byte upper-layer packet.
#[must_use]
pub fn pseudo_v4(source: [u8; 4], destination: [u8; 4], protocol: u8, len: u16) -> u16 {
    add(add(sum(&source), sum(&destination)), add(u16::from(protocol), len))
}

/// Sum of the IPv6 pseudo header of a `len`-byte upper-layer packet.
#[must_use]
pub fn pseudo_v6(source: [u8; 16], destination: [u8; 16], protocol: u8, len: u32) -> u16 {
    add(add(sum(&source), sum(&destination)), fold(u64::from(protocol) + u64::from(len)))
}

/// The checksum of a header in which one 16-bit word changes from `old` to `new` (RFC 1624, equation 3).
#[inline]
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// Completes a checksum that its sender left to others: the field at `start + offset` holds the sum of the pseudo
/// header, and all bytes of `packet` from `start` on are to be covered. It ends where its packet does, without
/// padding. A checksum of 0 is written as 0xffff, which says the same and is no UDP datagram without one.
///
/// False, and nothing changes, where the field is not in `packet`. Source: Linux `skb_checksum_help`.
pub fn complete(packet: &mut [u8], start: usize, offset: usize) -> bool {
    let covered = packet.get(start..).map_or(0, sum);
    let field = start.checked_add(offset).and_then(|at| packet.get_mut(at..)?.first_chunk_mut());
    let Some(field) = field else { return false };
    let checksum = if covered == u16::MAX { u16::MAX } else { !covered };
    *field = checksum.to_be_bytes();
    true
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, section 3: the example sum is 0xddf2.
    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    /// RFC 1624, section 4: 0xdd2f with 0x5555 becoming 0x3285 must give 0x0000, not 0xffff.
    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_odd_byte_is_the_high_half_of_its_word() {
        assert_eq!(sum(&[0x12]), 0x1200);
    }

    #[test]
    fn updating_equals_summing_again() {
        let mut header = [0x45, 0, 0, 60, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let before = !sum(&header);
        header[8] = 63;
        assert_eq!(update(before, 0x4006, 0x3f06), !sum(&header));
    }

    /// Word by word, as RFC 1071 has it.
    fn slowly(bytes: &[u8]) -> u16 {
        bytes.chunks(2).fold(0, |total, word| {
            add(total, u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))
        })
    }

    proptest! {
        #[test]
        fn long_sums_are_those_of_the_rfc(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(sum(&bytes), slowly(&bytes));
        }

        /// The field may lie anywhere in what is covered, odd lengths included: then all of it sums to 0xffff.
        #[test]
        fn a_completed_checksum_is_right(
            mut packet in proptest::collection::vec(any::<u8>(), 0..60),
            start in 0..60_usize,
            offset in (0..30_usize).prop_map(|half| half * 2),
            pseudo in any::<u16>(),
        ) {
            let before = packet.clone();
            let at = start + offset;
            let Some(field) = packet.get_mut(at..at + 2) else {
                prop_assert!(!complete(&mut packet, start, offset));
                prop_assert_eq!(packet, before);
                return Ok(());
            };
            field.copy_from_slice(&pseudo.to_be_bytes());
            prop_assert!(complete(&mut packet, start, offset));
            prop_assert_ne!(&packet[at..at + 2], &[0, 0]);
            prop_assert_eq!(add(sum(&packet[start..]), pseudo), u16::MAX);
            prop_assert_eq!((&packet[..at], &packet[at + 2..]), (&before[..at], &before[at + 2..]));
        }
    }
}
