//! What the words of a rule say of a packet.
//!
//! Contract: a rule that the words refuse does not match. Tests without side effects are asked in whatever order is
//! quickest; what a packet leaves unknown is left to be asked of the rule, in its own order. The words of a rule are
//! whole ([`super::fault`]): one of none would be read for ever.

use super::edit::{addresses_of, interfaces_of, len_of, ports_of};
use super::head::{
    ADDRESS_WORDS, DESTINATION, INPUT, MATCHES, MORE, NOT_DESTINATION, NOT_INPUT, NOT_OUTPUT,
    NOT_SOURCE, OUTPUT, PAIR, PORTS, PROTOCOL, SOURCE, V4, V6, V6_MASKED, destination_form,
    source_form,
};
use super::protocol;
use crate::eval::{HeaderTest, Key, Port};

/// The bits of a head that say which addresses are tested, and how.
pub(super) const ADDRESSES: u64 = PAIR | 3 << SOURCE | 3 << DESTINATION;
const V4_SOURCE: u64 = V4 << SOURCE;
const V4_DESTINATION: u64 = V4 << DESTINATION;
/// The bits of a head that say which protocol is tested, and how.
const PROTOCOL_TEST: u64 = protocol::CODE << PROTOCOL;

/// What the tests of a rule say.
pub(crate) fn test(words: &[u64], key: &Key<'_>) -> HeaderTest {
    let head = words[0];
    if has_addresses(head) {
        if !key.addresses_known() {
            return HeaderTest::Ask;
        }
        if refuses_packed(head, addresses_of(words), key) {
            return HeaderTest::No;
        }
    }
    match interfaces(head, words, key) {
        Some(false) => HeaderTest::No,
        Some(true) => rest(head, ports_of(words), key),
        None => rest(head | MORE, ports_of(words), key),
    }
}

/// Whether the interfaces pass; `None` where a tested interface is not known.
fn interfaces(head: u64, words: &[u64], key: &Key<'_>) -> Option<bool> {
    let [input, output] = interfaces_of(words);
    let one = |test: Option<u64>, port: &Port<'_>, invert: u64| {
        test.map_or(Some(true), |test| Some((port.word()? == test) != (head & invert != 0)))
    };
    match (one(input, &key.input, NOT_INPUT), one(output, &key.output, NOT_OUTPUT)) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Whether the rule tests an address.
#[inline]
pub fn has_addresses(head: u64) -> bool {
    head & ADDRESSES != 0
}

/// What is left to say once the addresses have passed; `ports` is the word of ports, if there is one.
#[inline]
pub fn rest(head: u64, ports: Option<u64>, key: &Key<'_>) -> HeaderTest {
    if refuses_protocol(head, protocol::refused(key.protocol)) {
        return HeaderTest::No;
    }
    let asks_header = head & (MORE | open_tests(key)) != 0;
    let mut asks_matches = head & MATCHES != 0;
    if let Some(ports) = ports {
        match key.ports {
            Some(is) if !accepts_ports(ports, is) => return HeaderTest::No,
            Some(_) => {}
            None => asks_matches = true,
        }
    }
    match (asks_header, asks_matches) {
        (true, _) => HeaderTest::Ask,
        (false, true) => HeaderTest::AskMatches,
        (false, false) => HeaderTest::Yes,
    }
}

