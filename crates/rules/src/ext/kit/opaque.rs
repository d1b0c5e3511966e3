//! A match or target that tamis does not know: its words are kept and printed back, and everything that
//! depends on it is unknown.

use crate::ext::{Course, Match, Printer, Target};
use crate::lexer::Word;
use crate::nat::Gives;

/// The words of an extension, as the rule gave them.
#[derive(Debug)]
pub struct Opaque {
    /// Options and values after the name.
    pub words: Vec<OpaqueWord>,
    /// A target of table nat, which may give a flow any other addresses.
    pub translates: bool,
}

/// A word whose meaning only the extension knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpaqueWord {
    text: Box<str>,
    /// Whether the word stands in quotes.
    quoted: bool,
}

impl OpaqueWord {
    /// A word as a rule gives it.
    pub(crate) fn of(word: &Word<'_>) -> Self {
        let comes_apart = |c: char| c.is_ascii_whitespace() || c == '"';
        let quoted = word.quoted || word.text.contains(comes_apart);
        Self { text: word.text.as_ref().into(), quoted }
    }

    /// A word without quotes.
    pub(crate) fn bare(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), quoted: false }
    }
}

impl Opaque {
    fn print_words(&self, to: &mut Printer) {
        for OpaqueWord { text, quoted } in &self.words {
            if *quoted {
                to.in_quotes(text)
            } else {
                to.word(text)
            };
        }
    }
}

impl Match for Opaque {
    fn print(&self, to: &mut Printer) {
        self.print_words(to);
    }
}

impl Target for Opaque {
    fn print(&self, to: &mut Printer) {
        self.print_words(to);
    }

    fn course(&self) -> Course {
        Course::Depends
    }

    fn tracks(&self) -> bool {
        self.translates
    }

    fn translates(&self) -> bool {
        self.translates
    }

    fn gives(&self) -> Gives {
        Gives::Left
    }
}
