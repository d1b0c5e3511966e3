//! An interface's name as one word, so that most rules tell it apart without a look at its letters.
//!
//! Names of at most seven bytes are their word. A longer one shares its word with others, but with none of those.

use std::cell::Cell;

use crate::transit::Iface;

/// Bytes of the longest name that is its word.
const SHORT: usize = 7;
/// Marks the words of longer names: that byte of a short one is 0.
const LONG: u64 = 1 << 56;

/// The word of a name, and whether no other name has it.
#[inline]
pub(crate) fn word_of(name: &str) -> (u64, bool) {
    let bytes = name.as_bytes();
    let fold = |word: u64, byte: &u8| word.rotate_left(8) ^ u64::from(*byte);
    let word = bytes.iter().rev().fold(0, fold);
    match bytes.len() > SHORT || bytes.contains(&0) {
        false => (word, true),
        true => (word | LONG, false),
    }
}

/// The interface of a packet, whose name becomes a word when the first rule asks.
#[derive(Debug, Clone)]
pub(crate) struct Port<'p> {
    iface: Iface<'p>,
    word: Cell<Word>,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    NotYet,
    Unknown,
    Is(u64),
}

impl<'p> Port<'p> {
    #[inline]
    pub(super) fn of(iface: Iface<'p>) -> Self {
        Self { iface, word: Cell::new(Word::NotYet) }
    }

    /// The word of its name; `None` where that is not known.
    #[inline]
    pub(crate) fn word(&self) -> Option<u64> {
        match self.word.get() {
            Word::Is(word) => Some(word),
            Word::Unknown => None,
            Word::NotYet => self.find(),
        }
    }

    #[cold]
    fn find(&self) -> Option<u64> {
        let word = match self.iface {
            Iface::Named(name) => Some(word_of(name).0),
            Iface::Absent => Some(word_of("").0),
            Iface::Unknown => None,
        };
        self.word.set(word.map_or(Word::Unknown, Word::Is));
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_that_is_one_names_alone_is_no_other_s(
            one in "[a-c0\\x00é-]{0,9}",
            other in "[a-c0\\x00é-]{0,9}",
        ) {
            let ((word, is_exact), (other_word, _)) = (word_of(&one), word_of(&other));
            if one == other {
                prop_assert_eq!(word, other_word);
            } else if is_exact {
                prop_assert_ne!(word, other_word);
            }
        }
    }

    #[test]
    fn usual_names_have_words_of_their_own() {
        for name in ["", "lo", "eth0", "enp3s0", "docker0", "wg0", "ppp0"] {
            assert!(word_of(name).1, "{name}");
        }
        assert!(!word_of("br-0242ac110002").1);
        assert_eq!(Port::of(Iface::Unknown).word(), None);
        let port = Port::of(Iface::Named("eth0"));
        assert_eq!([port.word(), port.word()], [Some(word_of("eth0").0); 2]);
        assert_eq!(Port::of(Iface::Absent).word(), Some(0));
    }
}
