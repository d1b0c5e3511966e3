//! Splits a line of save text into words, as `iptables-restore` does: blanks separate, `"` quotes, and
//! inside quotes a backslash keeps the next character.
//!
//! Source: iptables `add_param_to_argv`; iptables-restore(8).

use std::borrow::Cow;

use crate::error::What;

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// The text, without quotes and escapes.
    pub text: Cow<'a, str>,
    /// Column of its first byte in the line, from 1.
    pub column: u32,
    /// Whether the word holds a quoted part, other than the value in `--option="value"`: never an option, however it
    /// looks.
    pub quoted: bool,
}

/// The words of a line without quotes, one by one.
#[derive(Debug)]
pub(crate) struct Unquoted<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Unquoted<'a> {
    /// `None` if the line has a quote.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        memchr::memchr(b'"', line.as_bytes()).is_none().then_some(Self { line, at: 0 })
    }

    /// Whether the next word starts with this byte.
    #[inline]
    pub(crate) fn is_at(&self, byte: u8) -> bool {
        let mut left = self.line.as_bytes().iter().skip(self.at);
        left.find(|byte| !is_blank(**byte)) == Some(&byte)
    }
}

impl<'a> Iterator for Unquoted<'a> {
    type Item = Word<'a>;

    #[inline]
    fn next(&mut self) -> Option<Word<'a>> {
        let bytes = self.line.as_bytes();
        let mut start = self.at;
        while start < bytes.len() && is_blank(bytes[start]) {
            start += 1;
        }
        let mut end = start;
        while end < bytes.len() && !ENDS_WORD[bytes[end] as usize] {
            end += 1;
        }
        self.at = end;
        let text = Cow::Borrowed(self.line.get(start..end).filter(|word| !word.is_empty())?);
        Some(Word { text, column: start as u32 + 1, quoted: false })
    }
}

/// The words of `line`, which starts at column `column` of its line.
///
/// # Errors
/// A quote that does not close, with the column at which it opened.
pub fn words(line: &str, column: u32) -> Result<Vec<Word<'_>>, What> {
    // Enough for most rules: growing would cost as much as splitting.
    let mut words = Vec::with_capacity(12);
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if is_blank(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && !ENDS_WORD[bytes[at] as usize] {
            at += 1;
        }
        let begins = column + start as u32;
        if at < bytes.len() && bytes[at] == b'"' {
            let before = &line[start..at];
            let quoted = !(before.starts_with("--") && before.contains('='));
            let (text, next) = quoted_word(line, start, at, column)?;
            words.push(Word { text: Cow::Owned(text), column: begins, quoted });
            at = next;
        } else {
            let text = Cow::Borrowed(&line[start..at]);
            words.push(Word { text, column: begins, quoted: false });
        }
    }
    Ok(words)
}

/// The words of a `:CHAIN` line, in which a quote is a character like others.
pub(crate) fn bare_words(line: &str, column: u32) -> Vec<Word<'_>> {
    let words = line.split(|c: char| c.is_ascii() && is_blank(c as u8)).filter(|w| !w.is_empty());
    let begins = |word: &str| column + (word.as_ptr() as usize - line.as_ptr() as usize) as u32;
    words
        .map(|word| Word { text: Cow::Borrowed(word), column: begins(word), quoted: false })
        .collect()
}

/// Bytes that end a plain word: blanks and the quote.
const ENDS_WORD: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        ends[byte] = is_blank(byte as u8) || byte as u8 == b'"';
        byte += 1;
    }
    ends
};

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The word from `start` whose first quote stands at `quote`; returns it and the offset after it.
fn quoted_word(
    line: &str,
    start: usize,
    quote: usize,
    column: u32,
) -> Result<(String, usize), What> {
    let mut text = line[start..quote].to_owned();
    let mut open = None;
    let mut chars = line[quote..].char_indices();
    while let Some((offset, c)) = chars.next() {
        match (open, c) {
            (None, '"') => open = Some(quote + offset),
            (None, c) if c.is_ascii() && is_blank(c as u8) => return Ok((text, quote + offset)),
            (Some(_), '"') => open = None,
            (Some(_), '\\') => {
                if let Some((_, escaped)) = chars.next() {
                    text.push(escaped);
                }
            }
            (_, c) => text.push(c),
        }
    }
    match open {
        None => Ok((text, line.len())),
        Some(at) => {
            Err(What::new(column + at as u32, "a closing quote before the end of the line"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        words(line, 1).unwrap().into_iter().map(|word| word.text.into_owned()).collect()
    }

    #[test]
    fn blanks_separate_and_quotes_join() {
        assert_eq!(texts("-A  INPUT\t-j x"), ["-A", "INPUT", "-j", "x"]);
        assert_eq!(texts(r#"--comment "has space""#), ["--comment", "has space"]);
        assert_eq!(texts(r#"a"b c"d e"#), ["ab cd", "e"]);
        assert_eq!(texts(r#"--comment "" -j x"#), ["--comment", "", "-j", "x"]);
    }

    #[test]
    fn a_backslash_escapes_only_inside_quotes() {
        assert_eq!(texts(r#""a\"b\\c""#), [r#"a"b\c"#]);
        assert_eq!(texts(r"a\b"), [r"a\b"]);
    }

    #[test]
    fn words_one_by_one_are_those_of_the_line() {
        for line in ["", "  ", "-A INPUT -s 10.0.0.0/8", "\t-A  \u{e9}x\r", "a\tb ", "[1:2] -A X"] {
            let one_by_one: Vec<Word<'_>> = Unquoted::of(line).unwrap().collect();
            assert_eq!(one_by_one, words(line, 1).unwrap(), "{line}");
        }
        assert!(Unquoted::of("-A \"x").is_none());
    }

    #[test]
    fn bare_words_know_no_quotes() {
        let words = bare_words("a\"b c\" -\t[0:0]", 2);
        let seen: Vec<_> = words.iter().map(|word| (&*word.text, word.column)).collect();
        assert_eq!(seen, [("a\"b", 2), ("c\"", 6), ("-", 9), ("[0:0]", 11)]);
    }

    #[test]
    fn columns_count_from_the_start_of_the_line() {
        let words = words("[1:2] -A X", 1).unwrap();
        assert_eq!(words.iter().map(|w| w.column).collect::<Vec<_>>(), [1, 7, 10]);
    }

    #[test]
    fn an_open_quote_is_named_by_its_column() {
        assert_eq!(words(r#"-m x "abc"#, 1).unwrap_err().column, 6);
    }
}
