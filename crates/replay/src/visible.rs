//! Text from outside made safe for a terminal: rules and captures must not steer the screen they are shown
//! on, nor turn the order of its letters round.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every control character but the end of a line spelled out.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Control characters, and those that turn the direction of text (Unicode bidirectional formatting).
fn steers(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_spelled_out_and_the_rest_stays() {
        assert_eq!(visible("café … ok\n"), "café … ok\n");
        assert_eq!(visible("a\x1b[2Jb\tc\u{202e}d\u{9b}"), r"a\u{1b}[2Jb\tc\u{202e}d\u{9b}");
    }
}
