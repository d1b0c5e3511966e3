//! [`Reader`]: the file of a tunnel while it is read, with places in it, and files that it names.

use std::str::FromStr;

use super::super::{At, Named};
use super::secret;
use dataplane::keys::{LineStarts, Section, Value, Wrong, found};

/// Entries of a list, at most.
const MOST: usize = 4096;

/// A file that is being read.
pub(super) struct Reader<'t> {
    pub(super) file: &'t str,
    pub(super) text: &'t str,
    pub(super) lines: LineStarts,
}

impl<'t> Reader<'t> {
    pub(super) fn named(&self, value: &Value<'t>) -> Result<Named, Wrong> {
        Named::of(self.file, &self.lines, value)
    }

    /// The file that a value names, and the key in it.
    pub(super) fn secret<K: FromStr>(&self, value: &Value<'t>) -> Result<(Named, K), Wrong> {
        let named = self.named(value)?;
        let key = secret::key(&named.path).map_err(|what| (value.span(), what))?;
        Ok((named, key))
    }

    pub(super) fn at(&self, offset: usize) -> At {
        At::of(&self.lines, offset)
    }
}

/// The entries of a list; none where the key is missing.
pub(super) fn list<'t, T>(
    section: &Section<'_, 't>,
    key: &str,
    what: &str,
    entry: impl Fn(&Value<'t>) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    let Some(value) = section.get(key) else { return Ok(Vec::new()) };
    let values = value.get_ref().as_array().ok_or_else(|| found(value, what))?;
    match values.len() {
        ..=MOST => values.iter().map(entry).collect(),
        many => Err((value.span(), format!("expected at most {MOST}, found {many}"))),
    }
}
