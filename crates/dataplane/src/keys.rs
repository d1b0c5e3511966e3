//! Reading TOML key by key, for configurations and for cases files.
//!
//! Contract: whatever is refused is a [`Wrong`], which names its bytes and says what is allowed there, in one line. An
//! unknown key is refused; of several, the first one.
//!
//! Source: TOML (<https://toml.io>), read by the `toml` crate.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// The bytes of an error, and the error: a whole line for the user.
pub type Wrong = (Range<usize>, String);

/// The beginnings of a text's lines, by which a place is found without reading the text again.
#[derive(Debug)]
pub struct LineStarts {
    starts: Vec<usize>,
    len: usize,
}

impl LineStarts {
    /// Reads the text once.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { starts, len: text.len() }
    }

    /// Line and column of an offset, both from 1, the column in bytes; past the end the place is the end.
    #[must_use]
    pub fn place(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.len);
        let line = self.starts.partition_point(|start| *start <= offset);
        (line, offset - self.starts[line - 1] + 1)
    }
}

/// A table of the file.
#[derive(Clone, Copy)]
pub struct Section<'a, 't> {
    /// The title as the file writes it, such as `[[port]]`.
    pub title: &'static str,
    /// Where the table begins and ends, in bytes.
    pub span: (usize, usize),
    table: &'a DeTable<'t>,
}

impl<'a, 't> Section<'a, 't> {
    /// A table with any keys.
    ///
    /// # Errors
    /// The value is no table.
    pub fn any(title: &'static str, value: &'a Value<'t>) -> Result<Self, Wrong> {
        let Some(table) = value.get_ref().as_table() else { return Err(found(value, "a table")) };
        let span = value.span();
        Ok(Self { title, span: (span.start, span.end), table })
    }

    /// A table with these keys alone; keys that are not built into this tamis are refused for that reason.
    ///
    /// # Errors
    /// The value is no table, or has another key.
    pub fn new(
        title: &'static str,
        value: &'a Value<'t>,
        keys: &[&str],
        not_built: &[&str],
    ) -> Result<Self, Wrong> {
        let section = Self::any(title, value)?;
        only(section.table, keys, not_built)?;
        Ok(section)
    }

    /// The value of a key, if it is there.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a Value<'t>> {
        self.table.get(key)
    }

    /// The value of a required key.
    ///
    /// # Errors
    /// The key is missing.
    pub fn need(&self, key: &str) -> Result<&'a Value<'t>, Wrong> {
        let (start, end) = self.span;
        let missing = || (start..end, format!("expected {key} = … in this {}", self.title));
        self.get(key).ok_or_else(missing)
    }

    /// A whole number from 0 to `most`, if the key is there.
    ///
    /// # Errors
    /// The value is something else.
    pub fn number(&self, key: &str, most: u64) -> Result<Option<u64>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let what = format!("a whole number from 0 to {most}");
        let DeValue::Integer(number) = value.get_ref() else { return Err(found(value, &what)) };
        let parsed = u64::from_str_radix(number.as_str(), number.radix()).ok();
        match parsed.filter(|number| *number <= most) {
            Some(number) => Ok(Some(number)),
            None => Err((value.span(), format!("expected {what}, found {}", number.as_str()))),
        }
    }

    /// The meaning of one of these words, if the key is there.
    ///
    /// # Errors
    /// The value is none of these words.
    pub fn choice<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        not_built: &[&str],
    ) -> Result<Option<T>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let word = string(value)?;
        if let Some((_, chosen)) = words.iter().find(|(known, _)| *known == word) {
            return Ok(Some(*chosen));
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Err((value.span(), refused(&format!("{key} \"{word}\""), word, &known, not_built)))
    }
}

/// The tables of a file.
///
/// # Errors
/// The text is no TOML.
pub fn document(text: &str) -> Result<Spanned<DeTable<'_>>, Wrong> {
    DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let end = text.len();
        (error.span().unwrap_or(end..end), format!("TOML: {message}"))
    })
}

/// Refuses the first key that is not one of these.
///
/// # Errors
/// There is such a key.
pub fn only(table: &DeTable<'_>, keys: &[&str], not_built: &[&str]) -> Result<(), Wrong> {
    let unknown = table.keys().filter(|key| !keys.contains(&&**key.get_ref()));
    match unknown.min_by_key(|key| key.span().start) {
        Some(key) => {
            let name = &**key.get_ref();
            Err((key.span(), refused(&format!("key \"{name}\""), name, keys, not_built)))
        }
        None => Ok(()),
    }
}

/// The message about a word that is unknown, or not built into this tamis.
fn refused(what: &str, word: &str, known: &[&str], not_built: &[&str]) -> String {
    let known = known.join(" ");
    match not_built.contains(&word) {
        true => format!("{what}: not built into this tamis; expected one of {known}"),
        false => format!("expected one of {known}, found \"{word}\""),
    }
}

/// The text of a string.
///
/// # Errors
/// The value is something else.
pub fn string<'a>(value: &'a Value<'_>) -> Result<&'a str, Wrong> {
    value.get_ref().as_str().ok_or_else(|| found(value, "a string"))
}

/// The error for a value of another type: `what` was expected.
#[must_use]
pub fn found(value: &Value<'_>, what: &str) -> Wrong {
    (value.span(), format!("expected {what}, found {}", value.get_ref().type_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let starts = LineStarts::of(b"ab\ncd\n");
        let places = [0, 2, 3, 6, 99].map(|offset| starts.place(offset));
        assert_eq!(places, [(1, 1), (1, 3), (2, 1), (3, 1), (3, 1)]);
        assert_eq!(LineStarts::of(b"").place(0), (1, 1));
    }
}