/// What rules say of a packet whose addresses are known; its protocol and its ports may be missing.
impl Key<'_> {
    /// Skips rules that refuse the packet, and rules passed by [`Key::pass_like`] that match and only count. Returns
    /// words and number of the rules before the first other one.
    ///
    /// What refuses most rules is asked first: the protocol, for which a rule's head is enough, and ports.
    #[inline]
    pub(super) fn skip(&self, words: &[u64], count: &mut impl FnMut(u32)) -> (usize, usize) {
        let refused = protocol::refused(self.protocol);
        let (known_ports, ports) = self.ports.map_or((0, [0; 2]), |ports| (PORTS, ports));
        let (mut at, mut read) = (0, 0);
        while let Some(&head) = words.get(at) {
            let next = at + len_of(head);
            if !refuses_protocol(head, refused) {
                if head & known_ports != 0 {
                    let test = words.get(at + 1).copied().unwrap_or_default();
                    if accepts_ports(test, ports) && !self.refuses(head, 2, words, at) {
                        break;
                    }
                } else if !self.refuses(head, 1 + usize::from(head & PORTS != 0), words, at) {
                    break;
                } else {
                    let after = words.get(next..).unwrap_or_default();
                    let passed = self.pass_like(head, after, count);
                    at = next + passed * (next - at);
                    read += 1 + passed;
                    continue;
                }
            }
            (at, read) = (next, read + 1);
        }
        (at, read)
    }

    /// Whether the addresses refuse the packet: their tests are `from` words after the head, which stands at `at`.
    #[inline]
    pub(super) fn refuses(&self, head: u64, from: usize, words: &[u64], at: usize) -> bool {
        let form = head & (ADDRESSES | NOT_SOURCE | NOT_DESTINATION);
        if form == 0 {
            return false;
        }
        let words = words.get(at + from..).unwrap_or_default();
        let first = words.first().copied().unwrap_or_default();
        match form {
            V4_SOURCE => !passes_v4(first, self.source_words[0]),
            V4_DESTINATION => !passes_v4(first, self.destination_words[0]),
            PAIR => first != self.pair(),
            _ => refuses_packed(head, words, self),
        }
    }

    /// What is left to say of a rule that does not refuse the packet by its protocol, its addresses or its ports.
    #[inline]
    pub(super) fn rest(&self, head: u64, rule: &[u64]) -> HeaderTest {
        let mut asks_header = head & (MORE | open_tests(self)) != 0;
        if head & (INPUT | OUTPUT) != 0 {
            match interfaces(head, rule, self) {
                Some(false) => return HeaderTest::No,
                Some(true) => {}
                None => asks_header = true,
            }
        }
        let asked = if self.ports.is_some() { MATCHES } else { MATCHES | PORTS };
        match (asks_header, head & asked != 0) {
            (true, _) => HeaderTest::Ask,
            (false, true) => HeaderTest::AskMatches,
            (false, false) => HeaderTest::Yes,
        }
    }
}

/// The bits of a head that say that there is a test of the protocol, if that is not known.
#[inline]
fn open_tests(key: &Key<'_>) -> u64 {
    if key.protocol.is_none() { PROTOCOL_TEST } else { 0 }
}

/// Whether a head's test of the protocol, if there is one, fails; `refused` is the packet's [`protocol::refused`].
#[inline]
pub(super) fn refuses_protocol(head: u64, refused: u64) -> bool {
    refused >> (head >> PROTOCOL & protocol::CODE) & 1 != 0
}

/// Whether source and destination port are in the ranges of a word of ports.
#[inline]
fn accepts_ports(word: u64, [source, destination]: [u16; 2]) -> bool {
    let in_range = |range: u64, port: u16| port.wrapping_sub(range as u16) <= (range >> 16) as u16;
    in_range(word >> 32, destination) && in_range(word, source)
}

/// Whether the addresses, which are known, are refused: their tests are the first of `words`.
#[inline]
fn refuses_packed(head: u64, words: &[u64], key: &Key<'_>) -> bool {
    let source = ADDRESS_WORDS[source_form(head) as usize];
    let after = words.get(source..).unwrap_or_default();
    refuses_addresses(head, [words, after], key)
}

/// Tests the addresses where they lie apart: a pair or the source's, and the destination's.
#[inline]
pub fn refuses_addresses(head: u64, [first, destination]: [&[u64]; 2], key: &Key<'_>) -> bool {
    if head & PAIR != 0 {
        return first.first() != Some(&key.pair());
    }
    let (not_source, not_destination) = (head & NOT_SOURCE != 0, head & NOT_DESTINATION != 0);
    refuses(source_form(head), not_source, first, key.source_words)
        || refuses(destination_form(head), not_destination, destination, key.destination_words)
}

#[inline]
fn refuses(form: u64, invert: bool, words: &[u64], addr: [u64; 2]) -> bool {
    form != 0 && passes(form, words, addr) == invert
}

/// Whether an address passes a test of this form, `!` aside.
#[inline]
fn passes(form: u64, words: &[u64], [low, high]: [u64; 2]) -> bool {
    match (form, words) {
        (V4, [test, ..]) => passes_v4(*test, low),
        (V6, [a, b, ..]) => low == *a && high == *b,
        (V6_MASKED, [a, b, mask_a, mask_b, ..]) => low & mask_a == *a && high & mask_b == *b,
        _ => false,
    }
}

/// An address below its mask.
#[inline]
fn passes_v4(test: u64, addr: u64) -> bool {
    addr & (test >> 32) == test & 0xffff_ffff
}
