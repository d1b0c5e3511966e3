//! One rule in words of 64 bits: only the tests it has, in the order in which they are asked.
//!
//! A rule is a head word, then, as its head says, its addresses and an operand (what its jump leads to).
//! Interfaces, fragments, extensions and targets stay with the [`Rule`] itself; the head says that they are to
//! be asked.
//!
//! ```text
//! head   bits  0..5   words of the rule, this one included
//!        bits  5..7   source: 0 none, 1 IPv4 (address, mask), 2 IPv6, 3 IPv6 and mask
//!        bits  7..9   destination, likewise
//!        bit   9      one word: source and destination, IPv4, all 32 bits of each
//!        bits 10, 11  ! source, ! destination
//!        bits 12, 13  protocol, ! protocol
//!        bit  14      there is more to ask the rule
//!        bits 15..18  what it does (`STEP_…`)
//!        bits 24..32  the protocol's number
//!        bits 32..64  where its counters stand
//! ```
//!
//! Addresses are the bytes of the packet, the first one lowest. The idea of rules that carry nothing they do not need is that of "Xtables2: Love for blobs" (2010).

use std::sync::Arc;

use crate::eval::{HeaderTest, Key, Step, Stored};
use crate::model::{Action, Header, MaskedAddr, Rule};

const LEN: u64 = 0x1f;
const SOURCE: u32 = 5;
const DESTINATION: u32 = 7;
const PAIR: u64 = 1 << 9;
const NOT_SOURCE: u64 = 1 << 10;
const NOT_DESTINATION: u64 = 1 << 11;
const PROTOCOL: u64 = 1 << 12;
const NOT_PROTOCOL: u64 = 1 << 13;
const MORE: u64 = 1 << 14;
const STEP: u32 = 15;
const PROTOCOL_NUMBER: u32 = 24;
const SLOT: u32 = 32;

const V4: u64 = 1;
const V6: u64 = 2;
const V6_MASKED: u64 = 3;

const STEP_COUNT: u64 = 0;
const STEP_ACCEPT: u64 = 1;
const STEP_DROP: u64 = 2;
const STEP_RETURN: u64 = 3;
const STEP_JUMP: u64 = 4;
const STEP_GOTO: u64 = 5;
const STEP_TARGET: u64 = 6;

/// The bits of a head that say what is tested.
const TESTS: u64 = 0x7fe0;
/// Two IPv4 addresses and nothing else.
const ONLY_PAIR: u64 = PAIR;
/// Two IPv6 addresses and nothing else.
const ONLY_V6: u64 = V6 << SOURCE | V6 << DESTINATION;

/// Words of an address in each form.
const ADDRESS_WORDS: [usize; 4] = [0, 1, 2, 4];

/// Appends a rule. `jump` tells what a jump to the chain of this index holds.
pub(crate) fn encode(rule: &Rule, is_v6: bool, jump: impl Fn(u32) -> u32, to: &mut Vec<u64>) {
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
    if !rule.matches.is_empty() {
        head |= MORE;
    }
    if let Some(header) = rule.header.as_deref() {
        head |= tests(header, is_v6, to);
    }
    to.extend(operand.map(u64::from));
    to[start] = head | (to.len() - start) as u64;
}

/// Appends the addresses of a rule; the bits of its head that say so.
fn tests(header: &Header, is_v6: bool, to: &mut Vec<u64>) -> u64 {
    let mut head = 0;
    let asks = header.input.is_some()
        || header.output.is_some()
        || header.logical_input.is_some()
        || header.logical_output.is_some()
        || !header.fields.is_empty()
        || header.fragment.is_some();
    if asks {
        head |= MORE;
    }
    if let Some(test) = header.protocol {
        head |= PROTOCOL | u64::from(test.number) << PROTOCOL_NUMBER;
        head |= if test.invert { NOT_PROTOCOL } else { 0 };
    }
    if let (Some(source), Some(destination), false) = (&header.source, &header.destination, is_v6)
        && is_host(source)
        && is_host(destination)
    {
        to.push(first(&source.addr) | first(&destination.addr) << 32);
        return head | PAIR;
    }
    if let Some(test) = &header.source {
        head |= address(test, is_v6, to) << SOURCE;
        head |= if test.invert { NOT_SOURCE } else { 0 };
    }
    if let Some(test) = &header.destination {
        head |= address(test, is_v6, to) << DESTINATION;
        head |= if test.invert { NOT_DESTINATION } else { 0 };
    }
    head
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

/// Rules that follow each other, with the rules they came from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run<'r> {
    /// Those that are left.
    words: &'r [u64],
    /// All of them, and how many have been read.
    rules: &'r [Arc<Rule>],
    read: usize,
}

impl<'r> Run<'r> {
    pub(super) fn new(words: &'r [u64], rules: &'r [Arc<Rule>]) -> Self {
        Self { words, rules, read: 0 }
    }

    /// The next rule.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Coded<'r>> {
        let len = (*self.words.first()? & LEN) as usize;
        let (words, behind) = self.words.split_at_checked(len)?;
        let rule = Coded { words, rules: self.rules, number: self.read };
        self.words = behind;
        self.read += 1;
        Some(rule)
    }
}

