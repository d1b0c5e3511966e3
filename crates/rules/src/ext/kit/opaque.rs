//! A match or target that tamis does not know: its words are kept and printed back, and everything that
//! depends on it is unknown.

use crate::ext::{Match, Printer, Target};

/// The words of an extension, as the rule gave them.
#[derive(Debug)]
pub struct Opaque {
    /// Options and values after the name, unquoted.
    pub words: Vec<OpaqueWord>,
}

/// A word whose meaning only the extension knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpaqueWord {
    /// An option, or the `!` before it: never quoted.
    Option(Box<str>),
    /// What follows an option.
    Value(Box<str>),
}

impl Opaque {
    fn print_words(&self, to: &mut Printer) {
        for word in &self.words {
            match word {
                OpaqueWord::Option(option) => to.word(option),
                // It was quoted if it looks like an option.
                OpaqueWord::Value(value) if value.starts_with('-') => to.in_quotes(value),
                OpaqueWord::Value(value) => to.plain(value),
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
}
