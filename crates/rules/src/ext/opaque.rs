//! A match or target that tamis does not know: its words are kept and printed back, and everything that
//! hangs on it is unknown.

use super::{Match, Printer, Target};

/// The words of an extension, as the rule gave them.
#[derive(Debug)]
pub struct Opaque {
    /// Options and values after the name, unquoted.
    pub words: Vec<Box<str>>,
}

impl Opaque {
    fn print_words(&self, to: &mut Printer) {
        for word in &self.words {
            if word.starts_with('-') || &**word == "!" || is_plain(word) {
                to.word(word);
            } else {
                to.quoted(word);
            }
        }
    }
}

/// No blank, quote or backslash: reads back as one word without quotes.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.chars().any(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '\\'))
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
