//! Codes of the protocols that rules test, and the word that tells which of them refuse a packet.

use crate::header::ProtocolTest;
use packet::{dccp, esp, gre, icmpv4, icmpv6, sctp, tcp, udp};

/// The bits of a code.
pub(super) const CODE: u64 = 0x3f;
/// What is added to the code of an inverted test.
const NOT: u64 = 32;
/// The protocols that have codes, from 1 on: those that extensions look into, and those that firewalls usually accept.
const CODED: [u8; 15] = [
    tcp::PROTOCOL,
    udp::PROTOCOL,
    icmpv4::PROTOCOL,
    icmpv6::PROTOCOL,
    gre::PROTOCOL,
    esp::PROTOCOL,
    packet::ah::PROTOCOL,
    sctp::PROTOCOL,
    dccp::PROTOCOL,
    2,
    4,
    41,
    89,
    112,
    136,
];
/// The code of each protocol; 0 for a protocol without one.
static CODES: [u8; 256] = codes();

const fn codes() -> [u8; 256] {
    let (mut codes, mut at) = ([0; 256], 0);
    while at < CODED.len() {
        codes[CODED[at] as usize] = at as u8 + 1;
        at += 1;
    }
    codes
}

/// The code of a test, if its protocol has one.
pub(super) fn code(test: ProtocolTest) -> Option<u64> {
    let code = u64::from(CODES[usize::from(test.number)]);
    (code != 0).then_some(if test.invert { code + NOT } else { code })
}

/// The code of a packet's protocol; 0 for a protocol without one.
#[inline]
pub(super) fn code_of(protocol: u8) -> u64 {
    CODES[usize::from(protocol)].into()
}

/// A word with a bit for each code: whether that test refuses a packet of this protocol. Where it is not known, none
/// does.
#[inline]
pub(super) fn refused(protocol: Option<u8>) -> u64 {
    /// The codes of tests that are not inverted.
    const PLAIN: u64 = 0xffff_fffe;
    let Some(protocol) = protocol else { return 0 };
    let is = 1 << CODES[usize::from(protocol)];
    // For a protocol without a code, `is` is the bit of no plain test, and `is << NOT` of no inverted test.
    PLAIN & !is | is << NOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_refuses_the_protocols_that_it_is_to() {
        for number in 0..=255 {
            for invert in [false, true] {
                let Some(code) = code(ProtocolTest { number, invert }) else { continue };
                assert!(code <= CODE && CODED.contains(&number));
                assert_eq!(refused(None) >> code & 1, 0);
                for is in 0..=255 {
                    let expected = u64::from((is == number) == invert);
                    assert_eq!(refused(Some(is)) >> code & 1, expected, "{code} of {is}");
                }
            }
            assert_eq!(refused(Some(number)) & 1, 0, "no test refuses {number}");
        }
    }
}
