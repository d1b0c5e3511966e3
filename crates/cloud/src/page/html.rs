//! [`Html`]: a page that is written piece by piece.
//!
//! Contract: markup is the program's own, by its type, and everything else is escaped: nothing that a name, a policy, a log or a
//! request says becomes markup, or steers the reader's screen.

use std::fmt::Display;

/// A page.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup of the program's own.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a text, also as the value of an attribute between quotes.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        for c in packet::visible::word(&text.to_string()).chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }

    /// The whole page.
    pub(super) fn take(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_is_markup(text in "[<>&\"'a-z\u{202e}\u{0}-\u{1f} ]{0,40}|.{0,40}") {
            let mut html = Html::default();
            html.text(&text);
            let shown = html.take();
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            prop_assert!(!shown.chars().any(packet::visible::steers));
            let back = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            let back = back.replace("&#39;", "'").replace("&amp;", "&");
            prop_assert_eq!(back, packet::visible::word(&text));
        }
    }
}
