//! Files of bans: timed changes of the access list; and immediate changes.
//!
//! One change per line, as [`parse`] reads it: `TIME ban|unban|accept|deny SOURCE [DESTINATION]`. TIME is RFC 3339,
//! `+SECONDS` after the first packet, or `-` for before it; SOURCE and DESTINATION are addresses or prefixes of one
//! family, a DESTINATION only with accept and deny. Immediate changes have no TIME, and where all lines are for one
//! action they need not name it ([`changes`]). Empty lines and lines that begin with `#` do not count.

use std::fmt;

use access::list::{Action, Block, Change, Schedule, When};
use packet::visible;

use crate::moment::Moment;

/// An error in a line, with its place; both numbers count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BansError {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
    /// What was expected there, and what was found.
    pub what: String,
}

impl fmt::Display for BansError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for BansError {}

/// Reads the text of a file; `file` becomes the list's name.
///
/// # Errors
/// A line is no change.
pub fn parse(file: &str, text: &str) -> Result<Schedule, BansError> {
    let mut changes = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut words = Words { line, rest: line };
        match words.next() {
            None => {}
            Some((_, word)) if word.starts_with('#') => {}
            Some(first) => changes.push(
                change(first.0, first.1, &mut words).map_err(|(column, what)| BansError {
                    line: number,
                    column,
                    what,
                })?,
            ),
        }
    }
    Ok(Schedule::new(file, changes))
}

/// Prints an immediate change as its line.
#[must_use]
pub fn line(Change { action, source, destination }: &Change) -> String {
    match destination {
        Some(destination) => format!("{} {source} {destination}", action.word()),
        None => format!("{} {source}", action.word()),
    }
}

/// Reads immediate changes, at most `most`; lines that name no action are for `action`.
///
/// # Errors
/// A line is no change, or there are too many.
pub fn changes(text: &str, action: Option<Action>, most: usize) -> Result<Vec<Change>, BansError> {
    let mut changes = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut words = Words { line, rest: line };
        let Some((column, word)) = words.next().filter(|(_, word)| !word.starts_with('#')) else {
            continue;
        };
        let at = |(column, what)| BansError { line: number, column, what };
        if changes.len() == most {
            return Err(at((column, format!("expected at most {most} changes in one request"))));
        }
        let named = Action::ALL.into_iter().find(|action| action.word() == word);
        if named.is_none() && action.is_some() {
            words.rest = line;
        }
        let action = named.or(action);
        let action = action.ok_or_else(|| at((column, misread(ACTIONS, word))))?;
        changes.push(made(action, &mut words).map_err(at)?);
    }
    Ok(changes)
}

const ACTIONS: &str = "ban, unban, accept or deny";

/// The words of a line, each with its column.
struct Words<'l> {
    line: &'l str,
    rest: &'l str,
}

impl<'l> Iterator for Words<'l> {
    type Item = (usize, &'l str);

    fn next(&mut self) -> Option<(usize, &'l str)> {
        let start = self.rest.trim_start();
        let length = start.find(char::is_whitespace).unwrap_or(start.len());
        let (word, rest) = start.split_at(length);
        self.rest = rest;
        let column = self.line.len() - start.len() + 1;
        (!word.is_empty()).then_some((column, word))
    }
}

impl Words<'_> {
    /// The column of another word after the last one.
    fn end(&self) -> usize {
        self.line.trim_end().len() + 1
    }
}

type Misread = (usize, String);

fn change(column: usize, word: &str, words: &mut Words<'_>) -> Result<(When, Change), Misread> {
    let when = match (word, Moment::parse(word)) {
        ("-", _) => When::Before,
        (_, Some(Moment::At(time))) => When::At(time),
        (_, Some(Moment::After(span))) => When::After(span),
        _ => return Err((column, misread("an RFC 3339 time, +SECONDS or -", word))),
    };
    let (column, word) = words.next().ok_or_else(|| (words.end(), missing(ACTIONS)))?;
    let action = Action::ALL.into_iter().find(|action| action.word() == word);
    let action = action.ok_or_else(|| (column, misread(ACTIONS, word)))?;
    Ok((when, made(action, words)?))
}

