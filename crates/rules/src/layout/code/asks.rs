//! [`Asks`]: what an encoded rule asks of a packet, as numbers that a table can be looked up by, and what a packet answers.

use super::edit::{addresses_of, interfaces_of, ports_of};
use super::head::{
    ADDRESS_WORDS, MATCHES, MORE, NOT_DESTINATION, NOT_INPUT, NOT_OUTPUT, NOT_SOURCE, PAIR,
    PROTOCOL, V4, V6, destination_form, only_counts, source_form,
};
use super::protocol;
use crate::eval::Key;

/// The first code of an inverted test.
const INVERTED: u64 = 33;
/// A mask of IPv4: of the first four bytes.
const WHOLE_V4: u64 = 0xffff_ffff;

/// An address, of which the bits of a mask are asked: none of an inverted test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AsksAddress {
    pub(crate) value: [u64; 2],
    pub(crate) mask: [u64; 2],
}

/// What a rule asks: what it does not ask for is 0, or none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asks {
    pub(crate) source: AsksAddress,
    pub(crate) destination: AsksAddress,
    /// The code of the protocol.
    pub(crate) protocol: u64,
    /// Source and destination port, if one is asked for.
    pub(crate) ports: [Option<u16>; 2],
    /// The words of the interfaces.
    pub(crate) interfaces: [Option<u64>; 2],
    /// Some ports are asked for.
    pub(crate) has_ports: bool,
    /// An interface is asked for, be it by `!`.
    pub(crate) has_interfaces: bool,
    /// It only counts, and its words say whether it matches.
    pub(crate) counts: bool,
}

impl Asks {
    /// Reads the words of a rule.
    pub(crate) fn of(words: &[u64]) -> Self {
        let head = words.first().copied().unwrap_or_default();
        let code = head >> PROTOCOL & protocol::CODE;
        let ports = ports_of(words);
        let port = |range: u64| (range >> 16 & 0xffff == 0).then_some(range as u16);
        let [input, output] = interfaces_of(words);
        let (source, destination) = addresses(head, addresses_of(words));
        let plain = |word: Option<u64>, invert: u64| word.filter(|_| head & invert == 0);
        Self {
            source,
            destination,
            protocol: if code < INVERTED { code } else { 0 },
            ports: ports.map_or([None; 2], |ports| [port(ports), port(ports >> 32)]),
            interfaces: [plain(input, NOT_INPUT), plain(output, NOT_OUTPUT)],
            has_ports: ports.is_some(),
            has_interfaces: input.is_some() || output.is_some(),
            counts: only_counts(head) && head & (MORE | MATCHES) == 0,
        }
    }

    /// Reads what a packet has, if all of it is known: `wants_interfaces` says whether those are asked for, and `has_ports` of which
    /// protocols' ports some rule asks.
    #[inline]
    pub(crate) fn answered(
        key: &Key<'_>,
        wants_interfaces: bool,
        has_ports: impl Fn(u64) -> bool,
    ) -> Option<Self> {
        let code = protocol::code_of(key.protocol?);
        if !key.addresses_known() || key.ports.is_none() && has_ports(code) {
            return None;
        }
        let interfaces = match wants_interfaces {
            true => [Some(key.input.word()?), Some(key.output.word()?)],
            false => [None; 2],
        };
        let address = |value| AsksAddress { value, mask: [0; 2] };
        Some(Self {
            source: address(key.source_words),
            destination: address(key.destination_words),
            protocol: code,
            ports: key.ports.map_or([None; 2], |ports| ports.map(Some)),
            interfaces,
            ..Self::default()
        })
    }
}

/// Source and destination of a rule, whose words these are.
fn addresses(head: u64, words: &[u64]) -> (AsksAddress, AsksAddress) {
    if head & PAIR != 0 {
        let both = words.first().copied().unwrap_or_default();
        let whole = |value| AsksAddress { value: [value, 0], mask: [WHOLE_V4, 0] };
        return (whole(both & WHOLE_V4), whole(both >> 32));
    }
    let after = ADDRESS_WORDS[source_form(head) as usize];
    let [source, destination] =
        [(source_form(head), words), (destination_form(head), words.get(after..).unwrap_or(&[]))]
            .map(|(form, words)| address(form, words));
    let plain =
        |address, invert: u64| if head & invert == 0 { address } else { AsksAddress::default() };
    (plain(source, NOT_SOURCE), plain(destination, NOT_DESTINATION))
}

fn address(form: u64, words: &[u64]) -> AsksAddress {
    match (form, words) {
        (V4, [test, ..]) => AsksAddress { value: [test & WHOLE_V4, 0], mask: [test >> 32, 0] },
        (V6, [a, b, ..]) => AsksAddress { value: [*a, *b], mask: [u64::MAX; 2] },
        (0, _) | (_, [] | [_] | [_, _] | [_, _, _]) => AsksAddress::default(),
        (_, [a, b, c, d, ..]) => AsksAddress { value: [*a, *b], mask: [*c, *d] },
    }
}
