//! Words for a POSIX shell, so that a command that tamis prints can be typed as it stands.
//!
//! Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting.

use std::borrow::Cow;

/// The text as one word of a command line.
#[must_use]
pub fn quote(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:,=+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_quotes_is_quoted() {
        assert_eq!(quote("rules.v4"), "rules.v4");
        assert_eq!(quote("tcp 1.2.3.4:5 > 6.7.8.9:10"), "'tcp 1.2.3.4:5 > 6.7.8.9:10'");
        assert_eq!(quote("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("$(x)"), "'$(x)'");
    }
}
