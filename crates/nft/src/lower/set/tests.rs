//! Searches are held to a look at every element.

use super::*;
use crate::lower::word::{Loaded, Word};
use proptest::collection::vec;
use proptest::prelude::*;
use rules::Outcome;

/// Elements of two numbers, of 8 and of 8 bits, some of them intervals.
fn elements(fields: usize, exact: bool) -> impl Strategy<Value = Vec<Key>> {
    let span = (0..24_u128, 0..6_u128)
        .prop_map(move |(low, more)| Span { low, high: low + if exact { 0 } else { more } });
    vec(vec(span, fields).prop_map(Key::from_vec), 0..80)
}

/// Keeps elements that share no key with one before them, as the kernel does in maps.
fn apart(keys: Vec<Key>) -> Vec<Key> {
    let mut kept: Vec<Key> = Vec::new();
    for key in keys {
        let meets =
            |other: &Key| other.iter().zip(&key).all(|(a, b)| a.low <= b.high && b.low <= a.high);
        if !kept.iter().any(meets) {
            kept.push(key);
        }
    }
    kept
}

fn search(keys: &[Key], bits: &[u32], other: Option<u32>) -> Search {
    let entry = |key: &Key| Entry { key: key.clone(), doubtful: false };
    let entries = keys.iter().enumerate().map(|(at, key)| (at as u32, entry(key))).collect();
    Search::new(bits, entries, other)
}

/// The first element that holds a key.
fn slowly(keys: &[Key], numbers: &[u128]) -> Option<u32> {
    let holds = |key: &Key| key.iter().zip(numbers).all(|(span, number)| span.holds(*number));
    keys.iter().position(holds).map(|at| at as u32)
}

fn known(numbers: &[u128]) -> Vec<Loaded> {
    numbers.iter().map(|number| Loaded::known(*number)).collect()
}

proptest! {
    #[test]
    fn a_search_finds_what_a_look_at_every_element_finds(
        fields in 1..4_usize, exact in any::<bool>(), other in any::<bool>(),
        seed in elements(3, false), numbers in vec(0..30_u128, 3), wide in any::<bool>(),
    ) {
        let mut keys: Vec<Key> = seed.iter().map(|key| key.iter().take(fields).copied().collect()).collect();
        if exact {
            keys.iter_mut().flatten().for_each(|span| span.high = span.low);
        }
        let keys = apart(keys);
        let bits = vec![if wide { 100 } else { 8 }; fields];
        let other = other.then_some(keys.len() as u32);
        let found = search(&keys, &bits, other).find(&known(&numbers[..fields]));
        let wanted = slowly(&keys, &numbers[..fields]).or(other);
        prop_assert_eq!(found.hits.first().copied(), wanted);
        prop_assert_eq!(found.misses, wanted.is_none());
        prop_assert!(!found.anything);
    }

    #[test]
    fn intervals_that_meet_hold_what_either_holds(keys in elements(1, false), number in 0..30_u128) {
        let found = search(&keys, &[8], None).find(&known(&[number]));
        prop_assert_eq!(found.outcome(), Outcome::from_bool(slowly(&keys, &[number]).is_some()));
    }

    #[test]
    fn an_unknown_key_may_be_what_its_bits_allow(
        keys in elements(2, false), value in 0..32_u128, unknown in 0..32_u128, second in 0..30_u128,
    ) {
        let keys = apart(keys);
        let word = Word { value: value & !unknown, unknown };
        let found =
            search(&keys, &[8, 8], None).find(&[Loaded::word(word), Loaded::known(second)]);
        for first in (0..32).filter(|first| first & !unknown == word.value) {
            match slowly(&keys, &[first, second]) {
                Some(at) => prop_assert!(found.anything || found.hits.contains(&at)),
                None => prop_assert!(found.misses),
            }
        }
    }
}

#[test]
fn an_element_that_may_have_expired_is_found_or_not() {
    let entry = Entry { key: Key::from_slice(&[Span::one(7)]), doubtful: true };
    let found = Search::new(&[8], vec![(0, entry)], None).find(&known(&[7]));
    assert_eq!(found.outcome(), Outcome::MAYBE);
}

#[test]
fn several_values_of_a_key_may_find_several_elements() {
    let keys: Vec<Key> = [1, 2].map(|number| Key::from_slice(&[Span::one(number)])).into();
    let either = Loaded::known(1).or(Loaded::known(2));
    let found = search(&keys, &[8], None).find(&[either]);
    assert_eq!((found.hits.len(), found.misses), (2, false));
    assert_eq!(found.outcome(), Outcome::YES);
}

#[test]
fn a_long_key_is_not_cut() {
    let keys: Vec<Key> = (0..4_u128)
        .map(|at| Key::from_slice(&[Span::one(at << 100), Span::one(5), Span::one(at)]))
        .collect();
    let search = search(&keys, &[128, 8, 16], None);
    assert_eq!(search.find(&known(&[3 << 100, 5, 3])).hits.first(), Some(&3));
    assert_eq!(search.find(&known(&[3 << 100, 5, 2])).outcome(), Outcome::NO);
}