impl Run<'_> {
    /// Passes rules that hold nothing but two addresses, and are refused by them or only count.
    #[inline]
    pub(super) fn sweep(&mut self, key: &Key, mut count: impl FnMut(u32)) -> u32 {
        const PAIR_RULE: u64 = ONLY_PAIR | 2;
        const V6_RULE: u64 = ONLY_V6 | 5;
        if !key.addresses_known {
            return 0;
        }
        let before = self.read;
        let ([source, destination], mut words) =
            ([key.source_words, key.destination_words], self.words);
        loop {
            let (head, is_hit, behind) = match words {
                [head, pair, behind @ ..] if head & (TESTS | LEN) == PAIR_RULE => {
                    (*head, *pair == key.pair, behind)
                }
                [head, a, b, c, d, behind @ ..] if head & (TESTS | LEN) == V6_RULE => {
                    (*head, [*a, *b] == source && [*c, *d] == destination, behind)
                }
                _ => break,
            };
            if is_hit {
                if !only_counts(head) {
                    break;
                }
                count(slot(head));
            }
            words = behind;
            self.read += 1;
        }
        self.words = words;
        (self.read - before) as u32
    }
}

/// One rule in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coded<'r> {
    words: &'r [u64],
    rules: &'r [Arc<Rule>],
    number: usize,
}

impl<'r> Stored<'r> for Coded<'r> {
    #[inline]
    fn test(&self, key: &Key) -> HeaderTest {
        test(self.words, key)
    }

    fn rule(&self) -> &'r Rule {
        &self.rules[self.number]
    }

    #[inline]
    fn step(&self) -> Step<'r> {
        match step_bits(self.words[0]) {
            STEP_ACCEPT => Step::Accept,
            STEP_DROP => Step::Drop,
            STEP_RETURN => Step::Return,
            STEP_JUMP => Step::Jump(last(self.words)),
            STEP_GOTO => Step::Goto(last(self.words)),
            STEP_TARGET => crate::eval::step_of(&self.rule().action),
            _ => Step::Count,
        }
    }

    #[inline]
    fn only_counts(&self) -> bool {
        only_counts(self.words[0])
    }

    #[inline]
    fn slot(&self) -> u32 {
        slot(self.words[0])
    }
}

/// Whether a rule does nothing but count.
#[inline]
pub(super) fn only_counts(head: u64) -> bool {
    step_bits(head) == STEP_COUNT
}

/// Where a rule's counters stand.
#[inline]
pub(super) fn slot(head: u64) -> u32 {
    (head >> SLOT) as u32
}

/// A rule taken apart: its head, its pair or source, its destination.
pub(super) fn parts(words: &[u64]) -> (u64, &[u64], &[u64]) {
    let head = words[0];
    let addresses = &words[1..words.len() - usize::from(has_operand(head))];
    let first = match head & PAIR {
        0 => ADDRESS_WORDS[source_form(head) as usize],
        _ => 1,
    };
    let (first, destination) = addresses.split_at(first);
    (head, first, destination)
}

#[inline]
fn step_bits(head: u64) -> u64 {
    head >> STEP & 7
}

#[inline]
fn has_operand(head: u64) -> bool {
    matches!(step_bits(head), STEP_JUMP | STEP_GOTO)
}

/// What the tests of a rule say. The two shapes of which large rulesets are made come first.
#[inline]
fn test(words: &[u64], key: &Key) -> HeaderTest {
    let head = words[0];
    if !key.addresses_known && has_addresses(head) {
        return HeaderTest::Ask;
    }
    let passes = match (head & TESTS, words) {
        (ONLY_PAIR, [_, pair, ..]) => *pair == key.pair,
        (ONLY_V6, [_, a, b, c, d, ..]) => {
            [*a, *b] == key.source_words && [*c, *d] == key.destination_words
        }
        _ => return test_any(head, &words[1..], key),
    };
    if passes { HeaderTest::Yes } else { HeaderTest::No }
}

/// The same for a rule of any shape, whose addresses are known.
fn test_any(head: u64, addresses: &[u64], key: &Key) -> HeaderTest {
    let behind_source = &addresses[ADDRESS_WORDS[source_form(head) as usize]..];
    if refuses_pair(head, addresses, key)
        || refuses_source(head, addresses, key)
        || refuses_destination(head, behind_source, key)
    {
        return HeaderTest::No;
    }
    rest(head, key)
}

/// Whether the rule tests an address.
#[inline]
pub(super) fn has_addresses(head: u64) -> bool {
    head & (PAIR | 3 << SOURCE | 3 << DESTINATION) != 0
}

#[inline]
fn source_form(head: u64) -> u64 {
    head >> SOURCE & 3
}

/// What is left to say once the addresses have passed.
#[inline]
pub(super) fn rest(head: u64, key: &Key) -> HeaderTest {
    if head & PROTOCOL != 0 {
        let Some(protocol) = key.protocol else { return HeaderTest::Ask };
        let is = protocol == (head >> PROTOCOL_NUMBER) as u8;
        if is == (head & NOT_PROTOCOL != 0) {
            return HeaderTest::No;
        }
    }
    if head & MORE != 0 { HeaderTest::Ask } else { HeaderTest::Yes }
}

