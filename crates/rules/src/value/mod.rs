//! The values that options take, read and printed the way xtables does: numbers in any base, value/mask pairs, MAC
//! addresses, IP addresses and prefixes; ports in [`ports`].
//!
//! Source: iptables `xtables_strtoui`, `xtoptions.c`; addresses as inet_pton(3) reads them.

mod inet;
mod ports;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use ports::{port, service};
pub(crate) use ports::{port_ends, port_range};

/// An unsigned number in C notation (`10`, `0x0a`, `012`) of at most `max`.
#[must_use]
pub(crate) fn number(text: &str, max: u64) -> Option<u64> {
    let value = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        digits(hex, 16)?
    } else if text.len() > 1 && text.starts_with('0') {
        digits(&text[1..], 8)?
    } else {
        digits(text, 10)?
    };
    (value <= max).then_some(value)
}

/// Digits only: `from_str_radix` would take a sign.
fn digits(text: &str, radix: u32) -> Option<u64> {
    let digit = |byte: u8| (byte as char).to_digit(radix).map(u64::from);
    let more = |value: u64, byte| value.checked_mul(radix.into())?.checked_add(digit(byte)?);
    if text.is_empty() { None } else { text.bytes().try_fold(0, more) }
}

/// A number that fits 8 bits.
#[must_use]
pub(crate) fn u8(text: &str) -> Option<u8> {
    number(text, 0xff).map(|value| value as u8)
}

/// A number that fits 16 bits.
#[must_use]
pub(crate) fn u16(text: &str) -> Option<u16> {
    number(text, 0xffff).map(|value| value as u16)
}

/// A number that fits 32 bits.
#[must_use]
pub(crate) fn u32(text: &str) -> Option<u32> {
    number(text, 0xffff_ffff).map(|value| value as u32)
}

/// `value[/mask]` of 32 bits; without a mask all bits count.
#[must_use]
pub(crate) fn masked_u32(text: &str) -> Option<(u32, u32)> {
    match text.split_once('/') {
        Some((value, mask)) => Some((u32(value)?, u32(mask)?)),
        None => Some((u32(text)?, u32::MAX)),
    }
}

/// An inclusive range `a`, `a<separator>b`, `a<separator>` or `<separator>b`, missing ends being 0 and
/// `max`. A range that runs backwards is refused.
#[must_use]
pub(crate) fn range(text: &str, separator: char, max: u64) -> Option<(u64, u64)> {
    let (low, high) = match text.split_once(separator) {
        None => {
            let value = number(text, max)?;
            (value, value)
        }
        Some((low, high)) => (
            if low.is_empty() { 0 } else { number(low, max)? },
            if high.is_empty() { max } else { number(high, max)? },
        ),
    };
    (low <= high).then_some((low, high))
}

/// Returns the words of a comma list, as strtok(3) finds them: empty words are skipped.
pub(crate) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|word| !word.is_empty())
}

/// The first `max` bytes of a name that the tool cuts off there, less if that would split a character.
#[must_use]
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A MAC address of six colon-separated hex bytes.
#[must_use]
pub(crate) fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next()?;
        *byte = (part.len() <= 2).then(|| digits(part, 16))?? as u8;
    }
    parts.next().is_none().then_some(bytes)
}

/// A MAC address as the save tool prints it.
#[must_use]
pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// An address of `len` bytes (4 or 16), in the first bytes of the result.
#[must_use]
pub(crate) fn address(text: &str, len: usize) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if len == 4 {
        bytes[..4].copy_from_slice(&inet::ipv4(text)?);
    } else {
        bytes = inet::ipv6(text)?;
    }
    Some(bytes)
}

/// A mask of `len` bytes: a prefix length or an address.
#[must_use]
pub(crate) fn mask(text: &str, len: usize) -> Option<[u8; 16]> {
    match digits(text, 10) {
        Some(bits) => (bits <= len as u64 * 8).then(|| prefix_mask(bits as usize)),
        None => address(text, len),
    }
}

