//! Packets as other programs print them: a line of the kernel's log, of `nft monitor trace`, of `conntrack -L`, of
//! tcpdump. [`line`] makes a SPEC of each.
//!
//! Contract: what a line says is taken over, and nothing is added to it; a word that has to be understood and is not is
//! an error with its column. What the line does not say is what it is for a SPEC that does not say it.

mod connection;
mod line;
mod log;
mod passed;
mod said;
mod tcpdump;
#[cfg(test)]
mod tests;
mod trace;

pub(super) use line::{Line, line};
pub(crate) use passed::{Passed, What};
pub(crate) use said::{Among, Captured};
