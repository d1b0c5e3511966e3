//! Lines of a configuration of wg-quick: sections, keys and values, with their places. Names of both are in any case;
//! what follows `#` is a comment.
//!
//! Source: wg(8), "CONFIGURATION FILE FORMAT"; wg-quick(8).

/// Line and column, from 1, and what is wrong there.
pub(super) type Wrong = (usize, usize, String);

/// A key with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) value: &'t str,
    pub(super) line: usize,
    /// Column of the value.
    pub(super) column: usize,
}

/// A section, and what its comments call it.
#[derive(Debug, Default)]
pub(super) struct Part<'t> {
    pub(super) line: usize,
    pub(super) entries: Vec<Entry<'t>>,
    /// The comment in the line before, or in the line after.
    pub(super) comment: Option<&'t str>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Lines<'t> {
    pub(super) interface: Part<'t>,
    pub(super) peers: Vec<Part<'t>>,
}

impl<'t> Lines<'t> {
    pub(super) fn read(text: &'t str) -> Result<Self, Wrong> {
        let mut interface: Option<Part<'t>> = None;
        let mut lines = Self::default();
        let mut is_peer = None;
        let (mut comment, mut is_first) = (None, false);
        for (number, whole) in (1..).zip(text.lines()) {
            let (line, after) = whole.split_once('#').map_or((whole, None), |(a, b)| (a, Some(b)));
            let said = line.trim();
            let column = column_of(whole, said);
            if said.is_empty() {
                comment = after.map(str::trim);
                if let (Some(true), true, Some(part)) = (is_peer, is_first, lines.peers.last_mut())
                {
                    part.comment = part.comment.or(comment);
                }
                is_first = false;
                continue;
            }
            if said.eq_ignore_ascii_case("[interface]") {
                let again = "expected one [Interface], found another";
                let part = Part { line: number, ..Part::default() };
                if interface.replace(part).is_some() {
                    return Err((number, column, again.to_owned()));
                }
                is_peer = Some(false);
            } else if said.eq_ignore_ascii_case("[peer]") {
                lines.peers.push(Part { line: number, comment, ..Part::default() });
                (is_peer, is_first) = (Some(true), true);
                comment = None;
                continue;
            } else {
                let entry = entry(whole, said, number, column)?;
                let part = match is_peer {
                    Some(true) => lines.peers.last_mut(),
                    _ => interface.as_mut(),
                };
                let what = "expected [Interface] or [Peer] before it";
                part.ok_or_else(|| (number, column, what.to_owned()))?.entries.push(entry);
            }
            (comment, is_first) = (None, false);
        }
        lines.interface = interface.ok_or((1, 1, "expected [Interface]".to_owned()))?;
        Ok(lines)
    }
}

fn entry<'t>(whole: &str, said: &'t str, line: usize, column: usize) -> Result<Entry<'t>, Wrong> {
    let what = "expected [Interface], [Peer] or KEY = VALUE";
    let (key, value) = said.split_once('=').ok_or((line, column, what.to_owned()))?;
    let value = value.trim();
    Ok(Entry { key: key.trim(), value, line, column: column_of(whole, value) })
}

/// Where a part of a line begins in it, from 1.
fn column_of(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize + 1
}

impl<'t> Entry<'t> {
    /// What is wrong with it.
    pub(super) fn wrong(&self, what: &str) -> Wrong {
        let found = packet::visible::word(self.value).into_owned();
        (self.line, self.column, format!("{}: expected {what}, found \"{found}\"", self.key))
    }

    /// The parts of a list, each as an entry at its own place.
    pub(super) fn parts(&self) -> impl Iterator<Item = Entry<'t>> {
        let whole = *self;
        whole.value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(move |value| {
            Entry { value, column: whole.column + column_of(whole.value, value) - 1, ..whole }
        })
    }

    pub(super) fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }
}
