//! One rule as words of 64 bits: only the tests it has, in the order in which they are asked.
//!
//! A rule is a head word, then, as its head says, its ports, its addresses, its interfaces and an operand (what its
//! jump leads to). Prefixes of interfaces, fragments, targets and most extensions stay with the [`Rule`] itself; the
//! head says that they are to be asked.
//!
//! ```text
//! head   bits  0..5   words of the rule, this one included
//!        bits  5..7   source: 0 none, 1 IPv4 (address, mask), 2 IPv6, 3 IPv6 and mask
//!        bits  7..9   destination, likewise
//!        bit   9      one word: source and destination, IPv4, all 32 bits of each
//!        bits 10, 11  ! source, ! destination
//!        bits 12, 13  nothing
//!        bit  14      there is more to ask of its header
//!        bits 15..18  what it does (`STEP_…`)
//!        bit  18      one word: source and destination ports, all that its first match tests
//!        bit  19      there are matches to ask
//!        bits 20, 21  one word: the input interface, !
//!        bits 22, 23  one word: the output interface, !
//!        bits 24..30  protocol: 0 none, else its code, from 33 on !
//!        bits 30, 31  nothing
//!        bits 32..64  where its counters stand
//! ```
//!
//! Addresses are the bytes of the packet, the first one lowest. Ports are four numbers of 16 bits, the lowest first:
//! the first source port and how many others follow it, and likewise of destinations. An interface is the word of its
//! name (`eval::iface_word`); of a name that shares its word with others the rule is asked, too.
//!
//! Protocols that rules name have codes, so that one shift of a word that a packet brings along tells whether a rule's
//! test refuses it; of others the rule is asked.
//!
//! `run` reads rules one after the other, `pass` skips runs of rules of one shape that refuse a packet, `test` says
//! what a rule says of a packet, `asks` what it asks, `protocol` has the codes, `edit` changes, compares and checks rules. The idea of rules
//! that carry nothing they do not need comes from "Xtables2: Love for blobs" (2010).

mod asks;
mod edit;
mod head;
mod pass;
mod protocol;
mod run;
mod test;

pub(crate) use asks::Asks;
pub(crate) use edit::{each, hash_of, operand, same_words, says_all};
pub use edit::{fault, len_of, offset_of, parts, patch};
pub use head::{only_counts, slot};
pub(crate) use run::rule_at;
pub use run::{Coded, Run};
pub(crate) use test::test as says;
pub use test::{has_addresses, refuses_addresses, rest};

use crate::eval::word_of;
use crate::ext::PortRanges;
use crate::header::{Header, IfaceTest, MaskedAddr};
use crate::model::{Action, Rule};
use head::{
    DESTINATION, INPUT, MATCHES, MORE, NOT_DESTINATION, NOT_INPUT, NOT_OUTPUT, NOT_SOURCE, OUTPUT,
    PAIR, PORTS, PROTOCOL, SLOT, SOURCE, STEP, STEP_ACCEPT, STEP_COUNT, STEP_DROP, STEP_GOTO,
    STEP_JUMP, STEP_RETURN, STEP_TARGET, V4, V6, V6_MASKED,
};

/// Appends a rule. `jump` returns what a jump to the chain of this index holds.
pub fn encode(rule: &Rule, is_v6: bool, jump: impl Fn(u32) -> u32, to: &mut Vec<u64>) {
    let start = to.len();
    to.push(0);
    let (step, operand) = match rule.action {
        Action::None => (STEP_COUNT, None),
        Action::Accept => (STEP_ACCEPT, None),
        Action::Drop => (STEP_DROP, None),
        Action::Return => (STEP_RETURN, None),
        Action::Jump(chain) => (STEP_JUMP, Some(jump(chain))),
        Action::Goto(chain) => (STEP_GOTO, Some(jump(chain))),
        Action::Target(_) => (STEP_TARGET, None),
    };
    let mut head = u64::from(rule.slot) << SLOT | step << STEP;
    head |= matches(rule, to);
    if let Some(header) = rule.header.as_ref() {
        head |= tests(header, is_v6, to);
        head |= interface(header.input(), [INPUT, NOT_INPUT], to);
        head |= interface(header.output(), [OUTPUT, NOT_OUTPUT], to);
    }
    to.extend(operand.map(u64::from));
    to[start] = head | (to.len() - start) as u64;
}

