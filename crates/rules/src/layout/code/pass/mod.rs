//! Rules of one shape that follow each other, passed in a loop of their own.
//!
//! Where the next rule starts is in the head of the one before it, so a loop over all shapes waits for each head
//! before it can read on. Within a shape every length is the same, and what is tested stands at the same place:
//! nothing waits, and no branch depends on the shape.
//!
//! Contract: what is passed is refused by [`Whole::test`], by the same functions; what is not passed may be, too.

use super::edit::len_of;
use super::test::{ADDRESSES, Whole};
use super::{
    DESTINATION, LEN, NOT_DESTINATION, NOT_SOURCE, PAIR, PORTS, SOURCE, V4, V6, V6_MASKED,
};

/// The bits of a head that say where its ports and addresses stand, and how they are tested.
const FORM: u64 = ADDRESSES | NOT_SOURCE | NOT_DESTINATION | PORTS;

/// The form of rules with these forms of addresses.
const fn of(source: u64, destination: u64) -> u64 {
    source << SOURCE | destination << DESTINATION
}

/// Passes rules of the first of these forms that is `$form`.
macro_rules! pass_form {
    ($whole:ident, $words:ident, $form:ident: $($known:expr),+ $(,)?) => {
        match $form {
            $(form if form == $known => $whole.pass_form::<{ $known }>($words),)+
            $(form if form == $known | PORTS => $whole.pass_form::<{ $known | PORTS }>($words),)+
            PORTS => $whole.pass_form::<PORTS>($words),
            _ => 0,
        }
    };
}

impl Whole<'_> {
    /// How many rules, from the first one on, are of the shape of the one before them, which starts with `head` and
    /// refuses the packet, and do so, too; 0 for a shape with `! -s` or `! -d`, or without ports and addresses.
    #[inline]
    pub(super) fn pass(&self, head: u64, words: &[u64]) -> usize {
        match words.first() {
            Some(next) if (head ^ next) & (FORM | LEN) == 0 => self.pass_shape(words),
            _ => 0,
        }
    }

    /// The same of the shape that the first rule has. Not inlined: the loop that calls it for some rules needs its
    /// registers for the others.
    #[inline(never)]
    fn pass_shape(&self, words: &[u64]) -> usize {
        let form = words.first().map_or(0, |head| head & FORM);
        pass_form!(
            self, words, form:
            of(V4, 0), of(0, V4), of(V4, V4), PAIR,
            of(V6, 0), of(0, V6), of(V6, V6), of(V6, V6_MASKED),
            of(V6_MASKED, 0), of(0, V6_MASKED), of(V6_MASKED, V6), of(V6_MASKED, V6_MASKED),
        )
    }

    /// The same of this form.
    #[inline]
    fn pass_form<const IS: u64>(&self, words: &[u64]) -> usize {
        let len = words.first().map_or(1, |head| len_of(*head).max(1));
        let shape = IS | len as u64;
        let is_passed =
            |rule: &&[u64]| rule[0] & (FORM | LEN) == shape && self.refuses(IS, rule[0], rule);
        words.chunks_exact(len).take_while(is_passed).count()
    }
}

#[cfg(test)]
mod tests;
