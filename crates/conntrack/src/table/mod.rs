//! [`Table`]: the flows, found by either tuple, bounded in number.
//!
//! Contract: at most [`Config::max`](crate::Config) flows. A dead flow is never found; its slot is taken
//! back when a lookup meets it or the sweep does, which looks at a few slots for every new flow, so no
//! packet pays for a scan.
//!
//! A full table evicts an unassured flow, else the new one is refused. The kernel does so as well, but among the few
//! that lie where a hash with a secret key puts the new one: which flow went there, and whether any did, is not known.
//! So every flow that the kernel might have evicted is in doubt (`may_be_evicted`), and a flow that was
//! evicted here may still be there (`may_have`). Which flow is evicted here depends on the order of packets
//! alone. A table that decides itself ([`Config::entropy`](crate::Config)) has no such doubts.
//!
//! Source: Linux `nf_conntrack_core.c` (`early_drop`, `gc_worker`, `__nf_conntrack_confirm`).

mod flows;
mod room;
#[cfg(test)]
mod tests;

pub use flows::TableStats;
pub(crate) use flows::{Conflict, Table};
