//! Rules of one shape that follow each other, passed in a loop of their own.
//!
//! Where the next rule starts is in the head of the one before it, so a loop over all shapes waits for each head before
//! it can read on. Within a shape every length is the same, and what is tested stands at the same place: nothing waits,
//! and no branch depends on the shape. Rules with ports are no such shape: asking them is as quick.
//!
//! Contract: what is passed is refused by protocol or addresses, by the functions of `test`; what is not passed may be,
//! too.

use super::edit::len_of;
use super::head::{
    DESTINATION, LEN, NOT_DESTINATION, NOT_SOURCE, ONLY_PAIR, ONLY_V6, PAIR, PORTS, SOURCE, TESTS,
    V4, V6, V6_MASKED, only_counts, slot,
};
use super::protocol;
use super::test::{ADDRESSES, refuses_protocol};
use crate::eval::Key;

/// The bits of a head that say where its ports and addresses stand, and how they are tested.
const FORM: u64 = ADDRESSES | NOT_SOURCE | NOT_DESTINATION | PORTS;
/// The bits of a head that are equal in rules of one shape.
const SHAPE: u64 = FORM | LEN;
/// The shapes of which large rulesets are made: addresses and nothing else.
const PAIR_RULE: u64 = ONLY_PAIR | 2;
const V6_RULE: u64 = ONLY_V6 | 5;

/// The form of rules with these forms of addresses.
const fn of(source: u64, destination: u64) -> u64 {
    source << SOURCE | destination << DESTINATION
}

/// Passes rules of the first of these forms that is `$form`.
macro_rules! pass_form {
    ($key:ident, $refused:ident, $words:ident, $form:ident: $($known:expr),+ $(,)?) => {
        match $form {
            $(form if form == $known => $key.pass_form::<{ $known }>($refused, $words),)+
            _ => 0,
        }
    };
}

impl Key<'_> {
    /// Passes rules as [`Key::pass`] does, if the first of them has the shape of the rule before them, whose head this
    /// is.
    #[inline]
    pub(super) fn pass_like(&self, head: u64, words: &[u64], count: &mut impl FnMut(u32)) -> usize {
        match words.first() {
            Some(next) if (head ^ next) & SHAPE == 0 => self.pass(words, count),
            _ => 0,
        }
    }

    /// How many rules, from the first one on, are of its shape and refuse the packet; 0 for a shape with `! -s`, `! -d`
    /// or ports, or without addresses. Of the two shapes of large rulesets those are passed, too, that match and
    /// only count. Not inlined: the loop that calls it for some rules needs its registers for the others.
    #[inline(never)]
    fn pass(&self, words: &[u64], count: &mut impl FnMut(u32)) -> usize {
        let head = words.first().map_or(0, |head| *head);
        if [PAIR_RULE, V6_RULE].contains(&(head & (TESTS | LEN))) {
            return self.pass_addresses(words, count);
        }
        let refused = protocol::refused(self.protocol);
        let form = head & FORM;
        pass_form!(
            self, refused, words, form:
            of(V4, 0), of(0, V4), of(V4, V4), PAIR,
            of(V6, 0), of(0, V6), of(V6, V6), of(V6, V6_MASKED),
            of(V6_MASKED, 0), of(0, V6_MASKED), of(V6_MASKED, V6), of(V6_MASKED, V6_MASKED),
        )
    }

    /// Passes rules of the form `IS`.
    #[inline]
    fn pass_form<const IS: u64>(&self, refused: u64, words: &[u64]) -> usize {
        let len = words.first().map_or(1, |head| len_of(*head).max(1));
        let shape = IS | len as u64;
        let is_passed = |rule: &&[u64]| {
            rule[0] & SHAPE == shape
                && (refuses_protocol(rule[0], refused) || self.refuses(IS, 1, rule, 0))
        };
        words.chunks_exact(len).take_while(is_passed).count()
    }

    /// How many of the first rules are of the first one's shape, one of the two of large rulesets, and do not match or
    /// only count.
    fn pass_addresses(&self, words: &[u64], count: &mut impl FnMut(u32)) -> usize {
        match words.first().map_or(0, |head| head & (TESTS | LEN)) {
            PAIR_RULE => {
                let pair = self.pair();
                pass_or_count::<2>(words, PAIR_RULE, |[_, is]| *is == pair, count)
            }
            V6_RULE => {
                let (source, destination) = (self.source_words, self.destination_words);
                let is_hit =
                    |[_, a, b, c, d]: &[u64; 5]| [*a, *b] == source && [*c, *d] == destination;
                pass_or_count(words, V6_RULE, is_hit, count)
            }
            _ => 0,
        }
    }
}

/// How many of the first rules test this and nothing else, in `N` words, and do not match or only count. What is
/// compared is held in registers: counting writes to memory, and a key there would be read again for each rule.
#[inline]
fn pass_or_count<const N: usize>(
    words: &[u64],
    tests: u64,
    is_hit: impl Fn(&[u64; N]) -> bool,
    count: &mut impl FnMut(u32),
) -> usize {
    let mut passed = 0;
    for rule in words.as_chunks().0 {
        let head = rule[0];
        if head & (TESTS | LEN) != tests {
            break;
        }
        if is_hit(rule) {
            if !only_counts(head) {
                break;
            }
            count(slot(head));
        }
        passed += 1;
    }
    passed
}

#[cfg(test)]
mod tests;
