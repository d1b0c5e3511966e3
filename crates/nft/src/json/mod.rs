//! JSON as `nft -j list ruleset` has it: [`read`](read::ruleset) and [`write`](write::ruleset).

mod cx;
mod expr;
mod tree;

pub mod read;
pub mod write;

pub use cx::{Cx, Types};
pub use tree::{Json, integer, member, number};