/// A mask whose first `bits` bits are set.
#[must_use]
pub(crate) fn prefix_mask(bits: usize) -> [u8; 16] {
    let host_bits = u128::MAX.checked_shr(bits as u32).unwrap_or(0);
    (!host_bits).to_be_bytes()
}

/// The prefix length of a mask of `len` bytes, if it is contiguous.
#[must_use]
pub(crate) fn prefix_len(mask: &[u8; 16], len: usize) -> Option<usize> {
    let bits = mask[..len].iter().map(|byte| byte.leading_ones() as usize).enumerate().try_fold(
        (0, true),
        |(bits, open), (index, ones)| match (open, ones) {
            (true, 8) => Some((bits + 8, true)),
            (true, _) if mask[index] == prefix_mask(ones)[0] => Some((bits + ones, false)),
            (false, 0) if mask[index] == 0 => Some((bits, false)),
            _ => None,
        },
    )?;
    Some(bits.0)
}

/// An address of `len` bytes as text.
#[must_use]
pub(crate) fn address_text(addr: &[u8; 16], len: usize) -> String {
    if len == 4 {
        Ipv4Addr::new(addr[0], addr[1], addr[2], addr[3]).to_string()
    } else {
        ipv6_text(Ipv6Addr::from(*addr))
    }
}

/// inet_ntop(3)'s text, which differs from Rust's in one case: `::a.b.c.d` for IPv4-compatible addresses.
fn ipv6_text(addr: Ipv6Addr) -> String {
    let s = addr.segments();
    let compatible = s[..6].iter().all(|part| *part == 0) && s[6] != 0;
    if compatible {
        let [a, b] = s[6].to_be_bytes();
        let [c, d] = s[7].to_be_bytes();
        return format!("::{a}.{b}.{c}.{d}");
    }
    addr.to_string()
}

/// `addr/prefix`, or `addr/mask` for a mask with holes.
#[must_use]
pub(crate) fn network_text(addr: &[u8; 16], mask: &[u8; 16], len: usize) -> String {
    match prefix_len(mask, len) {
        Some(bits) => format!("{}/{bits}", address_text(addr, len)),
        None => format!("{}/{}", address_text(addr, len), address_text(mask, len)),
    }
}

/// Writes a network, but without a mask that covers all of the address.
#[must_use]
pub(crate) fn short_network_text(addr: &[u8; 16], mask: &[u8; 16], len: usize) -> String {
    match prefix_len(mask, len) {
        Some(bits) if bits == len * 8 => address_text(addr, len),
        _ => network_text(addr, mask, len),
    }
}

/// ARP operations from 1 on, as the tools name them.
pub(crate) const ARP_OPERATIONS: [&str; 9] = [
    "Request",
    "Reply",
    "Request_Reverse",
    "Reply_Reverse",
    "DRARP_Request",
    "DRARP_Reply",
    "DRARP_Error",
    "InARP_Request",
    "ARP_NAK",
];

/// The number of an ARP operation's name.
#[must_use]
pub(crate) fn arp_operation(name: &str) -> Option<u16> {
    let at = ARP_OPERATIONS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    Some(at as u16 + 1)
}

/// Names of sets of MAC addresses, with address and mask.
const MAC_NAMES: [(&str, [u8; 6], [u8; 6]); 4] = [
    ("Unicast", [0; 6], [1, 0, 0, 0, 0, 0]),
    ("Multicast", [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]),
    ("Broadcast", [0xff; 6], [0xff; 6]),
    ("BGA", [1, 0x80, 0xc2, 0, 0, 0], [0xff; 6]),
];

/// `MAC[/MASK]` or the name of a set of them; the address comes back masked.
#[must_use]
pub(crate) fn masked_mac(text: &str) -> Option<([u8; 6], [u8; 6])> {
    if let Some((_, addr, mask)) = MAC_NAMES.iter().find(|(n, ..)| n.eq_ignore_ascii_case(text)) {
        return Some((*addr, *mask));
    }
    let (addr, mask) = match text.split_once('/') {
        Some((addr, mask)) => (mac(addr)?, mac(mask)?),
        None => (mac(text)?, [0xff; 6]),
    };
    Some((std::array::from_fn(|i| addr[i] & mask[i]), mask))
}

