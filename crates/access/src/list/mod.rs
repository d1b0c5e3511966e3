//! tamis's access list: bans, and the sources that destinations accept, over prefixes of IPv4 and IPv6.
//!
//! Bans are a set of addresses, the last writer wins for each. R is kept by disjoint ranges of destinations,
//! which a change splits; by default every destination accepts every source. A list is a value:
//! [`Published`] gives threads the latest one, [`Live`] also carries out timed changes for them.

mod block;
mod change;
mod families;
mod listed;
mod live;
mod published;
mod schedule;
mod side;
#[cfg(test)]
mod tests;

pub use block::Block;
pub use change::{Action, Change};
pub use families::List;
pub use live::{Live, LiveReader};
pub use published::{Published, Reader};
pub use schedule::{Schedule, When};
pub use side::Denied;
