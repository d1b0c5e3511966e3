//! What the words of a rule say of a packet.
//!
//! Contract: a rule that the words refuse does not match. Tests without side effects are asked in whatever order is
//! quickest; what a packet leaves unknown is left to be asked of the rule, in its own order.

use super::edit::{addresses_of, interfaces_of, ports_of};
use super::{
    ADDRESS_WORDS, DESTINATION, INPUT, MATCHES, MORE, NOT_DESTINATION, NOT_INPUT, NOT_OUTPUT,
    NOT_PROTOCOL, NOT_SOURCE, OUTPUT, PAIR, PORTS, PROTOCOL, PROTOCOL_NUMBER, SOURCE, V4, V6,
    V6_MASKED, destination_form, source_form,
};
use crate::eval::{HeaderTest, Key, Port};

/// The bits of a head that say which addresses are tested, and how.
pub(super) const ADDRESSES: u64 = PAIR | 3 << SOURCE | 3 << DESTINATION;
const V4_SOURCE: u64 = V4 << SOURCE;
const V4_DESTINATION: u64 = V4 << DESTINATION;
/// The bits of a head that say which protocol is tested, and how.
const PROTOCOL_TEST: u64 = PROTOCOL | NOT_PROTOCOL | 0xff << PROTOCOL_NUMBER;

/// What the tests of a rule say.
pub(super) fn test(words: &[u64], key: &Key<'_>) -> HeaderTest {
    let head = words[0];
    if has_addresses(head) {
        if !key.addresses_known {
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

/// Whether the interfaces pass; `None` where one that is tested is not known.
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
pub(in crate::layout) fn has_addresses(head: u64) -> bool {
    head & ADDRESSES != 0
}

/// What is left to say once the addresses have passed; `ports` is the word of ports, if there is one.
#[inline]
pub(in crate::layout) fn rest(head: u64, ports: Option<u64>, key: &Key<'_>) -> HeaderTest {
    let mut asks_header = head & MORE != 0;
    if head & PROTOCOL != 0 {
        match key.protocol {
            Some(is) if refuses_protocol(head, protocol_test(is)) => return HeaderTest::No,
            Some(_) => {}
            None => asks_header = true,
        }
    }
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

/// A packet of which all is known that words test.
pub(super) struct Whole<'k> {
    pub(super) key: &'k Key<'k>,
    /// The addresses, IPv4.
    source: u64,
    destination: u64,
    protocol: u64,
    ports: [u16; 2],
    /// [`PORTS`], if they are known.
    known_ports: u64,
}

impl<'k> Whole<'k> {
    /// `None` where the packet leaves something open; its ports may be missing.
    #[inline]
    pub(super) fn of(key: &'k Key<'k>) -> Option<Self> {
        let protocol = protocol_test(key.protocol.filter(|_| key.addresses_known)?);
        let (ports, known_ports) = (key.ports.unwrap_or_default(), key.ports.map_or(0, |_| PORTS));
        let [source, destination] = [key.source_words[0], key.destination_words[0]];
        Some(Self { key, source, destination, protocol, ports, known_ports })
    }

    /// What the tests of a rule say, given the words from it on. Called, it would cost as much as it does.
    ///
    /// Ports come last: they refuse most rules that get so far, and a rule that hits has then taken the branches that
    /// it takes for every packet, which a processor foresees.
    #[inline(always)]
    pub(super) fn test(&self, head: u64, rule: &[u64], from_it: &[u64]) -> HeaderTest {
        if self.refuses(head, head, from_it) {
            return HeaderTest::No;
        }
        let asks_matches = head & (MATCHES | PORTS) & !self.known_ports != 0;
        if head & (MORE | INPUT | OUTPUT) != 0 {
            return self.more(head, rule, asks_matches);
        }
        match asks_matches {
            true => HeaderTest::AskMatches,
            false => HeaderTest::Yes,
        }
    }

    /// Whether protocol, addresses or ports of the first rule refuse the packet. `form` is `head`, or what it says of
    /// addresses and ports where that is known.
    #[inline(always)]
    pub(super) fn refuses(&self, form: u64, head: u64, words: &[u64]) -> bool {
        if refuses_protocol(head, self.protocol) {
            return true;
        }
        // Read at once: a rule without them is followed by others, but for the last ones.
        let [first, second] = match words {
            [_, first, second, ..] => [*first, *second],
            [_, first] => [*first, 0],
            _ => [0; 2],
        };
        let addr = if form & PORTS == 0 { first } else { second };
        let is_refused = match form & (ADDRESSES | NOT_SOURCE | NOT_DESTINATION) {
            0 => false,
            V4_SOURCE => !passes_v4(addr, self.source),
            V4_DESTINATION => !passes_v4(addr, self.destination),
            PAIR => addr != self.key.pair,
            _ => {
                let from = 1 + usize::from(form & PORTS != 0);
                refuses_packed(form, words.get(from..).unwrap_or_default(), self.key)
            }
        };
        is_refused || form & self.known_ports != 0 && !accepts_ports(first, self.ports)
    }

    /// What is left to say of a rule that tests more of the header.
    fn more(&self, head: u64, words: &[u64], asks_matches: bool) -> HeaderTest {
        let passes = interfaces(head, words, self.key);
        if passes == Some(false) {
            return HeaderTest::No;
        }
        match (head & MORE != 0 || passes.is_none(), asks_matches) {
            (true, _) => HeaderTest::Ask,
            (false, true) => HeaderTest::AskMatches,
            (false, false) => HeaderTest::Yes,
        }
    }
}

/// A head's test of a protocol, not inverted.
#[inline]
fn protocol_test(number: u8) -> u64 {
    PROTOCOL | u64::from(number) << PROTOCOL_NUMBER
}

/// Whether a head's test of the protocol, if there is one, fails; `is` is the one that succeeds.
#[inline]
fn refuses_protocol(head: u64, is: u64) -> bool {
    let test = head & PROTOCOL_TEST;
    test != is && test & PROTOCOL != 0 && (test & NOT_PROTOCOL == 0 || test == is | NOT_PROTOCOL)
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

/// The same of tests apart: a pair or the source's, and the destination's.
#[inline]
pub(in crate::layout) fn refuses_addresses(
    head: u64,
    [first, destination]: [&[u64]; 2],
    key: &Key<'_>,
) -> bool {
    if head & PAIR != 0 {
        return first.first() != Some(&key.pair);
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
