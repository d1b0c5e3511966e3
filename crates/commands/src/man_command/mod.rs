//! `tamis man`: manual pages, from the same definitions as the help.
//!
//! What a command's help says after its options becomes the page's NOTES, EXAMPLES and EXIT STATUS ([`sections`]); where the
//! help is too short to give examples, and for FILES, [`more`] has them.

mod more;
mod pages;
mod sections;
#[cfg(test)]
mod tests;

pub(crate) use pages::{ManArgs, run};
