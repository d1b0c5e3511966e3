//! Packets in groups: by the rule and the jumps that decided about them, by connection, by source, destination, or
//! destination port.
//!
//! A packet stands in a group as it was captured, before any translation. A group counts its packets by verdict, and is
//! shown if one of them is on the lists that were asked for; paths are of listed packets alone.
//!
//! Contract: packets come in capture order, so groups are the same for every number of workers. Memory is bounded:
//! [`MOST`] groups of each kind, and `MOST_ON_PAGE` of a kind that only the page shows. At that number, groups without
//! a listed packet make room, once; what finds no room after that is counted and said.

mod gathering;
mod key;
#[cfg(test)]
mod tests;

pub(crate) use gathering::Gathering;
pub use gathering::{Group, Grouping, MOST};
pub use key::{CallPath, Ends, GroupBy, GroupKey};
pub(crate) use key::{Grouped, has_ports, protocol_text};
