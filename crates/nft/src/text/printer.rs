//! Where text is written to, and how.

use crate::family::Family;
use crate::types::{self, Style};

/// Writes text.
pub struct Printer {
    /// What was written.
    pub out: String,
    /// Spelling of values.
    pub style: Style,
    /// Whether counters and the like lose their values (`-s`).
    pub stateless: bool,
    /// Whether handles are written (`-a`).
    pub handles: bool,
    /// Family of the table.
    pub family: Family,
}

impl Default for Printer {
    fn default() -> Self {
        Self {
            out: String::new(),
            style: Style::default(),
            stateless: false,
            handles: false,
            family: Family::Ip,
        }
    }
}

impl Printer {
    /// Writes text.
    pub fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes each, with something between.
    pub fn list<T>(&mut self, of: &[T], between: &str, mut show: impl FnMut(&T, &mut Self)) {
        for (at, value) in of.iter().enumerate() {
            if at > 0 {
                self.put(between);
            }
            show(value, self);
        }
    }

    /// Writes a span of milliseconds.
    pub fn span(&mut self, ms: u128) {
        types::print_span(&mut self.out, ms);
    }

    /// Writes a name, in quotes if it is no word.
    pub fn name(&mut self, name: &str) {
        let word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-'));
        if word { self.put(name) } else { types::quoted(&mut self.out, name) }
    }
}
