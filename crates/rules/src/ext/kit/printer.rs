//! Writes rule text word by word, quoting strings as `xtables_save_string` does.

use std::fmt::{Display, Write};

/// Rule text under construction. Each part is preceded by one blank.
#[derive(Debug, Default)]
pub struct Printer {
    text: String,
}

impl Printer {
    /// A printer whose text starts with `start`.
    #[must_use]
    pub fn new(start: &str) -> Self {
        Self { text: start.to_owned() }
    }

    /// The text so far.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// ` word`.
    pub fn word(&mut self, word: impl Display) -> &mut Self {
        // Writing to a String cannot fail.
        let _ = write!(self.text, " {word}");
        self
    }

    /// ` --name`, with ` !` before it when inverted.
    pub fn flag(&mut self, invert: bool, name: &str) -> &mut Self {
        self.text.push_str(if invert { " ! --" } else { " --" });
        self.text.push_str(name);
        self
    }

    /// ` --name value`, with ` !` before it when inverted.
    pub fn option(&mut self, invert: bool, name: &str, value: impl Display) -> &mut Self {
        self.flag(invert, name).word(value)
    }

    /// ` --name "value"`, quoted when it holds anything but letters, digits, `-` and `_`.
    pub fn string(&mut self, invert: bool, name: &str, value: &str) -> &mut Self {
        self.flag(invert, name).quoted(value)
    }

    /// ` --name value` with the value bare, as the tool writes names.
    pub fn name(&mut self, name: &str, value: &str) -> &mut Self {
        self.flag(false, name).plain(value)
    }

    /// ` value` as it stands, quoted only when it would not read back as one word, or as an inversion.
    pub fn plain(&mut self, value: &str) -> &mut Self {
        let apart = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
        if value.is_empty() || value == "!" || value.contains(apart) {
            self.quoted(value)
        } else {
            self.word(value)
        }
    }

    /// ` value`, quoted when needed.
    pub fn quoted(&mut self, value: &str) -> &mut Self {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !value.is_empty() && value.bytes().all(plain) {
            return self.word(value);
        }
        self.in_quotes(value)
    }

    /// ` "value"`: such a word is never taken for an option.
    pub fn in_quotes(&mut self, value: &str) -> &mut Self {
        self.text.push_str(" \"");
        for c in value.chars() {
            if matches!(c, '"' | '\\' | '\'') {
                self.text.push('\\');
            }
            self.text.push(c);
        }
        self.text.push('"');
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_bare_while_they_are_one_word() {
        let mut printer = Printer::default();
        printer.name("a", "u:r_t:s0").name("b", "two words").name("c", "").name("d", "!");
        assert_eq!(printer.finish(), r#" --a u:r_t:s0 --b "two words" --c "" --d "!""#);
    }

    #[test]
    fn strings_are_quoted_only_when_they_must() {
        let mut printer = Printer::default();
        printer.string(false, "comment", "plain-word_1").string(true, "x", "a b\"c'd\\");
        assert_eq!(printer.finish(), r#" --comment plain-word_1 ! --x "a b\"c\'d\\""#);
    }
}