/// Appends what a rule's first match tests, if that is ports; the bits of its head that say so, and whether there
/// are others to be asked.
fn matches(rule: &Rule, to: &mut Vec<u64>) -> u64 {
    let Some(first) = rule.matches.first() else { return 0 };
    let protocol = rule.header.as_ref().and_then(Header::protocol);
    let is_of = |ports: &PortRanges| {
        protocol.is_some_and(|test| test.number == ports.protocol && !test.invert)
    };
    let Some(ports) = first.body.port_ranges().filter(is_of) else { return MATCHES };
    let [source, destination] = [ports.source, ports.destination]
        .map(|(low, high)| u64::from(low) | u64::from(high.wrapping_sub(low)) << 16);
    to.push(source | destination << 32);
    PORTS | if rule.matches.len() > 1 { MATCHES } else { 0 }
}

/// Appends the addresses of a rule; the bits of its head that say so.
fn tests(header: &Header, is_v6: bool, to: &mut Vec<u64>) -> u64 {
    let mut head = 0;
    let asks = header.logical_input().is_some()
        || header.logical_output().is_some()
        || !header.fields().is_empty()
        || header.fragment().is_some();
    if asks {
        head |= MORE;
    }
    if let Some(test) = header.protocol() {
        head |= protocol::code(test).map_or(MORE, |code| code << PROTOCOL);
    }
    let (source, destination) = (header.source(), header.destination());
    if let (Some(source), Some(destination), false) = (&source, &destination, is_v6)
        && is_host(source)
        && is_host(destination)
    {
        to.push(first(&source.addr) | first(&destination.addr) << 32);
        return head | PAIR;
    }
    if let Some(test) = &source {
        head |= address(test, is_v6, to) << SOURCE;
        head |= if test.invert { NOT_SOURCE } else { 0 };
    }
    if let Some(test) = &destination {
        head |= address(test, is_v6, to) << DESTINATION;
        head |= if test.invert { NOT_DESTINATION } else { 0 };
    }
    head
}

/// Appends the word of an interface, where that tells anything; the bits of its head that say so, and whether the rule
/// is to be asked.
fn interface(test: Option<&IfaceTest>, [has, inverted]: [u64; 2], to: &mut Vec<u64>) -> u64 {
    let Some(test) = test else { return 0 };
    match (word_of(&test.name), test.prefix, test.invert) {
        ((word, true), false, invert) => {
            to.push(word);
            has | if invert { inverted } else { 0 }
        }
        ((word, false), false, false) => {
            to.push(word);
            has | MORE
        }
        _ => MORE,
    }
}

/// Appends an address in its shortest form, which is returned.
fn address(test: &MaskedAddr, is_v6: bool, to: &mut Vec<u64>) -> u64 {
    if !is_v6 {
        to.push(first(&test.addr) | first(&test.mask) << 32);
        return V4;
    }
    to.extend(halves(test.addr));
    if test.mask == [0xff; 16] {
        return V6;
    }
    to.extend(halves(test.mask));
    V6_MASKED
}

/// One IPv4 address, not inverted.
fn is_host(test: &MaskedAddr) -> bool {
    !test.invert && test.mask[..4] == [0xff; 4]
}

/// The first four bytes.
fn first(bytes: &[u8; 16]) -> u64 {
    u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let wide = u128::from_le_bytes(bytes);
    [wide as u64, (wide >> 64) as u64]
}
