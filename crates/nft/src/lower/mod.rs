//! Evaluation: an nft ruleset as the rules that a walk reads ([`rules::model`]), one ruleset for each family of packets.
//!
//! A table becomes a table, a chain a chain, a rule one rule or a few. Comparisons are matches, what follows them is a
//! target; both are this crate's own, and ask a packet as the bytecode does that the kernel runs: an expression that cannot
//! be read ends its rule, and what is not known leaves both answers open. What is not evaluated is unknown by name, and
//! [`unknown`] lists it.
//!
//! Source: nft(8); kernel `net/netfilter/nf_tables_core.c`, `nft_*.c`; measured on Linux 6.18.

mod bytecode;
mod chains;
mod compare;
mod constants;
mod depend;
mod items;
mod load;
pub(crate) mod read;
mod rule;
mod scope;
mod set;
mod shape;
mod state;
mod statement;
mod supported;
mod test;
mod unknown;
mod width;
mod word;

#[cfg(test)]
mod probe;
#[cfg(test)]
mod tests;

pub use bytecode::loads;
pub use chains::{Lowered, lower, unknown};
pub use supported::{Supported, supported};
pub use unknown::Unknown;
