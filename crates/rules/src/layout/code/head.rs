//! The head word of an encoded rule: its bits, and what they say.

use super::protocol;

pub(super) const LEN: u64 = 0x1f;
pub(super) const SOURCE: u32 = 5;
pub(super) const DESTINATION: u32 = 7;
pub(super) const PAIR: u64 = 1 << 9;
pub(super) const NOT_SOURCE: u64 = 1 << 10;
pub(super) const NOT_DESTINATION: u64 = 1 << 11;
pub(super) const MORE: u64 = 1 << 14;
pub(super) const STEP: u32 = 15;
pub(super) const PORTS: u64 = 1 << 18;
pub(super) const MATCHES: u64 = 1 << 19;
pub(super) const INPUT: u64 = 1 << 20;
pub(super) const NOT_INPUT: u64 = 1 << 21;
pub(super) const OUTPUT: u64 = 1 << 22;
pub(super) const NOT_OUTPUT: u64 = 1 << 23;
pub(super) const PROTOCOL: u32 = 24;
pub(super) const SLOT: u32 = 32;

pub(super) const V4: u64 = 1;
pub(super) const V6: u64 = 2;
pub(super) const V6_MASKED: u64 = 3;

pub(super) const STEP_COUNT: u64 = 0;
pub(super) const STEP_ACCEPT: u64 = 1;
pub(super) const STEP_DROP: u64 = 2;
pub(super) const STEP_RETURN: u64 = 3;
pub(super) const STEP_JUMP: u64 = 4;
pub(super) const STEP_GOTO: u64 = 5;
pub(super) const STEP_TARGET: u64 = 6;

/// The bits of a head that say what is tested.
pub(super) const TESTS: u64 =
    0x7fe0 | PORTS | MATCHES | INPUT | OUTPUT | protocol::CODE << PROTOCOL;
/// Two IPv4 addresses and nothing else.
pub(super) const ONLY_PAIR: u64 = PAIR;
/// Two IPv6 addresses and nothing else.
pub(super) const ONLY_V6: u64 = V6 << SOURCE | V6 << DESTINATION;

/// Words of an address in each form.
pub(super) const ADDRESS_WORDS: [usize; 4] = [0, 1, 2, 4];

/// Whether a rule does nothing but count.
#[inline]
pub fn only_counts(head: u64) -> bool {
    step_bits(head) == STEP_COUNT
}

/// Where a rule's counters stand.
#[inline]
pub fn slot(head: u64) -> u32 {
    (head >> SLOT) as u32
}

#[inline]
pub(super) fn step_bits(head: u64) -> u64 {
    head >> STEP & 7
}

#[inline]
pub(super) fn has_operand(head: u64) -> bool {
    matches!(step_bits(head), STEP_JUMP | STEP_GOTO)
}

#[inline]
pub(super) fn source_form(head: u64) -> u64 {
    head >> SOURCE & 3
}

#[inline]
pub(super) fn destination_form(head: u64) -> u64 {
    head >> DESTINATION & 3
}
