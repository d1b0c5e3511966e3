//! IPv4 and IPv6 addresses from text, in one pass over its bytes.
//!
//! Contract: IPv6 is taken as [`Ipv6Addr`] takes it, IPv4 with one to four parts as xtables does. A large ruleset
//! is made of addresses, and the standard library's reader, which can go back at any place, takes four times as long.

use std::net::Ipv6Addr;

/// Dotted decimal with one to four parts; missing parts are 0, as in `10/8`.
pub(crate) fn ipv4(text: &str) -> Option<[u8; 4]> {
    let (mut octets, mut part) = ([0; 4], 0);
    let mut value: Option<u32> = None;
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => {
                let more = value.unwrap_or(0) * 10 + u32::from(byte - b'0');
                value = Some(more).filter(|value| *value <= 0xff);
                value?;
            }
            b'.' => {
                *octets.get_mut(part)? = value.take()? as u8;
                part += 1;
            }
            _ => return None,
        }
    }
    *octets.get_mut(part)? = value? as u8;
    Some(octets)
}

/// Eight groups of hex digits, of which `::` may stand for some; the last two may be an IPv4 address.
pub(crate) fn ipv6(text: &str) -> Option<[u8; 16]> {
    let with_ipv4 = || text.contains('.').then(|| text.parse::<Ipv6Addr>().ok())?;
    hex_groups(text).or_else(|| with_ipv4().map(|addr| addr.octets()))
}

fn hex_groups(text: &str) -> Option<[u8; 16]> {
    let (mut groups, mut count, mut gap) = ([0_u16; 8], 0, None);
    let mut left = text.as_bytes();
    if let [b':', b':', rest @ ..] = left {
        (left, gap) = (rest, Some(0));
    }
    while !left.is_empty() {
        let (group, rest) = hex_group(left)?;
        *groups.get_mut(count)? = group;
        count += 1;
        left = match (rest, gap) {
            ([], _) => rest,
            ([b':', b':', rest @ ..], None) => {
                gap = Some(count);
                rest
            }
            ([b':', rest @ ..], _) if !rest.is_empty() => rest,
            _ => return None,
        };
    }
    match gap {
        None if count == 8 => {}
        // It stands for one group at least.
        Some(gap) if count < 8 => groups[gap..].rotate_right(8 - count),
        _ => return None,
    }
    let mut bytes = [0; 16];
    for (two, group) in bytes.chunks_exact_mut(2).zip(groups) {
        two.copy_from_slice(&group.to_be_bytes());
    }
    Some(bytes)
}

/// One to four hex digits, and the rest of the text.
fn hex_group(text: &[u8]) -> Option<(u16, &[u8])> {
    let (mut value, mut len) = (0, 0);
    for byte in text {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => break,
        };
        if len == 4 {
            return None;
        }
        value = value << 4 | u16::from(digit);
        len += 1;
    }
    (len > 0).then_some((value, &text[len..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(text: &str) {
        let expected = text.parse::<Ipv6Addr>().ok().map(|addr| addr.octets());
        assert_eq!(ipv6(text), expected, "{text}");
    }

    #[test]
    fn ipv6_is_read_as_the_standard_library_reads_it() {
        for text in [
            "",
            ":",
            "::",
            ":::",
            "1",
            "1:",
            ":1",
            "1::",
            "::1",
            "::1::",
            "1::2::3",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "1:2:3:4:5:6:7:8::",
            "1:2:3:4::5:6:7:8",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "12345::",
            "g::",
            "1::g",
            "FE80::A",
            "::ffff:1.2.3.4",
            "1.2.3.4",
            "::1.2.3",
            "+1::",
            "1 ::",
            "::1 ",
        ] {
            same(text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn any_ipv6_is_read_as_the_standard_library_reads_it(text in "[0-9a-fA-F:.]{0,24}") {
            same(&text);
        }

        #[test]
        fn groups_are_read_as_the_standard_library_reads_them(
            text in "(:{0,2}[0-9a-f]{1,4}){0,9}:{0,2}"
        ) {
            same(&text);
        }

        #[test]
        fn printed_addresses_are_read(groups in any::<[u16; 8]>(), zeros in any::<u8>()) {
            let groups: Vec<u16> = groups.iter().enumerate()
                .map(|(at, group)| if zeros >> at & 1 == 1 { 0 } else { *group })
                .collect();
            let groups: [u16; 8] = groups.try_into().unwrap();
            same(&Ipv6Addr::from(groups).to_string());
        }
    }

    #[test]
    fn ipv4_has_one_to_four_parts() {
        assert_eq!(ipv4("10.1.2.3"), Some([10, 1, 2, 3]));
        assert_eq!(ipv4("10"), Some([10, 0, 0, 0]));
        assert_eq!(ipv4("010.0000000255"), Some([10, 255, 0, 0]));
        for text in [
            "",
            ".",
            "1.",
            ".1",
            "1..2",
            "256",
            "1.2.3.4.",
            "1.2.3.4.5",
            "-1",
            "1.2.3.400",
            "4294967297",
        ] {
            assert_eq!(ipv4(text), None, "{text}");
        }
    }
}