/// Reads what follows the action.
fn made(action: Action, words: &mut Words<'_>) -> Result<Change, Misread> {
    let (_, source) = block(words)?.ok_or_else(|| (words.end(), missing("a source")))?;
    let destination = match action {
        Action::Accept | Action::Deny => block(words)?,
        Action::Ban | Action::Unban => None,
    };
    if let Some((column, _)) = destination.filter(|(_, block)| !block.is_family_of(source)) {
        return Err((column, "expected a destination of the source's family".to_owned()));
    }
    if let Some((column, word)) = words.next() {
        return Err((column, misread("the end of the line", word)));
    }
    let destination = destination.map(|(_, block)| block);
    Ok(Change { action, source, destination })
}

fn block(words: &mut Words<'_>) -> Result<Option<(usize, Block)>, Misread> {
    let Some((column, word)) = words.next() else { return Ok(None) };
    match Block::parse(word) {
        Some(block) => Ok(Some((column, block))),
        None => Err((column, misread("ADDRESS or ADDRESS/BITS", word))),
    }
}

/// Bytes of a word that are quoted in an error, at most.
const LONGEST_FOUND: usize = 100;

fn misread(expected: &str, found: &str) -> String {
    let found = &found[..found.floor_char_boundary(LONGEST_FOUND)];
    format!("expected {expected}, found \"{}\"", visible::word(found))
}

fn missing(expected: &str) -> String {
    format!("expected {expected}, found the end of the line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let text = "# bans\n\n- ban 10.0.0.0/8\r\n+1.5 unban 10.0.0.1\n  2026-11-21T10:00:00Z \
                    deny 0.0.0.0/0 192.0.2.1\n- accept 2001:db8::/32\n";
        let mut schedule = parse("", text).unwrap();
        let mut is_ok = |time, source: &str| {
            schedule.at(Some(time)).decide(source.parse().unwrap(), "192.0.2.1".parse().unwrap())
        };
        assert!(is_ok(0, "10.0.0.1").is_err());
        assert!(is_ok(1_500_000_000, "10.0.0.1").is_ok());
        assert!(is_ok(u64::MAX, "11.0.0.1").is_err());
    }

    #[test]
    fn changes_at_once_may_leave_out_what_all_of_them_do() {
        let text = "# a list\n10.0.0.1\n\n  unban 10.0.0.2\r\n::/0\n";
        let read = changes(text, Some(Action::Ban), 3).unwrap();
        let of = |action, source| Change { action, source, destination: None };
        let block = |text| Block::parse(text).unwrap();
        let expected = [
            of(Action::Ban, block("10.0.0.1")),
            of(Action::Unban, block("10.0.0.2")),
            of(Action::Ban, block("::/0")),
        ];
        assert_eq!(read, expected);
        let named = "ban 10.0.0.1\ndeny 10.0.0.0/8 192.0.2.1\n";
        assert_eq!(changes(named, None, 2).unwrap()[1].destination, Some(block("192.0.2.1")));
        for (text, action, (line, column, what)) in [
            (text, Some(Action::Ban), (5, 1, "expected at most 2 changes in one request")),
            ("\n 1.1.1.1", None, (2, 2, "expected ban, unban, accept or deny, found \"1.1.1.1\"")),
            ("kick", Some(Action::Ban), (1, 1, "expected ADDRESS or ADDRESS/BITS, found \"kick\"")),
            (
                "ban 1.1.1.1 2.2.2.2",
                None,
                (1, 13, "expected the end of the line, found \"2.2.2.2\""),
            ),
        ] {
            let wrong = changes(text, action, 2).unwrap_err();
            assert_eq!(wrong, BansError { line, column, what: what.to_owned() }, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, column, what) in [
            ("ban 10.0.0.1", 1, "expected an RFC 3339 time, +SECONDS or -, found \"ban\""),
            ("- kick 10.0.0.1", 3, "expected ban, unban, accept or deny, found \"kick\""),
            ("-", 2, "expected ban, unban, accept or deny, found the end of the line"),
            ("- ban", 6, "expected a source, found the end of the line"),
            ("- ban 10.0.0.1/33", 7, "expected ADDRESS or ADDRESS/BITS, found \"10.0.0.1/33\""),
            ("- ban ::1 ::2", 11, "expected the end of the line, found \"::2\""),
            ("- deny ::1 10.0.0.1", 12, "expected a destination of the source's family"),
        ] {
            let wrong = parse("", &format!("- ban ::1\n{text}")).unwrap_err();
            assert_eq!(wrong, BansError { line: 2, column, what: what.to_owned() }, "{text}");
        }
    }
}
