//! Reading TOML key by key: a [`Section`] knows which keys it has been asked for, and where everything stands.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// What is wrong, and at which bytes.
pub(super) type Wrong = (Range<usize>, String);

/// A table of the file.
#[derive(Clone, Copy)]
pub(super) struct Section<'a, 't> {
    /// As the file writes it, such as `[[port]]`.
    pub(super) title: &'static str,
    /// Where it begins and ends.
    pub(super) span: (usize, usize),
    table: &'a DeTable<'t>,
}

impl<'a, 't> Section<'a, 't> {
    /// A table with any keys.
    pub(super) fn any(title: &'static str, value: &'a Value<'t>) -> Result<Self, Wrong> {
        let Some(table) = value.get_ref().as_table() else { return Err(found(value, "a table")) };
        let span = value.span();
        Ok(Self { title, span: (span.start, span.end), table })
    }

    /// A table with these keys alone.
    pub(super) fn new(
        title: &'static str,
        value: &'a Value<'t>,
        keys: &[&str],
        not_built: &[&str],
    ) -> Result<Self, Wrong> {
        let section = Self::any(title, value)?;
        only(section.table, keys, not_built)?;
        Ok(section)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value<'t>> {
        self.table.get(key)
    }

    /// The value of a key that has to be there.
    pub(super) fn need(&self, key: &str) -> Result<&'a Value<'t>, Wrong> {
        let (start, end) = self.span;
        let missing = || (start..end, format!("expected {key} = … in this {}", self.title));
        self.get(key).ok_or_else(missing)
    }

    /// A whole number from 0 to `most`.
    pub(super) fn number(&self, key: &str, most: u64) -> Result<Option<u64>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let what = format!("a whole number from 0 to {most}");
        let DeValue::Integer(number) = value.get_ref() else { return Err(found(value, &what)) };
        let parsed = u64::from_str_radix(number.as_str(), number.radix()).ok();
        match parsed.filter(|number| *number <= most) {
            Some(number) => Ok(Some(number)),
            None => Err((value.span(), format!("expected {what}, found {}", number.as_str()))),
        }
    }

    /// true or false.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let flag = value.get_ref().as_bool().ok_or_else(|| found(value, "true or false"))?;
        Ok(Some(flag))
    }

    /// What one of these words stands for.
    pub(super) fn choice<T: Copy>(
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

/// Refuses the first key that is not one of these.
pub(super) fn only(table: &DeTable<'_>, keys: &[&str], not_built: &[&str]) -> Result<(), Wrong> {
    let unknown = table.keys().filter(|key| !keys.contains(&&**key.get_ref()));
    match unknown.min_by_key(|key| key.span().start) {
        Some(key) => {
            let name = &**key.get_ref();
            Err((key.span(), refused(&format!("key \"{name}\""), name, keys, not_built)))
        }
        None => Ok(()),
    }
}

/// A word that is not among those that there are, or that this tamis cannot do.
fn refused(what: &str, word: &str, known: &[&str], not_built: &[&str]) -> String {
    let known = known.join(" ");
    match not_built.contains(&word) {
        true => format!("{what}: not built into this tamis; expected one of {known}"),
        false => format!("expected one of {known}, found \"{word}\""),
    }
}

pub(super) fn string<'a>(value: &'a Value<'_>) -> Result<&'a str, Wrong> {
    value.get_ref().as_str().ok_or_else(|| found(value, "a string"))
}

pub(super) fn found(value: &Value<'_>, what: &str) -> Wrong {
    (value.span(), format!("expected {what}, found {}", value.get_ref().type_str()))
}