/// Whether the source is refused, its test being the first of `words`.
#[inline]
pub(super) fn refuses_source(head: u64, words: &[u64], key: &Key) -> bool {
    refuses(source_form(head), head & NOT_SOURCE != 0, words, key.source_words)
}

/// Whether the destination is refused, its test being the first of `words`.
#[inline]
pub(super) fn refuses_destination(head: u64, words: &[u64], key: &Key) -> bool {
    let form = head >> DESTINATION & 3;
    refuses(form, head & NOT_DESTINATION != 0, words, key.destination_words)
}

/// Whether both are refused, told by the one word of a pair.
#[inline]
pub(super) fn refuses_pair(head: u64, words: &[u64], key: &Key) -> bool {
    head & PAIR != 0 && words.first() != Some(&key.pair)
}

#[inline]
fn refuses(form: u64, invert: bool, words: &[u64], addr: [u64; 2]) -> bool {
    form != 0 && same(form, words, addr) == invert
}

/// Whether an address passes a test of this form, `!` aside.
#[inline]
fn same(form: u64, words: &[u64], [low, high]: [u64; 2]) -> bool {
    match (form, words) {
        (V4, [test, ..]) => low & (test >> 32) == test & 0xffff_ffff,
        (V6, [a, b, ..]) => low == *a && high == *b,
        (V6_MASKED, [a, b, mask_a, mask_b, ..]) => low & mask_a == *a && high & mask_b == *b,
        _ => false,
    }
}

/// Words of the rule that starts with this head.
pub(super) fn len_of(head: u64) -> usize {
    (head & LEN) as usize
}

/// Each rule's words.
pub(super) fn each(mut words: &[u64]) -> impl Iterator<Item = &[u64]> {
    std::iter::from_fn(move || {
        let (rule, behind) = words.split_at_checked(len_of(*words.first()?))?;
        words = behind;
        (!rule.is_empty()).then_some(rule)
    })
}

/// The words of a rule without the place of its counters and the chain that it jumps to: equal for equal rules.
fn essence(words: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let head = words.first().map_or(0, |head| head & u64::from(u32::MAX));
    let behind = words.len() - usize::from(operand(words).is_some());
    std::iter::once(head).chain(words.get(1..behind).into_iter().flatten().copied())
}

/// A number that is the same for rules whose words say the same.
pub(crate) fn hash_of(words: &[u64]) -> u32 {
    // The multiplier is that of Fibonacci hashing (Knuth, TAOCP 3, 6.4).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash =
        essence(words).fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR));
    (hash >> 32) as u32
}

/// Whether the words of two rules say the same.
pub(crate) fn same_words(one: &[u64], other: &[u64]) -> bool {
    essence(one).eq(essence(other))
}

/// Whether the words say all there is to a rule.
pub(crate) fn says_all(words: &[u64]) -> bool {
    let head = words.first().copied().unwrap_or(MORE);
    head & MORE == 0 && !matches!(step_bits(head), STEP_JUMP | STEP_GOTO | STEP_TARGET)
}

/// Where the rule of this number starts, or the end.
pub(super) fn offset_of(words: &[u64], number: usize) -> usize {
    let mut at = 0;
    for _ in 0..number {
        let Some(head) = words.get(at) else { break };
        at += len_of(*head);
    }
    at
}

/// Changes what a jump holds, if the rule is one.
pub(super) fn patch(rule: &mut [u64], change: impl FnOnce(u32) -> u32) {
    if let [head, .., operand] = rule
        && has_operand(*head)
    {
        *operand = u64::from(change(*operand as u32));
    }
}

/// What the jump of a rule holds, if it is one.
pub(super) fn operand(words: &[u64]) -> Option<u32> {
    has_operand(*words.first()?).then(|| last(words))
}

fn last(words: &[u64]) -> u32 {
    words.last().map_or(0, |word| *word as u32)
}

/// The first rule that is not whole, by its number; `jump` tells what operands lead somewhere.
pub(super) fn fault(
    words: &[u64],
    rules: usize,
    mut jump: impl FnMut(u32) -> bool,
) -> Option<usize> {
    let mut at = 0;
    for number in 0..rules {
        let Some(rule) = words.get(at).and_then(|head| words.get(at..at + len_of(*head))) else {
            return Some(number);
        };
        let is_sound = rule.first().is_some_and(|head| rule.len() == words_of(*head));
        if !is_sound || operand(rule).is_some_and(|to| !jump(to)) {
            return Some(number);
        }
        at += rule.len();
    }
    (at != words.len()).then_some(rules)
}

/// Words that a rule needs, by what its head says it has.
fn words_of(head: u64) -> usize {
    let addresses = match head & PAIR {
        0 => [SOURCE, DESTINATION].map(|at| ADDRESS_WORDS[(head >> at & 3) as usize]).iter().sum(),
        _ => 1,
    };
    1 + usize::from(has_operand(head)) + addresses
}
