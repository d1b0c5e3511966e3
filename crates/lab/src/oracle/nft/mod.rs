//! nftables: what the kernel does with packets under rulesets that nft loaded, and where tamis says otherwise.
//!
//! A ruleset is drawn ([`crate::generate::nft`]) and loaded by `nft -f` into a fresh namespace; what nft refuses is taken
//! out of it, for both sides. Packets are sent by a TUN device. After each batch the counters of every rule, in its
//! middle and at its end, are read by `nft -j` and compared, and so is each packet that left.
//! Source of the recipes: measured on Linux 6.18 with nft 1.0.6.

pub mod campaign;
pub mod compare;
pub mod items;
pub mod kernel;
pub mod shrink;
pub mod tamis;
