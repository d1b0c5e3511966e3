//! Text into markup: everything from rules and captures passes here.

use crate::time_text::time_text;
use packet::visible::steers;
use std::fmt::{Result, Write};

/// Rows of a table before "and N more".
pub(super) const ROWS: usize = 50;

/// The same of what decided most, of which scripts fold all but ten away.
pub(super) const ENDS: usize = 100;

/// Text as markup that shows it: safe between tags and inside double quotes.
///
/// Characters that would not show, or that would turn the order of others around (Unicode TR 36, 3.1),
/// become their names, so that a comment in the rules cannot disguise a rule.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if steers(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "‹U+{:04X}›", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// The anchor of a line of a rules file.
pub(super) fn anchor(file: usize, line: u32) -> String {
    if file == 0 { format!("L{line}") } else { format!("r{}-L{line}", file + 1) }
}

/// A link to a line of a rules file; nothing for line 0, which no text declared.
pub(super) fn line_link(out: &mut String, file: usize, line: u32) -> Result {
    if line == 0 {
        return Ok(());
    }
    write!(out, "<a class=\"to\" href=\"#{}\">L{line}</a> ", anchor(file, line))
}

/// A time for reading, in UTC with microseconds, the whole of it as a tooltip.
pub(super) fn write_time(out: &mut String, time: Option<u64>) -> Result {
    let Some(time) = time else { return Ok(()) };
    let full = time_text(time);
    write!(
        out,
        "<time datetime=\"{full}\" title=\"{full}\"><span>{}</span> {}</time>",
        day(&full),
        clock(&full)
    )
}

/// The day of an RFC 3339 time.
pub(super) fn day(full: &str) -> &str {
    full.get(..10).unwrap_or(full)
}

/// Hours to microseconds of an RFC 3339 time.
fn clock(full: &str) -> &str {
    full.get(11..26).unwrap_or(full)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_of_rules_cannot_become_markup() {
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn text_of_rules_cannot_be_disguised() {
        assert_eq!(escape("a\u{202e}b\0"), "a‹U+202E›b‹U+0000›");
    }

    #[test]
    fn times_are_short_and_whole() {
        let mut out = String::new();
        write_time(&mut out, Some(1_000_000_007)).unwrap();
        assert_eq!(
            out,
            "<time datetime=\"1970-01-01T00:00:01.000000007Z\" \
             title=\"1970-01-01T00:00:01.000000007Z\"><span>1970-01-01</span> 00:00:01.000000</time>"
        );
    }

    proptest! {
        #[test]
        fn escaped_text_has_no_markup_and_loses_nothing(text in "[ -~\u{e9}]*") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let back = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            prop_assert_eq!(back.replace("&#39;", "'").replace("&amp;", "&"), text);
        }
    }
}
