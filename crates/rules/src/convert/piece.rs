//! A match or target as its printed options, which is the form that translations read.

use crate::ext::Printer;
use crate::lexer::words;

/// One printed option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// `!` stands before it.
    pub(super) invert: bool,
    /// The option's name without dashes.
    pub(super) name: String,
    /// The option's values, as they print.
    pub(super) values: Vec<String>,
}

impl Piece {
    /// `! ` or nothing.
    pub(super) fn bang(&self) -> &'static str {
        if self.invert { "! " } else { "" }
    }

    /// The first value.
    pub(super) fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// The options that `print` writes.
pub(super) fn pieces(print: impl FnOnce(&mut Printer)) -> Vec<Piece> {
    let mut to = Printer::default();
    print(&mut to);
    let text = to.finish();
    let (mut all, mut invert) = (Vec::<Piece>::new(), false);
    for word in words(&text, 1).unwrap_or_default() {
        match (word.quoted, &*word.text) {
            (false, "!") => invert = true,
            (false, option) if option.starts_with("--") => {
                let name = option[2..].to_owned();
                all.push(Piece { invert: std::mem::take(&mut invert), name, values: Vec::new() });
            }
            (_, value) => {
                if let Some(last) = all.last_mut() {
                    last.values.push(value.to_owned());
                }
            }
        }
    }
    all
}
