//! [`Key`]: which worker a packet goes to, where several share the packets out. The one place that decides it.
//!
//! Contract: packets of one flow, of either direction and errors about it included, go to one worker, whatever their
//! number, as long as both tuples of the flow have one key. Without translation they have; [`Key::Ports`] allows
//! translations of addresses. Who tracks a [`Shard`] watches that what it leaves concerns no other
//! ([`Tracker::crosses`](crate::Tracker::crosses)). The same in every run.
//!
//! Why ports: a translation of addresses leaves them as they are, in replies and in what errors quote as well, and two
//! flows that ask for one tuple have the same ports. So the search for a tuple that nobody has, which is what couples
//! flows in the kernel (`nf_nat_core.c`, `nf_nat_used_tuple`), looks at flows of one worker alone.

mod key;
mod program;
mod usual;

pub use self::program::Instruction;
pub use key::{Alike, Key, Shard};