/// `MAC[/MASK]`.
#[must_use]
pub(crate) fn masked_mac_text(addr: [u8; 6], mask: [u8; 6]) -> String {
    if mask == [0xff; 6] {
        mac_text(addr)
    } else {
        format!("{}/{}", mac_text(addr), mac_text(mask))
    }
}

/// `MAC[/MASK]`, or the name of such a set.
#[must_use]
pub(crate) fn masked_mac_name(addr: &[u8], mask: &[u8]) -> String {
    let named = MAC_NAMES.iter().find(|(_, a, m)| a == addr && m == mask);
    let chunk = |bytes: &[u8]| bytes.first_chunk().copied().unwrap_or_default();
    named.map_or_else(|| masked_mac_text(chunk(addr), chunk(mask)), |(name, ..)| (*name).to_owned())
}

/// `address[/mask]` of `len` bytes; the address comes back masked.
#[must_use]
pub(crate) fn network(text: &str, len: usize) -> Option<([u8; 16], [u8; 16])> {
    // Most are too short for memchr to pay.
    let (addr, mask) = match text.bytes().position(|byte| byte == b'/') {
        Some(at) => (address(&text[..at], len)?, mask(&text[at + 1..], len)?),
        None => (address(text, len)?, prefix_mask(len * 8)),
    };
    let masked = u128::from_ne_bytes(addr) & u128::from_ne_bytes(mask);
    Some((masked.to_ne_bytes(), mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_three_bases_without_signs() {
        assert_eq!(number("0x1F", 255), Some(31));
        assert_eq!(number("017", 255), Some(15));
        assert_eq!(number("256", 255), None);
        assert_eq!(number("-1", 255), None);
        assert_eq!(number("+1", 255), None);
        assert_eq!(number("", 255), None);
        assert_eq!(number("0x", 255), None);
        assert_eq!(number("0", 255), Some(0));
    }

    #[test]
    fn prefix_lengths_of_masks() {
        for bits in 0..=128 {
            assert_eq!(prefix_len(&prefix_mask(bits), 16), Some(bits));
        }
        for bits in 0..=32 {
            assert_eq!(prefix_len(&prefix_mask(bits), 4), Some(bits));
        }
        assert_eq!(prefix_len(&address("255.0.255.0", 4).unwrap(), 4), None);
        assert_eq!(prefix_len(&address("255.253.0.0", 4).unwrap(), 4), None);
        assert_eq!(prefix_len(&address("255.0.12.0", 4).unwrap(), 4), None);
    }

    #[test]
    fn networks_read_and_print() {
        let print = |text: &str, len| {
            let (addr, mask) = network(text, len).unwrap();
            network_text(&addr, &mask, len)
        };
        assert_eq!(print("10.1.2.3/8", 4), "10.0.0.0/8");
        assert_eq!(print("10/8", 4), "10.0.0.0/8");
        assert_eq!(print("10.1.2.3/255.0.255.0", 4), "10.0.2.0/255.0.255.0");
        assert_eq!(print("2001:db8::1", 16), "2001:db8::1/128");
        assert_eq!(print("::ffff:1.2.3.4", 16), "::ffff:1.2.3.4/128");
        assert!(network("10.0.0.0/33", 4).is_none());
        assert!(network("10.0.0.256", 4).is_none());
    }

    #[test]
    fn names_are_cut_at_a_character() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc");
        assert_eq!(cut("ab\u{e9}", 3), "ab");
    }

    #[test]
    fn macs_take_one_or_two_digits() {
        assert_eq!(mac("2:0:A:bb:0c:1"), Some([2, 0, 10, 0xbb, 12, 1]));
        assert_eq!(mac("02:00:00:00:00"), None);
        assert_eq!(mac("02:00:00:00:00:00:00"), None);
        assert_eq!(mac_text([2, 0, 10, 0xbb, 12, 1]), "02:00:0a:bb:0c:01");
    }
}
