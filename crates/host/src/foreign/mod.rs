//! [`ForeignChain`]: a base chain that sees a host's packets but is not evaluated here: a native nft table's, or
//! iptables-legacy's where the rules are in iptables-nft. What it may do to a packet is all that is known of it.
//!
//! Contract: [`Effects`] err to more than a chain does, never to less. Who reads rulesets finds them (crate `nft`, and of
//! iptables-legacy crate `replay`).
//!
//! Source: nft(8), libnftables-json(5); for priorities `enum nf_inet_hooks` and `NF_IP_PRI_*`, `NF_BR_PRI_*` of the kernel.

mod chain;
mod effects;

pub use chain::{Foreign, ForeignChain, ForeignFamily, ForeignHook, ForeignProgram};
pub use effects::Effects;
