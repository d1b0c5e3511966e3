//! The words of what programs print, each with its place, and what is wrong with one.
//!
//! Contract: columns count bytes from 1. A record is a line that does not begin with a blank and the lines after it
//! that do; `ip -o` writes a backslash where `ip` begins a new line, which is taken as a blank and a new segment.

use std::fmt;

/// A place in a text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// What should have been there.
    pub expected: &'static str,
    /// The word that was there; empty at the end of the line.
    pub found: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found } = self;
        write!(f, "{line}:{column}: expected {expected}, found ")?;
        match found.as_str() {
            "" => f.write_str("the end of the line"),
            found => write!(f, "\"{found}\""),
        }
    }
}

impl std::error::Error for TextError {}

/// A word and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) text: &'t str,
}

impl Word<'_> {
    /// The error that another word should have been here.
    pub(crate) fn not(self, expected: &'static str) -> TextError {
        let found = self.text.chars().take(60).collect();
        TextError { line: self.line, column: self.column, expected, found }
    }
}

/// The words of one line.
#[derive(Debug, Clone)]
pub(crate) struct Line<'t> {
    pub(crate) words: Vec<Word<'t>>,
    /// Begins with a blank, so that it belongs to the line before it.
    pub(crate) continues: bool,
    end: Word<'t>,
}

impl<'t> Line<'t> {
    fn read(line: u32, offset: usize, text: &'t str) -> Self {
        let at = |from: usize| u32::try_from(offset + from + 1).unwrap_or(u32::MAX);
        let mut words = Vec::new();
        let mut begins = None;
        let is_gap = |c: char| c.is_whitespace();
        for (place, c) in text.char_indices().chain([(text.len(), ' ')]) {
            match (is_gap(c), begins) {
                (false, None) => begins = Some(place),
                (true, Some(from)) => {
                    words.push(Word { line, column: at(from), text: &text[from..place] });
                    begins = None;
                }
                _ => {}
            }
        }
        let end = Word { line, column: at(text.trim_end().len()), text: "" };
        Self { words, continues: text.starts_with([' ', '\t']), end }
    }

    /// The word at a place, or the end of the line as an empty word.
    pub(crate) fn at(&self, place: usize) -> Word<'t> {
        self.words.get(place).copied().unwrap_or(self.end)
    }

    /// Returns the word after the first `name`.
    pub(crate) fn after(&self, name: &str) -> Option<Word<'t>> {
        let place = self.words.iter().position(|word| word.text == name)?;
        Some(self.at(place + 1))
    }

    /// Whether one of the line's words is `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word.text == name)
    }

    /// The number after a name: `None` if the name is not there, or no number stands after it.
    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.after(name)?.text.parse().ok()
    }
}

/// The lines of a text that hold a word; a backslash begins a line that continues.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let whole = (1..).zip(text.lines());
    let parts = whole.flat_map(|(number, text)| {
        let mut offset = 0;
        text.split('\\').enumerate().map(move |(part, segment)| {
            let mut line = Line::read(number, offset, segment);
            line.continues |= part > 0;
            offset += segment.len() + 1;
            line
        })
    });
    parts.filter(|line| !line.words.is_empty())
}

/// A line and the lines that continue it.
#[derive(Debug)]
pub(crate) struct Record<'t> {
    pub(crate) head: Line<'t>,
    pub(crate) rest: Vec<Line<'t>>,
}

/// The records of a text. One that begins with a continued line has no head and is left out.
pub(crate) fn records(text: &str) -> Vec<Record<'_>> {
    let mut records: Vec<Record<'_>> = Vec::new();
    for line in lines(text) {
        match records.last_mut() {
            Some(record) if line.continues => record.rest.push(line),
            None if line.continues => {}
            _ => records.push(Record { head: line, rest: Vec::new() }),
        }
    }
    records
}

/// `INDEX:` as ip(8) begins a record.
pub(crate) fn index(line: &Line<'_>) -> Result<u32, TextError> {
    let word = line.at(0);
    let number = word.text.strip_suffix(':').and_then(|number| number.parse().ok());
    number.ok_or_else(|| word.not("the number of an interface and a colon"))
}

/// A hardware address of Ethernet.
pub(crate) fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() <= 2 && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_place() {
        let lines: Vec<_> = lines("a  bc\n\n 1: x\\    y").collect();
        assert_eq!(lines.len(), 3);
        let places = |line: &Line<'_>| {
            line.words.iter().map(|word| (word.line, word.column)).collect::<Vec<_>>()
        };
        assert_eq!(places(&lines[0]), [(1, 1), (1, 4)]);
        assert_eq!(places(&lines[2]), [(3, 11)]);
        assert!(!lines[0].continues && lines[1].continues && lines[2].continues);
        assert_eq!(
            lines[0].at(2).not("d").to_string(),
            "1:6: expected d, found the end of the line"
        );
    }

    #[test]
    fn macs_have_six_bytes() {
        assert_eq!(mac("00:1a:FF:0:2:3"), Some([0, 0x1a, 0xff, 0, 2, 3]));
        for wrong in ["", "00:1a:ff:0:2", "00:1a:ff:0:2:3:4", "00:1a:ff:0:2:003", "0:0:0:0:0:+1"] {
            assert_eq!(mac(wrong), None, "{wrong}");
        }
    }
}
