//! Draws rulesets and packets from a seed: the same seed gives the same bytes.
//!
//! A test is drawn as its text and as a [`Craft`], an edit that makes a packet pass it. So packets are
//! made to meet rules: draw a rule, apply the crafts of its tests and of the jumps that lead to it, then
//! break one thing. To add a match, write one function in [`mod@matches`] and name it in its table.

pub(crate) mod answers;
pub mod checksums;
pub mod draft;
mod draw;
pub mod frames;
pub mod matches;
pub mod mutate;
pub mod nft;
pub mod packets;
pub mod ruleset;
pub mod sets;
pub mod targets;
mod v6;

pub use draw::{Craft, Draw, Piece};
