//! Text from outside, made safe to show: names, rules and captures must not steer the screen that they are shown on, turn
//! the order of its letters round, add lines, or give commands to the CI server that reads the log.
//!
//! [`word`] is for every value that is put into a line of ours, [`text`] for text of several lines as a whole, [`plural`] for
//! what was counted.
//!
//! Source: Unicode TR 36, 3.1 (bidirectional spoofing); GitHub's runner, `ActionCommand.cs`: `::NAME` begins a line,
//! blanks before it do not count, `##[NAME` stands anywhere; Azure Pipelines and TeamCity read `##vso[` and
//! `##teamcity[`.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character does not show as itself: control characters, ends of lines, directional marks, embeddings,
/// overrides and isolates, and what has no width.
#[must_use]
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A value as it may stand in a line: what steers is spelled out, the end of a line too.
#[must_use]
pub fn word(value: &str) -> Cow<'_, str> {
    shown(value, false)
}

/// Text of several lines, none of which steers.
#[must_use]
pub fn text(lines: &str) -> Cow<'_, str> {
    shown(lines, true)
}

/// Returns a number with a comma before every three digits.
#[must_use]
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a [`number`] and the word, in the plural unless the number is one.
#[must_use]
pub fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", number(count), if count == 1 { "" } else { "s" })
}

/// Whether a command of a CI server begins here that counts anywhere in a line: `##[`, `##vso[`.
#[must_use]
pub fn commands(rest: &str) -> bool {
    rest.strip_prefix("##").is_some_and(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_lowercase()).starts_with('[')
    })
}

fn shown(text: &str, of_lines: bool) -> Cow<'_, str> {
    let ends = |c: char| of_lines && c == '\n';
    let odd = |c: char| steers(c) && !ends(c);
    let may_command = text.contains("##") || of_lines && text.contains("::");
    if !may_command && !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    // Only blanks stand before, so that `::` would begin a command.
    let mut begins = of_lines;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        match c {
            // Writing to a String cannot fail.
            _ if odd(c) => _ = write!(out, "{}", c.escape_default()),
            '#' if commands(rest) => out.push_str("\\u{23}"),
            ':' if begins && rest.starts_with("::") => out.push_str("\\u{3a}"),
            _ => out.push(c),
        }
        begins = ends(c) || begins && c.is_whitespace();
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_spelled_out_and_the_rest_stays() {
        assert_eq!(text("café … ok\n"), "café … ok\n");
        assert_eq!(text("a\x1b[2Jb\tc\u{202e}d\u{9b}"), r"a\u{1b}[2Jb\tc\u{202e}d\u{9b}");
        assert_eq!(word("a\u{2028}b\u{200b}c"), r"a\u{2028}b\u{200b}c");
    }

    #[test]
    fn a_value_stays_on_its_line() {
        assert_eq!(word("eth0\nACCEPT by L1"), r"eth0\nACCEPT by L1");
        assert_eq!(word("a\r\nb"), r"a\r\nb");
    }

    #[test]
    fn no_text_commands_a_ci_server() {
        assert_eq!(text("a\n ::error::x\n"), "a\n \\u{3a}:error::x\n");
        assert_eq!(text("::stop-commands::x"), r"\u{3a}:stop-commands::x");
        assert_eq!(text("tcp [2001:db8::1]:53 :: x"), "tcp [2001:db8::1]:53 :: x");
        assert_eq!(word("x ###[error]y"), r"x #\u{23}#[error]y");
        assert_eq!(word("##vso[task.x] ##teamcity[y]"), r"\u{23}#vso[task.x] \u{23}#teamcity[y]");
        assert_eq!(word("## a heading [x]"), "## a heading [x]");
    }
}
