//! The kernel as oracle: what it does with a packet under a ruleset, and where tamis says otherwise.
//!
//! Needs root, network namespaces, TUN or veth devices, and the legacy tools; [`load::lacking`] says what
//! a machine has not got. Source of the recipes: measured on Linux 6.18 with iptables 1.8.9.

pub mod below;
pub mod campaign;
pub mod compare;
pub mod counters;
pub mod ebtables;
pub mod explain;
pub mod far;
pub mod frames;
pub mod holders;
pub mod kernel;
pub mod load;
pub mod netns;
pub mod nflog;
pub mod nft;
pub mod real;
pub mod record;
pub mod sets;
pub mod shrink;
pub mod state;
mod sys;
pub mod tun;
pub mod veth;
