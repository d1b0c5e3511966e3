//! The Internet checksum: whole sums, pseudo headers, and updates of a stored checksum.
//!
//! Source: RFC 1071 (sum), RFC 1624 (update), RFC 9293 and RFC 8200 (pseudo headers). Numbers are in
//! host byte order, as read big endian from the packet.

/// Ones' complement sum of the 16-bit words of `bytes`, folded to 16 bits; an odd last byte is padded
/// with zero. A header that includes its own correct checksum sums to 0xffff.
///
/// The sum is formed in words of 32 bits in the machine's byte order, which gives the same sum with its two bytes in
/// the machine's order (RFC 1071, 2 (B) and (C)).
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<4>();
    let total: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let last = match *rest {
        [] => [0; 4],
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c, ..] => [a, b, c, 0],
    };
    u16::from_be(fold(total + u64::from(u32::from_ne_bytes(last))))
}

/// Adds two folded sums; the first one must be of an even number of bytes.
#[inline]
#[must_use]
pub const fn add(a: u16, b: u16) -> u16 {
    // A carry is added at the other end, where it makes none: the sum is 0xfffe at most then.
    let (sum, carries) = a.overflowing_add(b);
    sum + carries as u16
}

/// Sum of the IPv4 pseudo header of a `len`-byte upper-layer packet.
#[inline]
#[must_use]
pub fn pseudo_v4(source: [u8; 4], destination: [u8; 4], protocol: u8, len: u16) -> u16 {
    add(add(sum(&source), sum(&destination)), add(u16::from(protocol), len))
}

/// Sum of the IPv6 pseudo header of a `len`-byte upper-layer packet.
#[inline]
#[must_use]
pub fn pseudo_v6(source: [u8; 16], destination: [u8; 16], protocol: u8, len: u32) -> u16 {
    add(add(sum(&source), sum(&destination)), fold(u64::from(protocol) + u64::from(len)))
}

/// The checksum of a header in which one 16-bit word changes from `old` to `new` (RFC 1624, equation 3).
#[inline]
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
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

/// Folds a sum to 16 bits. Each step leaves a carry of fewer bits: 33 bits, 18 and 17 are left, and then none.
const fn fold(total: u64) -> u16 {
    let total = (total >> 32) + (total & 0xffff_ffff);
    let total = (total >> 16) + (total & 0xffff);
    let total = (total >> 16) + (total & 0xffff);
    ((total >> 16) + (total & 0xffff)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_word() -> impl Strategy<Value = u16> {
        prop_oneof![any::<u16>(), Just(0), Just(0xffff), Just(1), Just(0xfffe)]
    }

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

    /// What the functions above compute, as RFC 1071 describes it: word after word, each carry added at once.
    fn slow_sum(bytes: &[u8]) -> u16 {
        let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        bytes.chunks(2).map(word).fold(0, slow_add)
    }

    fn slow_add(a: u16, b: u16) -> u16 {
        let total = u32::from(a) + u32::from(b);
        if total > 0xffff { (total - 0xffff) as u16 } else { total as u16 }
    }

    /// `cargo test -p tamis-packet --lib checksum::tests::how_long -- --ignored --nocapture`
    #[test]
    #[ignore = "measures"]
    fn how_long_it_takes() {
        use std::hint::black_box;
        use std::time::Instant;

        let time = |name: &str, one: &dyn Fn(u16) -> u16| {
            let rounds = (0..7).map(|_| {
                let start = Instant::now();
                let last = (0..1_000_000_u32).fold(0, |last, at| one(last ^ at as u16));
                black_box(last);
                start.elapsed().as_nanos() / 100_000
            });
            let tenths = rounds.min().unwrap_or_default();
            println!("{name}: {}.{} ns", tenths / 10, tenths % 10);
        };
        time("update", &|word| update(word, black_box(word), 0x1234));
        time("six updates", &|word| (0..6).fold(word, |sum, at| update(sum, word ^ at, at)));
        for len in [4, 20, 64, 1440] {
            let bytes = vec![0x5a_u8; len];
            time(&format!("sum of {len} bytes"), &|word| word ^ sum(black_box(&bytes)));
        }
    }

    /// The longest sums there can be, and those at which a step of folding carries.
    #[test]
    fn folding_loses_no_carry() {
        let ends =
            [0_u64, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, 0xffff_ffff_0000, u64::MAX];
        for end in ends {
            for total in (0..=70_000).flat_map(|by| [end.wrapping_add(by), end.wrapping_sub(by)]) {
                let expected = match total % 0xffff {
                    0 if total > 0 => 0xffff,
                    rest => rest as u16,
                };
                assert_eq!(fold(total), expected, "{total:#x}");
            }
        }
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_slow_way(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xff), Just(0)], 0..100),
            start in 0..4_usize,
        ) {
            let bytes = bytes.get(start..).unwrap_or_default();
            prop_assert_eq!(sum(bytes), slow_sum(bytes));
        }

        #[test]
        fn adding_and_updating_are_those_of_the_slow_way(
            a in any_word(), b in any_word(), checksum in any_word(),
        ) {
            prop_assert_eq!(add(a, b), slow_add(a, b));
            prop_assert_eq!(update(checksum, a, b), !slow_add(slow_add(!checksum, !a), b));
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
