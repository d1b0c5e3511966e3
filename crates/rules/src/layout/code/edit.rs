//! Encoded rules, changed, compared and checked.

use super::head::{
    ADDRESS_WORDS, INPUT, LEN, MATCHES, MORE, OUTPUT, PAIR, PORTS, STEP_GOTO, STEP_JUMP,
    STEP_TARGET, destination_form, has_operand, source_form, step_bits,
};

/// A rule taken apart: its head, its addresses (a pair or the source, and the destination), its ports. Of its
/// interfaces the rule itself is asked.
pub fn parts(words: &[u64]) -> (u64, [&[u64]; 2], Option<u64>) {
    let head = words[0];
    let first = match head & PAIR {
        0 => ADDRESS_WORDS[source_form(head) as usize],
        _ => 1,
    };
    let (first, after) = addresses_of(words).split_at(first);
    let destination = &after[..ADDRESS_WORDS[destination_form(head) as usize]];
    let asks = if head & (INPUT | OUTPUT) == 0 { 0 } else { MORE };
    (head & !(INPUT | OUTPUT) | asks, [first, destination], ports_of(words))
}

/// The word of ports, if the rule has one: after the head.
#[inline]
pub(super) fn ports_of(words: &[u64]) -> Option<u64> {
    if words.first()? & PORTS == 0 { None } else { words.get(1).copied() }
}

/// What comes after the head and the ports.
#[inline]
pub(super) fn addresses_of(words: &[u64]) -> &[u64] {
    let from = words.first().map_or(0, |head| 1 + usize::from(head & PORTS != 0));
    words.get(from..).unwrap_or_default()
}

/// The words of the interfaces that the rule has: the last ones before the operand.
#[inline]
pub(super) fn interfaces_of(words: &[u64]) -> [Option<u64>; 2] {
    let Some(head) = words.first() else { return [None; 2] };
    let after_output = words.len().saturating_sub(usize::from(has_operand(*head)));
    let after_input = after_output.saturating_sub(usize::from(head & OUTPUT != 0));
    let word = |bit: u64, end: usize| words.get(..end)?.last().copied().filter(|_| head & bit != 0);
    [word(INPUT, after_input), word(OUTPUT, after_output)]
}

/// Words of the rule that starts with this head.
pub fn len_of(head: u64) -> usize {
    (head & LEN) as usize
}

/// Each rule's words.
pub(crate) fn each(mut words: &[u64]) -> impl Iterator<Item = &[u64]> {
    std::iter::from_fn(move || {
        let (rule, after) = words.split_at_checked(len_of(*words.first()?))?;
        words = after;
        (!rule.is_empty()).then_some(rule)
    })
}

/// The words of a rule without the place of its counters and the chain that it jumps to: equal for equal rules.
fn essence(words: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let head = words.first().map_or(0, |head| head & u64::from(u32::MAX));
    let end = words.len() - usize::from(operand(words).is_some());
    std::iter::once(head).chain(words.get(1..end).into_iter().flatten().copied())
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
    head & (MORE | MATCHES) == 0 && !matches!(step_bits(head), STEP_JUMP | STEP_GOTO | STEP_TARGET)
}

/// Where the rule of this number starts, or the end.
pub fn offset_of(words: &[u64], number: usize) -> usize {
    let mut at = 0;
    for _ in 0..number {
        let Some(head) = words.get(at) else { break };
        at += len_of(*head);
    }
    at
}

/// Changes what a jump holds, if the rule is one.
pub fn patch(rule: &mut [u64], change: impl FnOnce(u32) -> u32) {
    if let [head, .., operand] = rule
        && has_operand(*head)
    {
        *operand = u64::from(change(*operand as u32));
    }
}

/// What the jump of a rule holds, if it is one.
pub(crate) fn operand(words: &[u64]) -> Option<u32> {
    has_operand(*words.first()?).then(|| last(words))
}

pub(super) fn last(words: &[u64]) -> u32 {
    words.last().map_or(0, |word| *word as u32)
}

/// Returns the number of the first rule that is not whole; `jump` says which operands lead somewhere.
pub fn fault(words: &[u64], rules: usize, mut jump: impl FnMut(u32) -> bool) -> Option<usize> {
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
        0 => [source_form(head), destination_form(head)]
            .map(|form| ADDRESS_WORDS[form as usize])
            .iter()
            .sum(),
        _ => 1,
    };
    let one_word = [head & PORTS != 0, head & INPUT != 0, head & OUTPUT != 0, has_operand(head)];
    1 + addresses + one_word.map(usize::from).iter().sum::<usize>()
}
