//! The report as one self-contained page: what to mail to whoever asks what the rules did.
//!
//! Contract: no network (the page's own policy forbids it); without scripts only search, sorting, folding and the
//! reading below the chart are missing, and the text of rules so long that it is packed ([`packed`]). The size
//! depends on the rules, not on the captures. The same replay gives the same page. Every word of rules and captures
//! passes [`markup::escape`].
//!
//! Sections stand in the order of `SECTIONS` in `page.rs`; one with nothing to say is left out, in the text and in
//! the list of contents.

mod changes;
mod chart;
mod coverage;
mod edits;
mod ends;
mod links;
mod markup;
mod packed;
mod packets;
mod page;
mod sheets;
mod summary;
mod ticks;
mod who;

pub(crate) use self::markup::escape;
